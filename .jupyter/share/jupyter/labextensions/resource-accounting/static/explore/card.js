// The block card: one block of a model, box by box, with what every lesson says about each. State: `model`, `machine`,
// `batch`, `tokens`, `decode`, `fused`. Costs are formulas that Python hands over as trees, ["*", 2, "b", ["+", "d", "f"]]:
// what is computed from them is also what is shown when a number is touched.

import { bar, beside, button, choice, dimension, duration, either, h, handle, line, linear, linked, logarithmic, miss, opens,
  picture, plain, powers, s, scrub, shown, si, tip } from "./toolkit.js";

const TIMES = [1e-7, 100]; // seconds, the ends of the scale of the whole block
const SOURCES = { z: "bytes of a number in bfloat16", b: "texts", t: "tokens worked on", s: "tokens to look at", d: "wide",
  f: "wide inside the MLP", h: "heads", kv: "key heads", c: "channels a head", e: "experts", k: "of them for each token" };
const COLUMNS = [
  { name: "layout", lesson: 3 }, { name: "shape", lesson: 3 }, { name: "numbers", lesson: 3, last: 3 }, { name: "parameters", lesson: 4 }, { name: "FLOPs", lesson: 4 },
  { name: "share", lesson: 4, last: 4 }, { name: "bytes", lesson: 5 }, { name: "FLOP/B", lesson: 5 },
  { name: "time", lesson: 6, head: "least time" }, { name: "kept", lesson: 7, head: "kept for backward" },
];
const BAR = 56; // pixels of a bar that stands for all

// ---- Costs ----------------------------------------------------------------------------------------------------------

function value(tree, letters) {
  if (typeof tree === "number") return tree;
  if (typeof tree === "string") return letters[tree];
  const [sign, ...parts] = tree;
  const values = parts.map((part) => value(part, letters));
  if (sign === "min") return Math.min(...values);
  return values.reduce((one, other) => (sign === "*" ? one * other : one + other));
}

const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);

function lettersOf({ models, model, batch, tokens, decode }) {
  return { z: 2, b: batch, t: decode ? 1 : tokens, s: tokens, ...models[model].letters };
}

// Boxes in numbers, and the kernels that they run in: FLOPs, bytes and kept bytes, and the least time under the roof.
function account(state) {
  const letters = lettersOf(state);
  const machine = state.machines[state.machine];
  const { block } = state.models[state.model];
  const boxes = state.blocks[block][state.fused ? "fused" : "apart"].map((box) => ({
    ...box, layout: box[state.batch === 1 ? "layout of one text" : "layout"], formulas: box, numbers: value(box.numbers, letters), parameters: value(box.parameters, letters), flops: value(box.flops, letters),
    bytes: value(box.bytes, letters), kept: state.decode ? 0 : value(box.kept, letters),
  }));
  const kernels = [];
  for (const box of boxes) {
    if (kernels.at(-1)?.name === box.kernel) kernels.at(-1).boxes.push(box);
    else kernels.push({ name: box.kernel, boxes: [box] });
  }
  for (const kernel of kernels) {
    for (const name of ["flops", "bytes", "kept"]) kernel[name] = sum(kernel.boxes, (box) => box[name]);
    kernel.unit = kernel.boxes[0].unit;
    kernel.peak = machine[kernel.unit];
    kernel.compute = kernel.flops / kernel.peak;
    kernel.move = kernel.bytes / machine.bandwidth;
    kernel.seconds = Math.max(kernel.compute, kernel.move);
    kernel.bound = kernel.flops / kernel.bytes < kernel.peak / machine.bandwidth ? "memory" : "compute";
  }
  const total = Object.fromEntries(["flops", "bytes", "kept", "seconds"].map((name) => [name, sum(kernels, (one) => one[name])]));
  for (const name of ["numbers", "parameters"]) total[name] = sum(boxes, (box) => box[name]);
  return { letters, machine, boxes, kernels, total };
}

// The boxes that a question asks for.
function answer({ rule }, { boxes, kernels }) {
  const labels = (list) => list.flatMap((kernel) => kernel.boxes.map((box) => box.label));
  const most = Math.max(...boxes.map((box) => box.flops));
  const byKept = [...kernels].sort((one, other) => other.kept - one.kept).slice(0, 2);
  if (rule === "copy") return boxes.filter((box) => box.layout === "copy").map((box) => box.label);
  if (rule === "flops") return boxes.filter((box) => box.flops > 0.99 * most).map((box) => box.label);
  if (rule === "memory") return labels(kernels.filter((kernel) => kernel.bound === "memory"));
  return labels(kernels.filter((kernel) => byKept.includes(kernel) && kernel.kept > 0));
}

function checkCard({ models, model, machines, machine, batch, tokens }) {
  if (!models[model]) return `There is no model ${model}; there are ${Object.keys(models).join(", ")}.`;
  if (!machines[machine]) return `There is no machine ${machine}; there are ${Object.keys(machines).join(", ")}.`;
  const { longest } = models[model];
  if (longest && tokens > longest) return `${model} has learned positions for ${longest} tokens, so ${tokens} are too many.`;
  if (!(Number.isInteger(batch) && batch >= 1 && batch <= 4096)) return `A batch has from 1 to 4096 texts; this is ${batch}.`;
  const whole = Number.isInteger(tokens) && tokens >= 1 && tokens <= 2 ** 17;
  return whole ? "" : `A text has from 1 to 131072 tokens; this is ${tokens}.`;
}

// ---- Numbers that open ----------------------------------------------------------------------------------------------

// A formula as the parts that `opens` writes: strings, and letters with their values.
function written(tree, letters, inProduct = false) {
  if (typeof tree === "number") return [`${tree}`];
  if (typeof tree === "string") {
    const words = tree === "b" && letters.b === 1 ? "text" : SOURCES[tree];
    return [{ letter: tree === "z" ? "2" : tree, value: letters[tree], source: `${letters[tree]} ${words}` }];
  }
  const [sign, ...parts] = tree;
  const inner = parts.flatMap((part, k) => {
    const minus = sign === "+" && Array.isArray(part) && part[0] === "*" && part[1] < 0;
    const shownPart = minus ? ["*", -part[1], ...part.slice(2)] : part;
    const joint = { "*": " · ", "+": minus ? " − " : " + ", min: ", " }[sign];
    return [k ? joint : "", ...written(shownPart, letters, sign === "*")];
  });
  if (sign === "min") return ["min(", ...inner, ")"];
  return sign === "+" && inProduct ? ["(", ...inner, ")"] : inner;
}

const joined = (lists) => lists.filter((list) => list.length).flatMap((list, k) => [k ? " + " : "", ...list]);

// What makes a number of a kernel: the formulas of its boxes.
function formula(ui, now, boxes, name) {
  const used = boxes.filter((box) => value(box.formulas[name], now.letters) > 0);
  return joined(used.map((box) => written(box.formulas[name], now.letters)));
}

function number(ui, label, text, parts) {
  const [shownNumber, panel] = opens(ui, label, text, parts);
  if (panel) ui.panel = panel;
  return shownNumber;
}

const count = (x) => (x ? si(x, "").trim() : "");
const intensity = (x) => (x >= 100 ? x.toFixed(0) : plain(x));

// ---- The table ------------------------------------------------------------------------------------------------------

function shareBar(part, whole, was, look) {
  const across = linear([0, 1], [0, BAR]);
  const now = whole ? part / whole : 0;
  return s("svg", { width: BAR, height: 8, "aria-hidden": "true" }, s("rect", { width: BAR, height: 8, class: "track" }),
    bar(across, now, null, 0, 8, look), was != null && Math.abs(was - now) > 0.01 && s("path", { d: `M${across(was)} -2v12`, class: "was" }));
}

function boxCells(ui, now, box) {
  return {
    layout: box.layout,
    shape: h("span", { class: "shape" }, box.shape.split(", ").map((shape, k) => [k ? ", " : "", shape.split(" ").map((letter) =>
      h("span", { class: dimension(letter), "data-link": letter }, letter))])),
    numbers: [number(ui, `numbers of ${box.label}`, count(box.numbers), formula(ui, now, [box], "numbers")),
      shareBar(box.numbers, now.total.numbers, ui.was(box, "numbers"), "plain")],
    parameters: box.parameters > 0 && number(ui, `parameters of ${box.label}`, count(box.parameters), formula(ui, now, [box], "parameters")),
    FLOPs: number(ui, `FLOPs of ${box.label}`, count(box.flops), formula(ui, now, [box], "flops")),
    share: [shareBar(box.flops, now.total.flops, ui.was(box, "flops"), "plain"), " ", `${plain((100 * box.flops) / now.total.flops, 2)}%`],
  };
}

function kernelCells(ui, now, kernel) {
  const label = kernel.boxes.length > 1 ? kernel.name : kernel.boxes[0].label;
  const [flops, bytes] = [si(kernel.flops, "FLOP"), si(kernel.bytes, "B")];
  const ridge = kernel.peak / now.machine.bandwidth;
  const side = kernel.bound === "memory" ? "▼" : "▲";
  const ratio = kernel.flops / kernel.bytes;
  return {
    bytes: number(ui, `bytes of ${label}`, bytes, formula(ui, now, kernel.boxes, "bytes")),
    "FLOP/B": [number(ui, `intensity of ${label}`, intensity(ratio), [{ letter: "FLOPs", value: flops }, " / ", { letter: "bytes", value: bytes },
      { letter: "", value: "", source: `the ridge of the ${kernel.unit} unit is at ${ridge.toFixed(0)} FLOP/B` }]),
    h("span", { class: `flank ${kernel.bound}`, title: `the ridge is at ${ridge.toFixed(0)}` }, side)],
    time: [number(ui, `least time of ${label}`, duration(kernel.seconds), ["max(",
      { letter: "FLOPs / peak", value: si(kernel.compute, "s"), source: `${flops} at ${si(kernel.peak, "FLOP/s")} of the ${kernel.unit} unit` }, ", ",
      { letter: "bytes / bandwidth", value: si(kernel.move, "s"), source: `${bytes} at ${si(now.machine.bandwidth, "B/s")}` }, ")"]),
    shareBar(kernel.seconds, now.total.seconds, ui.was(kernel, "seconds"), kernel.bound)],
    kept: kernel.kept > 0 && [number(ui, `kept of ${label}`, si(kernel.kept, "B"), formula(ui, now, kernel.boxes, "kept")),
      shareBar(kernel.kept, now.total.kept, ui.was(kernel, "kept"), "plain")],
  };
}

// A box, and before the answer a button that marks it.
function pill(ui, now, kernel, box, ask) {
  const { upto, only } = ui.state;
  const open = ask?.marks && !ask.guess.told;
  const dead = only && box.label !== only;
  const bound = upto >= 5 && !dead && !(ask?.rule === "memory" && open) ? kernel.bound : "";
  const early = { 3: !open && box.layout === "copy", 4: box.parameters > 0 }[upto] ? "dark" : "";
  const words = box.name === "add" ? "+" : box.name;
  const look = `pill ${bound || early} ${box.name === "add" ? "round" : ""}`;
  if (!open) return [h("span", { class: look, title: box.name }, words),
    ask?.marks && h("span", { class: "tickmark" }, ask.verdictOf(box.label))];
  const marked = ask.marked.includes(box.label);
  const toggle = () => ask.guess.make(marked ? ask.marked.filter((other) => other !== box.label) : [...ask.marked, box.label]);
  return button(words, toggle, { class: `${look} markable`, "aria-pressed": `${marked}`, "aria-label": `mark ${box.label}` });
}

// The way through all boxes, and the two residuals past those that they skip: the piece in one row.
function wires({ boxes }, place, row, wide, room) {
  const middle = 18 + (wide - 18 - room) / 2;
  const adds = boxes.flatMap((box, at) => (box.name === "add" ? [at] : []));
  const starts = [0, adds[0] + 1].includes(place) && line([middle, 0], [12, 0], [12, row]);
  const ends = adds.includes(place) && line([12, 0], [12, row / 2], [middle, row / 2]);
  const passes = !starts && !ends && line([12, 0], [12, row]);
  const last = place === boxes.length - 1;
  return s("svg", { class: "wires", width: wide, height: row, "aria-hidden": "true" },
    [line([middle, 0], [middle, last ? row / 2 : row]), starts, ends, passes].map((d) => d && s("path", { d })));
}

function table(ui, now, ask) {
  const { upto, only } = ui.state;
  const filled = COLUMNS.filter((column) => column.lesson <= upto && upto <= (column.last ?? 7));
  const columns = ui.narrow ? filled.sort((one, other) => other.lesson - one.lesson) : filled; // a phone shows the new ones
  const hidden = ask && !ask.guess.told ? ask.hides : [];
  const row = ui.slide ? 25 : Math.max(Math.round(1.78 * ui.em * 0.86), 25);
  const room = ask?.marks ? Math.round(1.2 * ui.em) : 0; // beside a box, for what becomes of its mark
  const wide = (ui.narrow ? 122 : Math.round((ui.slide ? 8.4 : 9.4) * ui.em * 0.86)) + room;
  const look = (column) => `${column.name.replace("/", "-")} ${column.lesson === upto && ask ? "new" : ""} ${column.name === "bytes" ? "kernel" : ""}`;
  const cell = (column, content, rows) => h("td", { class: look(column), rowspan: rows },
    hidden.includes(column.name) ? "?" : content || "");
  const lines = now.kernels.flatMap((kernel) => kernel.boxes.map((box, place) => {
    const cells = boxCells(ui, now, box);
    const shared = place === 0 ? kernelCells(ui, now, kernel) : {};
    const rows = kernel.boxes.length;
    const first = h("th", { scope: "row", style: `min-width: ${wide}px; padding-right: ${room}px` },
      wires(now, now.boxes.indexOf(box), row, wide, room), pill(ui, now, kernel, box, ask));
    return h("tr", { style: `height: ${row}px` }, first, columns.map((column) => {
      const blank = only && !kernel.boxes.some((other) => other.label === only);
      if (column.name in cells) return cell(column, blank ? "" : cells[column.name]);
      return place === 0 && cell(column, blank ? "" : shared[column.name], rows > 1 ? rows : null);
    }));
  }));
  const { total } = now;
  const totals = { parameters: count(total.parameters), FLOPs: count(total.flops), bytes: si(total.bytes, "B"),
    "FLOP/B": intensity(total.flops / total.bytes), time: duration(total.seconds), kept: total.kept > 0 && si(total.kept, "B") };
  const heads = columns.map((column) => h("th", { class: look(column), scope: "col" }, h("small", {}, `0${column.lesson} `), column.head ?? column.name));
  return h("div", { class: "scroll" }, h("table", { class: "card" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("small", {}, "b t d")), heads)),
    h("tbody", {}, lines),
    !only && h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "the block"), columns.map((column) =>
      h("td", { class: look(column) }, totals[column.name] && (hidden.includes(column.name) ? "?"
        : shown(`total ${column.name}`, totals[column.name]))))))));
}

// ---- The whole block on a scale that never changes ------------------------------------------------------------------

function strip(ui, now, ask) {
  const { em } = ui;
  const [top, foot] = [1.5 * em, (ui.slide ? 2.7 : 3.1) * em];
  const across = logarithmic(TIMES, [2 * em, ui.width - 2 * em]);
  const open = ask?.rule === "total" && !ask.guess.told;
  const ticks = [["100 ns", 1e-7], ["1 µs", 1e-6], ["10 µs", 1e-5], ["100 µs", 1e-4], ["1 ms", 1e-3], ["10 ms", 0.01], ["100 ms", 0.1], ["1 s", 1], ["10 s", 10]];
  const axis = ticks.filter((_, k) => !ui.narrow || k % 2).map(([text, at]) => [
    s("path", { d: line([across(at), top], [across(at), top + 6]), class: "stroke" }),
    s("text", { x: across(at), y: foot - 0.2 * em, class: "soft", "text-anchor": "middle" }, text)]);
  const mark = (seconds, look) => s("circle", { cx: across(seconds), cy: top, r: 7, class: look });
  const before = ui.before && account(ui.before).total.seconds;
  const guessed = ask?.rule === "total" ? ask.guess.value : null;
  const bound = sum(now.kernels.filter((one) => one.bound === "memory"), (one) => one.seconds) > now.total.seconds / 2 ? "memory" : "compute";
  const told = !open && [before && before !== now.total.seconds && mark(before, "ghost"), guessed !== null && mark(guessed, "guess"),
    mark(now.total.seconds, `total ${bound}`), across.beyond(now.total.seconds) > 0 && tip(across.end + 1.2 * em, top, "right", bound),
    beside(`the block: ${duration(now.total.seconds)}`, across(now.total.seconds), 0.8 * em, 0, ui, "label bold")];
  const make = (seconds) => ask.guess.make(+plain(across.hold(seconds), 2));
  const at = guessed ?? 1e-3;
  return s("svg", { width: ui.width, height: foot, role: "group", "aria-label": "least time of the whole block" },
    s("path", { d: line([across.start, top], [across.end, top]), class: "stroke" }), axis, told,
    open && handle({ label: "your guess of the least time", text: duration(at), value: at, min: TIMES[0], max: TIMES[1], tap: true,
      drag: (x) => make(across.value(x)), step: (dx, dy) => make(at * 10 ** ((dx + dy) / 10)), end: (way) => make(TIMES[way < 0 ? 0 : 1]) },
    s("rect", { x: 0, y: 0, width: ui.width, height: foot, class: "spot" }), s("circle", { cx: across(at), cy: top, r: 9, class: "knob" }),
    beside(guessed === null ? "drag me" : `you: ${duration(at)}`, across(at), 0.55 * em, 0, ui, "label bold")));
}

// ---- What is asked --------------------------------------------------------------------------------------------------

function questionOf(ui, now) {
  const { question } = ui.state;
  if (!question?.rule) return null;
  const guess = ui.guess(question.rule);
  const marks = question.rule !== "total";
  const marked = (marks && guess.value) || [];
  const right = marks ? answer(question, now) : [];
  const verdictOf = (label) => {
    if (!guess.told || guess.value === null || right.includes(label) === marked.includes(label)) return marked.includes(label) ? "✓" : "";
    return right.includes(label) ? "○" : "✗";
  };
  return { ...question, guess, marks, marked, right, verdictOf };
}

function asked(ask, now) {
  const { guess, right, marked } = ask;
  if (!guess.told) {
    const without = guess.value === null || (ask.marks && !marked.length);
    return h("div", { class: "asks open" }, h("p", {}, h("b", {}, `${ask.question} `), ask.how),
      button(without ? "Show the answer without a guess" : "Show the answer", () => guess.tell(), { class: without ? "quiet" : "ready" }));
  }
  const hits = marked.filter((label) => right.includes(label)).length;
  const wrong = marked.filter((label) => !right.includes(label));
  const names = right.length ? right.join(", ") : "none";
  const said = marked.length ? ` You marked ${hits} of ${right.length}${wrong.length ? `, and ${wrong.join(", ")} beside` : ""}.` : "";
  const off = guess.value === null ? "" : `: ${miss(guess.value, now.total.seconds, duration)}`;
  const verdict = ask.marks ? [ask.question, " ", h("b", {}, shown("answer", names)), ".", said] : [ask.question, " ", h("b", {}, duration(now.total.seconds)), off, "."];
  return h("div", { class: "asks" }, h("p", {}, verdict), button("Ask me again", () => guess.again()));
}

// ---- Controls -------------------------------------------------------------------------------------------------------

function controls(ui, now) {
  const { state } = ui;
  const { upto, models, machines, decode } = state;
  const { longest } = models[state.model];
  const stops = powers(0, 17).filter((tokens) => !longest || tokens <= longest);
  const choose = (model) => ui.set({ model, tokens: Math.min(state.tokens, models[model]?.longest ?? state.tokens) });
  const batch = scrub(ui, { label: "batch", value: state.batch, stops: powers(0, 12), set: (number) => ui.set({ batch: number }), link: "b" });
  const tokens = scrub(ui, { label: "tokens", value: state.tokens, stops, set: (number) => ui.set({ tokens: number }), link: decode ? "s" : "t" });
  const texts = state.batch === 1 ? "text" : "texts";
  const letter = (name) => h("b", { class: dimension(name), "data-link": name }, name);
  const sentence = decode ? [letter("b"), " ", batch, ` ${texts}, of each one new token that looks at `, letter("s"), " ", tokens, " tokens"]
    : [letter("b"), " ", batch, ` ${texts} of `, letter("t"), " ", tokens, " tokens"];
  const rest = Object.entries(models[state.model].letters).map(([name, size]) => linked(name, letter(name), ` ${size} `));
  return [
    h("div", { class: "row told" }, choice("model", Object.keys(models), state.model, choose),
      upto >= 5 && choice("machine", Object.keys(machines), state.machine, (machine) => ui.set({ machine })),
      upto >= 5 && either("pass", [[false, "prefill"], [true, "decode"]], decode, (is) => ui.set({ decode: is })),
      either("attention", [[true, "attention fused"], [false, "op by op"]], state.fused, (is) => ui.set({ fused: is })),
      h("p", { class: "sentence" }, sentence, h("span", { class: "letters" }, rest)))];
}

function finding({ kernels, total }, upto) {
  if (upto < 5) return null;
  const waits = kernels.filter((kernel) => kernel.bound === "memory");
  const part = (100 * sum(waits, (kernel) => kernel.seconds)) / total.seconds;
  const share = shown("waiting", `${waits.length} of ${kernels.length}`);
  const time = upto > 5 && [", with ", shown("part", `${part.toFixed(0)}%`), " of the least time,"];
  const others = waits.length < kernels.length && ["; the others ", h("b", { class: "compute" }, "compute")];
  return h("p", {}, share, " kernels", time, " ", h("b", { class: "memory" }, "wait for memory"), others, ".");
}

export default picture({
  state: ["model", "machine", "batch", "tokens", "decode", "fused"],
  given: ["upto", "only", "models", "blocks", "machines", "question"],
  check: checkCard,
  draw(ui) {
    const { upto, only } = ui.state;
    const now = account(ui.state);
    const ask = questionOf(ui, now);
    const open = ask && !ask.guess.told;
    const old = ui.before && account(ui.before);
    ui.panel = null;
    ui.was = (one, name) => { // the share of the same box or kernel before the present gesture
      const list = old && (one.label ? old.boxes : old.kernels);
      const same = list?.find((other) => (one.label ? other.label === one.label : other.name === one.name));
      return same ? same[name] / old.total[name] : null;
    };
    ui.tell(open ? "" : `least time of the block ${duration(now.total.seconds)}`);
    const hint = h("p", { class: "soft" }, "Touch a number to see where it comes from; drag ", h("b", {}, "b"), " or ", h("b", {}, "t"), " to change it.");
    const cells = table(ui, now, ask);
    const scale = !only && upto >= 6 && strip(ui, now, ask);
    const words = [!only && !(open && ask.rule !== "kept") && finding(now, upto),
      ask?.marks && ask.guess.told && ask.marked.length > 0 && h("p", { class: "soft" }, "✓ marked rightly, ○ not marked, ✗ not one of them")];
    const opened = h("div", { class: "opened" }, ui.panel ?? hint, words);
    const full = ui.narrow || upto === 7 || (ui.slide && upto === 6 && now.letters.kv); // no room beside the table
    const body = !full ? [h("div", { class: "table-side" }, cells, opened), scale]
      : ui.slide ? [cells, ui.panel ? h("div", { class: "opened" }, ui.panel) : scale] : [cells, scale, opened];
    return [ask && asked(ask, now), controls(ui, now), h("div", {}, body)];
  },
});
