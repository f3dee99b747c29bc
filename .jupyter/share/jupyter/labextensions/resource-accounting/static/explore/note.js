// The note: offset, shape and stride read a storage as a grid. Wanted grids are found by hand, or have no note.
// A note that cannot be is shown: its elements beyond the storage are hatched. A tensor asked for its views is moved
// until it has one; elements that share a cell are marked, and do not count.
// State: `task`, `offset`, `shape`, `stride`, `view`. Given: `tasks`, judged by Python; `values` of the storage.

import { arrows, asks, beside, button, field, h, handle, hatching, knob, linked, picture, s, shown, tip, wide } from "./toolkit.js";
import { cellOf, contiguous, elements, pairs, plan, product, tuple } from "./strided.js";

const LONGEST = 12; // of a dimension that is drawn
const BEYOND = 8; // cells drawn after the storage
const KEYS = ["offset", "shape", "stride"];

function check({ offset, shape, stride, view, most, task, tasks }) {
  if (!tasks[task]) return `There is no task ${task}; there are ${Object.keys(tasks).join(", ")}.`;
  if (![...shape, ...stride, offset, ...view].every(Number.isInteger)) return "Write whole numbers with commas, like 4, 6.";
  if (shape.length !== stride.length) return `${mismatch(shape, stride)}: each dimension has one stride.`;
  if (Math.min(...shape, offset) < 0 || Math.min(...view) < -1) return "No size and no offset is below 0.";
  const drawn = shape.length <= 3 && product(shape) <= most && Math.max(...shape, 0) <= LONGEST;
  return drawn ? "" : `The picture holds 3 dimensions of at most ${LONGEST} and ${most} elements; make the shape smaller.`;
}

const mismatch = (shape, stride) => `The shape has ${shape.length} numbers and the stride ${stride.length}`;
const signed = (by) => `${by < 0 ? "−" : "+"}${Math.abs(by)}`;
const whole = (text) => text.replace(/[()[\],]/g, " ").trim().split(/\s+/).filter(Boolean).map((part) =>
  (/^[-−]?\d+$/.test(part) ? +part.replace("−", "-") : NaN));

// ---- What the note says, and whether it is what was asked -----------------------------------------------------------

function reading(state) {
  const { values, tasks, view } = state;
  const task = tasks[state.task];
  const found = elements(state);
  const inside = ({ cell }) => cell >= 0 && cell < values.length;
  const cells = new Map();
  found.filter(inside).forEach(({ cell }, place) => cells.set(cell, [...(cells.get(cell) ?? []), place]));
  const outside = found.filter((element) => !inside(element)).length;
  const shared = found.length - outside - cells.size;
  const negative = state.stride.some((step) => step < 0);
  const possible = outside === 0 && !negative;
  const view_ = view.length ? plan(state, view) : null;
  const alike = task.grid && `${state.shape}` === `${task.shape}`;
  const right = (place) => Boolean(alike) && found[place].cell === task.grid[place];
  const fits = task.grid ? Boolean(alike) && found.every((_, place) => right(place))
    : Boolean(view_?.stride) && shared === 0;
  return { task, found, inside, cells, outside, shared, negative, possible, plan: view_, right, fits, done: possible && fits };
}

// A change of the note; a wanted grid that it reads is found.
function move(ui, changes) {
  ui.own.draft = null;
  const next = { ...ui.state, ...changes };
  const told = next.revealed.includes(next.task);
  const done = next.tasks[next.task].grid && next.shape.length === next.stride.length && reading(next).done;
  const found = done && !told ? { predicted: { ...next.predicted, [next.task]: "note" } } : {};
  return ui.set({ ...changes, ...found });
}

function choose(ui, name) {
  Object.assign(ui.own, { draft: null, pair: null, element: null });
  ui.set({ task: name, ...ui.state.tasks[name].start });
}

// ---- The question ---------------------------------------------------------------------------------------------------

const noteText = ({ offset, shape, stride }) => `offset ${offset}, shape ${tuple(shape)}, stride ${tuple(stride)}`;

function question(ui, now) {
  const { task: name, tasks, view } = ui.state;
  const guess = ui.guess(name);
  const say = (text, value) => button(text, () => ui.set({ predicted: { ...ui.state.predicted, [name]: value },
    revealed: [...new Set([...ui.state.revealed, name])] }));
  if ("cell" in now.task) return findQuestion(ui, guess, now);
  if (now.task.grid) return gridQuestion(ui, guess, now, say);
  if (!view.length) return null;
  const start = plan(tasks[name].start, view);
  const answer = start.stride ? "yes" : "no";
  const asked = [h("b", {}, `Has ${name} a view of shape ${tuple(view)}? `), say("Yes", "yes"), " ", say("No", "no")];
  const judged = guess.value === answer ? "Right: " : "It is the other way: ";
  const verdict = [guess.value === null ? "" : judged, `${name} has ${start.stride ? "one" : "none"}. `, !start.stride && goal(now)];
  return asks(guess, asked, verdict, { show: "Show" });
}

function goal(now) {
  if (now.done) return "✓ This tensor has it, and each element has a cell of its own.";
  if (now.fits) return "The stride would do, but PyTorch cannot have this tensor.";
  if (now.plan.stride) return h("b", { class: "bad" }, "This one has it, but elements share cells: it is another tensor.");
  return "Drag the strides until it has one, with a cell for each element.";
}

function findQuestion(ui, guess, now) {
  const { task: name, tasks } = ui.state;
  const { start, cell } = now.task;
  const index = name.match(/\d+/g)?.map(Number) ?? [];
  const law = [start.offset, ...index.map((i, k) => `${i} × ${start.stride[k]}`)].join(" + ");
  const said = guess.value === null || guess.value === cell ? "" : `, not ${guess.value}`;
  const asked = [h("b", {}, `Which cell holds element ${name}? `), "Press it on the strip."];
  return asks(guess, asked, [h("b", {}, `Cell ${cell}${said}: `), `${law} = ${cell}. `,
    "Point at any element, or drag the marks, and the sum follows."]);
}

function gridQuestion(ui, guess, now, say) {
  const { task: name } = ui.state;
  const { answer, why } = now.task;
  const none = `${name} has no note: ${why}. Only a copy has this grid.`;
  if (guess.value === "note" && answer) {
    return asks({ ...guess, told: true, again: () => again(ui, guess) }, null, [h("b", {}, `✓ ${name} is `), noteText(answer), "."]);
  }
  const asked = [h("b", {}, `Which note reads ${name}? `), "Drag the marks and the corner, or type. Or is there none? ",
    say("There is no note", "no note")];
  const right = guess.value === "no note" && !answer;
  const wrong = guess.value === "no note" && answer;
  const verdict = answer ? [wrong ? "There is one: " : "", noteText(answer), ". ", !now.done && "Drag the marks there."]
    : [right ? "✓ Right: " : "", none];
  return asks({ ...guess, value: null, again: () => again(ui, guess) }, asked, verdict, { show: "Show the answer" });
}

function again(ui, guess) {
  guess.again();
  choose(ui, ui.state.task);
}

function chips(ui) {
  const { tasks, predicted, view } = ui.state;
  const names = Object.keys(tasks);
  const solved = (name) => {
    const task = tasks[name];
    if (task.grid) return predicted[name] === (task.answer ? "note" : "no note");
    return view.length > 0 && predicted[name] === (plan(task.start, view).stride ? "yes" : "no");
  };
  return names.length > 1 && h("div", { class: "row" }, names.map((name) => button(`${solved(name) ? "✓ " : ""}${name}`,
    () => choose(ui, name), { "aria-pressed": `${name === ui.state.task}` })));
}

// ---- Grids ----------------------------------------------------------------------------------------------------------
// Three dimensions are grids side by side; on a phone, below each other.

function spread(shape, unit, most) {
  const [planes, rows, columns] = [...Array(3 - shape.length).fill(1), ...shape];
  const across = Math.max(Math.floor((most + 0.6 * unit) / ((columns + 0.6) * unit)), 1);
  const place = (index) => {
    const [plane, row, column] = [...Array(3 - index.length).fill(0), ...index];
    return [((plane % across) * (columns + 0.6) + column) * unit, (Math.floor(plane / across) * (rows + 0.5) + row) * unit];
  };
  const besides = Math.max(Math.min(planes, across), 1);
  const below = Math.ceil(planes / across);
  const width = besides * (columns + 0.6) * unit - 0.6 * unit;
  const height = Math.max(below * (rows + 0.5) * unit - 0.5 * unit, 0);
  const sizeAt = (x, y) => [(x / unit + 0.6) / besides - 0.6, (y / unit + 0.5) / below - 0.5];
  return { place, width, height, columns, sizeAt };
}

const box = ([x, y], unit, look, text, em) => s("g", { class: `cell ${look}` },
  s("rect", { x: x + 0.5, y: y + 0.5, width: unit - 1, height: unit - 1 }),
  s("text", { x: x + unit / 2, y: y + unit / 2 + 0.36 * em, class: "digit" }, text));

function wantedGrid(ui, now, unit, tall) {
  const { task: name, values } = ui.state;
  const { grid, shape } = now.task;
  const layout = spread(shape, unit, ui.width);
  const cells = elements({ offset: 0, shape, stride: shape.map(() => 0) }).map(({ index }, place) =>
    box(layout.place(index), unit, "", values[grid[place]], ui.em));
  return h("div", {}, h("p", { class: "name" }, `wanted: ${name}`),
    s("svg", { width: layout.width + 2, height: Math.max(layout.height, tall) + 2, role: "img",
      "aria-label": `wanted: ${name}, ${grid.map((cell) => values[cell]).join(" ")}` }, cells));
}

function ownGrid(ui, now, unit, tall, open) {
  const { values, shape } = ui.state;
  const room = ui.narrow ? ui.width - 20 : 15 * unit;
  const layout = spread(shape, unit, room);
  const at = ui.own.element;
  const lit = litCell(ui, now);
  const asked = "cell" in now.task ? ui.state.task.match(/\d+/g).map(Number) : null;
  const look = ({ index, cell }, place) => [now.inside({ cell }) ? "touched" : "outside", cell === lit ? "lit" : "",
    now.task.grid && !now.right(place) ? "wrong" : "", asked && `${index}` === `${asked}` ? "wanted" : ""].join(" ");
  const cells = now.found.map((element, place) => s("g", { onpointerover: (event) => hover(ui, event, { element: place }) },
    box(layout.place(element.index), unit, look(element, place),
      now.inside(element) ? values[element.cell] : "", ui.em),
    !now.inside(element) && s("rect", { x: layout.place(element.index)[0] + 0.5, y: layout.place(element.index)[1] + 0.5,
      width: unit - 1, height: unit - 1, fill: ui.hatch })));
  const nearest = (x, y) => now.found.findIndex(({ index }) => {
    const [left, top] = layout.place(index);
    return x >= left && x < left + unit && y >= top && y < top + unit;
  });
  const walk = (by) => point(ui, { element: Math.min(Math.max((at ?? -1) + by, 0), now.found.length - 1) });
  const grid = handle({ label: "elements", text: at == null ? "none chosen" : lawOf(ui.state, now.found[at] ?? { index: [], cell: "" }),
    value: at ?? 0, min: 0, max: Math.max(now.found.length - 1, 0), tap: true, step: (dx, dy) => walk(dx - dy * layout.columns),
    end: (side) => walk(side * now.found.length), drag: (x, y) => nearest(x, y) >= 0 && point(ui, { element: nearest(x, y) }) }, cells);
  const before = ui.before && ui.before.shape.length <= 2 && `${ui.before.shape}` !== `${shape}` && spread(ui.before.shape, unit, room);
  return h("div", {}, h("p", { class: "name" }, now.task.grid ? "your note reads" : sizes(shape)),
    s("svg", { width: layout.width + 20, height: Math.max(layout.height, tall) + 20, role: "group", class: "own",
      "aria-label": `a tensor of shape ${tuple(shape)}`, onpointerleave: (event) => hover(ui, event, {}) },
    hatching(ui), grid, before && s("rect", { width: before.width, height: before.height, class: "ghost" }),
    shape.length > 0 && !open && corner(ui, layout)));
}

const sizes = (shape) => ["shape (", shape.map((size, k) => [k > 0 && ", ",
  h("b", { class: `dim-${k}`, "data-link": `dim ${k}` }, `${size}`)]), ")"];

// The knob at the corner of a grid, which changes the sizes of its last two dimensions.
function corner(ui, layout) {
  const { shape } = ui.state;
  const size = (columns, rows) => {
    const held = [columns, rows].map((count) => Math.min(Math.max(Math.round(count), 1), LONGEST));
    move(ui, { shape: [...shape.slice(0, -2), ...(shape.length > 1 ? [held[1]] : []), held[0]] });
  };
  const [columns, rows] = [shape.at(-1), shape.at(-2) ?? 1];
  return knob(layout.width + 6, Math.max(layout.height, 0) + 6, { label: "shape", text: tuple(shape), value: columns, min: 1,
    max: LONGEST, r: 6, drag: (x, y) => size(...layout.sizeAt(x - 6, y - 6)),
    step: (dx, dy) => size(columns + dx, rows - dy) });
}

// ---- The storage ----------------------------------------------------------------------------------------------------

const point = (ui, { element = null, cell = null }) =>
  (ui.own.element !== element || ui.own.cell !== cell) && ui.keep({ element, cell });
// A picture that moves under a pointer at rest does not count: keys may be choosing.
function hover(ui, { clientX, clientY }, what) {
  const place = `${clientX} ${clientY}`;
  if (ui.own.pointer === place) return;
  ui.own.pointer = place;
  point(ui, what);
}

const litCell = (ui, now) => ui.own.cell ?? now.found[ui.own.element]?.cell;

function measure(ui) {
  const { values, shape } = ui.state;
  const count = values.length + BEYOND;
  const columns = ui.width >= count * 1.65 * ui.em ? count : count > 20 ? 16 : 12;
  const margin = ui.narrow ? 1 : 5 * ui.em; // for the name of the offset
  const side = Math.floor(Math.min((ui.width - margin - 1) / columns, 2.9 * ui.em));
  const lane = Math.max(1.45 * ui.em, 25);
  const head = (shape.length + 1) * lane;
  const tall = head + side + 2.9 * ui.em;
  const place = (cell) => [margin + (cell % columns) * side, Math.floor(cell / columns) * tall + head];
  const cellAt = (x, y) => {
    const column = Math.min(Math.max(Math.floor((x - margin) / side), 0), columns - 1);
    const row = Math.min(Math.max(Math.floor(y / tall), 0), Math.ceil(count / columns) - 1);
    return Math.min(row * columns + column, count - 1);
  };
  return { count, columns, side, lane, tall, place, cellAt, height: Math.ceil(count / columns) * tall };
}

function strip(ui, now) {
  const { em } = ui;
  const { values, shape, task } = ui.state;
  const size = measure(ui);
  const asked = "cell" in now.task && !ui.guess(task).told;
  const press = (cell) => (asked ? ui.set({ predicted: { ...ui.state.predicted, [task]: cell },
    revealed: [...ui.state.revealed, task] }) : point(ui, { cell }));
  const reached = new Set(now.found.map(({ cell }) => cell));
  const lit = litCell(ui, now);
  const cells = Array.from({ length: size.count }, (_, cell) => {
    const [x, y] = size.place(cell);
    const times = now.cells.get(cell)?.length ?? 0;
    const beyond = cell >= values.length;
    const look = [beyond ? "beyond" : "", times && !asked ? "touched" : "", cell === lit ? "lit" : ""].join(" ");
    const control = asked && !beyond && { role: "button", tabindex: cell ? -1 : 0, "aria-label": `cell ${cell}`,
      onkeydown: (event) => pressedByKey(event, cell, press) };
    return s("g", { ...control, onpointerover: (event) => hover(ui, event, asked ? {} : { cell }), onclick: () => !beyond && press(cell) },
    box([x, y], size.side, look, beyond || asked ? "" : values[cell], em),
    beyond && reached.has(cell) && s("rect", { x: x + 0.5, y: y + 0.5, width: size.side - 1, height: size.side - 1, fill: ui.hatch }),
    s("text", { x: x + size.side / 2, y: y + size.side + 1.05 * em, class: times > 1 ? "name bad bold" : "soft", "text-anchor": "middle" },
      times > 1 ? `×${times}` : cell));
  });
  const marks = asked ? [] : [...shape.map((_, k) => strideMark(ui, size, k)), offsetMark(ui, size)];
  const name = asked && s("text", { x: size.place(0)[0], y: size.place(0)[1] - 0.7 * em, class: "soft" }, "the strip, cell by cell");
  const [outX, outY] = size.place(values.length);
  const out = now.outside === 0 && s("text", { x: outX, y: outY + size.side + 2.3 * em, class: "soft" }, "not in the storage");
  return s("svg", { width: ui.width, height: size.height, role: "group", "aria-label": "the storage",
    onpointerleave: (event) => hover(ui, event, {}) }, hatching(ui), cells, name, out, asked ? null : hops(ui, now, size), marks);
}

// One cell is a stop of the tab key; arrows go on from there.
function pressedByKey(event, cell, press) {
  const others = [...event.currentTarget.parentNode.children].filter((one) => one.hasAttribute("tabindex"));
  const go = (to) => others[Math.min(Math.max(to, 0), others.length - 1)].focus();
  if (["Enter", " "].includes(event.key)) event.preventDefault(), press(cell);
  else arrows(event, (dx, dy) => go(cell + dx - dy), (side) => go(side * others.length));
}

// Its name is shortened to the number where another arrow would come down through it.
function mark(ui, size, { level, cell, look, from = null, ghost = null, text, short, ...options }) {
  const { em, state } = ui;
  const held = (other) => Math.min(Math.max(other, 0), size.count - 1);
  const [x, y] = size.place(held(cell));
  const middle = x + size.side / 2;
  const height = y - level * size.lane - 0.75 * em;
  const [fromX, fromY] = from === null ? [] : size.place(held(from));
  const old = ghost === null || ghost === cell ? null : size.place(held(ghost));
  const stems = state.stride.slice(0, state.stride.length - level).map((step) => size.place(held(state.offset + step)));
  const far = cell < 0 ? " ←" : cell >= size.count ? " →" : "";
  const reach = middle + wide(`${text}${far}`, ui, 0.92) + em;
  const left = reach > ui.width || (level === 0 && middle > 5 * em);
  const crossed = !left && stems.some(([stem, top]) => top === y && stem > x && stem + size.side / 2 < reach);
  const name = s("text", { x: middle + (left ? -0.8 : 0.8) * em, y: height + (left && level ? -0.45 : 0.32) * em, class: "label",
    "text-anchor": left ? "end" : "start" }, `${crossed ? short : text}${far}`);
  return s("g", { class: look },
    fromY === y && s("path", { d: `M${fromX + size.side / 2} ${y - 2}V${height}H${middle}`, class: "hop" }),
    s("path", { d: `M${middle} ${height}V${y - 3}`, class: "hop" }), tip(middle, y - 1, "down"),
    old && s("circle", { cx: old[0] + size.side / 2, cy: old[1] - level * size.lane - 0.75 * em, r: 7, class: "ghost" }),
    knob(middle, height, { ...options, text, value: cell, min: 0, max: size.count - 1 }, name));
}

function strideMark(ui, size, k) {
  const { offset, shape, stride } = ui.state;
  const set = (step) => step !== stride[k] && move(ui, { stride: stride.with(k, step) });
  const ghost = ui.before?.stride.length === stride.length ? ui.before.offset + ui.before.stride[k] : null;
  return mark(ui, size, { level: shape.length - k, cell: offset + stride[k], look: `dim-${k}`, link: `dim ${k}`, from: offset, ghost,
    label: `stride of dimension ${k}`, text: `dim ${k}: ${signed(stride[k])}`, short: signed(stride[k]),
    drag: (x, y) => set(size.cellAt(x, y) - offset), step: (dx, dy) => set(stride[k] + dx + dy) });
}

function offsetMark(ui, size) {
  const { offset } = ui.state;
  const set = (cell) => Math.max(cell, 0) !== offset && move(ui, { offset: Math.max(cell, 0) });
  return mark(ui, size, { level: 0, cell: offset, look: "start", label: "offset", text: `offset ${offset}`, short: `${offset}`,
    ghost: ui.before?.offset ?? null, drag: (x, y) => set(size.cellAt(x, y)), step: (dx, dy) => set(offset + dx + dy) });
}

// Under the strip: the way to the element that is pointed at, else the step and the jump of the pair that is chosen.
function hops(ui, now, size) {
  const { em, state } = ui;
  const at = now.found[ui.own.element] ?? now.found[now.cells.get(ui.own.cell)?.[0]];
  const chosen = pairs(state)[pairOf(ui, now)];
  const hop = (from, to, look, text) => {
    const held = [from, to].map((cell) => Math.min(Math.max(cell, 0), size.count - 1));
    const [[x, y], [toX, toY]] = held.map(size.place);
    if (y !== toY || from === to) return null;
    const [start, end, level] = [x + size.side / 2, toX + size.side / 2, y + size.side + 1.3 * em];
    return s("g", { class: look }, s("path", { d: `M${start} ${level}Q${(start + end) / 2} ${level + 1.2 * em} ${end} ${level}`, class: "hop" }),
      tip(end, level, "up"), text && beside(text, (start + end) / 2, level + 1.5 * em, 0, ui));
  };
  if (at) {
    let cell = state.offset;
    return at.index.map((i, k) => Array.from({ length: i }, () => hop(cell, (cell += state.stride[k]), `dim-${k}`)));
  }
  if (!chosen || Math.min(state.shape[chosen.k], chosen.size) < 2) return null;
  const end = state.offset + (chosen.size - 1) * chosen.inner;
  const close = Math.abs(2 * (end - state.offset) + chosen.jump - chosen.step) * size.side < 9 * em; // their names would touch
  const name = (word, by) => (close ? signed(by) : `${word} ${signed(by)}`);
  return [hop(state.offset, state.offset + chosen.step, `dim-${chosen.k + 1}`, name("step", chosen.step)),
    hop(end, end + chosen.jump, `dim-${chosen.k}`, name("jump", chosen.jump))];
}

// The pair that is chosen, else the one that the view fails on, else the first.
function pairOf(ui, now) {
  const count = ui.state.shape.length - 1;
  const asked = ui.own.pair ?? now.plan?.pair ?? (ui.state.view.length ? 0 : null);
  const open = now.task.grid || (ui.state.view.length && !ui.guess(ui.state.task).told);
  return open || asked === null || asked >= count ? null : asked;
}

// ---- Words ----------------------------------------------------------------------------------------------------------

const lawOf = ({ offset, stride }, { index, cell }) =>
  `[${index.join(", ")}] → ${[offset, ...index.map((i, k) => `${i} × ${stride[k]}`)].join(" + ")} = ${cell}`.replaceAll("-", "−");

// Shape and stride are judged together: while they differ in length, both stay as typed, and the picture as it was.
function fields(ui) {
  const { offset, shape, stride, view } = ui.state;
  const draft = ui.own.draft ?? {};
  const type = (name) => (text) => {
    const typed = { shape, stride, ...draft, [name]: whole(text) };
    if (![...typed.shape, ...typed.stride].every(Number.isInteger)) return ui.say("Write whole numbers with commas, like 4, 6."), ui.redraw();
    if (typed.shape.length !== typed.stride.length) return ui.keep({ draft: typed });
    move(ui, { shape: typed.shape, stride: typed.stride });
  };
  const list = (numbers) => numbers.join(", ");
  const one = (name) => field(name, list(draft[name] ?? ui.state[name]), type(name), { size: 8 });
  const waiting = ui.own.draft && `${mismatch(draft.shape, draft.stride)}: type the other one, too.`;
  const add = () => move(ui, { shape: [1, ...shape], stride: [0, ...stride] });
  const drop = () => move(ui, { shape: shape.slice(1), stride: stride.slice(1) });
  return [h("div", { class: "row" }, one("shape"), one("stride"),
    field("offset", `${offset}`, (text) => move(ui, { offset: whole(text)[0] ?? NaN }), { size: 3 }),
    !ui.state.tasks[ui.state.task].grid && field("view as", list(view), (text) => ui.set({ view: whole(text) }), { size: 6 }),
    button("+ dim", add, { disabled: shape.length > 2 || null, "aria-label": "add a dimension" }),
    button("− dim", drop, { disabled: shape.length < 1 || null, "aria-label": "remove dimension 0" })),
  h("p", { class: "fate", role: "status" }, waiting || "")];
}

function pairButtons(ui, now) {
  const chosen = pairOf(ui, now);
  const one = ({ k, size, outer, inner, merge }) => button([linked(`dim ${k}`, `${k}`), " and ", linked(`dim ${k + 1}`, `${k + 1}`), ": ",
    shown(`pair ${k}`, `${outer} ${merge ? "=" : "≠"} ${size} × ${inner}, ${merge ? "may merge" : "may not"}`.replaceAll("-", "−"))],
  () => ui.keep({ pair: k }), { "aria-pressed": `${k === chosen}`, class: "pair" });
  return h("div", { class: "row" }, pairs(ui.state).map(one));
}

const overlaps = ({ grid }) => Boolean(grid) && new Set(grid).size < grid.length;

function facts(ui, now) {
  const { itemsize, view, values } = ui.state;
  const at = now.found[ui.own.element] ?? now.found[now.cells.get(ui.own.cell)?.[0]];
  const bytes = `${itemsize * now.cells.size}`;
  return [
    h("p", { class: "mono" }, at ? lawOf(ui.state, at) : ui.own.cell == null ? "" : `cell ${ui.own.cell}: no element is here`),
    h("p", {}, now.outside > 0 && h("b", { class: "bad" }, shown("outside", now.outside), now.outside === 1 ? " element lies" : " elements lie", " beyond the storage. "),
      now.negative && h("b", { class: "bad" }, "PyTorch has no negative strides. "),
      now.shared > 0 && [h("b", { class: overlaps(now.task) ? "" : "bad" }, shown("shared", now.shared), now.shared === 1 ? " element shares" : " elements share"),
        " a cell with an earlier one. "],
      shown("touched", bytes), ` of ${itemsize * values.length} bytes touched, `,
      shown("contiguous", contiguous(ui.state) ? "contiguous" : "not contiguous"), "."),
    now.plan && h("p", {}, h("b", {}, shown("view", now.plan.stride ? `✓ view${tuple(view)} exists, stride ${tuple(now.plan.stride)}`
      : `✗ view${tuple(view)} does not exist`)), ": ", shown("reason", now.plan.reason), "."),
    !now.task.grid && pairButtons(ui, now)];
}

export default picture({
  state: ["task", "offset", "shape", "stride", "view"],
  given: ["tasks", "values", "itemsize", "most"],
  check,
  draw(ui) {
    const now = reading(ui.state);
    const told = ui.guess(ui.state.task).told;
    const asked = ("cell" in now.task || (!now.task.grid && ui.state.view.length > 0)) && !told; // the answer would stand below
    const unit = Math.floor(Math.min((ui.slide || ui.narrow ? 1.75 : 2.1) * ui.em, (ui.width - 20) / 13));
    const shapes = Object.values(ui.state.tasks).flatMap(({ start, shape }) => [start.shape, shape ?? []]);
    const tall = Math.max(3, ...shapes.map((shape) => shape.at(-2) ?? 1)) * unit; // of all tasks, so that none moves the strip
    ui.tell(asked ? "" : `${noteText(ui.state)}${now.done ? ", as wanted" : ""}`);
    // What has no fixed height stands beside the grids with room to spare, or at the end: the strip stays where it is.
    const most = Math.max(...shapes.map((shape) => spread(shape, unit, 15 * unit).width));
    const below = ui.narrow || (ui.state.view.length > 0 && ui.width - most < 34 * ui.em);
    const room = below ? 0 : (ui.state.view.length ? 14 : 10) * ui.em;
    const words = h("div", { class: "words", style: `min-height: ${room}px` }, asked ? null : fields(ui), asked ? null : facts(ui, now));
    return [chips(ui), question(ui, now),
      h("div", { class: "beside note" }, now.task.grid && wantedGrid(ui, now, unit, tall), ownGrid(ui, now, unit, tall, asked),
        below ? null : words),
      strip(ui, now), below ? words : null];
  },
});
