// The bits of a number. It keeps the number that was asked, and rounds it anew in each format; a format's chip tells what
// it makes of the number once it was looked at. Bits are clicked, and so are the numbers beside it.
// State: `format`, `bits` ("0" and "1"), `asked`, the number as it was typed, "" once the bits have been changed by hand.
// Given: `formats`; `lost`, the number that is asked about and the format that has lost it, if there is one; `saturates`, the formats in which this PyTorch takes the largest number where the standard gives NaN.

import { arrows, asks, beside, button, digits, field, h, picture, plain, s, shown } from "./toolkit.js";

// ---- Formats, as helpers.formats has them; a test compares all numbers ----------------------------------------------

const size = (fmt) => 1 + fmt.exponent_bits + fmt.fraction_bits;

// As helpers.formats: the largest finite code, the codes of infinity and of a NaN, null where there is none.
function limits(fmt) {
  const ones = (1n << BigInt(size(fmt) - 1)) - 1n;
  const infinities = 1n << BigInt(fmt.fraction_bits);
  if (fmt.nonfinite === "none") return { max: ones, inf: null, nan: null };
  if (fmt.nonfinite === "nan only") return { max: ones - 1n, inf: null, nan: ones };
  return { max: ones - infinities, inf: ones - infinities + 1n, nan: ones - infinities + 1n + infinities / 2n };
}

function decode(code, fmt) {
  const bits = code.toString(2).padStart(size(fmt), "0");
  const sign = Number(bits[0]);
  const exponent = parseInt(bits.slice(1, 1 + fmt.exponent_bits), 2);
  const fraction = parseInt(bits.slice(1 + fmt.exponent_bits), 2);
  const magnitude = BigInt(`0b0${bits.slice(1)}`);
  const { max, inf } = limits(fmt);
  const parts = { bits, code, sign, exponent, fraction, magnitude };
  if (magnitude === inf) return { ...parts, value: sign ? -Infinity : Infinity, kind: "infinity" };
  if (magnitude > max) return { ...parts, value: NaN, kind: "nan" };
  const hidden = exponent ? 2 ** fmt.fraction_bits : 0;
  const step = 2 ** (Math.max(exponent, 1) - fmt.bias - fmt.fraction_bits);
  const value = (hidden + fraction) * step;
  const kind = exponent ? "normal" : fraction ? "subnormal" : "zero";
  return { ...parts, value: sign ? -value : value, kind };
}

// The code nearest to a number, of two the even one; null for a NaN that the format has not.
function encode(value, fmt) {
  const sign = value < 0 || Object.is(value, -0) ? 1n << BigInt(size(fmt) - 1) : 0n;
  const { max, nan } = limits(fmt);
  if (Number.isNaN(value)) return nan;
  const beyond = fmt.nonfinite === "none" ? max : max + 1n; // infinity, or the NaN of float8_e4m3fn
  const x = Math.abs(value);
  if (x === Infinity) return sign | beyond;
  if (x === 0) return sign;
  const exponent = Math.max(exponentOf(x), 1 - fmt.bias);
  const steps = x / 2 ** (exponent - fmt.fraction_bits);
  const low = Math.floor(steps);
  const over = steps - low;
  const up = over > 0.5 || (over === 0.5 && low % 2 === 1);
  const magnitude = BigInt(up ? low + 1 : low) + (BigInt(exponent + fmt.bias - 1) << BigInt(fmt.fraction_bits));
  return sign | (magnitude > max ? beyond : magnitude);
}

function exponentOf(x) {
  const guess = Math.floor(Math.log2(x)); // may be off by one near a power of two
  if (2 ** guess > x) return guess - 1;
  return 2 ** (guess + 1) <= x ? guess + 1 : guess;
}

// The code so many numbers further along the number line, zero counted once; null where the numbers end.
function neighbour(number, fmt, by) {
  const { max, inf } = limits(fmt);
  const place = (number.sign ? -number.magnitude : number.magnitude) + BigInt(by);
  const magnitude = place < 0n ? -place : place;
  if (number.kind === "nan" || magnitude > (inf ?? max)) return null;
  const negative = place < 0n || (place === 0n && number.sign);
  return magnitude | (negative ? 1n << BigInt(size(fmt) - 1) : 0n);
}

const general = (x, count = 9) => { // as Python's %.9g
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "−∞" : "∞";
  if (x === 0) return "0";
  const { head, power } = digits(x, count);
  if (power >= -4 && power < count) return plain(x, count).replace("-", "−");
  const tail = head.slice(1).replace(/0+$/, "");
  const exponent = `${power < 0 ? "-" : "+"}${`${Math.abs(power)}`.padStart(2, "0")}`;
  return `${x < 0 ? "−" : ""}${head[0]}${tail && `.${tail}`}e${exponent}`;
};
const written = (x) => (Object.is(x, -0) ? "-0" : Number.isFinite(x) ? `${x}` : Number.isNaN(x) ? "nan" : x < 0 ? "-inf"
  : "inf");
const raised = (power) => `${power}`.replace(/./g, (digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]);

function formula({ sign, exponent, fraction, value, kind }, fmt) {
  const minus = sign ? "−" : "", special = { zero: "0", infinity: "∞", nan: "NaN" }[kind];
  if (special) return minus + special;
  const significand = (kind === "normal" ? 1 : 0) + fraction / 2 ** fmt.fraction_bits, size = Math.abs(value);
  const exact = digits(significand, 9).exact && digits(size, 9).exact;
  const power = raised(Math.max(exponent, 1) - fmt.bias), equals = exact ? "=" : "≈";
  return `${minus}2${power} × ${general(significand)} ${equals} ${minus}${general(size)}`;
}

function typed(text) {
  const word = text.toLowerCase().replace("∞", "inf").replace("−", "-").match(/^([+-]?)(inf|infinity|nan)$/);
  if (word) return word[2] === "nan" ? NaN : word[1] === "-" ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

// Nine digits, as in the formula, or as many more as tell a number from those beside it.
function distinct(x, others) {
  const same = (count) => others.some((other) => Number.isFinite(other) && other !== x && general(other, count) === general(x, count));
  let count = 9;
  while (count < 17 && same(count)) count++;
  return general(x, count);
}

// All decimal digits of a number, at most so many of them.
function exactly(x, most = 60) {
  const { head, power } = digits(x, 101);
  const all = head.replace(/0+$/, "") || "0";
  const cut = all.length > most;
  const shown = cut ? all.slice(0, most) : all;
  const minus = x < 0 ? "−" : "";
  const more = cut ? "…" : "";
  if (x === 0) return "0";
  if (power < -5 || power > 15) return `${minus}${shown[0]}.${shown.slice(1) || "0"}${more} × 10${raised(power)}`;
  if (power < 0) return `${minus}0.${"0".repeat(-power - 1)}${shown}${more}`;
  const whole = shown.padEnd(power + 1, "0");
  const part = whole.slice(power + 1);
  return `${minus}${whole.slice(0, power + 1)}${part && `.${part}`}${more}`;
}

// ---- The picture ----------------------------------------------------------------------------------------------------

function checkBits({ format, bits, asked, formats }) {
  const fmt = formats[format];
  if (!fmt) return `There is no format ${format}; there are ${Object.keys(formats).join(", ")}.`;
  if (!new RegExp(`^[01]{${size(fmt)}}$`).test(bits)) return `${format} has ${size(fmt)} bits, each 0 or 1; this is ${bits}.`;
  return asked === "" || typed(asked) !== undefined ? "" : `“${asked}” is no number; write it like 0.1 or 6e-8.`;
}

const patternOf = (code, fmt) => code.toString(2).padStart(size(fmt), "0");

// What a number becomes in a format: its bits, or a sentence where the format has nothing for it.
function rounded(text, name, formats) {
  const value = typed(text);
  const fmt = formats[name];
  if (value === undefined) return { problem: `“${text}” is no number; write it like 0.1 or 6e-8.` };
  const code = encode(value, fmt);
  if (code === null) return { problem: `${name} has no NaN; every one of its patterns is a finite number.` };
  return { bits: patternOf(code, fmt), number: decode(code, fmt) };
}

const answered = (ui) => ui.state.revealed.filter((one) => one === "lives");

function ask(ui, text, name = ui.state.format) {
  const { problem, bits } = rounded(text, name, ui.state.formats);
  if (problem) return ui.say(problem);
  const { format, revealed } = ui.state;
  const value = typed(text);
  const asked = Number.isFinite(value) ? text : written(value); // "∞" as Python writes it
  const looked = asked === ui.state.asked ? [...revealed, format] : answered(ui); // another number has been looked at nowhere
  ui.set({ asked, format: name, bits, revealed: [...new Set([...looked, name])] });
}

// A number that its format has lost: in which others does it live? They are marked before they tell.
function question(ui) {
  const { lost, formats } = ui.state;
  const guess = ui.guess("lives");
  if (!lost?.asked) return null;
  const lives = (name) => !isLost(rounded(lost.asked, name, formats).number.value);
  const others = Object.keys(formats).filter((name) => name !== lost.format);
  const [alive, marked] = [others.filter(lives), guess.value ?? []];
  const hits = marked.filter(lives).length;
  const [wrong, missed] = [marked.length - hits, alive.length - hits];
  const counts = wrong || missed ? `you marked ${hits} right and ${wrong} wrong, and missed ${missed}` : "as you marked";
  const said = guess.value === null ? "" : `: ${counts}`;
  const again = () => {
    ask(ui, lost.asked, lost.format);
    ui.set({ predicted: {}, revealed: [] });
  };
  return asks({ ...guess, again }, [h("b", {}, `${lost.asked} is gone in ${lost.format}. `), "In which other formats does it live? Mark them."],
    [h("b", {}, `It lives in ${alive.join(", ") || "none"}`), `${said}. Now choose a format, click bits, or type another number.`], { show: "Round it in all of them" });
}

const isLost = (value) => value === 0 || !Number.isFinite(value);

function chips(ui, number) {
  const { formats, format, asked, revealed, lost } = ui.state;
  const guess = ui.guess("lives");
  const about = Boolean(lost?.asked) && asked === lost.asked;
  const text = asked || written(number.value);
  const marked = guess.value ?? [];
  const mark = (name) => guess.make(marked.includes(name) ? marked.filter((other) => other !== name) : [...marked, name]);
  return Object.keys(formats).map((name) => {
    const pressed = name === format;
    if (about && !guess.told && !pressed) {
      const on = marked.includes(name);
      return button([h("b", {}, name), h("small", {}, on ? "lives" : "?")], () => mark(name),
        { class: `chip ${on ? "marked" : ""}`, "aria-pressed": `${on}`, "aria-label": `mark ${name}` });
    }
    const told = revealed.includes(name) || pressed || (about && guess.told);
    const there = rounded(text, name, formats).number;
    const value = there ? general(there.value) : "none";
    return button([h("b", {}, name), h("small", {}, told ? value : "\u00a0")], () => ask(ui, text, name),
      { class: "chip", "aria-pressed": `${pressed}`, "aria-label": told ? `${name}: ${value}` : name });
  });
}

// A cell for each bit, its field as a tint, its place value above.
function cells(ui, number, fmt) {
  const { em, width } = ui;
  const count = size(fmt);
  const columns = count <= 19 && width >= 19 * 26 ? count : width >= 800 ? 32 : 8;
  const cell = Math.min(4.1 * em, Math.floor((width - 2) / columns));
  const tall = 2.3 * em;
  const upright = cell < 2.6 * em;
  const head = upright ? 3 * em : 1.4 * em;
  const line = head + tall + 1.5 * em;
  const words = { sign: number.sign, exponent: number.exponent, fraction: number.fraction };
  const fieldOf = (place) => (place === 0 ? "sign" : place <= fmt.exponent_bits ? "exponent" : "fraction");
  const one = (digit, place) => {
    const kind = fieldOf(place);
    const weight = count - 1 - place;
    const x = (place % columns) * cell + 1;
    const y = Math.floor(place / columns) * line + head;
    const starts = [0, 1, 1 + fmt.exponent_bits].includes(place);
    const worth = worthOf(kind, weight - fmt.fraction_bits);
    const turned = upright && `rotate(-90 ${x + cell / 2 + em / 3} ${y - 0.4 * em})`;
    const first = kind === "sign" && cell < 3.4 * em ? `± ${number.sign}` : `${kind} ${words[kind]}`;
    return s("g", { ...bitControl(ui, number, fmt, place), class: `bit ${kind}`, role: "checkbox",
      "aria-checked": `${digit === "1"}`, "aria-label": `bit ${weight}, ${kind}, ${worth}`, "data-link": kind },
    s("rect", { x: x + 0.5, y, width: cell - 1, height: tall, class: "grip" }),
    s("text", { x: x + cell / 2, y: y + tall / 2 + 0.42 * em, class: "digit" }, digit),
    s("text", { x: x + cell / 2 + (upright ? em / 3 : 0), y: y - 0.4 * em, class: "soft",
      "text-anchor": upright ? "start" : "middle", transform: turned }, worth),
    starts && s("text", { x: x + 1, y: y + tall + 1.1 * em, class: "name" }, first));
  };
  return s("svg", { class: "bits", role: "group", "aria-label": `the bits of a number in ${ui.state.format}`, width,
    height: Math.ceil(count / columns) * line }, [...number.bits].map(one));
}

function worthOf(kind, power) {
  if (kind === "sign") return "±";
  return kind === "exponent" ? `${2 ** power}` : `2${raised(power)}`;
}

function bitControl(ui, number, fmt, place) {
  const count = size(fmt);
  const flip = () => {
    ui.own.bit = place;
    ui.set({ bits: patternOf(number.code ^ (1n << BigInt(count - 1 - place)), fmt), asked: "", revealed: answered(ui) });
  };
  const onkeydown = (event) => {
    const sisters = event.currentTarget.parentNode.children;
    if ([" ", "Enter"].includes(event.key) && !event.shiftKey) return event.preventDefault(), flip();
    const go = (to) => {
      ui.keep({ bit: Math.min(Math.max(to, 0), count - 1) });
      sisters[ui.own.bit].focus();
    };
    arrows(event, (by, up) => (up ? step(ui, number, fmt, up) : go(place + by)), (side) => go(side < 0 ? 0 : count - 1));
  };
  return { tabindex: place === Math.min(ui.own.bit ?? 0, count - 1) ? 0 : -1, onclick: flip, onkeydown };
}

function step(ui, number, fmt, by) {
  const code = neighbour(number, fmt, by);
  if (number.kind === "nan") return ui.say("A NaN has no neighbours.");
  if (code === null) return ui.say(`${ui.state.format} has no number beyond ${general(number.value)}.`);
  ui.set({ bits: patternOf(code, fmt), asked: "", revealed: answered(ui) });
}

// Up to three numbers on either side, as far apart as they are, and what was asked as a red mark.
function numberLine(ui, number, fmt, asked) {
  const { em, width } = ui;
  const reach = width < 500 ? 1 : 3;
  const steps = Array.from({ length: 2 * reach + 1 }, (_, k) => k - reach);
  const valued = steps.map((by) => ({ by, code: neighbour(number, fmt, by) })).filter(({ code }) => code !== null);
  const near = valued.map(({ by, code }) => ({ by, value: decode(code, fmt).value })).filter(({ value }) => Number.isFinite(value));
  if (near.length < 2) return null;
  const [first, last] = [near[0].value, near.at(-1).value];
  const [left, right, level] = [1.5 * em, width - 1.5 * em, 2.3 * em];
  const part = (value) => (Number.isFinite(last - first) ? (value - first) / (last - first)
    : (value / 2 - first / 2) / (last / 2 - first / 2)); // halves do not overflow, and only small numbers underflow
  const at = (value) => left + part(value) * (right - left);
  const values = [...near.map(({ value }) => value), asked ?? NaN];
  const marks = near.map(({ by, value }) => s("g", { class: by ? "near" : "", onclick: by ? () => step(ui, number, fmt, by) : null },
    s("rect", { x: at(value) - em, y: level - em, width: 2 * em, height: 2 * em, class: "spot" }),
    s("path", { d: `M${at(value)} ${level - 0.5 * em}v${em}`, class: "stroke" }),
    by === 0 && s("circle", { cx: at(value), cy: level, r: 0.45 * em, class: "dot" }),
    Math.abs(by) < 2 && beside(distinct(value, values), at(value), by ? level + 1.7 * em : level + 2.9 * em, 0, ui,
      by ? "name" : "name bold")));
  const inside = asked !== null && asked !== number.value && asked >= first && asked <= last;
  const red = inside && s("g", {}, s("path", { d: `M${at(asked)} ${level - 3}l-6 -12h12z`, class: "asked" }),
    beside(`asked ${general(asked)}`, at(asked), 0.8 * em, 0, ui, "label asked-word"));
  return s("svg", { class: "line", role: "img", width, height: level + 3.4 * em,
    "aria-label": `${distinct(number.value, values)} on the number line` },
  s("path", { d: `M${left - em} ${level}H${right + em}`, class: "stroke" }), marks, red);
}

// What became of the number that was asked, in words.
function fate(ui, number, fmt, asked) {
  const { format, saturates } = ui.state;
  const { max } = limits(fmt);
  const largest = general(decode(max, fmt).value);
  const it = general(asked ?? number.value);
  if (number.kind === "nan" && asked !== null && !Number.isNaN(asked)) {
    const torch = saturates.includes(format) ? `; PyTorch takes the largest, ${largest}, as the standard also allows` : "";
    return `${it} is beyond ${largest}, the largest number, and there is no infinity: NaN${torch}.`;
  }
  if (number.kind === "nan") return "Not a number: what 0/0 gives. It equals nothing, not even itself.";
  if (number.kind === "infinity" && Number.isFinite(asked ?? NaN))
    return `${it} is at least half a gap beyond ${largest}, the largest number: it becomes infinity.`;
  if (number.kind === "infinity") return "Infinity: what 1/0 gives, and what is too large becomes.";
  if (asked === null || asked === number.value) return "";
  const smallest = general(decode(1n, fmt).value, 4);
  if (number.value === 0) return `${it} is gone: it is at most half of ${smallest}, the smallest number, and becomes 0.`;
  if (Math.abs(asked) > decode(max, fmt).value) return `${it} is beyond ${largest}, the largest number: it stays there.`;
  const error = Math.abs(number.value - asked);
  return `You asked for ${it}; the nearest number is ${general(error, 3)} away, ${general((100 * error) / Math.abs(asked), 2)} % of it.`;
}

export default picture({
  state: ["format", "bits", "asked"],
  given: ["formats", "saturates", "lost"],
  check: checkBits,
  draw(ui) {
    const { formats, format, bits } = ui.state;
    const fmt = formats[format];
    const number = decode(BigInt(`0b${bits}`), fmt);
    const text = ui.state.asked;
    const asked = text === "" ? null : typed(text);
    const { max, inf, nan } = limits(fmt);
    const side = (by) => neighbour(number, fmt, by);
    const nextTo = (by) => (side(by) === null ? "none" : distinct(decode(side(by), fmt).value, [number.value]));
    const show = (code) => ui.set({ bits: patternOf(code, fmt), asked: "", revealed: answered(ui) });
    const names = [["0", 0n], ["1", encode(1, fmt)], ["smallest", 1n], ["smallest normal", 1n << BigInt(fmt.fraction_bits)],
      ["largest", max], ["infinity", inf], ["NaN", nan]];
    const word = number.kind === "nan" ? "NaN" : number.kind;
    const said = fate(ui, number, fmt, asked);
    const lost = asked !== null && asked !== number.value && isLost(number.value);
    ui.tell(`${formula(number, fmt)}, ${word}. ${said}`);
    return [
      question(ui),
      h("div", { class: "row" }, field("number", text || written(number.value), (typing) => ask(ui, typing),
        { size: 14, "data-shown": "value" }), h("div", { class: "row chips" }, chips(ui, number))),
      cells(ui, number, fmt),
      h("p", { class: "big" }, shown("formula", formula(number, fmt)), h("small", {}, " ", shown("kind", word))),
      h("p", { class: lost ? "fate" : "" }, shown("fate", said)),
      numberLine(ui, number, fmt, asked),
      h("div", { class: "row" }, button("◂ next below", () => step(ui, number, fmt, -1)),
        button("next above ▸", () => step(ui, number, fmt, 1)),
        names.map(([name, code]) => code !== null && button(name, () => show(code)))),
      h("p", { class: ui.slide ? "soft off" : "soft" }, "code ", shown("code", `0x${number.code.toString(16).padStart(Math.ceil(size(fmt) / 4), "0")}`),
        ": sign ", shown("sign", number.sign), ", exponent ", shown("exponent", number.exponent),
        number.exponent ? " − bias " : ", so 1 − bias ", shown("bias", fmt.bias), ", fraction ", shown("fraction", number.fraction),
        " of ", shown("fractions", `${2 ** fmt.fraction_bits}`), ". ",
        Number.isFinite(number.value) && ["Exactly ", shown("exactly", exactly(number.value)), ". "],
        number.kind !== "nan" && ["Next below: ", shown("below", nextTo(-1)), "; next above: ", shown("above", nextTo(1)), "."]),
    ];
  },
});
