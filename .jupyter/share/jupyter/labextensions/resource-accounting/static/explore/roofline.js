// The roofline. The ridge is asked first; then a layer's point is dragged along the roof by its batch, two bars trade
// length, and the roof itself is moved.
// State: `machine`, `dtype`, `op`, `batch`, `width`; `peak` and `bandwidth` are null until they are moved away from the
// machine's. Given: `machines`; `ops`, whose costs are data (see `cost`); `asked`, the question that comes first.

import { arrow, asks, bar, beside, button, choice, h, handle, knob, lacking, line, linear, miss, opens, picture, places,
  plain, powers, s, scrub, shown, si } from "./toolkit.js";
import { above, axes, corners, frame, mark, regions } from "./roof.js";

const STEP = 10 ** 0.05; // of the arrow keys, on logarithmic axes
const BATCHES = [1, 65536];
const BANDWIDTHS = [1e9, 3.2e13];
const PEAKS = [1e10, 2e16];
const between = (x, [from, to]) => Math.min(Math.max(x, from), to);

// A cost is a sum of terms [factor, power of the batch, power of the width].
const cost = (terms, { batch, width }) => terms.reduce((sum, [factor, b, d]) => sum + factor * batch ** b * width ** d, 0);

function checkRoof({ machine, machines, dtype, op, ops, peak, bandwidth, batch, width }) {
  const spec = machines[machine];
  if (!spec) return `There is no machine ${machine}; there are ${Object.keys(machines).join(", ")}.`;
  if (!ops.some(({ name }) => name === op)) return `There is no op ${op}; there are ${ops.map(({ name }) => name).join(", ")}.`;
  if (!spec.rates[dtype]) return lacking(machine, dtype, spec.rates);
  const inside = (x, [from, to]) => x === null || (x >= from && x <= to);
  if (!inside(peak, PEAKS) || !inside(bandwidth, BANDWIDTHS))
    return "The picture holds a peak of 10 GFLOP/s to 20 PFLOP/s and a bandwidth of 1 GB/s to 32 TB/s.";
  const whole = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  return whole(batch, 65536) && whole(width, 16384) ? "" : "A batch goes from 1 to 65536 and a width from 1 to 16384.";
}

// All that the picture tells of a state: the roof, and each op's cost, place and times under it.
function account(state) {
  const { machine, machines, dtype, ops, itemsizes } = state;
  const spec = machines[machine];
  const sheet = { peak: spec.rates[dtype], bandwidth: spec.bandwidth };
  const peak = state.peak ?? sheet.peak;
  const bandwidth = state.bandwidth ?? sheet.bandwidth;
  const list = ops.map((op) => {
    const ceiling = op.unit === "vector" && spec.vector ? spec.vector : peak;
    const flops = cost(op.terms.flops, state);
    const bytes = cost(op.terms.numbers, state) * (op.itemsize ?? itemsizes[dtype]);
    const compute = op.work ?? flops / ceiling;
    const move = bytes / bandwidth;
    const least = Math.max(compute, move);
    const bound = compute >= move ? "compute" : "memory";
    return { ...op, flops, bytes, ceiling, compute, move, least, bound, x: flops / bytes, y: flops / least };
  });
  return { spec, sheet, peak, bandwidth, ridge: peak / bandwidth, list, chosen: list.find(({ name }) => name === state.op) };
}

const withOp = (state, changes, name) => account({ ...state, ...changes }).list.find((op) => op.name === name);

// The batch at which an op comes nearest to an intensity; the intensities grow with the batch, or do not change.
function batchAt(state, name, x) {
  let [low, high] = BATCHES;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (withOp(state, { batch: middle }, name).x < x) low = middle;
    else high = middle;
  }
  const off = (batch) => Math.abs(Math.log(withOp(state, { batch }, name).x / x));
  return off(low) <= off(high) ? low : high;
}

// ---- The chart ------------------------------------------------------------------------------------------------------

function roof(ui, box, now) {
  const { em } = ui;
  const { peak, bandwidth, ridge, spec } = now;
  const [start, knee, end] = corners(box, bandwidth, peak);
  const tilt = (Math.atan2(knee[1] - start[1], knee[0] - start[0]) * 180) / Math.PI;
  const middle = [start[0] + (knee[0] - start[0]) * 0.62, start[1] + (knee[1] - start[1]) * 0.62];
  const move = (changes) => ui.set({ ...changes });
  const hold = { peak: (y) => between(y, PEAKS), bandwidth: (y) => between(y, BANDWIDTHS) };
  const slope = handle({
    label: "bandwidth", text: si(bandwidth, "B/s"), value: bandwidth, min: BANDWIDTHS[0], max: BANDWIDTHS[1],
    drag: (x, y) => move({ bandwidth: hold.bandwidth(box.up.value(y) / box.across.value(x)) }),
    step: (dx, dy) => move({ bandwidth: hold.bandwidth(bandwidth * STEP ** (dy - dx)) }),
  },
  s("path", { d: line(start, knee), class: "wide" }), s("path", { d: line(start, knee), class: "roof memory" }),
  s("text", { class: "ink memory", "text-anchor": "middle",
    transform: `translate(${middle[0] - 0.5 * em} ${middle[1] - 0.7 * em}) rotate(${tilt})` }, si(bandwidth, "B/s")));
  const ceiling = handle({
    label: "peak", text: si(peak, "FLOP/s"), value: peak, min: PEAKS[0], max: PEAKS[1],
    drag: (x, y) => move({ peak: hold.peak(box.up.value(y)) }),
    step: (dx, dy) => move({ peak: hold.peak(peak * STEP ** (dx + dy)) }),
  },
  s("path", { d: line(knee, end), class: "wide" }), s("path", { d: line(knee, end), class: "roof compute" }),
  s("text", { x: box.right, y: knee[1] - 0.6 * em, class: "ink compute", "text-anchor": "end" }, si(peak, "FLOP/s")));
  const corner = knob(...knee, {
    label: "ridge", text: si(ridge, "FLOP/B"), value: ridge, min: PEAKS[0] / BANDWIDTHS[1], max: PEAKS[1] / BANDWIDTHS[0],
    drag: (x, y) => {
      const high = hold.peak(box.up.value(y));
      move({ peak: high, bandwidth: hold.bandwidth(high / box.across.value(x)) });
    },
    step: (dx, dy) => (dx ? move({ bandwidth: hold.bandwidth(bandwidth / STEP ** dx) })
      : move({ peak: hold.peak(peak * STEP ** dy), bandwidth: hold.bandwidth(bandwidth * STEP ** dy) })),
  });
  return [slope, ceiling, spec.vector && vectorCeiling(ui, box, now), corner];
}

// A second ceiling: elementwise ops run on the vector unit, whatever the matrix unit could do.
function vectorCeiling({ em }, box, { spec, bandwidth, peak }) {
  if (spec.vector >= peak) return null;
  const [y, x] = [box.up(spec.vector), box.across(spec.vector / bandwidth)];
  return s("g", {}, s("path", { d: line([x, y], [box.right, y]), class: "roof vector" }),
    s("text", { x: box.right, y: y + 1.2 * em, class: "label", "text-anchor": "end" },
      `elementwise: ${si(spec.vector, "FLOP/s")}`));
}

// The points of the ops, the chosen one last: it is a handle, and lies on top.
function points(ui, box, now) {
  const spot = places(ui, [box.left, box.right], reserved(ui, box, now));
  const chosenFirst = [...now.list].sort((one, other) => (other.name === ui.state.op) - (one.name === ui.state.op));
  return chosenFirst.map((op) => {
    const chosen = op.name === ui.state.op;
    const [x, y] = [box.across(op.x), box.up(op.y)];
    const at = spot(op.name, x, y);
    const label = s("text", { x: at.side > 0 ? at.x : at.x + at.long, y: at.y, class: "label",
      "text-anchor": at.side > 0 ? "start" : "end" }, op.name);
    const lead = at.far && s("path", { d: line([x, y], [at.side > 0 ? at.x - 3 : at.x + at.long + 3, at.y - 0.3 * ui.em]),
      class: "lead" });
    const parts = [lead, mark(box, op, ""), label];
    if (!chosen) {
      const choose = () => ui.set({ op: op.name });
      return s("g", { class: `point ${op.bound}`, onclick: choose, "data-link": op.name },
        s("circle", { cx: x, cy: y, r: 14, class: "spot" }), parts);
    }
    const { batch } = ui.state;
    const go = (number) => ui.set({ batch: between(Math.round(number), BATCHES) });
    const double = (way) => go(way > 0 ? batch * 2 : batch / 2);
    return handle({
      label: `${op.name}, by its batch`, text: `batch ${batch}, ${si(op.x, "FLOP/B")}`, value: batch, min: 1, max: 65536,
      link: op.name, drag: (px) => go(batchAt(ui.state, op.name, box.across.value(px))),
      step: (dx, dy) => double(dx + dy), end: (side) => go(BATCHES[side < 0 ? 0 : 1]),
    }, s("g", { class: `point chosen ${op.bound}` }, s("circle", { cx: x, cy: y, r: 18, class: "spot" }),
      s("path", { d: line([x, y], [x, box.bottom]), class: "drop" }), parts));
  }).reverse();
}

// Where the chart's own words are, so that no label lies on them.
function reserved(ui, box, { peak, bandwidth, spec }) {
  const long = 8 * ui.em;
  const knee = [box.across(peak / bandwidth), box.up(peak)];
  const found = [{ x: box.right - long, y: knee[1] - 0.6 * ui.em, long }, { x: knee[0] - 10, y: knee[1], long: 20 }];
  if (spec.vector) found.push({ x: box.right - 1.8 * long, y: box.up(spec.vector) + 1.2 * ui.em, long: 1.8 * long });
  return found;
}

// The state before the present gesture: its roof where that has moved, else the chosen op's point.
function ghosts(ui, box, now) {
  if (!ui.before) return null;
  const old = account(ui.before);
  const moved = old.peak !== now.peak || old.bandwidth !== now.bandwidth;
  const was = old.chosen;
  const shifted = was.name === now.chosen.name && (was.x !== now.chosen.x || was.y !== now.chosen.y);
  return [moved && s("path", { d: line(...corners(box, old.bandwidth, old.peak)), class: "ghost" }),
    shifted && s("circle", { cx: box.across(was.x), cy: box.up(was.y), r: 7, class: "ghost" })];
}

// ---- The ridge is asked ---------------------------------------------------------------------------------------------

function ridgeMark(ui, box, now, guess) {
  const { em } = ui;
  const { across } = box;
  const value = guess.value ?? 10;
  const x = across(value);
  const make = (number) => guess.make(+plain(across.hold(number), 2));
  const label = guess.value === null ? "drag me" : si(value, "FLOP/B");
  if (guess.told) {
    if (guess.value === null) return null;
    const y = box.bottom - 2.2 * em;
    return s("g", {}, s("path", { d: line([x, box.top], [x, box.bottom]), class: "guess" }),
      beside(`you: ${si(value, "FLOP/B")}`, x, box.top + em, x < across(now.ridge) ? -1 : 1, ui, "label", box.left, box.right),
      arrow([x, y], [across(now.ridge), y]));
  }
  return handle({
    label: "your guess of the ridge", text: si(value, "FLOP/B"), value, min: across.from, max: across.to, tap: true,
    drag: (px) => make(across.value(px)), step: (dx, dy) => make(value * STEP ** (2 * (dx + dy))),
    end: (side) => make(side < 0 ? across.from : across.to),
  },
  s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "spot" }),
  s("path", { d: line([x, box.top], [x, box.bottom]), class: "guess" }),
  s("circle", { cx: x, cy: (box.top + box.bottom) / 2, r: 9, class: "knob" }),
  s("text", { x: x + 1.1 * em, y: (box.top + box.bottom) / 2 + 0.35 * em, class: "label bold" }, label));
}

function ridgeQuestion(ui, now, guess) {
  const { machine, dtype } = ui.state;
  const told = `${machine} computes ${si(now.peak, "FLOP/s")} in ${dtype} and moves ${si(now.bandwidth, "B/s")}.`;
  const off = guess.value === null ? "" : `: ${miss(guess.value, now.ridge, (x) => si(x, "FLOP/B"))}`;
  const question = [h("b", {}, "Up to how many FLOPs per byte does it wait for its memory? "), told,
    " Drag the mark to your guess."];
  const verdict = [`${told} It computes as fast as it moves at `, h("b", {}, `${si(now.ridge, "FLOP/B")}, the ridge`), `${off}.`];
  return asks(guess, question, verdict, { show: "Draw the roof" });
}

// ---- Words and bars -------------------------------------------------------------------------------------------------

// A cost as `opens` shows it: the terms with their letters; `size`, if there is one, the bytes of each number.
function formulaParts(terms, { batch, width }, size) {
  const b = { letter: "b", value: batch, source: "rows of the batch" };
  const d = { letter: "d", value: width, source: "width" };
  const product = ([factor, ofBatch, ofWidth]) => {
    const letters = [...Array(ofBatch).fill(b), ...Array(ofWidth).fill(d)];
    const factors = factor === 1 && letters.length ? letters : [`${factor}`, ...letters];
    return factors.flatMap((part, k) => (k ? [" · ", part] : [part]));
  };
  const sum = terms.flatMap((term, k) => (k ? [" + ", ...product(term)] : product(term)));
  return size ? ["(", ...sum, `) · ${size} bytes`] : sum;
}

// Both bars on one scale, which the batch does not change.
function times(ui, { chosen, list }, width) {
  const { em, before, state } = ui;
  const least = withOp(state, { batch: 1 }, chosen.name).least;
  const knee = withOp(state, { batch: 512 }, chosen.name).least;
  const top = 1.25 * Math.max(least, knee);
  const across = linear([0, top], [0, width - 2 * em]);
  const old = before && before.op === state.op ? account(before).chosen : null;
  const row = (name, label, look, k) => [
    s("text", { x: 0, y: (1 + 3.2 * k) * em, class: "name" }, `${label} `, s("tspan", { class: "bold", "data-shown": name },
      si(chosen[name], "s"))),
    bar(across, chosen[name], old?.[name], (1.35 + 3.2 * k) * em, em, look)];
  return s("svg", { width, height: 6 * em, role: "img",
    "aria-label": `computing takes ${si(chosen.compute, "s")}, moving ${si(chosen.move, "s")}` },
  row("compute", "to compute", "compute", 0), row("move", "to move", "memory", 1));
}

function choices(ui, { chosen, list, spec, sheet, peak, bandwidth }) {
  const { machine, machines, dtype } = ui.state;
  const moved = peak !== sheet.peak || bandwidth !== sheet.bandwidth;
  return h("div", { class: "row" },
    choice("op", list.map(({ name }) => name), chosen.name, (op) => ui.set({ op })),
    choice("machine", Object.keys(machines), machine, (name) => ui.set({ machine: name, peak: null, bandwidth: null })),
    choice("dtype", Object.keys(spec.rates), dtype, (name) => ui.set({ dtype: name, peak: null })),
    moved && button("as on the data sheet", () => ui.set({ peak: null, bandwidth: null })));
}

function panel(ui, now, width) {
  const { dtype, batch, itemsizes } = ui.state;
  const { chosen } = now;
  const set = (name) => (value) => ui.set({ [name]: value });
  const size = chosen.itemsize ?? itemsizes[dtype];
  const [flops, flopsPanel] = opens(ui, "flops", si(chosen.flops, "FLOP"), formulaParts(chosen.terms.flops, ui.state));
  const [bytes, bytesPanel] = opens(ui, "bytes", si(chosen.bytes, "B"), formulaParts(chosen.terms.numbers, ui.state, size));
  const share = si((100 * chosen.y) / now.peak, "%");
  const helps = chosen.bound === "memory" ? "more bandwidth helps, a higher peak does not"
    : "a higher peak helps, more bandwidth does not";
  return h("div", {},
    h("p", {}, "batch ", scrub(ui, { label: "batch", value: batch, stops: powers(0, 16), set: set("batch"), link: "b" }),
      " · width ", scrub(ui, { label: "width", value: ui.state.width, stops: powers(6, 14), set: set("width"), link: "d" })),
    h("p", {}, flops, " over ", bytes, ": ", shown("intensity", si(chosen.x, "FLOP/B")),
      chosen.unit === "vector" ? ", on the vector unit" : ""),
    flopsPanel, bytesPanel,
    times(ui, now, width),
    h("p", {}, h("b", { class: chosen.bound }, shown("bound", chosen.bound === "memory" ? "waits for memory" : "computes")),
      ": at best ", shown("attainable", si(chosen.y, "FLOP/s")), ", ", shown("share", share), ` of the peak; ${helps}.`));
}

export default picture({
  state: ["machine", "dtype", "op", "peak", "bandwidth", "batch", "width"],
  given: ["machines", "itemsizes", "ops", "ends", "asked"],
  check: checkRoof,
  draw(ui) {
    const now = account(ui.state);
    const width = ui.narrow ? ui.width : ui.width - 22 * ui.em;
    const height = ui.narrow ? 19 * ui.em : Math.min(ui.slide ? 18.5 * ui.em : 25 * ui.em, Math.max(18.5 * ui.em, width * 0.72));
    const box = frame(ui, [width, height], ui.state.ends);
    const guess = ui.guess("ridge");
    const open = ui.state.asked && !guess.told;
    const { chosen } = now;
    ui.tell(open ? "" : `${chosen.name}: ${si(chosen.x, "FLOP/B")}, at least ${si(chosen.least, "s")}`);
    const chart = s("svg", { width: box.width, height: box.height, role: "group",
      "aria-label": "roofline: FLOP/s against intensity, both logarithmic" },
    open ? [axes(box, ui.em), ridgeMark(ui, box, now, guess)]
      : [regions(ui, box, now), above(box, now), axes(box, ui.em), ui.state.asked && ridgeMark(ui, box, now, guess),
        ghosts(ui, box, now), roof(ui, box, now), points(ui, box, now)]);
    const side = ui.narrow ? ui.width : 20.6 * ui.em;
    return [ui.state.asked && ridgeQuestion(ui, now, guess), open ? null : choices(ui, now),
      h("div", { class: ui.narrow ? "" : "columns wide-side" }, chart, open ? null : panel(ui, now, side))];
  },
});
