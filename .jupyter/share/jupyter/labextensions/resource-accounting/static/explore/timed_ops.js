// The reader's own ops: each time is predicted by a drag, then the clock is shown, with the bracket from overlap (the longer
// of computing and moving) to taking turns (their sum). Distance under the roof is time: the points follow the drags.
// State: `op`, `predicted` in seconds by op. Given: `runs`, judged by Python; `roof`; `ends` of the axes.

import { arrow, asks, beside, decades, h, handle, line, logarithmic, picture, plain, s, shown, si, tip } from "./toolkit.js";
import { above, axes, corners, frame, mark, regions } from "./roof.js";

const STEP = 1.05; // of the arrow keys
const CLOCK = "clock"; // what is revealed
const TIMES = [0.4, 25]; // the ends of the scale, in multiples of the least time

const check = ({ op, runs }) => (runs.some(({ name }) => name === op) ? ""
  : `There is no op ${op}; there are ${runs.map(({ name }) => name).join(", ")}.`);

// ---- The roof, and the points under it ------------------------------------------------------------------------------

function points(ui, box, told) {
  const { runs, op, predicted } = ui.state;
  return runs.map((run) => {
    const seconds = told ? run.seconds : predicted[run.name] ?? run.least;
    const place = { x: run.flops / run.bytes, y: run.flops / seconds, bound: run.bound };
    const chosen = run.name === op;
    const [x, y, roof] = [box.across(place.x), box.up(place.y), box.up(run.flops / run.least)];
    return s("g", { class: `point ${run.bound} ${chosen ? "chosen" : ""}`, "data-link": run.name,
      onclick: () => ui.set({ op: run.name }) },
    s("circle", { cx: x, cy: y, r: 12, class: "spot" }),
    s("path", { d: line([x, y], [x, roof]), class: "distance" }),
    mark(box, place, told ? "measured" : ""),
    chosen && beside(run.name, x, y + 1.6 * ui.em, 0, ui, "label bold", box.left, box.right));
  });
}

function chart(ui, told, width) {
  const { roof, ends } = ui.state;
  const box = frame(ui, [width, (ui.narrow ? 19 : 23) * ui.em], ends);
  const now = { ...roof, ridge: roof.peak / roof.bandwidth };
  const [start, knee, end] = corners(box, roof.bandwidth, roof.peak);
  return s("svg", { width, height: box.height, role: "img", "aria-label": "the ops under the roof" },
    regions(ui, box, now), above(box, now), axes(box, ui.em),
    s("path", { d: line(start, knee), class: "roof memory" }), s("path", { d: line(knee, end), class: "roof compute" }),
    points(ui, box, told));
}

// ---- The ladder: a row for each op, its time in multiples of the least ----------------------------------------------

function ladder(ui, told, width) {
  const { em } = ui;
  const { runs } = ui.state;
  const names = ui.narrow ? 8.4 * em : 10.5 * em;
  const across = logarithmic(TIMES, [names + 0.6 * em, width - 1.2 * em]);
  const tall = Math.max(1.6 * em, 26);
  const top = 1.7 * em;
  const ticks = [0.5, 1, 2, 5, 10, 20].map((times) => [
    s("path", { d: line([across(times), top], [across(times), top + runs.length * tall]), class: times === 1 ? "least" : "grid" }),
    s("text", { x: across(times), y: 1.1 * em, class: "name", "text-anchor": "middle" }, times === 1 ? "least" : `${times}×`)]);
  const rows = runs.map((run, k) => row(ui, told, run, across, { y: top + (k + 0.5) * tall, tall, width, names }));
  return s("svg", { width, height: top + runs.length * tall + 4, role: "group",
    "aria-label": "each op's time, in multiples of the least that the roof allows" }, ticks, rows);
}

function row(ui, told, run, across, { y, tall, width, names }) {
  const { op, predicted } = ui.state;
  const { em } = ui;
  const said = predicted[run.name];
  const choose = () => ui.set({ op: run.name });
  const back = s("rect", { x: 0, y: y - tall / 2, width, height: tall, class: `rung ${run.name === op ? "chosen" : ""}` });
  const short = run.name.length > 15 && ui.narrow ? `${run.name.slice(0, 14)}…` : run.name;
  const name = s("text", { x: names, y: y + 0.33 * em, class: "label", "text-anchor": "end" }, short);
  return s("g", { "data-link": run.name, onclick: choose }, back, name,
    told ? answer(run, said, across, y) : prediction(ui, run, said, across, y));
}

function prediction(ui, run, said, across, y) {
  const { predicted } = ui.state;
  const value = said ?? run.least;
  const x = across(value / run.least);
  const say = (times) => ui.set({ op: run.name,
    predicted: { ...predicted, [run.name]: run.least * across.hold(times) } });
  return handle({
    label: `your time of ${run.name}`, text: `${si(value, "s")}, ${plain(value / run.least, 2)} times the least`, tap: true,
    value: value / run.least, min: TIMES[0], max: TIMES[1], drag: (px) => say(across.value(px)),
    step: (dx, dy) => say((value / run.least) * STEP ** (dx + dy)), end: (side) => say(side < 0 ? 1 : TIMES[1]),
  },
  s("rect", { x: across.start, y: y - 12, width: across.end - across.start, height: 24, class: "spot track" }),
  said !== undefined && s("path", { d: line([across(1), y], [x, y]), class: "distance" }),
  s("circle", { cx: x, cy: y, r: 7, class: `knob ${said === undefined ? "unplaced" : ""}` }));
}

function answer(run, said, across, y) {
  const times = (seconds) => across(seconds / run.least);
  const [low, high] = run.bracket ?? [];
  const x = times(run.seconds);
  const far = across.beyond(run.seconds / run.least);
  return s("g", {},
    run.bracket && s("path", { d: `M${times(low)} ${y - 6}v12M${times(low)} ${y}H${times(high)}M${times(high)} ${y - 6}v12`,
      class: `bracket ${run.longer}` }),
    said !== undefined && s("circle", { cx: times(said), cy: y, r: 6, class: "knob" }),
    said !== undefined && arrow([times(said), y], [x, y]),
    s("circle", { cx: x, cy: y, r: 5, class: run.disturbed ? "disturbed" : "clock" }),
    far > 0 && tip(x + 14, y, "right"));
}

// ---- Words ----------------------------------------------------------------------------------------------------------

function question(ui, guess) {
  const { runs, predicted } = ui.state;
  const made = runs.filter(({ name }) => name in predicted);
  const left = runs.length - made.length;
  const asked = [h("b", {}, "How long will each take? "), "The line is the least that the roof allows. Drag each ring to the time that you ",
    "expect", made.length ? `: ${left || "none"} left.` : "."];
  const near = made.filter(({ name, seconds }) => Math.abs(Math.log(seconds / predicted[name])) <= Math.log(1.5));
  const judged = runs.filter(({ bracket }) => bracket);
  const inside = judged.filter((run) => run.inside);
  const yours = made.length ? `${near.length} of your ${made.length} within a factor of 1.5; ` : "";
  const told = ["The clock: ", yours, shown("inside", `${inside.length} of ${judged.length}`), " in their bracket, from overlap to taking turns."];
  return asks({ ...guess, value: made.length || null }, asked, told, { show: "Show the clock", again: "Hide the clock" });
}

function words(ui, told) {
  const { runs, op, predicted } = ui.state;
  const run = runs.find(({ name }) => name === op);
  const said = predicted[op];
  const bracket = run.bracket && [", so between ", shown("low", si(run.bracket[0], "s")), " and ", shown("high", si(run.bracket[1], "s"))];
  const yours = said === undefined ? "" : ` You say ${si(said, "s", 2)}.`;
  const clock = told && [" The clock says ", h("b", {}, shown("seconds", si(run.seconds, "s"))), `: ${run.verdict}.`];
  return h("p", {}, h("b", {}, `${run.name}: `), shown("flops", si(run.flops, "FLOP")), " and ", shown("bytes", si(run.bytes, "B")),
    "; computing takes ", shown("compute", si(run.compute, "s")), ", moving ", shown("move", si(run.move, "s")), bracket, ".", yours, clock);
}

export default picture({
  state: ["op"],
  given: ["runs", "roof", "ends"],
  check,
  draw(ui) {
    const clock = ui.guess(CLOCK);
    const hide = () => ui.set({ revealed: [] }); // predictions stay
    const side = ui.narrow ? ui.width : Math.floor(ui.width * 0.42);
    const rest = ui.narrow ? ui.width : ui.width - side - 1.2 * ui.em;
    const shape = ui.narrow ? "" : "columns ladder-side";
    ui.tell(clock.told ? "The clock is shown." : `${ui.state.op} is chosen.`);
    return [question(ui, { ...clock, again: hide }),
      h("div", { class: shape }, ladder(ui, clock.told, rest), chart(ui, clock.told, side)), words(ui, clock.told)];
  },
});
