// The toolkit of the living pictures. One picture is one module of 80 to 200 lines on top of it.
//
// A picture says which state it has, which states cannot be, and what it looks like in a state. Everything else is done
// here: keeping the state in step with Python, ghosts, keys, touch, links, live regions, themes. A whole picture:
//
//   import { h, picture, s, linear, knob, shown } from "./toolkit.js";
//
//   export default picture({
//     state: ["length"],                       // traits that the reader and Python change
//     given: ["longest"],                      // traits that only Python sets
//     check: ({ length, longest }) => (length > longest ? `The longest is ${longest}.` : ""),
//     draw(ui) {
//       const { length, longest } = ui.state;
//       const across = linear([0, longest], [0, ui.width - 2 * ui.em]);
//       const drag = (x) => ui.set({ length: across.value(x) });
//       const step = (dx) => ui.set({ length: across.hold(length + dx) });
//       const ghost = ui.before && s("rect", { width: across(ui.before.length), height: 20, class: "ghost" });
//       ui.tell(`length ${length}`);           // what a screen reader hears once the hand rests
//       return [
//         s("svg", { width: ui.width, height: 40 },
//           s("rect", { width: across(length), height: 20, class: "memory" }), ghost,
//           knob(across(length), 10, { label: "length", value: length, min: 0, max: longest, drag, step })),
//         h("p", {}, "length ", shown("length", length)),
//       ];
//     },
//   });
//
// `ui` is what a picture is given to draw with:
//   ui.state           the values of `state` and `given`            ui.own      what only this display knows
//   ui.before          the state before the present gesture         ui.width    of the picture, in pixels
//   ui.em              the size of its text, in pixels              ui.narrow   whether it is a phone's
//   ui.set(changes)    change the state; a state that cannot be is refused with a sentence, and false is returned
//   ui.keep(changes)   change what only this display knows          ui.say(text), ui.tell(text)   aloud, calmly
//   ui.guess(name)     a prediction: see `asks`
//
// Rules: scales are fixed (no end of an axis depends on what is dragged); a handle follows the pointer and is clamped,
// never refused; what cannot be is drawn and hatched; colours are roles (classes memory, compute, dim-b … dim-f).
// JupyterLab loads these files from here; helpers/explore/view.py puts them into notebooks elsewhere and into pages.

// ---- Elements -------------------------------------------------------------------------------------------------------
// A picture is a function from its state to a tree of elements: h("p", attributes, ...children), s for SVG. A child that
// is null or false is left out and keeps its place; in HTML, a list of varying length goes last. `morph` brings what is on
// the page in line with a new tree and keeps its elements, so that the focus, a drag and transitions go on.

const HANDLERS = ["onclick", "ondblclick", "onchange", "oninput", "onkeydown", "onpointerdown", "onpointermove",
  "onpointerup", "onpointercancel", "onpointerover", "onpointerleave", "onfocus", "onblur"];
const PROPERTIES = ["value", "checked"];
const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (HANDLERS.includes(name)) node[name] = value;
    else if (value != null && value !== false && !PROPERTIES.includes(name)) node.setAttribute(name, value);
  }
  // A child that is not there keeps its place, and in a picture a list has a group of its own, so that its sisters stay
  // the same elements, whatever its length: a drag goes on only as long as its element does.
  const inPicture = node.namespaceURI === SVG;
  const listed = (child) => (Array.isArray(child) && inPicture ? s("g", {}, ...child) : child);
  for (const child of children.map(listed).flat(Infinity)) node.append(child == null || child === false ? "" : child);
  for (const name of PROPERTIES) if (attributes?.[name] != null) node[name] = attributes[name];
  return node;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of HANDLERS) if (old[name] !== fresh[name]) old[name] = fresh[name];
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, place) => (place < before.length ? morph(before[place], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
  for (const name of PROPERTIES) if (name in fresh && old[name] !== fresh[name]) old[name] = fresh[name];
}

// ---- Controls -------------------------------------------------------------------------------------------------------

export const labelled = (label, control) => h("label", { class: "control" }, h("span", {}, label), control);

export function choice(label, options, value, choose) {
  const onchange = (event) => {
    const chosen = event.target.value;
    event.target.value = value; // until it is checked
    choose(chosen);
  };
  const children = options.map((option) => h("option", { value: option }, option || "…"));
  return labelled(label, h("select", { value, "aria-label": label, onchange }, children));
}

// `type(text)` gets what was typed. `more`: further attributes, such as size.
export function field(label, value, type, more = {}) {
  const onchange = (event) => type(event.target.value.trim());
  const plainText = { type: "text", spellcheck: "false", autocomplete: "off" };
  return labelled(label, h("input", { ...plainText, value, "aria-label": label, ...more, onchange }));
}

// A slider over a list of options.
export function range(label, options, value, text, choose) {
  const limits = { min: 0, max: options.length - 1, step: 1 };
  const onkeydown = (event) => event.stopPropagation();
  const oninput = (event) => choose(options[event.target.value]);
  const place = Math.max(options.indexOf(value), 0);
  const says = { "aria-label": label, "aria-valuetext": text };
  const control = h("input", { type: "range", ...limits, ...says, value: place, oninput, onkeydown });
  return labelled(h("span", {}, `${label} `, h("b", {}, text)), control);
}

export const button = (text, press, more = {}) => h("button", { type: "button", onclick: press, ...more }, text);

export function tick(label, checked, choose, disabled = false) {
  const onchange = (event) => choose(event.target.checked);
  return h("label", { class: "tick" }, h("input", { type: "checkbox", checked, disabled, onchange }), label);
}

// One of a few options [value, words], side by side.
export function either(label, options, chosen, choose) {
  const buttons = options.map(([value, words]) => button(words, () => choose(value), { "aria-pressed": `${value === chosen}` }));
  return h("div", { class: "control", role: "group", "aria-label": label }, h("span", {}, label), h("span", { class: "either" }, buttons));
}

// A number that the tests compare with Python's.
export const shown = (name, ...text) => h("span", { "data-shown": name }, ...text);

// What belongs together lights up together, whichever of them is pointed at or has the focus: the attribute
// data-link="t" on any element, or this around words.
export const linked = (name, ...children) => h("span", { "data-link": name }, ...children);

// Arrow keys as step(dx, dy), up being +1; Home and End as end(-1) and end(1).
export function arrows(event, step, end) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moved = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  const side = { Home: -1, End: 1 }[event.key];
  if (moved) step(...moved);
  else if (side && end) end(side);
  else return;
  event.preventDefault();
}

// A part of a picture that is dragged, or moved by the arrow keys: drag(x, y) in the picture's pixels, step(dx, dy),
// end(side). `value`, `min` and `max` are numbers, `text` is how the value is read out. `tap`: a press moves it there.
export function handle({ label, text, value, min, max, drag, step, end, tap, link }, ...shapes) {
  const follow = (event) => {
    const svg = event.currentTarget.ownerSVGElement;
    const box = svg.getBoundingClientRect();
    const scale = svg.width.baseVal.value / box.width; // slides are scaled
    drag((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  };
  return s("g", {
    class: "handle", role: "slider", tabindex: 0, "aria-label": label, "aria-valuetext": text, "data-link": link,
    "aria-valuenow": value, "aria-valuemin": min, "aria-valuemax": max,
    onpointerdown: (event) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      event.currentTarget.focus({ preventScroll: true });
      if (tap) follow(event);
    },
    onpointermove: (event) => event.currentTarget.hasPointerCapture(event.pointerId) && follow(event),
    onkeydown: (event) => arrows(event, step, end),
  }, ...shapes);
}

// A handle that is a ring, with a target of 24 pixels and more.
export function knob(x, y, options, ...shapes) {
  return handle(options, s("circle", { cx: x, cy: y, r: 16, class: "spot" }),
    s("circle", { cx: x, cy: y, r: options.r ?? 7, class: `knob ${options.look ?? ""}` }), ...shapes);
}

// A number in a text or a formula, dragged in place: left and right, arrow keys, Home and End, or typed after a click.
// `stops` are the values that a drag goes through, in order; typing may give any that the picture's check lets pass.
export function scrub(ui, { label, value, text = `${value}`, stops, set, read = typedNumber, link }) {
  const name = `scrub ${label}`;
  const nearest = stops.reduce((best, stop, k) => (closer(stop, stops[best], value) ? k : best), 0);
  const go = (place) => set(stops[Math.min(Math.max(place, 0), stops.length - 1)]);
  if (ui.own.typing === name) return typedInPlace(ui, { label, value, set, read });
  const type = (first) => ui.keep({ typing: name, first });
  return h("span", {
    class: "scrub", role: "spinbutton", tabindex: 0, "aria-label": label, "aria-valuetext": text, "data-link": link,
    "aria-valuenow": value, "aria-valuemin": stops[0], "aria-valuemax": stops.at(-1), "data-shown": label,
    "data-focus": ui.own.typed === name ? "" : null,
    onpointerdown: (event) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      event.currentTarget.focus({ preventScroll: true });
      ui.own.grip = { x: event.clientX, place: nearest, moved: false };
    },
    onpointermove: (event) => {
      const { grip } = ui.own;
      if (!grip || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
      const by = Math.round((event.clientX - grip.x) / 12);
      grip.moved ||= by !== 0;
      if (grip.moved) go(grip.place + by);
    },
    onpointerup: () => {
      const { grip } = ui.own;
      ui.own.grip = null;
      if (grip && !grip.moved) type(null);
    },
    onpointercancel: () => void (ui.own.grip = null),
    onkeydown: (event) => {
      if (event.key === "Enter") return event.preventDefault(), type(null);
      if (/^\d$/.test(event.key)) return event.preventDefault(), type(event.key);
      arrows(event, (dx, dy) => go(nearest + dx + dy), (side) => go(side < 0 ? 0 : stops.length - 1));
    },
  }, text);
}

const closer = (one, other, value) => Math.abs(Math.log(one / value)) < Math.abs(Math.log(other / value));

// Enter takes what was typed and Escape does not; both give the focus back to the number.
function typedInPlace(ui, { label, value, set, read }) {
  const { typing } = ui.own;
  const close = (event) => {
    if (ui.own.typing !== typing) return; // it is closed, and the field that goes away loses the focus
    ui.own.typing = null;
    const text = event.target.value.trim();
    const number = read(text);
    if (event.key !== "Escape" && number !== undefined) set(number);
    ui.redraw();
    if (event.key !== "Escape" && number === undefined) ui.say(`“${text}” is no number.`);
  };
  const onkeydown = (event) => {
    if (!["Enter", "Escape"].includes(event.key)) return;
    event.stopPropagation();
    ui.own.typed = typing;
    close(event);
  };
  const size = Math.max(`${value}`.length, 4) + 1;
  const attributes = { type: "text", inputmode: "decimal", "aria-label": label, "data-focus": "", size };
  return h("input", { ...attributes, class: "scrub", value: ui.own.first ?? `${value}`, onblur: close, onkeydown });
}

// "8192", "8_192", "8k", "1.5e3"; undefined for what is no number.
export function typedNumber(text) {
  const found = text.replace(/[_,\s]/g, "").match(/^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kMGT]?)$/);
  if (!found) return undefined;
  return Number(found[1]) * 1000 ** ["", "k", "M", "G", "T"].indexOf(found[2]);
}

// ---- Predictions ----------------------------------------------------------------------------------------------------
// A picture asks before it tells. `ui.guess("ridge")` is the reader's prediction of that name: its value (null until it
// is made), whether the answer is shown, and how both change; `tell` and `again` may change more of the state. They are traits, `predicted` and `revealed`, and so can be
// read and set from Python. A picture draws the answer only where guess.told is true, and the miss beside it.

function guessOf(ui, name) {
  const { predicted = {}, revealed = [] } = ui.state;
  return {
    value: predicted[name] ?? null,
    told: revealed.includes(name),
    make: (value) => ui.set({ predicted: { ...predicted, [name]: value } }),
    tell: (after = {}) => ui.set({ ...after, revealed: [...revealed.filter((other) => other !== name), name] }),
    again: (before = {}) => ui.set({
      ...before,
      predicted: Object.fromEntries(Object.entries(predicted).filter(([other]) => other !== name)),
      revealed: revealed.filter((other) => other !== name),
    }),
  };
}

// The question of a prediction with its button, or the verdict in its place once the answer is told.
export function asks(guess, question, verdict, { show = "Show the answer", again = "Ask me again" } = {}) {
  if (guess.told) return h("div", { class: "asks" }, h("p", {}, verdict), button(again, () => guess.again()));
  const without = guess.value === null ? `${show} without a guess` : show;
  const look = guess.value === null ? "quiet" : "ready";
  return h("div", { class: "asks open" }, h("p", {}, question), button(without, () => guess.tell(), { class: look }));
}

// How far a prediction was off, in words: "as predicted", "you said 40 FLOP/B: 7.4 times too low".
export function miss(guess, answer, write) {
  const ratio = answer / guess;
  if (Math.abs(ratio - 1) < 0.05) return `as you said (${write(guess)})`;
  const [times, way] = ratio > 1 ? [ratio, "too low"] : [1 / ratio, "too high"];
  return `you said ${write(guess)}, ${times < 1.1 ? "a little" : `${plain(times, 2)} times`} ${way}`;
}

// ---- Formulas that open ---------------------------------------------------------------------------------------------
// A number that is a button, and the formula behind it. `parts` are strings, and letters with their values and sources:
//   opens(ui, "FLOPs", si(flops, "FLOP"), ["2 · ", { letter: "b", value: 64, source: "the batch" }, " · ", …])
// gives [button, panel]; the panel is null while it is closed.

export function opens(ui, name, text, parts) {
  const open = ui.own.open === name;
  const toggle = () => ui.keep({ open: open ? null : name });
  const number = button(shown(name, text), toggle, { class: "opens", "aria-expanded": `${open}`, "aria-label": `${name}: ${text}` });
  if (!open) return [number, null];
  const letters = parts.filter((part) => typeof part !== "string");
  const law = (write) => parts.map((part) => (typeof part === "string" ? part
    : h("span", { "data-link": part.letter, class: dimension(part.letter) }, write(part))));
  const sources = letters.filter((part, k) => part.source && letters.findIndex((one) => one.letter === part.letter) === k)
    .map(({ letter, source }) => h("span", { "data-link": letter, class: "source" }, h("b", {}, letter), ` ${source}`));
  return [number, h("div", { class: "formula" },
    h("p", { class: "law" }, law(({ letter }) => letter)),
    h("p", { class: "law" }, "= ", law(({ value }) => `${value}`), ` = ${text}`),
    sources.length > 0 && h("p", { class: "sources" }, sources))];
}

// The tint of a dimension of the course: b t h c d f; s are tokens, too, and kv heads.
export function dimension(letter) {
  const named = { s: "t", kv: "h" }[letter] ?? letter.toLowerCase();
  return /^[bthcdf]$/.test(named) ? `dim dim-${named}` : "";
}

// ---- Scales and marks -----------------------------------------------------------------------------------------------
// A scale is a function from values to pixels. `value(pixel)` goes back and stays within the ends, `hold(x)` clamps a
// value, `beyond(x)` is -1 or 1 for a value outside: draw it at the edge, with `edge`.

function scale([from, to], [start, end], forth, back) {
  const [first, last] = [forth(from), forth(to)];
  const hold = (x) => Math.min(Math.max(x, from), to);
  const at = (x) => start + ((forth(hold(x)) - first) / (last - first)) * (end - start);
  const value = (pixel) => hold(back(first + ((pixel - start) / (end - start)) * (last - first)));
  const beyond = (x) => (x < from ? -1 : x > to ? 1 : 0);
  return Object.assign(at, { value, hold, beyond, from, to, start, end });
}
export const linear = (values, pixels) => scale(values, pixels, (x) => x, (x) => x);
export const logarithmic = (values, pixels) => scale(values, pixels, Math.log10, (x) => 10 ** x);

// The powers of ten on a logarithmic scale, and all powers of two between two exponents.
export function decades({ from, to }) {
  const found = [];
  for (let power = Math.ceil(Math.log10(from)); 10 ** power <= to; power++) found.push(10 ** power);
  return found;
}
export const powers = (first, last) => Array.from({ length: last - first + 1 }, (_, k) => 2 ** (first + k));

export const line = (...points) => `M${points.map((point) => point.join(" ")).join("L")}`;

// An arrowhead with its tip at a place: "up", "down", "left", "right".
export function tip(x, y, way, look = "ink") {
  const turn = { right: 0, down: 90, left: 180, up: 270 }[way];
  return s("path", { d: "M0 0l-9 -5v10z", class: `tip ${look}`, transform: `translate(${x} ${y}) rotate(${turn})` });
}

// An arrow between two places of one row or column, to draw a miss.
export function arrow([x, y], [toX, toY], look = "") {
  const way = x === toX ? (toY < y ? "up" : "down") : toX < x ? "left" : "right";
  if (Math.hypot(toX - x, toY - y) < 14) return null;
  return s("g", { class: `arrow ${look}` }, s("path", { d: line([x, y], [toX, toY]) }), tip(toX, toY, way, look));
}

// A bar from 0 on a fixed scale, with the ghost of what it was; where it does not fit, it ends with an arrow.
export function bar(across, value, before, y, height, look) {
  const start = across(0);
  const shadow = before != null && before !== value && s("rect",
    { x: start, y, width: across(before) - start, height, class: "ghost" });
  const far = across.beyond(value) > 0 && tip(across.end + 10, y + height / 2, "right", look);
  return s("g", {}, s("rect", { x: start, y, width: Math.max(across(value) - start, 1), height, class: `bar ${look}` }),
    shadow, far);
}

// What cannot be: in an svg, put hatching(ui) first and fill with ui.hatch.
export function hatching(ui) {
  const stripes = s("path", { d: "M-2 2l4 -4M0 8l8 -8M6 10l4 -4", class: "stripe" });
  const box = { width: 8, height: 8, patternUnits: "userSpaceOnUse" };
  return s("defs", {}, s("pattern", { id: ui.hatchId, ...box }, stripes));
}

const ruler = document.createElement("canvas").getContext("2d");

// How wide a text is, in pixels.
export function wide(text, ui, size = 0.86, weight = "normal") {
  ruler.font = `${weight} ${size * ui.em}px ${ui.font}`;
  return ruler.measureText(text).width;
}

// A text to the right of a place, to the left (side -1) or around it (0), moved so that all of it is in the picture.
export function beside(text, x, y, side, ui, kind = "label", from = 0, to = ui.width) {
  const long = wide(text, ui, 0.92, /\b(bold|ink)\b/.test(kind) ? "bold" : "normal");
  const start = x + 0.5 * ui.em * side - [long, long / 2, 0][side + 1];
  return s("text", { x: Math.max(Math.min(start, to - long), from), y, class: kind }, text);
}

// Places for labels, so that none lies on another: `place(words, x, y)` gives {x, y, side, far}, the first that is free.
// `taken` are boxes {x, y, long} that are not to be covered.
export function places(ui, [left, right], taken = []) {
  const tried = [[1, 0.35], [-1, 0.35], [1, -0.9], [-1, -0.9], [1, 1.6], [-1, 1.6], [1, -2.1], [-1, -2.1], [1, 2.8],
    [-1, 2.8], [1, 4], [-1, 4]];
  return (words, x, y) => {
    const long = wide(words, ui, 0.92);
    const spots = tried.map(([side, rise]) => (
      { x: side > 0 ? x + 0.8 * ui.em : x - 0.8 * ui.em - long, y: y + rise * ui.em, long, side, far: Math.abs(rise) > 1 }));
    const clear = (spot) => spot.x >= left && spot.x + long <= right && taken.every((other) =>
      Math.abs(other.y - spot.y) > 1.1 * ui.em || spot.x > other.x + other.long || other.x > spot.x + long);
    const found = spots.find(clear) ?? spots[0];
    taken.push(found);
    return found;
  };
}

// ---- Numbers --------------------------------------------------------------------------------------------------------
// As helpers.units prints them: significant digits, of two equally near numbers the one with the even digit.

export function digits(x, count) {
  let [mantissa, power] = Math.abs(x).toExponential(100).split("e");
  mantissa = mantissa.replace(".", "");
  const rest = mantissa.slice(count);
  let head = mantissa.slice(0, count);
  const tie = rest[0] === "5" && !/[1-9]/.test(rest.slice(1));
  const up = tie ? head.at(-1) % 2 === 1 : rest[0] >= "5";
  if (up) head = `${BigInt(head) + 1n}`;
  if (head.length > count) [head, power] = [head.slice(0, count), +power + 1];
  return { head, power: +power, exact: /^0*$/.test(rest) };
}

export function plain(x, count = 3) {
  if (x === 0) return "0";
  const { head, power } = digits(x, Math.max(count, Math.floor(Math.log10(Math.abs(x))) + 1));
  const whole = power < 0 ? `0.${"0".repeat(-power - 1)}${head}` : head.padEnd(power + 1, "0");
  const text = power >= 0 && head.length > power + 1 ? `${head.slice(0, power + 1)}.${head.slice(power + 1)}` : whole;
  const short = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return x < 0 ? `-${short}` : short;
}

export function si(x, unit, count = 3) { // helpers.units.si, for numbers of at least 0
  const small = unit === "s" && x > 0 && x < 1;
  const value = small ? x * 1e12 : x;
  const prefixes = small ? ["p", "n", "µ", "m", ""] : ["", "k", "M", "G", "T", "P", "E"];
  for (const [power, prefix] of prefixes.entries()) {
    const text = plain(value / 1000 ** power, count);
    if (+text >= 1000) continue;
    const bytes = text === "1" ? "byte" : "bytes";
    return `${text} ${prefix + unit === "B" ? bytes : prefix + unit}`;
  }
  const { head, power } = digits(x, count);
  return `${head[0]}.${head.slice(1)}e+${power} ${unit}`;
}

export function duration(x) { // helpers.units.duration
  for (const [name, span] of [["day", 86400], ["h", 3600], ["min", 60]]) {
    const text = plain(x / span, 3);
    const plural = name === "day" && text !== "1" ? "s" : "";
    if (x >= span) return `${text} ${name}${plural}`;
  }
  return si(x, "s");
}

export const lacking = (machine, dtype, rates) =>
  `${machine} has no rate for ${dtype} on its spec sheet, only for ${Object.keys(rates).join(", ")}.`;

// ---- The host -------------------------------------------------------------------------------------------------------
// A picture in the anywidget form: render({ model, el }), where the model has get, set, save_changes, on and off.

let count = 0; // of displays, for ids

// `slideEm`: the size of its text on a slide, where 21 is read from the last row.
export function picture({ state: keys, given = [], check = () => "", draw, slideEm = 21 }) {
  const names = [...keys, ...given, "predicted", "revealed"];
  const checked = (state) => {
    try {
      return check(state);
    } catch (error) {
      return `This cannot be shown: ${error.message}.`;
    }
  };

  function render({ model, el }) {
    const body = h("div", { class: "body" });
    const problem = h("p", { class: "problem", role: "alert" });
    const calm = h("p", { class: "calm", "aria-live": "polite" });
    const ui = { state: null, before: null, own: {}, hatchId: `hatch-${++count}`, set, keep, say, tell, redraw };
    ui.hatch = `url(#${ui.hatchId})`;
    ui.guess = (name) => guessOf(ui, name);
    let opening = null; // the state as it was when the present gesture began, until something changes
    let quiet = false;
    let [drawing, stale] = [false, false];
    let rest;
    let last = { key: null, time: 0 };

    function say(text) {
      if (problem.textContent !== text) problem.textContent = text;
    }

    // Only once the hand rests, and not before it has moved: a drag is not read out step by step.
    function tell(text) {
      if (!ui.before) return;
      clearTimeout(rest);
      rest = setTimeout(() => void (calm.textContent = text), 600);
    }

    function set(changes) {
      const wrong = checked({ ...ui.state, ...changes });
      say(wrong);
      if (wrong) return redraw(), false;
      if (opening) [ui.before, opening] = [opening, null];
      quiet = true;
      for (const [name, value] of Object.entries(changes)) model.set(name, value);
      model.save_changes();
      quiet = false;
      read();
      return true;
    }

    function keep(changes) {
      Object.assign(ui.own, changes);
      redraw();
    }

    function changed() { // not by this display
      if (quiet) return;
      ui.before = ui.state;
      read();
    }

    function read() {
      const values = names.map((name) => [name, model.get(name)]).filter(([, value]) => value !== undefined);
      const state = Object.fromEntries(values);
      const wrong = checked(state);
      say(wrong && ui.state ? `${wrong} The last state that can be shown stays.` : wrong);
      if (wrong) return;
      ui.state = state;
      redraw();
    }

    // Within a redraw a field that goes away loses the focus, and may change the state: then once more.
    function redraw() {
      stale = true;
      if (!ui.state || drawing) return;
      drawing = true;
      try {
        for (; stale; drawOnce()) stale = false;
      } finally {
        drawing = false;
      }
    }

    function drawOnce() {
      measure();
      morph(body, h("div", { class: "body" }, draw(ui)));
      const wanted = body.querySelector("[data-focus]:not(:focus)");
      wanted?.select?.();
      wanted?.focus({ preventScroll: true });
      ui.own.typed = null;
      light();
    }

    // A slide's text is read from the last row, a phone's from 30 cm.
    function measure() {
      const slide = el.closest(".reveal");
      ui.width = slide ? 1168 : Math.floor(el.clientWidth || 1160); // a slide has one size, also while it is hidden
      ui.em = slide ? slideEm : ui.width >= 1000 ? 17 : 14;
      ui.narrow = ui.width < 46 * ui.em;
      ui.slide = Boolean(slide);
      ui.font = getComputedStyle(el).fontFamily || "sans-serif";
      el.style.fontSize = `${ui.em}px`;
    }

    // A gesture is a press with all that is dragged, or keys on one control within a second and a half.
    function begin(event) {
      const { key, time } = last;
      const pressed = event.type === "keydown" ? event.target : null;
      const goesOn = pressed && pressed === key && event.timeStamp - time < 1500;
      last = { key: pressed, time: event.timeStamp };
      el.toggleAttribute("data-pointer", event.type === "pointerdown"); // the focus is framed for the keyboard alone
      // Nothing glides behind a pointer, and no question that shrinks takes the picture away from under it.
      el.style.setProperty("--asked", `${body.querySelector(".asks")?.offsetHeight ?? 0}px`);
      el.toggleAttribute("data-dragged", event.type === "pointerdown");
      if (goesOn) return;
      opening = ui.state;
      say(""); // an error goes away with the next thing that is done
    }

    let pointed = "";
    function point(event) {
      const name = event.target.closest?.("[data-link]")?.dataset.link ?? "";
      if (name === pointed) return;
      pointed = name;
      light();
    }
    function light() {
      for (const part of body.querySelectorAll("[data-link]")) {
        part.classList.toggle("lit", Boolean(pointed) && part.dataset.link === pointed);
      }
    }

    // reveal.js and others take plain keys; Escape gives them back, and pages of slides are always theirs.
    function keepKeys(event) {
      if (event.key === "Escape") return document.activeElement.blur();
      const theirs = /^(Page|Tab|F\d)/.test(event.key) || event.ctrlKey || event.metaKey || event.altKey;
      if (!theirs) event.stopPropagation();
    }
    // JupyterLab listens before the picture does, and would take x as "cut this cell"; Ctrl, Alt and Shift stay its own.
    function suppress(event) {
      const modified = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
      el.toggleAttribute("data-lm-suppress-shortcuts", el.contains(event.target) && !modified);
    }

    el.classList.add("course-view");
    el.replaceChildren(body, problem, calm);
    el.addEventListener("keydown", begin, true);
    el.addEventListener("pointerdown", begin, true);
    for (const end of ["pointerup", "pointercancel"]) el.addEventListener(end, () => el.removeAttribute("data-dragged"), true);
    el.addEventListener("pointerover", point);
    el.addEventListener("pointerleave", point);
    el.addEventListener("focusin", point);
    el.addEventListener("keydown", keepKeys);
    const watch = new ResizeObserver(() => el.clientWidth && el.clientWidth !== ui.width && redraw());
    model.on("change", changed);
    read();
    watch.observe(el);
    window.addEventListener("keydown", suppress, true);
    return () => {
      watch.disconnect();
      clearTimeout(rest);
      model.off("change", changed);
      window.removeEventListener("keydown", suppress, true);
    };
  }
  return { render };
}
