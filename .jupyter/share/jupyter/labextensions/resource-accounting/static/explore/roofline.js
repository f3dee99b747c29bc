// The roofline. First it asks: for an intensity, by a mark on the axis, or which ops get faster. Then a layer's point is
// dragged along the roof by its batch, two bars trade length, and the roof itself is moved.
// State: `machine`, `dtype`, `op`, `batch`, `width`; `peak` and `bandwidth` are null until they are moved away from the
// machine's. Given: `machines`; `ops`, whose costs are data (see `cost`); `limits`, how far each number goes, and the ends
// of the axes; `asked`, the questions, each with the changes of the state `before` it and `after` its answer.

import { arrow, asks, bar, beside, button, choice, dimension, h, handle, knob, lacking, line, linear, linked, miss, opens,
  picture, places, plain, powers, s, scrub, shown, si, tick } from "./toolkit.js";
import { above, axes, corners, frame, mark, regions } from "./roof.js";

const STEP = 10 ** 0.05; // of the arrow keys, on logarithmic axes
const UNITS = { peak: "FLOP/s", bandwidth: "B/s" };
const between = (x, [from, to]) => Math.min(Math.max(x, from), to);

// A cost is a sum of terms [factor, power of the batch, power of the width].
const cost = (terms, { batch, width }) => terms.reduce((sum, [factor, b, d]) => sum + factor * batch ** b * width ** d, 0);

function checkRoof(state) {
  const { machine, machines, dtype, op, ops, limits } = state;
  const spec = machines[machine];
  if (!spec) return `There is no machine ${machine}; there are ${Object.keys(machines).join(", ")}.`;
  if (!ops.some(({ name }) => name === op)) return `There is no op ${op}; there are ${ops.map(({ name }) => name).join(", ")}.`;
  if (!spec.rates[dtype]) return lacking(machine, dtype, spec.rates);
  const beyond = Object.keys(limits).find((name) => name in state && !fits(state[name], limits[name], name));
  if (!beyond) return "";
  const [from, to] = limits[beyond].map((x) => (beyond in UNITS ? si(x, UNITS[beyond]) : x));
  return `A ${beyond} goes from ${from} to ${to}.`;
}

// Rates are null while they are the machine's; sizes are whole numbers.
function fits(x, [from, to], name) {
  const known = name in UNITS ? x !== null : Number.isInteger(x);
  return known ? x >= from && x <= to : name in UNITS;
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
  let [low, high] = state.limits.batch;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (withOp(state, { batch: middle }, name).x < x) low = middle;
    else high = middle;
  }
  const off = (batch) => Math.abs(Math.log(withOp(state, { batch }, name).x / x));
  return off(low) <= off(high) ? low : high;
}

// ---- The chart ------------------------------------------------------------------------------------------------------

// Where the slope's label stands, and how it is turned.
function slopeLabel({ em }, box, { peak, bandwidth }) {
  const [start, knee] = corners(box, bandwidth, peak);
  const turn = Math.atan2(knee[1] - start[1], knee[0] - start[0]);
  const part = knee[0] - start[0] > 12 * em ? 0.62 : 0.4;
  const [x, y] = [0, 1].map((k) => start[k] + (knee[k] - start[k]) * part);
  return { x: x - 0.5 * em, y: y - 0.7 * em, turn, words: si(bandwidth, "B/s") };
}

function roof(ui, box, now, moves) {
  const { em } = ui;
  const { peak, bandwidth, ridge, spec } = now;
  const [start, knee, end] = corners(box, bandwidth, peak);
  const label = slopeLabel(ui, box, now);
  const move = (changes) => ui.set({ ...changes });
  const { peak: peaks, bandwidth: bandwidths } = ui.state.limits;
  const hold = { peak: (y) => between(y, peaks), bandwidth: (y) => between(y, bandwidths) };
  const held = moves ? handle : (options, ...shapes) => s("g", {}, ...shapes);
  const slope = held({
    label: "bandwidth", text: si(bandwidth, "B/s"), value: bandwidth, min: bandwidths[0], max: bandwidths[1],
    drag: (x, y) => move({ bandwidth: hold.bandwidth(box.up.value(y) / box.across.value(x)) }),
    step: (dx, dy) => move({ bandwidth: hold.bandwidth(bandwidth * STEP ** (dy - dx)) }),
  },
  s("path", { d: line(start, knee), class: "wide" }), s("path", { d: line(start, knee), class: "roof memory" }),
  s("text", { class: "ink memory", "text-anchor": "middle",
    transform: `translate(${label.x} ${label.y}) rotate(${(label.turn * 180) / Math.PI})` }, label.words));
  const ceiling = held({
    label: "peak", text: si(peak, "FLOP/s"), value: peak, min: peaks[0], max: peaks[1],
    drag: (x, y) => move({ peak: hold.peak(box.up.value(y)) }),
    step: (dx, dy) => move({ peak: hold.peak(peak * STEP ** (dx + dy)) }),
  },
  s("path", { d: line(knee, end), class: "wide" }), s("path", { d: line(knee, end), class: "roof compute" }),
  s("text", { x: box.right, y: knee[1] - 0.6 * em, class: "ink compute", "text-anchor": "end" }, si(peak, "FLOP/s")));
  const corner = moves && knob(...knee, {
    label: "ridge", text: si(ridge, "FLOP/B"), value: ridge, min: peaks[0] / bandwidths[1], max: peaks[1] / bandwidths[0],
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

// The points of the ops, the chosen one last: it is a handle, and lies on top. `press`: what else one does.
function points(ui, box, now, press) {
  const spot = places(ui, [box.left, box.right], reserved(ui, box, now));
  const chosenFirst = [...now.list].sort((one, other) => (other.name === ui.state.op) - (one.name === ui.state.op));
  return chosenFirst.map((op) => {
    const parts = named(ui, box, op, spot);
    if (op.name === ui.state.op && !press) return layer(ui, box, op, parts);
    const choose = press ?? ((name) => ui.set({ op: name }));
    return s("g", { class: `point ${op.bound}`, onclick: () => choose(op.name), "data-link": op.name },
      s("circle", { cx: box.across(op.x), cy: box.up(op.y), r: 14, class: "spot" }), parts);
  }).reverse();
}

// A mark with its name, where that is free.
function named(ui, box, op, spot) {
  const [x, y] = [box.across(op.x), box.up(op.y)];
  const at = spot(op.name, x, y);
  const [side, near] = at.side > 0 ? ["start", at.x] : ["end", at.x + at.long];
  const lead = at.far && s("path", { d: line([x, y], [near - 3 * at.side, at.y - 0.3 * ui.em]), class: "lead" });
  return [lead, mark(box, op, ""), s("text", { x: near, y: at.y, class: "label", "text-anchor": side }, op.name)];
}

function layer(ui, box, op, parts) {
  const { batch, limits } = ui.state;
  const [x, y] = [box.across(op.x), box.up(op.y)];
  const go = (number) => ui.set({ batch: between(Math.round(number), limits.batch) });
  const drop = s("path", { d: line([x, y], [x, box.bottom]), class: "drop" });
  return [drop, handle({
    label: `${op.name}, by its batch`, text: `batch ${batch}, ${si(op.x, "FLOP/B")}`,
    value: batch, min: limits.batch[0], max: limits.batch[1], link: op.name,
    drag: (px) => go(batchAt(ui.state, op.name, box.across.value(px))),
    step: (dx, dy) => go(dx + dy > 0 ? batch * 2 : batch / 2), end: (side) => go(limits.batch[side < 0 ? 0 : 1]),
  }, s("g", { class: `point chosen ${op.bound}` }, s("circle", { cx: x, cy: y, r: 18, class: "spot" }), parts))];
}

// Where the chart's own words are, so that no label lies on them.
function reserved(ui, box, now) {
  const { peak, bandwidth, spec } = now;
  const long = 8 * ui.em;
  const knee = [box.across(peak / bandwidth), box.up(peak)];
  const found = [{ x: box.right - long, y: knee[1] - 0.6 * ui.em, long }, { x: knee[0] - 10, y: knee[1], long: 20 }];
  for (let y = box.top; y < box.bottom; y += ui.em) found.push({ x: knee[0], y, long: 0 }); // the ridge: a label has one side
  if (spec.vector) found.push({ x: box.right - 1.8 * long, y: box.up(spec.vector) + 1.2 * ui.em, long: 1.8 * long });
  const { x, y, turn } = slopeLabel(ui, box, now);
  for (const part of [-1.6, 0, 1.6]) {
    const along = part * ui.em;
    found.push({ x: x + along * Math.cos(turn) - 0.8 * ui.em, y: y + along * Math.sin(turn), long: 1.6 * ui.em });
  }
  return found;
}

// The state before the present gesture, or while a question is open, the last answer: its roof where that has moved, else
// the chosen op's point.
function ghosts(ui, box, now, before) {
  if (!before) return null;
  const old = account(before);
  const moved = old.peak !== now.peak || old.bandwidth !== now.bandwidth;
  const was = old.chosen;
  const shifted = was.name === now.chosen.name && (was.x !== now.chosen.x || was.y !== now.chosen.y);
  return [moved && s("path", { d: line(...corners(box, old.bandwidth, old.peak)), class: "ghost" }),
    shifted && s("circle", { cx: box.across(was.x), cy: box.up(was.y), r: 7, class: "ghost" })];
}

// ---- The questions --------------------------------------------------------------------------------------------------

// An intensity; or of the ops that get faster the name and how many times.
function answerOf(state, { name, kind, before, after }) {
  const [old, then] = [before, { ...before, ...after }].map((changes) => account({ ...state, ...changes }));
  if (kind === "intensity") return name === "ridge" ? then.ridge : then.chosen.x;
  const gains = then.list.map((op, k) => ({ name: op.name, times: old.list[k].least / op.least }));
  return gains.filter(({ times }) => times > 1.001);
}

function intensityMark(ui, box, guess, answer) {
  const { em } = ui;
  const { across } = box;
  const value = guess.value ?? 0.1; // where no label of the chart is
  const x = across(value);
  const make = (number) => guess.make(+plain(across.hold(number), 2));
  const stroke = s("path", { d: line([x, box.top], [x, box.bottom]), class: "guess" });
  if (guess.told) {
    const y = box.bottom - 2.2 * em;
    const label = beside(`you: ${si(value, "FLOP/B")}`, x, box.top + em, x < across(answer) ? -1 : 1, ui, "label", box.left, box.right);
    return guess.value !== null && s("g", {}, stroke, label, arrow([x, y], [across(answer), y]));
  }
  const middle = box.top + 1.3 * em; // above the roof
  return handle({
    label: "your guess of the intensity", text: si(value, "FLOP/B"), value, min: across.from, max: across.to, tap: true,
    drag: (px) => make(across.value(px)), step: (dx, dy) => make(value * STEP ** (2 * (dx + dy))),
    end: (side) => make(side < 0 ? across.from : across.to),
  },
  s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "spot" }), stroke,
  s("circle", { cx: x, cy: middle, r: 9, class: "knob" }),
  beside(guess.value === null ? "drag me" : si(value, "FLOP/B"), x + em, middle + 0.35 * em, 1, ui, "label bold", box.left, box.right));
}

function asked(ui, question) {
  const { name, kind, text, why, before, after } = question;
  const guess = ui.guess(name);
  const answer = answerOf(ui.state, question);
  const turns = { tell: () => guess.tell({ ...before, ...after }), again: () => guess.again(before) };
  const told = kind === "ops" ? [`${text} `, ...gains(guess.value, answer)]
    : [h("b", {}, shown(`answer ${name}`, si(answer, "FLOP/B"))), `, ${why}`,
      guess.value !== null && `: ${miss(guess.value, answer, (x) => si(x, "FLOP/B"))}`, "."];
  return asks({ ...guess, ...turns }, [h("b", {}, text), kind === "ops" ? " Mark them." : " Drag the mark to your guess."], told);
}

function gains(marked, right) {
  const names = right.map(({ name, times }) => `${name} (${plain(times, 2)} times)`).join(", ");
  const wrong = marked?.filter((name) => !right.some((other) => other.name === name)) ?? [];
  const hits = marked && right.length > 0 && ` You marked ${marked.length - wrong.length} of ${right.length}`;
  const beside = wrong.length > 0 && `${hits ? ", and" : " You marked"} ${wrong.join(", ")}`;
  const same = marked && !right.length && !wrong.length && " As you said";
  return [h("b", {}, shown("faster", names || "none of them")), ".", hits, beside, same, (hits || beside || same) && "."];
}

// What helps to answer, in the place where later the numbers are.
function hints(ui, now, { name, kind, after }) {
  const { machine, dtype } = ui.state;
  if (name === "ridge") return h("div", {}, h("p", {}, `${machine} in ${dtype}:`),
    h("p", {}, h("b", { class: "compute" }, si(now.peak, "FLOP/s")), " to compute"),
    h("p", {}, h("b", { class: "memory" }, si(now.bandwidth, "B/s")), " to move"));
  if (kind === "intensity") {
    const then = { ...ui.state, ...after };
    const law = (terms, size) => formulaParts(terms, then, size).map((part) =>
      (typeof part === "string" ? part : h("span", { class: dimension(part.letter) }, part.letter)));
    return h("div", { class: "formula" }, h("p", {}, `${now.chosen.name}, b rows, d = ${then.width} wide`),
      h("p", { class: "law" }, law(now.chosen.terms.flops), " FLOPs"),
      h("p", { class: "law" }, law(now.chosen.terms.numbers, itemsize(ui.state, now.chosen))));
  }
  const { value, make } = ui.guess(name);
  const ops = now.list.map((op) => linked(op.name, tick(`${op.name}, ${si(op.x, "FLOP/B")}`, value?.includes(op.name) ?? false,
    () => make(toggled(value, op.name)))));
  return h("div", { role: "group", "aria-label": "ops" }, ops, tick("none of them", value?.length === 0, () => make([])));
}

const toggled = (list, name) => (list?.includes(name) ? list.filter((other) => other !== name) : [...(list ?? []), name]);

// ---- Words and bars -------------------------------------------------------------------------------------------------

const itemsize = ({ dtype, itemsizes }, op) => op.itemsize ?? itemsizes[dtype];

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
    button("as on the data sheet", () => ui.set({ peak: null, bandwidth: null }), { disabled: !moved })); // there from the start: nothing shifts under a drag
}

function panel(ui, now, width) {
  const { batch } = ui.state;
  const { chosen } = now;
  const set = (name) => (value) => ui.set({ [name]: value });
  const [flops, flopsPanel] = opens(ui, "flops", si(chosen.flops, "FLOP"), formulaParts(chosen.terms.flops, ui.state));
  const [bytes, bytesPanel] = opens(ui, "bytes", si(chosen.bytes, "B"), formulaParts(chosen.terms.numbers, ui.state, itemsize(ui.state, chosen)));
  const share = si((100 * chosen.y) / now.peak, "%");
  const helps = chosen.bound === "memory" ? "more bandwidth helps, a higher peak does not"
    : "a higher peak helps, more bandwidth does not";
  return h("div", {},
    h("p", {}, "batch ", scrub(ui, { label: "batch", value: batch, stops: powers(0, 16), set: set("batch"), link: "b" }),
      " · width ", scrub(ui, { label: "width", value: ui.state.width, stops: powers(6, 14), set: set("width"), link: "d" })),
    h("p", {}, flops, " over ", bytes, ":"),
    h("p", {}, shown("intensity", si(chosen.x, "FLOP/B")), chosen.unit === "vector" ? ", on the vector unit" : ""),
    flopsPanel, bytesPanel,
    times(ui, now, width),
    h("p", {}, h("b", { class: chosen.bound }, shown("bound", chosen.bound === "memory" ? "waits for memory" : "computes")),
      ": at best ", shown("attainable", si(chosen.y, "FLOP/s")), ", ", shown("share", share), ` of the peak; ${helps}.`));
}

function chart(ui, box, now, open) {
  const { asked } = ui.state;
  const press = open?.kind === "ops" && ((name) => ui.guess(open.name).make(toggled(ui.guess(open.name).value, name)));
  const last = open ?? asked.at(-1);
  const mine = last?.kind === "intensity" && intensityMark(ui, box, ui.guess(last.name), answerOf(ui.state, last));
  const roofless = open?.name === "ridge";
  const old = open ? ui.state : ui.before;
  return s("svg", { width: box.width, height: box.height, role: "group",
    "aria-label": "roofline: FLOP/s against intensity, both logarithmic" },
  !roofless && [regions(ui, box, now), above(box, now)], axes(box, ui.em), !open && mine,
  !roofless && [ghosts(ui, box, now, old), roof(ui, box, now, !open), points(ui, box, now, open && (press || (() => {})))],
  open && mine);
}

export default picture({
  state: ["machine", "dtype", "op", "peak", "bandwidth", "batch", "width"],
  given: ["machines", "itemsizes", "ops", "limits", "asked"],
  check: checkRoof,
  draw(ui) {
    const open = ui.state.asked.find(({ name }) => !ui.guess(name).told);
    const now = account({ ...ui.state, ...open?.before });
    const { chosen } = now;
    const width = ui.narrow ? ui.width : ui.width - 22 * ui.em;
    const height = ui.narrow ? 19 * ui.em : ui.slide ? 22 * ui.em : between(width * 0.72, [18.5 * ui.em, 25 * ui.em]);
    const { intensity, peak } = ui.state.limits;
    const box = frame(ui, [width, height], [intensity, peak]);
    ui.tell(open ? open.text : `${chosen.name}: ${si(chosen.x, "FLOP/B")}, at least ${si(chosen.least, "s")}`);
    const side = ui.narrow ? ui.width : 20.6 * ui.em;
    return [h("div", {}, ui.state.asked.filter((one) => one === open || ui.guess(one.name).told).map((one) => asked(ui, one))),
      !open && choices(ui, now),
      h("div", { class: ui.narrow ? "" : "columns wide-side" }, chart(ui, box, now, open),
        open ? hints(ui, now, open) : panel(ui, now, side))];
  },
});
