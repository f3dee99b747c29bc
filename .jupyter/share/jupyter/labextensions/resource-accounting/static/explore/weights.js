// A block of weights. Four rows of 16 weights over the levels of a format: one is dragged outwards, the scale of its block
// stretches, the levels rush apart and the other weights of the block snap to what is left, at last to 0.
// State: `format`, `block`, `values`, `chosen`. Given: `weights`, as they were; `formats`, with their levels and the rule
// of their scales; `scales`, the numbers of E4M3; `blocks`, sizes and the largest weight out of sight; `asked`; `spread`
// and `reach`, the scale of the axis. What is computed here is in helpers/explore/weights.py, too, and tests compare both.

import { asks, bar, beside, button, field, h, handle, knob, line, linear, picture, plain, range, s, scrub, shown } from "./toolkit.js";

const LANE = 16;

// ---- Quantising -----------------------------------------------------------------------------------------------------

const most = (values) => Math.max(...values.map(Math.abs));
const norm = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));

function exponentOf(x) {
  const guess = Math.floor(Math.log2(x)); // may be off by one near a power of two
  if (2 ** guess > x) return guess - 1;
  return 2 ** (guess + 1) <= x ? guess + 1 : guess;
}

// The level nearest to a magnitude; of two equally near ones that with the even code.
function nearest(x, levels) {
  let best = 0;
  levels.forEach((level, code) => {
    const [near, far] = [Math.abs(x - level), Math.abs(x - levels[best])];
    if (near < far || (near === far && best % 2 === 1)) best = code;
  });
  return levels[best];
}

function scaleOf(largest, { levels, rule }, whole, scales) {
  const top = levels.at(-1);
  if (largest === 0) return 0;
  if (rule === "power") return 2 ** (exponentOf(largest) - exponentOf(top));
  if (rule === "float32") return Math.fround(largest / top);
  const ofAll = Math.fround(whole / (top * scales.at(-1)));
  return nearest(largest / top / ofAll, scales) * ofAll;
}

const store = (value, scale, { levels }) => (scale === 0 ? 0 : Math.sign(value) * nearest(Math.abs(value) / scale, levels) * scale);

// All that the picture tells of a state.
function account(state) {
  const { format, block, values, chosen, formats, scales, blocks } = state;
  const fmt = formats[format];
  const [, rest] = blocks.find(([size]) => size === block);
  const [count, outside] = blocks.at(-1);
  const whole = Math.max(most(values), outside);
  const step = Math.min(block, values.length);
  const starts = Array.from({ length: values.length / step }, (_, k) => k * step);
  const scale = starts.map((start) => scaleOf(Math.max(most(values.slice(start, start + step)), rest), fmt, whole, scales));
  const stored = values.map((value, k) => store(value, scale[Math.floor(k / step)], fmt));
  const mine = Math.floor(chosen / step);
  const places = values.map((_, k) => k).filter((k) => k !== chosen);
  const error = (those) => (100 * norm(those.map((k) => stored[k] - values[k]))) / (norm(those.map((k) => values[k])) || 1);
  const near = places.filter((k) => Math.floor(k / step) === mine);
  const far = places.filter((k) => Math.floor(k / step) !== mine);
  const zeros = near.filter((k) => stored[k] === 0).length;
  const bits = fmt.bits + fmt.scale_bits / block + (fmt.rule === "e4m3" ? 32 / count : 0);
  return { fmt, step, starts, scale, stored, mine, near, zeros, bits, nearError: error(near), farError: far.length ? error(far) : null };
}

function checkWeights({ format, formats, block, blocks, values, reach, weights, chosen }) {
  if (!formats[format]) return `There is no format ${format}; there are ${Object.keys(formats).join(", ")}.`;
  const sizes = blocks.map(([size]) => size);
  if (!sizes.includes(block)) return `A block has ${sizes.join(", ")} weights; not ${block}.`;
  if (values.length !== weights.length || !values.every((value) => Math.abs(value) <= reach))
    return `A weight goes from −${plain(reach)} to ${plain(reach)}.`;
  return chosen >= 0 && chosen < values.length ? "" : `Weights are 0 to ${values.length - 1}; there is no ${chosen}.`;
}

const minus = (text) => text.replace("-", "−");

// ---- The picture ----------------------------------------------------------------------------------------------------

// Near 0 the axis is even, farther out each factor takes the same way, so that an outlier has room.
function axisOf({ spread, reach }, left, right) {
  const squeezed = linear([-Math.asinh(reach / spread), Math.asinh(reach / spread)], [left, right]);
  const at = (value) => squeezed(Math.asinh(value / spread));
  return Object.assign(at, { value: (x) => spread * Math.sinh(squeezed.value(x)), left, right });
}

function ticks({ spread, reach }) {
  const found = [];
  for (let power = Math.floor(Math.log10(spread)); 10 ** power <= reach; power++)
    found.push(...[1, 3].map((digit) => digit * 10 ** power).filter((value) => value >= spread / 2 && value <= reach));
  return [...found.map((value) => -value).reverse(), 0, ...found];
}

function lanes(ui, now, told) {
  const { em, width, state } = ui;
  const tall = (ui.slide ? 2.7 : 3.5) * em;
  const thin = (ui.slide ? 1.4 : 1.7) * em;
  const top = 1.6 * em;
  const across = axisOf(state, 3 * em, width - 0.8 * em);
  const count = state.values.length / LANE;
  const strips = state.blocks.slice(-2);
  const bottoms = [1, 2, 4].map((lane) => top + lane * tall).concat(strips.map((_, k) => top + count * tall + (k + 1) * thin));
  const floor = bottoms.at(-1);
  const axis = ticks(state).filter((value) => !ui.narrow || !/3/.test(`${value}`)).map((value) => s("g", {},
    s("path", { d: line([across(value), top], [across(value), floor]), class: "grid" }),
    s("text", { x: across(value), y: em, class: "soft", "text-anchor": "middle" }, minus(plain(value)))));
  const rows = Array.from({ length: count }, (_, lane) => oneLane(ui, now, across, lane, top + lane * tall, tall, told));
  const hidden = strips.map(([size, largest], k) => strip(ui, across, top + count * tall + k * thin, thin, size, largest, k));
  return s("svg", { width, height: floor + em, role: "group", "aria-label": "weights over the levels of the format" },
    axis, rows, hidden, edge(ui, now, top, tall, bottoms, across.left, told));
}

function oneLane(ui, now, across, lane, y, tall, told) {
  const { em, state, before } = ui;
  const { values, chosen, format } = state;
  const scale = now.scale[Math.floor((lane * LANE) / now.step)];
  const base = y + 0.8 * tall;
  const height = y + 0.44 * tall;
  const mine = Math.floor((lane * LANE) / now.step) === now.mine;
  const levels = now.fmt.levels.flatMap((level) => (level ? [-level * scale, level * scale] : [0])).filter((v) => Math.abs(v) <= state.reach);
  const stops = [...new Set(levels.map((level) => Math.round(2 * across(level)) / 2))];
  const dots = values.slice(lane * LANE, (lane + 1) * LANE).map((value, k) => {
    const place = lane * LANE + k;
    const lost = now.stored[place] === 0;
    const [x, to] = [across(value), across(now.stored[place])];
    const own = place === chosen;
    return s("g", { class: `weight ${lost ? "lost" : ""} ${own ? "chosen" : ""}` },
      s("path", { d: line([x, height], [to, base]), class: "lead" }),
      s("circle", { cx: to, cy: base, r: 3, class: "kept" }), s("circle", { cx: x, cy: height, r: own ? 7 : 4.5, class: "real" }));
  });
  const own = Math.floor(chosen / LANE) === lane;
  const old = before?.values[chosen];
  const ghost = own && old !== undefined && old !== values[chosen] && s("circle", { cx: across(old), cy: height, r: 7, class: "ghost" });
  const label = own && beside(minus(plain(values[chosen], 3)), across(values[chosen]), height - 9, 0, ui, "label bold");
  const parts = [s("rect", { x: across.left - 0.6 * em, y: y + 2, width: across.right - across.left + 1.2 * em, height: tall - 4,
    class: `lane ${mine ? "mine" : ""}` }),
  s("path", { d: line([across.left, base], [across.right, base]), class: "grid" }),
  s("path", { d: stops.map((x) => `M${x} ${base}v${0.55 * em}`).join(""), class: "level" }), dots, ghost, label];
  return told ? laneHandle(ui, across, lane, parts) : s("g", {}, parts);
}

// A press takes the weight that is nearest; the keys move the one that was taken last.
function laneHandle(ui, across, lane, parts) {
  const { values, chosen, reach, spread } = ui.state;
  const first = lane * LANE;
  const own = Math.floor(chosen / LANE) === lane ? chosen : first;
  const put = (place, value) => {
    const held = +Math.min(Math.max(value, -reach), reach).toPrecision(6);
    ui.set({ chosen: place, values: values.map((old, k) => (k === place ? held : old)) });
  };
  const drag = (x) => {
    if (!ui.own.grip) {
      const away = (place) => Math.abs(across(values[place]) - x);
      const place = Array.from({ length: LANE }, (_, k) => first + k).reduce((best, k) => (away(k) < away(best) ? k : best));
      ui.own.grip = { place, off: across(values[place]) - x };
      return ui.set({ chosen: place });
    }
    return put(ui.own.grip.place, across.value(x + ui.own.grip.off));
  };
  const step = (dx, dy) => put(own, spread * Math.sinh(Math.asinh(values[own] / spread) + 0.1 * (dx + dy)));
  const node = handle({ label: `weight ${own + 1}`, text: minus(plain(values[own], 3)), value: values[own], min: -reach, max: reach,
    tap: true, drag, step, end: (side) => put(own, side * reach) }, parts);
  const press = node.onpointerdown;
  node.onpointerdown = (event) => {
    ui.own.grip = null;
    press(event);
  };
  return node;
}

// The weights out of sight: the rest of the row, and of the matrix, with the largest of them.
function strip(ui, across, y, tall, size, largest, k) {
  const { em, state } = ui;
  const inside = state.block >= size;
  const more = size - (k ? state.blocks.at(-2)[0] : state.values.length);
  const words = `${more.toLocaleString("en-US")} more weights of the ${k ? "matrix" : "row"}${ui.narrow ? "" : `, up to ${plain(largest, 2)}`}`;
  return s("g", {}, s("rect", { x: across.left - 0.6 * em, y: y + 1, width: across.right - across.left + 1.2 * em, height: tall - 2,
    class: `lane ${inside ? "mine" : "apart"}` }),
  inside && [-largest, largest].map((value) => s("circle", { cx: across(value), cy: y + tall / 2, r: 4.5, class: "real" })),
  s("text", { x: across.left, y: y + tall / 2 + 0.35 * em, class: "label" }, words));
}

// Brackets around what shares a scale; once the question is answered, the edge of the first is dragged.
function edge(ui, now, top, tall, bottoms, left, told) {
  const { em, state } = ui;
  const sizes = state.blocks.map(([size]) => size);
  const place = sizes.indexOf(state.block);
  const x = 1.2 * em;
  const brackets = now.starts.map((start, k) => {
    const from = top + (start / LANE) * tall + 5;
    const to = place > 2 ? bottoms[place] - 5 : top + ((start + now.step) / LANE) * tall - 5;
    return [s("path", { d: `M${x + 8} ${from}H${x}V${to}H${x + 8}`, class: "bracket-of-block" }),
      s("text", { x: left, y: from + em, class: "label" }, `block ${k + 1}`)];
  });
  const go = (k) => ui.set({ block: sizes[Math.min(Math.max(k, 0), sizes.length - 1)] });
  const drag = (px, y) => go(bottoms.reduce((best, bottom, k) => (Math.abs(bottom - y) < Math.abs(bottoms[best] - y) ? k : best), 0));
  return s("g", {}, brackets, told && knob(x, bottoms[place] - 5, { label: "weights to a scale", text: `${state.block}`, value: state.block,
    min: sizes[0], max: sizes.at(-1), drag, step: (dx, dy) => go(place + dx - dy), end: (side) => go(side < 0 ? 0 : 9) }));
}

// ---- Question, numbers ----------------------------------------------------------------------------------------------

function question(ui, guess) {
  const { asked, weights, reach } = ui.state;
  const { times, format, block } = asked;
  const grown = +Math.min(Math.max(weights[0] * times, -reach), reach).toPrecision(6);
  const values = weights.map((value, k) => (k ? value : grown));
  const answer = account({ ...ui.state, format, block, values, chosen: 0 });
  const others = answer.near.length;
  const choices = Array.from({ length: others + 1 }, (_, k) => k);
  const text = guess.value === null ? "drag to your guess" : `${guess.value} of ${others}`;
  const tell = () => ui.set({ values, chosen: 0, format, block, revealed: [...ui.state.revealed, "zeros"] });
  const again = () => ui.set({ values: weights, chosen: 0, format, block, predicted: {}, revealed: [] });
  const said = guess.value === null ? "" : `; you said ${guess.value}`;
  return asks({ ...guess, tell, again }, [h("b", {}, `Weight 1 becomes ${plain(times)} times as large. `),
    `How many of the ${others} others that share its scale become 0 in ${format}?`,
    range("zeros", choices, guess.value ?? 0, text, guess.make)],
  [h("b", {}, `${answer.zeros} of the other ${others} became 0`), `${said}. Drag it on, or another one; drag the edge of the block; choose a format.`],
  { show: `Make it ${plain(times)} times as large` });
}

function panel(ui, now) {
  const { em, width, state, before } = ui;
  const { values, chosen, weights, format, block, formats } = state;
  const old = before ? account(before) : null;
  const percent = (x) => (x === null ? "none in sight" : `${plain(x, 3)} %`);
  const part = ui.narrow ? width : (width - 2 * em) / 3;
  const gauge = (name, words, text, value, oldValue, end, look) => h("div", { style: `width: ${part}px` },
    h("p", {}, words, " ", h("b", {}, shown(name, text))),
    s("svg", { width: part, height: em }, bar(linear([0, end], [0, part - 2 * em]), value ?? 0, oldValue, 0, 0.8 * em, look)));
  const type = (text) => {
    const value = Number(text.replace("−", "-"));
    if (text === "" || Number.isNaN(value)) return ui.say(`“${text}” is no number.`);
    return ui.set({ values: values.map((one, k) => (k === chosen ? value : one)) });
  };
  const places = values.map((_, k) => k + 1);
  const choose = (place) => (place in values ? ui.set({ chosen: place }) : ui.say(`Weights are 1 to ${places.length}.`));
  const moved = values.some((value, k) => value !== weights[k]);
  const chips = Object.keys(formats).map((name) => button(name, () => ui.set({ format: name, block: formats[name].block }),
    { "aria-pressed": `${name === format}` }));
  const odd = now.fmt.standard && now.fmt.block !== block ? ` ${format} itself has blocks of ${now.fmt.block}.` : "";
  return h("div", {},
    h("div", { class: "row" }, chips, h("p", {}, "weight ", scrub(ui, { label: "weight", value: chosen + 1, stops: places,
      set: (place) => choose(place - 1) })), field("its value", `${values[chosen]}`, type, { size: 10 }),
      moved && button("all as they were", () => ui.set({ values: weights }))),
    h("p", {}, "Its block has the scale ", h("b", {}, shown("scale", plain(now.scale[now.mine], 3))), " and keeps ",
      h("b", {}, shown("kept", minus(plain(now.stored[chosen], 3)))), " of it; ",
      h("b", {}, shown("zeros", `${now.zeros} of the other ${now.near.length}`)), " in sight become 0.", odd),
    h("div", { class: "row" },
      gauge("bits", `${now.fmt.bits} + ${now.fmt.scale_bits}/${block} bits a weight:`, plain(now.bits, 4), now.bits, old?.bits, 10, "memory"),
      gauge("near", "error of the others in its block:", percent(now.nearError), now.nearError, old?.nearError, 105, "plain"),
      gauge("far", "error in other blocks:", percent(now.farError), now.farError, old?.farError, 105, "plain")));
}

export default picture({
  state: ["format", "block", "values", "chosen"],
  given: ["weights", "formats", "scales", "blocks", "asked", "spread", "reach"],
  check: checkWeights,
  draw(ui) {
    const guess = ui.guess("zeros");
    const now = account(ui.state);
    const { format, block } = ui.state;
    ui.tell(guess.told ? `${format}, ${block} to a scale: ${now.zeros} of ${now.near.length} are 0` : "");
    const legend = "Circle: a weight; dashed, it is stored as 0. Dot: what is stored of it. Ticks: the levels, times the "
      + "block's scale. Far from 0 the axis is squeezed.";
    return [question(ui, guess), lanes(ui, now, guess.told), h("p", { class: "soft" }, legend), guess.told ? panel(ui, now) : null];
  },
});
