// Shape, stride and offset on a storage: the marks above the cells are dragged, elements and cells are pointed at.
// State: `shape`, `stride`, `offset`, and `wanted`, the shape of a view.

import { button, choice, field, h, handle, picture, range, s, shown, tick } from "./toolkit.js";

const EXAMPLES = {
  "4 rows of 6": [[4, 6], [6, 1], 0, [24]],
  "its transpose": [[6, 4], [1, 6], 0, [24]],
  "columns 1 to 3": [[4, 3], [6, 1], 1, [2, 2, 3]],
  "every other row": [[2, 6], [12, 1], 0, [12]],
  "every other column": [[4, 3], [6, 2], 0, [12]],
  "the diagonal": [[4], [7], 0, [2, 2]],
  "three dimensions": [[2, 3, 4], [12, 4, 1], 0, [6, 4]],
  "two of them swapped": [[3, 2, 4], [4, 12, 1], 0, [6, 4]],
  "one row, expanded": [[4, 6], [0, 1], 0, [24]],
  "sliding windows of 4": [[6, 4], [1, 1], 0, [24]],
};
const product = (numbers) => numbers.reduce((all, number) => all * number, 1);
const listed = (numbers) => numbers.join(", ");
const tuple = (numbers) => `(${listed(numbers)}${numbers.length === 1 ? "," : ""})`;
const whole = (text) => text.replace(/[()[\],]/g, " ").trim().split(/\s+/).filter(Boolean).map((part) =>
  (/^-?\d+$/.test(part) ? +part : NaN));

const checkStrides = ({ shape, stride, offset, wanted, cells, most }) => {
  if (![...shape, ...stride, offset,
    ...wanted].every(Number.isInteger)) return "Write whole numbers with commas, like 4, 6.";
  if (shape.length !== stride.length)
    return `The shape has ${shape.length} numbers and the stride ${stride.length}: each dimension has one stride.`;
  if (Math.min(...shape, ...stride, offset) < 0
    || Math.min(...wanted) < -1) return "PyTorch has no negative sizes, strides or offsets.";
  if (shape.length > 3 || product(shape) > most) 
    return `The picture holds 3 dimensions and ${most} elements; make the shape smaller.`;
  const last = offset + (shape.includes(0) ? 0 : shape.reduce((sum, count, k) => sum + (count - 1) * stride[k], 0));
  return last < cells ? "" : `The last element would be in cell ${last}; the last cell is ${cells - 1}.`;
};

// The first sizes that multiply to a target; null if there are none.
function take(sizes, target) {
  const ends = sizes.map((_, k) => product(sizes.slice(0, k + 1))), end = ends.indexOf(target);
  return end < 0 || ends.slice(0, end).some((part) => part > target) ? null : sizes.slice(0, end + 1);
}

// As helpers.storage.plan_view: the stride of a view, or null, and the rule that decides.
function plan(shape, stride, asked) {
  const count = product(shape), wanted = [...asked], free = wanted.indexOf(-1);
  const no = (reason) => ({ stride: null, reason });
  if (wanted.filter((number) => number === -1).length === 1) {
    const known = -product(wanted);
    if (known === 0) return no("the size of -1 cannot be told beside a size of 0");
    wanted[free] = Math.floor(count / known);
  }
  if (wanted.some((number) => number < 0)
    || product(wanted) !== count) return no(`the shape ${tuple(wanted)} does not have ${count} elements`);
  const dense = (sizes) => sizes.map((_, k) => product(sizes.slice(k + 1).map((number) => Math.max(number, 1))));
  if (count === 0) return { stride: listed(wanted) === listed(shape) ? stride : dense(wanted),
    reason: "a tensor without elements has every view of 0 elements" };
  const runs = [];
  shape.forEach((number, k) => {
    if (number === 1) return;
    const last = runs.at(-1)?.at(-1);
    if (last !== undefined && stride[last] === number * stride[k]) runs.at(-1).push(k);
    else runs.push([k]);
  });
  const result = [];
  for (const [place, run] of runs.entries()) {
    const sizes = take(wanted.slice(result.length), product(run.map((k) => shape[k])));
    if (!sizes) { // a wanted size runs over the end of this run: only a merge with the next one would do
      const [k, m] = [run.at(-1), runs[place + 1][0]];
      return no(`dimensions ${k} and ${m} must merge, but stride ${stride[k]} is not ${shape[m]} × ${stride[m]}`);
    }
    result.push(...dense(sizes).map((step) => step * stride[run.at(-1)]));
  }
  while (result.length < wanted.length) result.push(1);
  return { stride: result, reason: "wherever dimensions must merge, stride[k] = size[k + 1] · stride[k + 1]" };
}

export default picture({ slideEm: 17, state: ["shape", "stride", "offset", "wanted"], given: ["cells", "most"], check: checkStrides, draw: (ui) => {
  const { shape, stride, offset, wanted, cells } = ui.state, { width, em, own } = ui, count = product(shape);
  const indices = Array.from({ length: count }, (_, place) =>
    shape.map((size, k) => Math.floor(place / product(shape.slice(k + 1))) % size));
  const offsets = indices.map((index) => index.reduce((sum, i, k) => sum + i * stride[k], offset));
  const lit = own.cell ?? offsets[own.element]; // the cell that is pointed at, itself or by an element
  const light = (what) => (own.hide && (what = {}), Object.assign(own, { cell: undefined, element: undefined }, what),
    ui.redraw());
  const type = (name) => (text) => ui.set({ [name]: name === "offset" ? whole(text)[0] ?? NaN : whole(text) });
  const choose = (name) => {
    if (name) ui.set(Object.fromEntries(["shape", "stride", "offset", "wanted"].map((key, k) =>
      [key, EXAMPLES[name][k]])));
  };
  const now = JSON.stringify([shape, stride, offset, wanted]);
  const example = Object.keys(EXAMPLES).find((name) => JSON.stringify(EXAMPLES[name]) === now) ?? "";

  // The tensor: a grid, three dimensions as grids side by side.
  const [planes, rows, columns] = [...Array(3 - shape.length).fill(1), ...shape];
  const wide = planes * columns + 0.6 * (planes - 1);
  const unit = Math.floor(Math.min(2.2 * em, (width - 2) / wide, (13.2 * em) / Math.max(rows, 1)));
  const elements = offsets.map((cell, place) => {
    const [plane, row, column] = [...Array(3 - shape.length).fill(0), ...indices[place]];
    const x = 1 + unit * (column + plane * (columns + 0.6)), y = 1 + unit * row;
    return s("g", { class: `cell touched ${cell === lit ? "lit" : ""}`, onpointerover: () => light({ element: place }),
      onclick: () => light({ element: place }) },
      s("rect", { x: x + 0.5, y, width: unit - 1, height: unit - 1 }),
      unit > 1.3 * em && s("text", { x: x + unit / 2, y: y + unit / 2 + 0.36 * em, class: "digit" }, cell));
  });

  // The storage: a strip of cells, and above it a lane for the offset and for each step, where there is one.
  const across = width >= 24 * 1.7 * em ? cells : cells / 2, side = Math.floor(Math.min((width - 2) / across,
    2.6 * em));
  const moving = shape.map((size, k) => ({ size, k })).filter(({ size }) => size > 1 && count), lane = 1.5 * em;
  const marked = count ? [offset, ...moving.map(({ k }) => offset + stride[k])].map((cell) => Math.floor(cell / across))
    : [];
  const tops = [0];
  for (let row = 0; row < cells / across; row++) tops.push(tops[row] + side + 1.9 * em + (marked.includes(row)
    ? (1 + moving.length) * lane : 0.3 * em));
  const corner = (cell) => [1 + (cell % across) * side, tops[Math.floor(cell / across) + 1] - side - 1.6 * em];
  const cellAt = (x, y) => Math.min(Math.max(Math.floor((x - 1) / side), 0), across - 1)
    + across * tops.slice(1, -1).filter((end) => y > end).length;
  const order = new Map();
  offsets.forEach((cell, place) => order.set(cell, [...(order.get(cell) ?? []), place]));
  const strip = Array.from({ length: cells }, (_, cell) => {
    const [x, y] = corner(cell), places = order.get(cell) ?? [];
    return s("g", { class: `cell ${places.length && !own.hide ? "touched" : ""} ${cell === lit ? "lit" : ""}`,
      onpointerover: () => light({ cell }), onclick: () => light({ cell }) },
      s("rect", { x: x + 0.5, y, width: side - 1, height: side - 1 }),
      s("text", { x: x + side / 2, y: y + side / 2 + 0.36 * em, class: "digit" }, cell),
      s("text", { x: x + side / 2, y: y + side + 1.05 * em, class: "soft", "text-anchor": "middle" },
        own.hide ? "" : places.length > 1 ? `×${places.length}` : places.length ? `${places[0]}.` : ""));
  });
  const mark = (at, level, text, label, move, change, from) => {
    const [x, y] = corner(at), middle = x + side / 2, height = y - level * lane - 0.75 * em,
      left = middle > width - 8 * em;
    const [fx, fy] = from === undefined ? [] : corner(from);
    return handle({ label, text, value: at, drag: (px, py) => cellAt(px, py) !== at && move(cellAt(px, py)),
      step: (dx, dy) => change(dx + dy) },
      fy === y && s("path", { d: `M${fx + side / 2} ${y - 3}V${height}H${middle}`, class: "stroke" }),
      s("path", { d: `M${middle} ${height}V${y - 3}`, class: "stroke" }),
      s("path", { d: `M${middle} ${y - 1}l-5 -9h10z`, class: "dot" }),
      s("rect", { x: left ? middle - 7.5 * em : middle - 0.6 * em, y: height - 0.7 * em, width: 8.1 * em,
        height: 1.4 * em, rx: 4, class: "grip" }),
      s("circle", { cx: middle, cy: height, r: 0.38 * em, class: "knob" }),
      s("text", { x: middle + (left ? -0.7 : 0.7) * em, y: height + 0.32 * em, class: "name", "text-anchor": left
        ? "end" : "start" }, text));
  };
  const steps = moving.map(({ k }, place) => {
    const move = (cell) => ui.set({ stride: stride.with(k, cell - offset) });
    return mark(offset + stride[k], moving.length - 1 - place, `dim ${k}: +${stride[k]}`, `stride of dimension ${k}`,
      move,
      (by) => ui.set({ stride: stride.with(k, stride[k] + by) }), offset);
  });
  const start = count > 0 && mark(offset, moving.length, `offset ${offset}`, "offset", (cell) =>
    ui.set({ offset: cell }), (by) => ui.set({ offset: offset + by }));

  const law = (index) => [offset, ...index.map((i, k) => `${i} × ${stride[k]}`)].join(" + ");
  const at = own.element ?? order.get(own.cell)?.[0];
  const said = lit === undefined
    ? `cell of element ${tuple(shape.map((_, k) => `i${k}`))} = ${law(shape.map((_, k) => `i${k}`))}`
    : at === undefined ? `cell ${lit}: no element is here`
    : `element ${tuple(indices[at])} → ${law(indices[at])} = cell ${lit}` +
      (order.get(lit).length > 1 ? `, with ${order.get(lit).length - 1} more` : "");
  const dense = shape.map((_, k) => product(shape.slice(k + 1).map((size) => Math.max(size, 1))));
  const contiguous = count === 0 || shape.every((size, k) => size === 1 || stride[k] === dense[k]);
  const { stride: found, reason } = plan(shape, stride, wanted), call = `view(${listed(wanted)})`;
  const shared = count - order.size;

  return [
    h("div", { class: "row" },
      choice("example", ["", ...Object.keys(EXAMPLES)], example, choose),
      field("shape", listed(shape), type("shape"), { size: 9 }), field("stride", listed(stride), type("stride"),
        { size: 9 }),
      field("offset", `${offset}`, type("offset"), { size: 4 }), field("view as", listed(wanted), type("wanted"),
        { size: 9 }),
      tick("predict first", own.hide ?? false, (hide) => ((own.hide = hide), light({}))),
      button("transpose", () => ui.set({ shape: shape.toReversed(), stride: stride.toReversed() }))),
    h("div", { class: "beside" },
      s("svg", { width: wide * unit + 2, height: unit * rows + 2, role: "img",
        "aria-label": `a tensor of shape ${tuple(shape)}`, onpointerleave: () => light({}) }, elements),
      h("div", { "aria-live": "polite" },
        h("p", { class: "mono" }, h("b", {}, shown("law", said))),
        own.hide ? h("p", {}, "Which cells, in which order? Is it contiguous? Does the view exist? Predict, then untick.") :
        [h("p", {}, "In order: ", shown("order", offsets.slice(0, 24).join(" ") + (count > 24 ? " …" : "")), ". ",
          shown("touched", 8 * order.size), ` of ${8 * cells} bytes touched (int64)`,
          shared > 0 && [", ", shown("shared", shared), " elements share a cell with an earlier one"], "; ",
          h("b", {}, shown("contiguous", contiguous ? "contiguous" : "not contiguous")), "."),
        h("p", {}, h("b", {}, shown("view", found ? `✓ ${call} exists, with stride ${tuple(found)}`
          : `✗ ${call} does not exist`)), ": ",
          shown("reason", reason), found || !/merge/.test(reason) ? "."
            : `; reshape(${listed(wanted)}) copies ${8 * count} bytes.`)])),
    s("svg", { width, height: tops.at(-1), role: "group", "aria-label": "the storage", onpointerleave: () =>
      light({}) }, strip, start, steps),
    count > 0 && h("div", { class: "walk" }, range("point at a cell or an element, drag the marks, or walk:",
      indices.map((_, place) => place), at ?? 0,
      lit === undefined || at === undefined ? "" : `element ${at}`, (element) => light({ element }))),
  ];
} });
