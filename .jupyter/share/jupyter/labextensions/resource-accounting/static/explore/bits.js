// The bits of a number: the bits are clicked, and so are the numbers beside it. State: `format`, `bits` ("0" and "1").

import { arrows, beside, button, choice, digits, field, h, labelled, picture, plain, s, shown } from "./toolkit.js";

const size = (fmt) => 1 + fmt.exponent_bits + fmt.fraction_bits;

// As helpers.formats: the largest finite code, the codes of infinity and of a NaN, null where there is none.
function limits(fmt) {
  const ones = (1n << BigInt(size(fmt) - 1)) - 1n, infinities = 1n << BigInt(fmt.fraction_bits);
  if (fmt.nonfinite === "none") return { max: ones, inf: null, nan: null };
  if (fmt.nonfinite === "nan only") return { max: ones - 1n, inf: null, nan: ones };
  return { max: ones - infinities, inf: ones - infinities + 1n, nan: ones - infinities + 1n + infinities / 2n };
}

function decode(code, fmt) {
  const bits = code.toString(2).padStart(size(fmt), "0"), [exponent, fraction] =
    [bits.slice(1, 1 + fmt.exponent_bits), bits.slice(1 + fmt.exponent_bits)].map((part) => parseInt(part, 2));
  const sign = +bits[0], magnitude = BigInt(`0b0${bits.slice(1)}`), { max, inf } = limits(fmt);
  let value, kind;
  if (magnitude > max) [value, kind] = magnitude === inf ? [Infinity, "infinity"] : [NaN, "nan"];
  else {
    value = ((exponent ? 2 ** fmt.fraction_bits : 0) + fraction) * 2 ** (Math.max(exponent,
      1) - fmt.bias - fmt.fraction_bits);
    kind = exponent ? "normal" : fraction ? "subnormal" : "zero";
  }
  return { bits, sign, exponent, fraction, value: sign ? -value : value, kind, magnitude };
}

// The code nearest to a number, of two the even one; null for a NaN that the format has not.
function encode(value, fmt) {
  const sign = value < 0 || Object.is(value, -0) ? 1n << BigInt(size(fmt) - 1) : 0n, { max, nan } = limits(fmt);
  if (Number.isNaN(value)) return nan;
  const x = Math.abs(value);
  let magnitude = x === Infinity ? max + 1n : 0n;
  if (x && x < Infinity) {
    let exponent = Math.floor(Math.log2(x)); // may be off by one near a power of two
    if (2 ** exponent > x) exponent--;
    if (2 ** (exponent + 1) <= x) exponent++;
    exponent = Math.max(exponent, 1 - fmt.bias);
    const steps = x / 2 ** (exponent - fmt.fraction_bits), low = Math.floor(steps), over = steps - low;
    const rounded = low + (over > 0.5 || (over === 0.5 && low % 2) ? 1 : 0);
    magnitude = BigInt(rounded) + (BigInt(exponent + fmt.bias - 1) << BigInt(fmt.fraction_bits));
  }
  return sign | (magnitude > max ? (fmt.nonfinite === "none" ? max : max + 1n) : magnitude);
}

// The code so many numbers further along the number line, zero counted once; null where the numbers end.
function neighbour(number, fmt, by) {
  const { max, inf } = limits(fmt), place = (number.sign ? -number.magnitude : number.magnitude) + BigInt(by);
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

const checkBits = ({ format, bits, formats }) => {
  const fmt = formats[format];
  if (!fmt) return `There is no format ${format}; there are ${Object.keys(formats).join(", ")}.`;
  return new RegExp(`^[01]{${size(fmt)}}$`).test(bits) ? ""
    : `${format} has ${size(fmt)} bits, each 0 or 1; this is ${bits}.`;
};

export default picture({ state: ["format", "bits"], given: ["formats"], check: checkBits, draw: (ui) => {
  const { formats, bits, format } = ui.state, { width, em } = ui, fmt = formats[format];
  const number = decode(BigInt(`0b${bits}`), fmt), { max, inf, nan } = limits(fmt), count = bits.length;
  const show = (code, own) => ui.set({ bits: code.toString(2).padStart(count, "0") }) && ui.keep(own ?? {});
  const step = (by) => {
    const code = neighbour(number, fmt, by);
    if (code === null) return ui.say(number.kind === "nan" ? "A NaN has no neighbours."
      : `${format} has no number beyond ${general(number.value)}.`);
    show(code);
  };
  const type = (text) => {
    const value = typed(text), code = value === undefined ? null : encode(value, fmt);
    if (value === undefined) return ui.say(`“${text}” is no number; write it like 0.1 or 6e-8.`);
    if (code === null) return ui.say(`${format} has no NaN; every one of its patterns is a finite number.`);
    show(code, { typed: value });
  };
  const change = (name) => {
    const other = formats[name], code = encode(number.value, other);
    if (code === null) return ui.say(`${name} has no NaN; every one of its patterns is a finite number.`), ui.redraw();
    ui.set({ format: name, bits: code.toString(2).padStart(size(other), "0") });
    ui.keep({ typed: ui.own.typed ?? number.value });
  };

  // The bits: a cell each, its field as a tint, its place value above.
  const columns = count <= 19 ? count : width >= 800 ? 32 : 16, rows = Math.ceil(count / columns);
  const cell = Math.min(4.1 * em, Math.floor((width - 2) / columns)), tall = 2.3 * em, upright = cell < 3 * em;
  const head = upright ? 2.7 * em : 1.4 * em, line = head + tall + 2.6 * em;
  const field = (place) => (place === 0 ? "sign" : place <= fmt.exponent_bits ? "exponent" : "fraction");
  const stored = { sign: number.sign, exponent: number.exponent, fraction: number.fraction };
  const cells = [...bits].map((digit, place) => {
    const kind = field(place), weight = count - 1 - place, x = (place % columns) * cell + 1;
    const y = Math.floor(place / columns) * line + head;
    const worth = kind === "sign" ? "±" : kind === "exponent" ? `${2 ** (weight - fmt.fraction_bits)}`
      : `2${raised(weight - fmt.fraction_bits)}`;
    const spot = upright ? `rotate(-90 ${x + cell / 2 + em / 3} ${y - 0.4 * em})` : null;
    const starts = [0, 1, 1 + fmt.exponent_bits].includes(place);
    const flip = () => show(BigInt(`0b${bits}`) ^ (1n << BigInt(weight)), { bit: place });
    const keys = (event) => {
      const others = event.currentTarget.parentNode.children;
      if ([" ", "Enter"].includes(event.key) && !event.shiftKey) return event.preventDefault(), flip();
      arrows(event, (by, up) => {
        if (up) return step(up);
        ui.own.bit = Math.min(Math.max(place + by, 0), count - 1);
        ui.redraw(), others[ui.own.bit].focus();
      });
    };
    return s("g", {
      class: `bit ${kind}`, role: "checkbox", "aria-checked": digit === "1",
        "aria-label": `bit ${weight}, ${kind}, ${worth}`,
      tabindex: place === (ui.own.bit ?? 0) ? 0 : -1, onclick: flip, onkeydown: keys,
    },
    s("rect", { x: x + 0.5, y, width: cell - 1, height: tall, class: "grip" }),
    s("text", { x: x + cell / 2, y: y + tall / 2 + 0.42 * em, class: "digit" }, digit),
    s("text", { x: x + cell / 2 + (upright ? em / 3 : 0), y: y - 0.4 * em, class: "soft", "text-anchor": upright
      ? "start" : "middle", transform: spot }, worth),
    starts && s("text", { x: x + 1, y: y + tall + (kind === "sign" && cell < 3.4 * em ? 2.3 : 1.1) * em, class: "name" },
      `${kind} ${stored[kind]}`));
  });

  // The number line: up to three numbers on either side, as far apart as they are.
  const reach = width < 500 ? 1 : 3, near = [];
  for (let by = -reach; by <= reach; by++) {
    const code = neighbour(number, fmt, by), value = code === null ? NaN : decode(code, fmt).value;
    if (Number.isFinite(value)) near.push({ by, value });
  }
  const [first, last] = [near[0]?.value, near.at(-1)?.value], [left, right, level] = [1.5 * em, width - 1.5 * em,
    2 * em];
  const at = (value) => left
    + ((value / 2 - first / 2) / (last / 2 - first / 2)) * (right - left); // halves do not overflow
  const valueAt = (by) => near.find((other) => other.by === by)?.value;
  const marks = near.map(({ by, value }) => s("g", { class: by ? "near" : "", onclick: by ? () => step(by) : null },
    s("rect", { x: at(value) - em, y: level - em, width: 2 * em, height: 2 * em, class: "spot" }),
    s("path", { d: `M${at(value)} ${level - 0.5 * em}v${em}`, class: "stroke" }),
    by === 0 && s("circle", { cx: at(value), cy: level, r: 0.45 * em, class: "dot" }),
    Math.abs(by) < 2 && beside(general(value), at(value), by ? level + 1.7 * em : 0.95 * em, by, ui, by ? "name"
      : "name bold")));
  const asked = ui.own.typed, off = asked !== undefined && asked !== number.value && Number.isFinite(number.value)
    && encode(asked, fmt) === BigInt(`0b${bits}`);
  const below = neighbour(number, fmt, -1), above = neighbour(number, fmt, 1);
  const nextTo = (code) => (code === null ? "none" : general(decode(code, fmt).value));
  const gap = (by) => Number.isFinite(valueAt(by)) && `, ${general(Math.abs(valueAt(by) - number.value))} away`;
  const names = [["0", 0n], ["1", encode(1, fmt)], ["smallest", 1n], ["smallest normal",
    1n << BigInt(fmt.fraction_bits)],
    ["largest", max], ["infinity", inf], ["NaN", nan]];

  return [
    h("div", { class: "row" },
      choice("format", Object.keys(formats), format, change),
      labelled("number", h("input", { type: "text", value: written(number.value), "aria-label": "number",
        spellcheck: "false",
        autocomplete: "off", size: 22, "data-shown": "value", onchange: (event) => type(event.target.value.trim()) })),
      h("div", { class: "row" },
        button("◂ next below", () => step(-1)), button("next above ▸", () => step(1)),
        names.map(([name, code]) => button(name, () => show(code), { disabled: code === null })))),
    s("svg", { class: "bits", role: "group", "aria-label": `the bits of a number in ${format}`, width,
      height: rows * line }, cells),
    h("div", { "aria-live": "polite" },
      h("p", { class: "big" }, shown("formula", formula(number, fmt)), h("small", {}, " ",
        shown("kind", number.kind === "nan" ? "NaN" : number.kind))),
      h("p", {}, "code ", shown("code", `0x${BigInt(`0b${bits}`).toString(16).padStart(Math.ceil(count / 4), "0")}`),
        ": sign ", shown("sign", number.sign), ", exponent ", shown("exponent", number.exponent),
          number.exponent ? " − bias " : ", so 1 − bias ", shown("bias", fmt.bias),
        ", fraction ", shown("fraction", number.fraction), " of ", shown("fractions", `${2 ** fmt.fraction_bits}`),
        number.kind !== "nan" && [". Next below: ", shown("below", nextTo(below)), gap(-1), "; next above: ",
          shown("above", nextTo(above)), gap(1), "."],
        off && ` You asked for ${general(asked)}; the nearest number is ${general(Math.abs(number.value - asked))} away.`)),
    near.length > 1 && s("svg", { class: "line", role: "img", width, height: 4.2 * em,
      "aria-label": `${general(number.value)} on the number line between ${nextTo(below)} and ${nextTo(above)}` },
    s("path", { d: `M${left - em} ${level}H${right + em}`, class: "stroke" }), marks,
    off && asked > first && asked < last && s("path", { d: `M${at(asked)} ${level}l-6 -12h12z`, class: "asked" })),
  ];
} });
