// The nest of loops. An einsum is a box with a cell for each step of its loops: names are pulled off the result and
// summed, edges are pulled longer, and of three operands the first two are chosen.
// State: `pattern`, `sizes`, `order`. Given: `longest`, the largest size; `asked`, what the first question is about.

import { asks, bar, button, choice, dimension, field, h, handle, knob, line, linear, linked, miss, picture, plain, s,
  scrub, shown, si, typedNumber, wide } from "./toolkit.js";

const ORDERS = { "A B": "(A · B) · C", "B C": "A · (B · C)", "A C": "(A · C) · B" };
const EXAMPLES = {
  "matrix product": "i j, j k -> i k", "column by row": "i j, j k -> i j k", "batch of products": "b i j, b j k -> b i k",
  "a misspelt name": "i j, jay k -> i k", "three matrices": "i j, j k, k l -> i l", "two matrices, a vector": "i j, j k, k -> i",
};
const [LEAN, RISE] = [0.55, 0.38]; // how far a cell of depth goes to the right, and up
const BYTES = 4; // of a number in float32

// ---- The einsum, as helpers/explore/nest.py has it ------------------------------------------------------------------

const wordsOf = (text) => text.trim().split(/\s+/).filter(Boolean);
const without = (names, others) => names.filter((name) => !others.includes(name));
const together = (...lists) => [...new Set(lists.flat())];
const numbers = (names, sizes) => names.reduce((product, name) => product * sizes[name], 1);

function parse(pattern) {
  const [left, right = ""] = pattern.split("->");
  return { operands: left.split(",").map(wordsOf), result: wordsOf(right) };
}
const written = (operands, result) => `${operands.map((names) => names.join(" ")).join(", ")} -> ${result.join(" ")}`;

function checkNest({ pattern, sizes, order, longest }) {
  const { operands, result } = parse(pattern);
  if (pattern.split("->").length !== 2 || ![2, 3].includes(operands.length))
    return `Write two or three operands, an arrow and the result, as in i j, j k -> i k; this is “${pattern}”.`;
  for (const names of [...operands, result]) {
    const wrong = names.find((name) => !/^[A-Za-z]\w*$/.test(name));
    if (wrong) return `“${wrong}” is no name: letters, digits and underscores, the first a letter.`;
    const twice = names.find((name, place) => names.indexOf(name) < place);
    if (twice) return `${twice} occurs twice in “${names.join(" ")}”: rename one of them.`;
  }
  const all = together(...operands);
  const [lost] = without(result, all);
  if (lost) return `The result has ${lost}, and no operand has it.`;
  const missing = all.find((name) => !(name in sizes));
  if (missing) return `${missing} has no size.`;
  const [off, size] = Object.entries(sizes).find(([, n]) => !Number.isInteger(n) || n < 1 || n > longest) ?? [];
  if (off) return `A size is a whole number from 1 to ${longest}; ${off} would be ${size}.`;
  return order in ORDERS ? "" : `There is no order ${order}; there are ${Object.keys(ORDERS).join(", ")}.`;
}

function multiply(left, right, wanted, sizes) {
  const first = left.filter((name) => right.includes(name) || wanted.includes(name));
  const second = right.filter((name) => left.includes(name) || wanted.includes(name));
  const loops = together(first, second);
  const summed = without(loops, wanted);
  const result = without(loops, summed);
  const lone = [without(left, first), without(right, second)];
  const sums = numbers(left, sizes) - numbers(first, sizes) + numbers(right, sizes) - numbers(second, sizes);
  const each = numbers(summed, sizes) > 1 ? 2 : 1;
  const volume = numbers(loops, sizes);
  return { left, right, first, second, loops, summed, result, lone, sums, each, volume, flops: each * volume, sizes };
}

function productsOf({ pattern, sizes, order }) {
  const { operands, result } = parse(pattern);
  if (operands.length === 2) return [{ ...multiply(...operands, result, sizes), names: ["A", "B"] }];
  const pair = order.split(" ").map((letter) => "ABC".indexOf(letter));
  const rest = [0, 1, 2].find((place) => !pair.includes(place));
  const first = multiply(...pair.map((place) => operands[place]), together(result, operands[rest]), sizes);
  const sides = rest === 0 ? [operands[rest], first.result] : [first.result, operands[rest]];
  const made = `(${order.replace(" ", "·")})`;
  const second = multiply(...sides, result, sizes);
  return [{ ...first, names: order.split(" ") }, { ...second, names: rest === 0 ? ["A", made] : [made, "ABC"[rest]] }];
}

const total = (steps) => steps.reduce((sum, { sums, flops }) => sum + sums + flops, 0);

// ---- Tiles ----------------------------------------------------------------------------------------------------------
// The names of the operands, and below the arrow each name once: in the result, or pulled off it and summed.

function tiles(ui, { operands, result }, width) {
  const { em } = ui;
  const tall = Math.max(28, 1.8 * em);
  const long = (name) => Math.max(30, wide(name, ui, 1) + 1.1 * em);
  const box = (name, x, y, look = "") => [
    s("rect", { x, y, width: long(name), height: tall, rx: 5, class: `name-tile ${dimension(name)} ${look}` }),
    s("text", { x: x + long(name) / 2, y: y + tall / 2 + 0.35 * em, "text-anchor": "middle" }, name)];
  let [x, y] = [0, 0];
  const given = operands.map((names, place) => {
    const end = x + 1.2 * em + names.reduce((sum, name) => sum + long(name) + 4, 0);
    if (x > 0 && end > width) [x, y] = [0, y + tall + 0.4 * em];
    const start = x;
    const label = s("text", { x: start, y: y + tall / 2 + 0.35 * em, class: "bold" }, "ABC"[place]);
    x += 1.2 * em;
    const row = names.map((name) => {
      const at = x;
      x += long(name) + 4;
      return s("g", { "data-link": name }, box(name, at, y));
    });
    x += 0.9 * em;
    return [label, row];
  });
  const rows = [y + 1.5 * tall, y + 3 * tall]; // the result, and what is summed
  const left = wide("Σ summed", ui, 1.1) + 1.2 * em;
  const all = together(...operands);
  const needed = (names) => names.reduce((sum, name) => sum + long(name) + 6, 0);
  const straight = left + needed(all) < width; // a name that is pulled goes straight down, where there is room for all
  const pulled = all.map((name, place) => {
    const kept = result.includes(name);
    const before = all.slice(0, place).filter((other) => straight || result.includes(other) === kept);
    const at = left + needed(before);
    return nameTile(ui, name, kept, rows, tall, box(name, at, rows[kept ? 0 : 1], kept ? "kept" : "gone"));
  });
  const words = ["→ result", "Σ summed"].map((text, k) =>
    s("text", { x: 0, y: rows[k] + tall / 2 + 0.35 * em, class: "bold" }, text));
  const tray = rows.map((top, k) => s("rect", { x: left - 6, y: top - 5, width: width - left + 6, height: tall + 10, rx: 8,
    class: `tray ${k ? "sums" : ""}` }));
  return s("svg", { width, height: rows[1] + tall + 8, role: "group", "aria-label": "names of the einsum" },
    given, tray, words, pulled);
}

function nameTile(ui, name, kept, rows, tall, shapes) {
  const { operands, result } = parse(ui.state.pattern);
  const keep = (stays) => {
    const names = together(...operands).filter((other) => (other === name ? stays : result.includes(other)));
    if (stays !== kept) ui.set({ pattern: written(operands, names) });
    return stays !== kept;
  };
  const middle = (rows[0] + rows[1] + tall) / 2;
  const onpointerdown = () => void (ui.own.dragged = false); // a finger's drag ends without a click
  const onclick = () => ui.own.dragged || keep(!kept);
  const drag = (x, y) => void (keep(y < middle) && (ui.own.dragged = true));
  return s("g", { onclick, onpointerdown }, handle({
    label: `name ${name}`, text: kept ? "in the result" : "summed", value: kept ? 1 : 0, min: 0, max: 1, link: name,
    drag, step: (dx, dy) => keep(dx + dy > 0), end: (side) => keep(side > 0),
  }, shapes));
}

// ---- The box --------------------------------------------------------------------------------------------------------
// Upwards the names of the first operand alone, to the right those of the second, and in depth what both share.

function sides({ first, second, result, summed }) {
  const shared = first.filter((name) => second.includes(name));
  const depth = summed.length ? summed : shared;
  return { up: without(first, shared), right: without(second, shared), depth, copies: without(shared, depth) };
}

function box(ui, step, old, left, floor, unit) {
  const { em } = ui;
  const { longest, sizes } = ui.state;
  const { up, right, depth, copies } = sides(step);
  const cells = (names, of = sizes) => Math.min(numbers(names, of), longest);
  const outline = (one, x, y) => corners(sides(one), (names) => cells(names, one.sizes), x, y, unit);
  const at = outline(step, left, floor);
  const frame = ({ front, back }) => [line(...front), "Z", line(front[1], back[0], back[1], back[2], front[3]), line(front[2], back[1])].join("");
  const face = (look, names, words, ...points) => {
    const [x, y] = [0, 1].map((axis) => (Math.min(...points.map((p) => p[axis])) + Math.max(...points.map((p) => p[axis]))) / 2);
    return s("g", {}, s("path", { d: `${line(...points)}Z`, class: `side ${look}` }), s("text", { x, y: y + 0.35 * em,
      class: "ink", "text-anchor": "middle" }, words));
  };
  const { front, back } = at;
  const [first, second] = step.names;
  const label = (names) => names.map((name) => `${name} = ${sizes[name]}`).join(" · ");
  const many = numbers(copies, sizes);
  const kept = step.summed.length === 0; // then all of the box is the result
  const outer = `${line(front[0], front[1], back[0], back[1], back[2], front[3])}Z`;
  const behind = [2, 1].filter((k) => k < many).map((k) => s("path", { class: "copy",
    d: frame(outline(step, left + 9 * k, floor - 9 * k)) }));
  const changed = old && frame(outline(old, left, floor)) !== frame(at);
  return s("g", {}, behind,
    face("second", second, second, front[1], front[2], back[1], back[0]),
    face("first", first, first, front[3], front[2], back[1], back[2]),
    face("result", "", cells(right) * unit > wide("result", ui, 1) + 8 ? "result" : "=", ...front),
    grid(at, cells(up), cells(right), cells(depth), unit),
    s("path", { d: kept ? outer : `${line(...front)}Z`, class: "written" }),
    changed && s("path", { d: frame(outline(old, left, floor)), class: "ghost" }),
    s("text", { x: left - 0.9 * em, y: (front[0][1] + front[1][1]) / 2 + 0.35 * em, class: "label", "text-anchor": "end",
      "data-link": up[0] }, label(up)),
    s("text", { x: (front[0][0] + front[3][0]) / 2, y: floor + 1.7 * em, class: "label", "text-anchor": "middle",
      "data-link": right[0] }, label(right)),
    s("text", { x: (front[3][0] + back[2][0]) / 2 + 0.9 * em, y: (front[3][1] + back[2][1]) / 2 + 1.1 * em, class: "label",
      "data-link": depth[0] }, label(depth), depth.length && step.summed.length ? ", summed" : ""),
    many > 1 && s("text", { x: left - 0.9 * em, y: floor + 1.7 * em, class: "label bold", "text-anchor": "middle",
      "data-link": copies[0] }, `× ${many} (${copies.join(" ")})`),
    edgeKnob(ui, up, front[1], (x, y) => (floor - y) / unit),
    edgeKnob(ui, right, front[3], (x) => (x - left) / unit),
    edgeKnob(ui, depth, back[2], (x) => (x - front[3][0]) / (unit * LEAN)));
}

function corners({ up, right, depth }, cells, x, y, unit) {
  const [tall, long] = [cells(up) * unit, cells(right) * unit];
  const [over, rise] = [cells(depth) * unit * LEAN, cells(depth) * unit * RISE];
  const front = [[x, y], [x, y - tall], [x + long, y - tall], [x + long, y]];
  return { front, back: front.slice(1).map(([px, py]) => [px + over, py - rise]) };
}

function grid({ front, back }, up, right, depth, unit) {
  const between = ([ax, ay], [bx, by], part) => [ax + (bx - ax) * part, ay + (by - ay) * part];
  const cuts = (count, ...lines) => (count * unit < 400 && unit >= 6 ? Array.from({ length: count - 1 }, (_, k) =>
    lines.map(([from, to, otherFrom, otherTo]) => line(between(from, to, (k + 1) / count), between(otherFrom, otherTo, (k + 1) / count))).join("")).join("") : "");
  const d = cuts(up, [front[0], front[1], front[3], front[2]], [front[3], front[2], back[2], back[1]])
    + cuts(right, [front[0], front[3], front[1], front[2]], [front[1], front[2], back[0], back[1]])
    + cuts(depth, [front[1], back[0], front[2], back[1]], [front[3], back[2], front[2], back[1]]);
  return s("path", { d: d || "M0 0", class: "cuts" });
}

// An edge that one name has is pulled at its end; where names are merged, their sizes are dragged in the list.
function edgeKnob(ui, names, [x, y], cellsAt) {
  if (names.length !== 1) return null;
  const [name] = names;
  const { sizes, longest } = ui.state;
  const go = (size) => ui.set({ sizes: { ...sizes, [name]: Math.min(Math.max(Math.round(size), 1), longest) } });
  return knob(x, y, { label: `edge ${name}`, text: `${name} = ${sizes[name]}`, value: sizes[name], min: 1, max: longest,
    link: name, drag: (px, py) => go(cellsAt(px, py)), step: (dx, dy) => go(sizes[name] + dx + dy),
    end: (side) => go(side < 0 ? 1 : longest) });
}

// ---- Words and numbers ----------------------------------------------------------------------------------------------

// The FLOPs of a step as a formula of names: sums of single operands, then the loops.
function law(step) {
  const product = (names) => (names.length ? names.flatMap((name, k) => [k ? " · " : "", linked(name, name)]) : ["1"]);
  const sums = step.lone.flatMap((lone, k) => {
    if (!lone.length) return [];
    const rest = [step.first, step.second][k];
    return ["(", ...product([step.left, step.right][k]), " − ", ...product(rest), ") + "];
  });
  return [...sums, step.each === 2 ? "2 · " : "", ...product(step.loops)];
}

function account(ui, steps, told) {
  const { sizes } = ui.state;
  return steps.map((step, k) => {
    const name = (word) => (steps.length > 1 ? `${word} ${k + 1}` : word);
    const shape = step.result.map((one) => sizes[one]).join(" × ") || "one number";
    const count = numbers(step.result, sizes);
    const lone = step.lone.map((names, side) => names.length && `${names.join(", ")} of ${step.names[side]}`).filter(Boolean);
    const pieces = numbers(step.summed, sizes);
    const flops = si(step.sums + step.flops, "FLOP", 4);
    return h("p", {}, steps.length > 1 && h("b", {}, `${step.names.join(" · ")}: `),
      told && [h("span", { class: "law" }, law(step)), " = ", h("b", {}, shown(name("flops"), flops)), " in ",
        shown(name("volume"), plain(step.volume, 4)), " cells. "], "Writes ",
      shown(name("shape"), shape), count > 1 ? " numbers, " : ", ", shown(name("bytes"), si(BYTES * count, "B", 4)), ". ",
      pieces > 1 ? `Each adds up ${pieces} products. ` : "", lone.length > 0 && `Summed before, by itself: ${lone.join("; ")}. `);
  });
}

function flopsQuestion(ui, guess) {
  const { pattern, sizes } = ui.state.asked;
  const names = together(...parse(pattern).operands);
  const law = productsOf({ pattern, sizes, order: "A B" });
  const answer = total(law);
  const write = (x) => si(x, "FLOP", 4);
  const where = names.map((name) => `${name} = ${sizes[name]}`).join(", ");
  const type = (text) => {
    const number = typedNumber(text);
    return number > 0 ? guess.make(number) : ui.say(`“${text}” is no number of FLOPs.`);
  };
  const value = guess.value === null ? "" : `${guess.value}`;
  const off = guess.value === null ? "" : `, ${miss(guess.value, answer, write)}`;
  return asks(guess, [h("b", {}, "How many FLOPs do these loops take? "), `${where}; each cell multiplies and adds once. `,
    field("your guess, in FLOP", value, type, { size: 10 })],
  [h("b", {}, `${pattern}: ${write(answer)}`), `${off}. `, "Now pull a name off the result, or put one back; pull an edge."],
  { show: "Count them" });
}

// Three operands: which two first? A bar for each order, once they are told.
function orders(ui, guess) {
  const { width } = ui;
  const { before } = ui;
  const { order } = ui.state;
  const names = Object.keys(ORDERS);
  const costs = names.map((name) => total(productsOf({ ...ui.state, order: name })));
  const old = before && before.pattern === ui.state.pattern ? names.map((name) => total(productsOf({ ...before, order: name }))) : [];
  const cheapest = Math.min(...costs);
  const state = JSON.stringify([ui.state.pattern, ui.state.sizes]);
  const choose = (name) => {
    ui.set({ order: name });
    if (!guess.told) guess.make({ order: name, state });
  };
  const best = names.filter((name, k) => costs[k] === cheapest).map((name) => ORDERS[name]).join(" and ");
  const most = Math.max(...costs);
  const said = guess.value?.state === state ? ` You said ${ORDERS[guess.value.order]}.` : "";
  const question = asks(guess, [h("b", {}, "Which order takes the fewest FLOPs? "), "Choose one, and look at its two boxes."],
    [h("b", {}, most === cheapest ? "All orders cost the same." : `${best}: ${si(cheapest, "FLOP", 4)}`),
      most > cheapest && `, ${plain(most / cheapest, 2)} times fewer than the worst.`, said], { show: "Count all three" });
  const part = ui.narrow ? width : (width - 2 * ui.em) / 3;
  const across = linear([0, 4 * ui.state.longest ** 3], [0, part - 2 * ui.em]);
  const rows = names.map((name, k) => h("div", { style: `width: ${part}px` },
    h("p", {}, button(ORDERS[name], () => choose(name), { "aria-pressed": `${name === order}` }), " ",
      guess.told && h("b", {}, shown(`order ${k + 1}`, si(costs[k], "FLOP", 4)))),
    guess.told && s("svg", { width: part, height: ui.em }, bar(across, costs[k], old[k], 0, 0.9 * ui.em, "plain"))));
  return h("div", {}, question, h("div", { class: "row" }, rows));
}

export default picture({
  state: ["pattern", "sizes", "order"],
  given: ["longest", "asked"],
  check: checkNest,
  draw(ui) {
    const { pattern, sizes, order, longest } = ui.state;
    const { em } = ui;
    const { operands, result } = parse(pattern);
    const steps = productsOf(ui.state);
    const three = operands.length === 3;
    const [flops, cheapest] = [ui.guess("flops"), ui.guess("order")];
    const told = three ? cheapest.told : flops.told;
    const side = ui.narrow ? ui.width : 20.6 * em;
    const room = ui.narrow ? ui.width : ui.width - side - 1.2 * em;
    const stacked = three && room / 2 < 300;
    const slot = three && !stacked ? room / 2 : room;
    const margin = Math.max(4.4 * em, 2 * em + wide(`${operands[0].join(" = 9 · ")} = 9`, ui, 0.92));
    const unit = Math.min((slot - margin - 4.6 * em) / (longest * (1 + LEAN)), (stacked ? 190 : 320) / (longest * (1 + RISE)));
    const tall = longest * unit * (1 + RISE) + 3 * em;
    const old = ui.before && productsOf(ui.before);
    const boxes = steps.map((step, k) => {
      const [x, y] = stacked ? [0, k * tall] : [k * slot, 0];
      const same = old?.length === steps.length ? old[k] : null;
      return s("g", {}, three && s("text", { x, y: y + em, class: "bold" }, `${k + 1}.  ${step.names.join(" · ")}`),
        box(ui, step, same, x + margin, y + tall - 2.2 * em, unit));
    });
    const newSizes = (names) => ({ ...Object.fromEntries(without(together(...names), Object.keys(sizes)).map((name) => [name, 4])), ...sizes });
    const rewrite = (text) => ui.set({ pattern: text, sizes: newSizes(parse(text).operands) });
    const stops = Array.from({ length: longest }, (_, k) => k + 1);
    const list = together(...operands).map((name, k) => [k ? " · " : "", linked(name, `${name} = `),
      scrub(ui, { label: `size of ${name}`, value: sizes[name], stops, link: name, set: (size) => ui.set({ sizes: { ...sizes, [name]: size } }) })]);
    const example = Object.keys(EXAMPLES).find((name) => EXAMPLES[name] === pattern) ?? "";
    const picked = (name) => name && rewrite(EXAMPLES[name]);
    const controls = h("div", {}, tiles(ui, { operands, result }, side), h("p", {}, list),
      h("div", { class: "row" }, choice("example", ["", ...Object.keys(EXAMPLES)], example, picked),
        field("pattern", pattern, rewrite, { size: 20 })));
    const sum = si(total(steps), "FLOP", 4);
    ui.tell(told ? `${pattern}: ${sum}` : pattern);
    return [three ? orders(ui, cheapest) : flopsQuestion(ui, flops),
      h("div", { class: ui.narrow ? "" : "columns wide-side" },
        h("div", {}, s("svg", { width: room, height: tall * (stacked ? 2 : 1), role: "group", "aria-label": "the loops as a box" }, boxes),
          h("div", {}, account(ui, steps, told)),
          three && told ? h("p", {}, "Together ", h("b", {}, shown("total", sum)), ".") : null),
        controls)];
  },
});
