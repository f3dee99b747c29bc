// A transformer's budget: batch and context are chosen on a map of what fits and what bounds. State: `model`,
// `machine`, `task`, `precision`, `devices`, `batch`, `tokens`, `recompute`.

import { beside, choice, duration, h, handle, lacking, picture, powers, range, s, shown, si, tick } from "./toolkit.js";

const MAP = { batch: powers(0, 14), tokens: powers(7, 17) };
const TINTS = { weights: "blue", gradients: "vermillion", moments: "green", "master copy": "purple",
  activations: "grey", "3 × logits": "yellow", "KV cache": "vermillion" };

// As helpers.budget. What is kept for the backward pass is so much per token of each text, and so much per token.
function stepOf({ task, precision, devices, batch, tokens, recompute }, model, states) {
  const { weights: weight, gradients: gradient, moments, "master copy": master = 0 } = states;
  // A longer text than there are learned positions for would need a longer table of them.
  const longer = model.positions === null ? 0 : Math.max(0, tokens - model.positions) * model.width;
  const parameters = model.parameters + longer, share = parameters / devices;
  const forward = 2 * model.matrices * tokens + 4 * model.attention * tokens ** 2;
  if (task === "decoding") {
    const memory = { weights: weight * share, "KV cache": (batch * tokens * model.kv * weight) / devices };
    const flops = (batch * (2 * model.matrices + 4 * model.attention * tokens)) / devices;
    const bytes = (weight * (parameters - model.table)) / devices + memory["KV cache"];
    return { memory, flops, bytes, peak: memory.weights + memory["KV cache"] };
  }
  const keeps = (what) => batch * tokens * model.kept[precision][what][0] + tokens * model.kept[precision][what][1];
  const all = keeps("all"), activations = recompute ? keeps("recomputed") : all,
    logits = 4 * batch * tokens * model.vocabulary;
  const memory = Object.fromEntries(Object.entries(states).map(([name, size]) => [name, size * share]));
  const block = keeps("more") - all, atLoss = activations - (recompute ? block : 0);
  const peak = (weight + moments + master) * share + Math.max(atLoss + 3 * logits, activations + (gradient * model.head)
    / devices, gradient * share + block);
  const flops = batch * forward * 3 + (recompute ? batch * forward - 2 * batch * tokens * model.head : 0);
  const moved = (recompute ? 3 : 2) * weight * parameters + 2 * (weight + gradient + moments + master) * share;
  const parts = { ...memory, activations, "3 × logits": 3 * logits }; // at the loss, two more tables of their size
  return { memory: parts, flops, peak, bytes: moved + 2 * (all + logits) };
}
const rateOf = (spec, precision) => spec.rates[precision.replace("mixed ", "")];

function checkPlan({ model, models, machine, machines, task, precision, precisions, devices, batch, tokens,
  recompute }) {
  const spec = machines[machine];
  if (!models[model]) return `There is no model ${model}; there are ${Object.keys(models).join(", ")}.`;
  if (!spec) return `There is no machine ${machine} in the table.`;
  if (!["training", "decoding"].includes(task)) return `The task is training or decoding, not ${task}.`;
  const recipe = precisions[precision];
  if (!recipe) return `There is no precision ${precision}; there are ${Object.keys(precisions).join(", ")}.`;
  if (task === "training" && !recipe.gradients) return `Nothing is trained in ${precision} here; choose another first.`;
  if (!rateOf(spec, precision)) return lacking(machine, precision, spec.rates);
  const fits = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  if (!fits(devices, 16384) || !fits(batch, 16384) || !fits(tokens, 131072) || tokens < 128 || typeof recompute !== "boolean")
    return "Devices and batch go from 1 to 16384, tokens from 128 to 131072; recompute is true or false.";
  return "";
}

export default picture({ slideEm: 17, state: ["model", "machine", "task", "precision", "devices", "batch", "tokens", "recompute"],
  given: ["models", "machines", "precisions"], check: checkPlan, draw: (ui) => {
  const { models, machines, precisions, ...state } = ui.state, { em } = ui, { task, precision, devices, batch, tokens,
    recompute } = state;
  const model = models[state.model], spec = machines[state.machine];
  const rate = rateOf(spec, precision), training = task === "training";
  const judged = (changes) => {
    const step = stepOf({ ...state, ...changes }, model, precisions[precision]);
    const compute = step.flops / rate, move = step.bytes / spec.bandwidth;
    return { ...step, compute, move, bound: compute >= move ? "compute" : "memory", fits: step.peak <= spec.memory };
  };
  const now = judged({}), { memory, peak, compute, move, bound, fits } = now, seconds = Math.max(compute, move);
  const narrow = ui.width < 46 * em, width = narrow ? ui.width : ui.width - 19.5 * em;

  // Memory: a bar of the terms against the capacity.
  const total = Object.values(memory).reduce((sum, size) => sum + size, 0), far = 1.04 * Math.max(total, peak,
    spec.memory);
  const at = (size) => 1 + (size / far) * (width - 2), top = 1.6 * em, tall = 2.2 * em;
  let left = 0;
  const terms = Object.entries(memory).map(([name, size]) => {
    const start = at(left), long = at(left + size) - start;
    left += size;
    return s("g", { class: "term" }, s("rect", { x: start, y: top, width: Math.max(long, 0), height: tall,
      class: `tint ${TINTS[name]}` }),
      long > 0.62 * em * name.length && s("text", { x: start + long / 2, y: top + 1.4 * em, class: "name",
        "text-anchor": "middle" }, name));
  });
  const note = (text, x, y, kind) => beside(text, x, y, x > width / 2 ? -1 : 1, { width, em }, `label bold ${kind}`);
  const bars = s("svg", { width, height: top + tall + 1.9 * em, role: "img",
    "aria-label": `${si(peak, "B")} at the fullest moment, of ${si(spec.memory, "B")}` },
    terms, s("path", { d: `M${at(spec.memory)} 0V${top + tall + 4}`, class: "capacity" }),
    note(`the device has ${si(spec.memory, "B")}`, at(spec.memory), 0.95 * em, ""),
    s("path", { d: `M${at(peak)} ${top - 3}V${top + tall + 6}`, class: "peak" }),
    note(`${si(peak, "B")} at the fullest moment: ${fits ? "fits" : "does not fit"}`, at(peak), top + tall + 1.3 * em, fits ? ""
      : "bad"));

  // Time: the two of a step, one under the other.
  const name = 6.2 * em, times = [["arithmetic", compute, "compute"], ["memory", move, "memory"]].map(([text, time,
    kind], row) => {
    const long = Math.max((time / seconds) * (width - name - 10.5 * em), 1.5), y = 1.9 * em * row;
    return [s("text", { x: 1, y: y + 1.15 * em, class: "label" }, text), s("rect", { x: name, y: y + 2, width: long,
      height: 1.5 * em, class: `time ${kind}` }),
      s("text", { x: name + long + 0.5 * em, y: y + 1.15 * em, class: `label ${kind === bound ? "bold" : ""}` },
        `${duration(time)}${kind === bound ? ": bounds" : ""}`)];
  });

  // The map: every batch and context, whether it fits and what bounds it.
  const side = { x: (width - 4.2 * em) / MAP.batch.length, y: 1.28 * em }, corner = [4 * em, 0.2 * em];
  const place = (list, value) => Math.log2(value) - Math.log2(list[0]);
  // One path for all tiles of a kind and one text for a row of signs: an element for each would take most of the time.
  const kinds = MAP.tokens.map((tokens) => MAP.batch.map((batch) => {
    const there = judged({ batch, tokens });
    return there.fits ? there.bound : "no";
  }));
  const edge = (column) => corner[0] + side.x * column, upper = (row) => corner[1] + side.y * (MAP.tokens.length - 1 - row);
  const tile = (row, column) => `M${edge(column)} ${upper(row)}h${side.x - 1}v${side.y - 1}h${1 - side.x}z`;
  const cells = ["no", "memory", "compute"].map((kind) => s("path", { class: `tile ${kind}`,
    d: kinds.flatMap((row, r) => row.map((found, c) => (found === kind ? tile(r, c) : ""))).join("") || "M0 0z" }));
  const signs = kinds.map((row, r) => s("text", { y: upper(r) + 0.95 * em, class: "glyph", "text-anchor": "middle",
    x: row.map((_, column) => edge(column) + side.x / 2).join(" ") },
  row.map((kind) => ({ no: "×", memory: "●", compute: "■" })[kind]).join("")));
  const bottom = corner[1] + side.y * MAP.tokens.length, nearest = (list, where) =>
    list[Math.min(Math.max(Math.floor(where), 0), list.length - 1)];
  const choose = (batch, tokens) => (batch !== state.batch || tokens !== state.tokens) && ui.set({ batch, tokens });
  const shift = (list, value, by) => list[Math.min(Math.max(Math.round(place(list, value)) + by, 0), list.length - 1)];
  const map = s("svg", { width, height: bottom + 2.6 * em, role: "group", "aria-label": "map of batch and tokens" },
    [7, 10, 13, 16].map((power) => s("text", { x: corner[0] - 0.4 * em, y: bottom - side.y * (power - 7) - 0.3 * em,
      class: "name", "text-anchor": "end" }, `${2 ** power}`)),
    [0, 4, 8, 12].map((power) => s("text", { x: corner[0] + side.x * (power + 0.5), y: bottom + em, class: "name",
      "text-anchor": "middle" }, `${2 ** power}`)),
    s("text", { transform: `translate(${0.8 * em} ${bottom / 2}) rotate(-90)`, class: "name", "text-anchor": "middle" },
      "tokens each"),
    s("text", { x: (corner[0] + width) / 2, y: bottom + 2.2 * em, class: "name", "text-anchor": "middle" }, training
      ? "texts per device" : "texts in all"),
    handle({ label: "batch and tokens", value: batch, tap: true,
      text: `${batch} texts of ${tokens} tokens: ${fits ? `fits, ${bound}-bound` : "does not fit"}`,
      drag: (x, y) => choose(nearest(MAP.batch, (x - corner[0]) / side.x), nearest(MAP.tokens, (bottom - y) / side.y)),
      step: (dx, dy) => choose(shift(MAP.batch, batch, dx), shift(MAP.tokens, tokens, dy)) },
    cells, signs, s("rect", { x: corner[0] + side.x * place(MAP.batch, batch) - 1, y: bottom - side.y * (place(MAP.tokens,
      tokens) + 1) - 1, width: side.x + 1, height: side.y + 1, class: "here" })));

  const made = training ? batch * tokens * devices : batch;
  return h("div", { class: narrow ? "" : "columns" },
    h("div", {}, bars,
      h("p", { class: "key" }, Object.entries(memory).map(([name, size]) => h("span", {},
        h("i", { class: `tint ${TINTS[name]}` }), `${name} `, shown(name, si(size, "B"))))),
      s("svg", { width, height: 4 * em, role: "img",
        "aria-label": `arithmetic ${duration(compute)}, memory ${duration(move)}` }, times), map,
      h("p", { class: "key soft" }, h("span", {}, "● fits, memory-bound"), h("span", {}, "■ fits, compute-bound"),
        h("span", {}, "× does not fit"))),
    h("div", {},
      choice("model", Object.keys(models), state.model, (name) => ui.set({ model: name })),
      choice("machine", Object.keys(machines), state.machine, (name) => ui.set({ machine: name })),
      h("div", { class: "row" }, choice("task", ["training", "decoding"], task, (task) => ui.set({ task })),
        choice("precision", Object.keys(precisions), precision, (precision) => ui.set({ precision }))),
      range("devices", powers(0, 14), devices, `${devices}`, (devices) => ui.set({ devices })),
      range(training ? "texts per device" : "texts in all", MAP.batch, batch, `${batch}`, (batch) => ui.set({ batch })),
      range("tokens each", MAP.tokens, tokens, `${tokens}`, (tokens) => ui.set({ tokens })),
      tick("recompute activations", recompute, (recompute) => ui.set({ recompute }), !training),
      h("div", { "aria-live": "polite" },
        h("p", {}, "Per device ", shown("peak", si(peak, "B")), " of ", shown("capacity", si(spec.memory, "B")), ": ",
          h("b", {}, shown("room",
          fits ? `fits, ${si(spec.memory - peak, "B")} left`
            : `does not fit, ${si(peak - spec.memory, "B")} too much`)), "."),
        h("p", {}, "A step takes at least ", shown("seconds", duration(seconds)), ", ",
          h("b", {}, shown("bound", `${bound}-bound`)), ", for ",
          shown("made", si(made, made === 1 ? "token" : "tokens")), ": at most ", shown("rate", si(made / seconds,
            "tokens/s")), ", arithmetic at ",
          shown("share", si((100 * compute) / seconds, "%")), " of its peak."))));
} });
