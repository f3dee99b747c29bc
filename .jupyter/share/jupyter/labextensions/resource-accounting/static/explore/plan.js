// The plan of a training run. At the left what one GPU holds at its fullest moment, term by term, against its memory; at
// the right GPUs against days, where GPU-hours, and so dollars, are diagonals. What cannot be is hatched on both sides.
// State: see helpers/explore/plan.py. Given: `models`, whose bytes and FLOPs are coefficients; `machines`; `published`
// runs; `asked`, the questions that come first; `handles`, what may be moved; `links` and `server` for the traffic.

import { asks, beside, choice, duration, either, h, handle, hatching, line, linear, logarithmic, miss, picture,
  places, plain, powers, s, scrub, shown, si, tip, wide } from "./toolkit.js";

const DAY = 86400;
const TERMS = { weights: "weights", gradients: "gradients", moments: "averages", "master copy": "master copy",
  activations: "activations", loss: "loss tables" };
const LOOKS = { weights: "blue", gradients: "vermillion", moments: "green", "master copy": "purple", activations: "grey",
  loss: "yellow" };
const GPUS = [1, 32768]; // the ends of the axes
const DAYS = [1, 36500];
const SPANS = [[1, "1 day"], [7, "1 week"], [30, "1 month"], [365, "1 year"], [3650, "10 years"], [36500, "100 years"]];
const SERVERS = [1, 2, 4, ...Array.from({ length: 2048 }, (_, k) => 8 * (k + 1))]; // GPUs come in servers of eight
const MOST_GPUS = 16384;
const TOO_FAST = "faster than the peak";
const between = (x, low, high) => Math.min(Math.max(x, low), high);
const spanOf = (days) => (days >= 730 ? `${plain(days / 365, 2)} years` : `${plain(days, 3)} days`);
const many = (x, noun) => {
  const [size, name] = [[1e12, "trillion "], [1e9, "billion "], [1e6, "million "]].find(([size]) => x >= size) ?? [1, ""];
  return `${plain(x / size, 3)} ${name}${noun}`;
};

function check({ model, models, machine, machines, gpus, shared, texts, text_gpus, recompute, fused, utilization, run,
  price, deadline }) {
  if (!models[model]) return `There is no model ${model}; there are ${Object.keys(models).join(", ")}.`;
  if (!machines[machine]) return `There is no machine ${machine} in the table.`;
  const whole = (x, most) => Number.isInteger(x) && x >= 1 && x <= most;
  if (!whole(gpus, MOST_GPUS) || !whole(shared, MOST_GPUS)) return "GPUs, and those that share, are whole numbers from 1 to 16384.";
  if (!whole(texts, 256)) return "A GPU works on 1 to 256 texts at a time.";
  if (![1, 2, 4, 8].includes(text_gpus)) return "On one text work 1, 2, 4 or 8 GPUs, those of one server.";
  if (!models[model].alive[recompute] || typeof fused !== "boolean") return "Recompute is none, selective or full; fused is true or false.";
  if (!(utilization >= 0.02 && utilization <= 1)) return "The part of the peak that computes is from 0.02 to 1, as nothing is faster.";
  if (!(run >= 1e9 && run <= 1e15)) return "A run has from 1 billion to 1000 trillion tokens.";
  return price >= 0.01 && price <= 100 && deadline >= 1 && deadline <= 36500 ? ""
    : "A GPU-hour costs from 0.01 to 100 dollars, and a deadline is 1 day to 100 years away.";
}

// ---- What a state costs ---------------------------------------------------------------------------------------------

function memoryOf(state) {
  const { models, model, machines, machine, gpus, texts, recompute, fused } = state;
  const share = Math.min(state.shared, gpus);
  const together = Math.min(state.text_gpus, gpus);
  const moments = Object.entries(models[model].alive[recompute][fused ? "fused" : "unfused"]).map(([moment, law]) => {
    const size = ([ofShare, ofText, once]) => ofShare / share + (ofText * texts + once) / together;
    const terms = Object.fromEntries(Object.entries(law).map(([term, numbers]) => [term, size(numbers)]));
    return { moment, terms, peak: Object.values(terms).reduce((sum, bytes) => sum + bytes, 0) };
  });
  const fullest = moments.reduce((most, one) => (one.peak > most.peak ? one : most));
  return { ...fullest, room: machines[machine].memory - fullest.peak, fits: fullest.peak <= machines[machine].memory };
}

function timeOf(state) {
  const { models, model, machines, machine, gpus, texts, recompute, fused, utilization, run, links, server, price } = state;
  const { length, flops, useful, traffic } = models[model];
  const { peak } = machines[machine];
  const together = Math.min(state.text_gpus, gpus);
  const beyond = Math.min(state.shared, gpus) > server;
  const arithmetic = (flops[recompute][fused ? "fused" : "unfused"] * texts) / together / (peak * utilization);
  const network = gpus <= server ? 0 : traffic[beyond ? "beyond" : "within"] / links;
  const tokens = (gpus / together) * texts * length;
  const days = ((run / tokens) * Math.max(arithmetic, network)) / DAY;
  const hours = gpus * days * 24;
  const mfu = ((useful / length) * run) / (peak * gpus * days * DAY);
  return { arithmetic, network, tokens, days, hours, dollars: hours * price, mfu };
}

const withGpus = (state, gpus) => ({ ...state, gpus });
const leastGpus = (state) => SERVERS.find((gpus) => memoryOf(withGpus(state, gpus)).fits);
const NEAR = 6; // pixels, within which a dragged point jumps
const nearest = (stops, x) => stops.reduce((best, stop) => (Math.abs(Math.log(stop / x)) < Math.abs(Math.log(best / x)) ? stop : best));

// ---- Left: what one GPU holds ---------------------------------------------------------------------------------------

function held(ui, width) {
  const { em, before, state } = ui;
  const now = memoryOf(state);
  const { memory } = state.machines[state.machine];
  const numbers = 10.6 * em; // where the column of numbers ends, so that none lies on a bar or on the memory's line
  const names = numbers - 4.7 * em;
  const across = linear([0, state.most], [numbers + 0.5 * em, width - 1.5 * em]);
  const tall = Math.max((ui.slide ? 1.3 : 1.7) * em, 24);
  const top = 1.5 * em;
  const rows = Object.keys(TERMS);
  const bottom = top + (rows.length + 1) * tall;
  let start = 0;
  const steps = rows.map((term, k) => {
    const size = now.terms[term] ?? 0;
    const from = start;
    start += size;
    const x = across(from);
    const y = top + k * tall;
    const words = size ? si(size, "B") : "none yet";
    return s("g", { "data-link": term },
      s("text", { x: names, y: y + 0.68 * tall, class: "label", "text-anchor": "end" }, TERMS[term]),
      s("text", { x: numbers, y: y + 0.68 * tall, class: `label ${size ? "" : "soft"}`, "text-anchor": "end", "data-shown": term }, words),
      s("rect", { x, y: y + 2, width: Math.max(across(start) - x, 0), height: tall - 4, class: `tint ${LOOKS[term]}` }),
      s("path", { d: line([across(start), y + 2], [across(start), y + tall + 2]), class: "lead" }),
      across.beyond(start) > 0 && size > 0 && tip(across.end + 10, y + tall / 2, "right"));
  });
  const y = top + rows.length * tall;
  const old = before && memoryOf(before).peak;
  const look = now.fits ? "held" : "held over";
  const total = s("g", {},
    s("text", { x: names, y: y + 0.7 * tall, class: "label bold", "text-anchor": "end" }, "together"),
    s("text", { x: numbers, y: y + 0.7 * tall, class: "label bold", "text-anchor": "end" }, si(now.peak, "B")),
    s("rect", { x: across(0), y: y + 3, width: across(now.peak) - across(0), height: tall - 5, class: look }),
    old && old !== now.peak && s("rect", { x: across(0), y: y + 3, width: across(old) - across(0), height: tall - 5, class: "ghost" }),
    across.beyond(now.peak) > 0 && tip(across.end + 10, y + tall / 2, "right"));
  return h("div", {},
    s("svg", { width, height: bottom + 6, role: "img",
      "aria-label": `one GPU holds ${si(now.peak, "B")} at its fullest moment, of ${si(memory, "B")}` },
    hatching(ui),
    s("rect", { x: across(memory), y: top, width: across.end - across(memory), height: bottom - top, fill: ui.hatch, class: "cannot" }),
    s("path", { d: line([across(memory), top - 2], [across(memory), bottom + 4]), class: "capacity" }), steps, total,
    beside(`one GPU: ${si(memory, "B")}`, across(memory), top - 0.4 * em, 0, ui, "label bold", 0, width)),
    h("p", { style: ui.narrow ? "min-height: 2.8em" : null }, h("b", { class: now.fits ? "" : "compute" }, shown("peak", si(now.peak, "B")), ": ",
      shown("fits", now.fits ? `fits, ${si(now.room, "B")} left` : `does not fit, ${si(-now.room, "B")} too much`)),
    ". Fullest ", shown("moment", now.moment), "."));
}

// ---- Right: what the run takes --------------------------------------------------------------------------------------

function frame(ui, width, height) {
  const { em } = ui;
  const [left, right, top, bottom] = [4.7 * em, width - 0.6 * em, 0.8 * em, height - 2.9 * em];
  return { width, height, left, right, top, bottom, across: logarithmic(GPUS, [left, right]), up: logarithmic(DAYS, [bottom, top]) };
}

function axes({ em }, { across, up, left, right, top, bottom, height }, first) {
  const columns = [1, 8, 64, 512, 4096, 32768].map((x) => [
    s("path", { d: line([across(x), top], [across(x), bottom]), class: "grid" }),
    s("text", { x: across(x), y: bottom + 1.2 * em, class: "name", "text-anchor": x === 32768 ? "end" : "middle" }, `${x}`)]);
  const rows = SPANS.map(([days, name]) => [
    s("path", { d: line([left, up(days)], [right, up(days)]), class: "grid" }),
    s("text", { x: left - 0.4 * em, y: up(days) + 0.3 * em, class: "name", "text-anchor": "end" }, name)]);
  return [columns, !first && rows, s("text", { x: right, y: height - 0.4 * em, class: "name", "text-anchor": "end" }, "GPUs")];
}

// GPUs times days is a number of GPU-hours: a diagonal. `days` is how long one GPU would take.
function diagonal({ across, up }, days) {
  const from = between(days / DAYS[1], ...GPUS);
  const to = between(days / DAYS[0], ...GPUS);
  return [[across(from), up(days / from)], [across(to), up(days / to)]];
}

// Where the wall stands: at the fewest GPUs that hold it.
function wallAt(state, { across, left, right }) {
  const least = leastGpus(state);
  return least === undefined ? right : least === 1 ? left : across(least);
}

function wall(ui, state, box) {
  const { em, hatch } = ui;
  const { left, top, bottom } = box;
  const x = wallAt(state, box);
  return [s("rect", { x: left, y: top, width: x - left, height: bottom - top, fill: hatch, class: "cannot" }),
    x > left && s("path", { d: line([x, top], [x, bottom]), class: "capacity" }),
    x - left > wide("does not fit", ui, 0.92, "bold") && s("text", { x: left + 0.2 * em, y: bottom - 2 * em, class: "label bold" }, "does not fit")];
}

// Words at the bottom that the wall does not cross, where there is room on one of its sides.
function besideWall(ui, box, words) {
  const long = wide(words, ui, 0.92, "bold");
  const x = wallAt(ui.state, box);
  const crosses = x > box.left && box.left + 0.5 * ui.em + long > x;
  return { x: (crosses && x + 0.5 * ui.em + long < box.right ? x : box.left) + 0.5 * ui.em, y: box.bottom - 0.6 * ui.em, long };
}

// That, and fewer days than the peak allows.
function impossible(ui, box) {
  const { state } = ui;
  const { left, right, bottom } = box;
  const { x, y } = besideWall(ui, box, TOO_FAST);
  const fastest = timeOf({ ...state, utilization: 1 });
  const [start, end] = diagonal(box, fastest.days * state.gpus);
  const below = `${line([left, bottom], [left, start[1]], start, end, [right, end[1]], [right, bottom])}z`;
  return [s("path", { d: below, fill: ui.hatch, class: "cannot" }), wall(ui, state, box),
    s("text", { x, y, class: "label bold" }, TOO_FAST)];
}

// Where words and marks are, so that no name lies on them.
function taken(ui, box) {
  const { em, state } = ui;
  const [x, y] = [box.across(state.gpus), box.up(timeOf(state).days)];
  const high = box.up(state.deadline);
  const lines = [0.35, -0.4].map((rise) => ({ x: box.left, y: high + rise * em, long: box.right - box.left }));
  const said = ui.guess("days").value;
  if (said !== null) lines.push({ x: box.left, y: besideLine(ui, box, said, state.deadline), long: box.right - box.left });
  return [...lines, { x: x - 10, y, long: 20 }, { x, y: y - em, long: 5.5 * em },
    besideWall(ui, box, TOO_FAST), { x: box.left, y: box.bottom - 2 * em, long: 6 * em },
    ...state.published.map((run) => ({ x: box.across(run.gpus) - 8, y: box.up(run.days) + 0.3 * em, long: 16 }))];
}

// The words of a line lie above it, or below it where another line is.
function besideLine({ em }, { up }, days, other) {
  const above = up(days) - up(other);
  return up(days) + (above > 0 && above < 1.6 * em ? 1.1 : -0.5) * em;
}

function marks(ui, box) {
  const { em, state } = ui;
  const spot = places(ui, [box.left, box.right], taken(ui, box));
  return state.published.map((run) => {
    const [x, y] = [box.across(run.gpus), box.up(run.days)];
    const at = spot(`${run.name}: ${plain(run.mfu, 2)}`, x, y);
    const lead = at.far && s("path", { d: line([x, y], [at.side > 0 ? at.x - 3 : at.x + at.long + 3, at.y - 0.3 * em]), class: "lead" });
    const covered = run.gpus === state.gpus && Math.abs(box.up(timeOf(state).days) - y) < NEAR; // the point is on it
    return s("g", { class: "point", "data-link": run.name, style: covered ? "pointer-events: none" : null, onclick: () => ui.say(`${run.name}, ${run.source}.`) },
      s("circle", { cx: x, cy: y, r: 14, class: "spot" }), lead,
      s("path", { d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z`, class: "published" }),
      s("text", { x: at.x, y: at.y, class: "label" }, `${run.name}: ${plain(run.mfu, 2)}`));
  });
}

const legend = () => h("p", { class: "soft" }, "◆ published runs: the part of the peak, by all their GPU-hours, time standing still ",
  "included. FLOPs are counted as in the plan. Touch one for its source.");

// Where a point goes that is dragged to a pixel: onto a published run or a power of two that is near.
function snapped({ published }, { across, up }, x, y) {
  const run = published.find(({ gpus, days }) => Math.hypot(across(gpus) - x, up(days) - y) < 2 * NEAR);
  if (run) return { ...run, exact: true };
  const power = powers(0, 14).find((gpus) => Math.abs(across(gpus) - x) < NEAR);
  return { gpus: power ?? nearest(SERVERS, between(across.value(x), 1, MOST_GPUS)), days: up.value(y) };
}

function planned(ui, box) {
  const { state, em, before } = ui;
  const now = timeOf(state);
  const free = (name) => state.handles.includes(name);
  const [x, y] = [box.across(state.gpus), box.up(now.days)];
  const full = timeOf({ ...state, utilization: 1 }).days * state.gpus; // GPU-days at the peak
  const move = ({ gpus, days, exact = false }) => ui.set({
    ...(free("gpus") ? { gpus } : {}),
    ...(free("utilization") ? { utilization: between(+plain(full / gpus / days, exact ? 6 : 2), 0.02, 1) } : {}),
  });
  const stepGpus = (way) => nearest(powers(0, 14), between(state.gpus * 2 ** way, 1, MOST_GPUS));
  const step = (dx, dy) => (dx ? free("gpus") && ui.set({ gpus: stepGpus(dx) })
    : free("utilization") && ui.set({ utilization: between(+plain(state.utilization - 0.01 * dy, 2), 0.02, 1) }));
  const fits = memoryOf(state).fits;
  const old = before && timeOf(before);
  const ghost = old && (old.days !== now.days || before.gpus !== state.gpus);
  const far = box.up.beyond(now.days);
  return [s("path", { d: line(...diagonal(box, now.days * state.gpus)), class: "hours" }),
    ghost && s("circle", { cx: box.across(before.gpus), cy: box.up(old.days), r: 8, class: "ghost" }),
    handle({ label: "GPUs and days", value: state.gpus, min: 1, max: MOST_GPUS, tap: true, step,
      text: `${state.gpus} GPUs, ${spanOf(now.days)}, ${fits ? "fits" : "does not fit"}`,
      drag: (px, py) => move(snapped(state, box, px, py)) },
    s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "spot" }),
    s("path", { d: line([x, y], [x, box.bottom]), class: "drop" }),
    s("circle", { cx: x, cy: y, r: 9, class: `knob ${fits ? "" : "compute"}` })),
    far !== 0 && tip(x, y + (far > 0 ? -2 : 2), far > 0 ? "up" : "down"),
    beside(spanOf(now.days), x, y - em, 1, ui, "label bold", box.left, box.right)];
}

function limit(ui, box) {
  const { deadline } = ui.state;
  const y = box.up(deadline);
  return [s("path", { d: line([box.left, y], [box.right, y]), class: "deadline" }),
    beside(`deadline: ${spanOf(deadline)}`, box.left, besideLine(ui, box, deadline, ui.guess("days").value ?? 0), 1, ui, "label")];
}

// ---- The questions --------------------------------------------------------------------------------------------------

const gpusOf = (count) => `${count} ${count === 1 ? "GPU" : "GPUs"}`;

// A line to be dragged across the chart: of GPUs it stands, of days it lies.
function guessLine(ui, box, name, guess) {
  const { em } = ui;
  const upright = name === "gpus";
  const scale = upright ? box.across : box.up;
  const value = guess.value ?? (upright ? 256 : 30);
  const write = upright ? gpusOf : spanOf;
  const make = (x) => guess.make(upright ? nearest(SERVERS, between(x, 1, MOST_GPUS)) : +plain(scale.hold(x), 2));
  const at = scale(value);
  const ends = upright ? [[at, box.top], [at, box.bottom]] : [[box.left, at], [box.right, at]];
  const words = guess.value === null ? "drag me" : write(value);
  if (guess.told) return guess.value === null ? null : [s("path", { d: line(...ends), class: "guess" }),
    beside(`you: ${write(value)}`, upright ? at : box.left, upright ? box.top + 2.6 * em : besideLine(ui, box, value, ui.state.deadline), 1, ui, "label", box.left, box.right)];
  const middle = upright ? [at, (box.top + box.bottom) / 2] : [box.across(ui.state.gpus), at];
  return handle({ label: `your guess of the ${upright ? "GPUs" : "days"}`, text: write(value), value, min: scale.from, max: scale.to,
    tap: true, drag: (x, y) => make(scale.value(upright ? x : y)), step: (dx, dy) => make(value * (upright ? 2 : 1.25) ** (dx + dy)) },
  s("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "spot" }),
  s("path", { d: line(...ends), class: "guess" }), s("circle", { cx: middle[0], cy: middle[1], r: 9, class: "knob" }),
  s("text", { x: middle[0] + 1.1 * em, y: middle[1] - 0.6 * em, class: "label bold" }, words));
}

function question(ui, { name, text, before, after, answer }) {
  const guess = ui.guess(name);
  const write = name === "gpus" ? gpusOf : spanOf;
  const off = guess.value === null || answer === null ? "" : `; ${miss(guess.value, answer, write)}`;
  const found = answer === null ? "No number of GPUs" : write(answer);
  const servers = answer > ui.state.server ? `, in whole servers of ${ui.state.server}` : "";
  const lead = name === "gpus" ? "" : "It takes ";
  const told = [lead, h("b", {}, shown(`answer ${name}`, found)), name === "gpus" && `: the fewest that hold it${servers}`, off, "."];
  return asks({ ...guess, tell: () => guess.tell(after), again: () => guess.again(before) }, h("b", {}, text), told);
}

// ---- The sentence of the plan, whose numbers are dragged -------------------------------------------------------------

function sentence(ui) {
  const { state } = ui;
  const { length } = state.models[state.model];
  const number = (name, label, stops, text) => (state.handles.includes(name)
    ? scrub(ui, { label, value: state[name], text, stops, set: (value) => ui.set({ [name]: value }) }) : h("b", {}, text));
  const fractions = Array.from({ length: 49 }, (_, k) => (k + 1) / 50);
  const runs = [1, 2, 5].flatMap((x) => [11, 12, 13].map((power) => x * 10 ** power)).concat(15e12, 1e14).sort((a, b) => a - b);
  const money = [0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10];
  const open = (name, parts) => (state.handles.includes(name) ? parts : null);
  const whole = state.handles.includes("recompute"); // else the MFU has in it what is recomputed
  const together = state.text_gpus > 1 ? `${state.text_gpus} GPUs work` : "1 GPU works";
  const lines = ui.narrow ? (whole ? 6 : 5) : 2; // room for its longest numbers: nothing shifts under a drag
  return h("p", { class: ui.slide ? "" : "plan", style: ui.slide ? null : `min-height: ${1.9 * lines}em` },
    number("gpus", "GPUs", powers(0, 14), gpusOf(state.gpus)), " train on ", number("run", "tokens of the run", runs, many(state.run, "tokens")),
    whole ? " at " : " at an MFU of ", number("utilization", "of the peak", fractions, plain(state.utilization, 2)),
    whole ? " of their peak. " : ". ", number("text_gpus", "GPUs on one text", powers(0, 3), together), " on ",
    number("texts", "texts per GPU", powers(0, 8), `${state.texts} ${state.texts === 1 ? "text" : "texts"}`),
    ` of ${length} tokens at a time. `,
    open("shared", ["The states are shared among ", number("shared", "GPUs that share the states", powers(0, 14),
      `${Math.min(state.shared, state.gpus)} GPUs`), ". "]),
    "A GPU-hour costs ", scrub(ui, { label: "dollars per GPU-hour", value: state.price, text: `${plain(state.price, 3)} dollars`, stops: money,
      set: (price) => ui.set({ price }) }), " (an assumption), the deadline is in ",
    scrub(ui, { label: "deadline", value: state.deadline, text: spanOf(state.deadline), stops: [30, 60, 90, 120, 180, 270, 365, 730],
      set: (deadline) => ui.set({ deadline }) }), ".");
}

function switches(ui) {
  const { state } = ui;
  const has = (name) => state.handles.includes(name);
  if (!["recompute", "fused", "model", "machine"].some(has)) return null;
  return h("div", { class: "row told" },
    has("model") && choice("model", Object.keys(state.models), state.model, (model) => ui.set({ model })),
    has("machine") && choice("GPU", Object.keys(state.machines), state.machine, (machine) => ui.set({ machine })),
    has("recompute") && either("recompute", [["none", "nothing"], ["selective", "the scores"], ["full", "whole blocks"]],
      state.recompute, (recompute) => ui.set({ recompute })),
    has("fused") && either("attention", [[true, "fused"], [false, "op by op"]], state.fused, (fused) => ui.set({ fused })));
}

function remarks(ui, now) {
  const { state } = ui;
  const { dtype } = state.machines[state.machine];
  return [state.recompute === "full" && state.handles.includes("recompute")
    && "Charged is all of the blocks' forward pass once more; PyTorch spares the last product of each block.",
    dtype !== "bfloat16" && `It has no bfloat16: the run is one in mixed float16, of as many bytes, with a loss scale.`,
    state.recompute === "selective" && state.fused && "Fused attention keeps no scores, so there is nothing for selective recomputation to save.",
    now.network > now.arithmetic && "The GPUs wait for the network: it cannot hide behind so little arithmetic."]
    .filter(Boolean).map((text) => h("p", { class: "soft" }, text));
}

function verdict(ui) {
  const { state } = ui;
  const now = timeOf(state);
  const late = now.days - state.deadline;
  const moved = state.handles.includes("shared") && [" A step of ", shown("tokens", many(now.tokens, "tokens")), ": arithmetic ",
    shown("arithmetic", duration(now.arithmetic)), ", network ", shown("network", duration(now.network)), "."];
  return h("div", {}, h("p", {}, h("b", {}, shown("days", spanOf(now.days))), ", ",
    late > 0 ? h("b", { class: "compute" }, shown("late", `${spanOf(late)} late`)) : shown("late", `${spanOf(-late)} to spare`), ": ",
    shown("hours", many(now.hours, "GPU-hours")), ", ", h("b", {}, shown("dollars", many(now.dollars, "dollars"))), ", an MFU of ",
    h("b", {}, shown("mfu", plain(now.mfu, 2))), ".", moved), remarks(ui, now));
}

export default picture({
  state: ["model", "machine", "gpus", "shared", "texts", "text_gpus", "recompute", "fused", "utilization", "run", "price", "deadline"],
  given: ["models", "machines", "published", "asked", "handles", "links", "server", "most"],
  check,
  draw(ui) {
    const { asked } = ui.state;
    const open = asked.find(({ name }) => !ui.guess(name).told);
    const first = open && open === asked[0] && open.name === "gpus"; // nothing can be shown yet
    const half = ui.narrow || first ? ui.width : Math.floor((ui.width - 1.4 * ui.em) / 2);
    const tall = ui.slide ? (first ? 18 : 14) : first ? 9 : 19.5;
    const box = frame(ui, half, tall * ui.em);
    const last = open ?? asked.at(-1);
    const lines = last && guessLine(ui, box, last.name, ui.guess(last.name));
    ui.tell(open ? open.text : `${spanOf(timeOf(ui.state).days)}, ${memoryOf(ui.state).fits ? "fits" : "does not fit"}`);
    const chart = s("svg", { width: half, height: box.height, role: "group", "aria-label": "GPUs and days, both logarithmic" },
      hatching(ui), !open && impossible(ui, box), open && !first && !open.after && wall(ui, ui.state, box), axes(ui, box, first), !open && limit(ui, box),
      !open && planned(ui, box), !open && marks(ui, box), lines);
    return [asked.filter((one) => one === open || ui.guess(one.name).told).map((one) => question(ui, one)),
      !open && sentence(ui), !open && switches(ui),
      h("div", { class: ui.narrow || first ? "" : "halves" }, h("div", {}, !first && held(ui, half), !open && !ui.narrow && verdict(ui)),
        h("div", {}, chart, !open && legend(), !open && ui.narrow && verdict(ui)))];
  },
});
