// The walk: a grid in memory row after row, read in some order through a small cache of whole lines. How many bytes are
// fetched for each byte used is asked first; then the loops are swapped, a tile is dragged, and time is scrubbed.
// State: `order`, `tile`, `lines`, `time`. Given: sizes, and `measured`, the ratio that the reader's own clock gave.

import { arrow, asks, bar, button, h, handle, knob, line, linear, miss, picture, plain, range, s, scrub, shown, tip } from "./toolkit.js";

const GUESS = "columns";
const ROWS = "row, column";
const COLUMNS = "column, row";
const asked = ({ size }) => ({ order: COLUMNS, tile: [size, size], lines: 8 }); // what the question is about

function check({ order, tile, lines, time, size }) {
  if (![ROWS, COLUMNS].includes(order)) return `The loops are ${ROWS} or ${COLUMNS}, not ${order}.`;
  if (tile.length !== 2 || tile.some((side) => side < 1 || side > size)) return `A tile has 1 to ${size} rows and columns.`;
  if (!(lines >= 1 && lines <= 32)) return "The cache holds 1 to 32 lines.";
  return time >= 0 && time <= size * size ? "" : `There are ${size * size} numbers to read.`;
}

// ---- The walk and its cache, as helpers.explore.walk ----------------------------------------------------------------

const steps = (from, to, by = 1) => Array.from({ length: Math.ceil((to - from) / by) }, (_, k) => from + k * by);

function both(order, rows, columns) {
  if (order === ROWS) return rows.flatMap((row) => columns.map((column) => [row, column]));
  return columns.flatMap((column) => rows.map((row) => [row, column]));
}

function places({ order, tile: [high, wide], size }) {
  const corners = both(order, steps(0, size, high), steps(0, size, wide));
  return corners.flatMap(([top, left]) => both(order, steps(top, Math.min(top + high, size)), steps(left, Math.min(left + wide, size))));
}

// Each number read, whether its line was missing, and the lines in the cache then, the last used first.
const walked = new Map();
function simulate(state) {
  const { size, lines, order, tile } = state;
  const key = `${order} ${tile} ${lines}`;
  if (!walked.has(key)) walked.set(key, simulated(state));
  return walked.get(key);
}

function simulated(state) {
  const { size, lines } = state;
  let cache = [];
  return places(state).map(([row, column]) => {
    const tag = Math.floor((row * size + column) / state.line);
    const missing = !cache.includes(tag);
    cache = [tag, ...cache.filter((other) => other !== tag)].slice(0, lines);
    return { row, column, tag, missing, cache };
  });
}

// Bytes fetched for each byte used.
function ratioOf(walk, state) {
  const fetched = walk.filter(({ missing }) => missing).length * state.line;
  return walk.length ? fetched / walk.length : 0;
}
const whole = (state, changes) => {
  const other = { ...state, ...changes };
  return ratioOf(simulate(other), other);
};

// ---- Pictures -------------------------------------------------------------------------------------------------------

function grid(ui, walk, unit, told) {
  const { size, tile, time, line: long } = ui.state;
  const done = walk.slice(0, time);
  const cached = new Set(done.at(-1)?.cache ?? []);
  const seen = new Map(done.map((step) => [step.row * size + step.column, step]));
  const cells = steps(0, size * size).map((place) => {
    const [x, y] = [(place % size) * unit, Math.floor(place / size) * unit];
    const step = seen.get(place);
    const now = step && step === done.at(-1);
    const look = !step ? "" : step.missing ? "missed" : "hit";
    return s("rect", { x: x + 1, y: y + 1, width: unit - 2, height: unit - 2, class: `number ${look} ${now ? "now" : ""}` });
  });
  const dot = ({ row, column }) => `M${(column + 0.5) * unit} ${(row + 0.5) * unit}h0`;
  const dots = s("path", { d: done.filter(({ missing }) => missing).map(dot).join("") || "M0 0", class: "missing", "stroke-width": unit * 0.32 });
  const outlines = steps(0, (size * size) / long).map((tag) => s("rect", { x: ((tag * long) % size) * unit, y: Math.floor((tag * long) / size) * unit,
    width: long * unit, height: unit, class: `cacheline ${cached.has(tag) ? "cached" : ""}` }));
  const side = size * unit;
  const [high, wide] = tile;
  const set = (rows, columns) => restart(ui, { tile: [rows, columns].map((count) => Math.min(Math.max(Math.round(count), 1), size)) });
  const before = ui.before && `${ui.before.tile}` !== `${tile}` && ui.before.tile;
  return s("svg", { width: side + 16, height: side + 16, role: "group", "aria-label": `${size} by ${size} numbers in memory` },
    cells, dots, outlines, !told && steps(0, 3).map((column) => arrow([(column + 0.5) * unit, 0.4 * unit], [(column + 0.5) * unit, side - 3])),
    told && before && s("rect", { width: before[1] * unit, height: before[0] * unit, class: "ghost" }),
    told && s("rect", { width: wide * unit, height: high * unit, class: "walk-tile" }),
    told && knob(wide * unit, high * unit, { label: "tile", text: `${high} rows, ${wide} columns`, value: high * wide, min: 1, max: size * size,
      drag: (x, y) => set(y / unit, x / unit), step: (dx, dy) => set(high - dy, wide + dx), end: (end) => (end < 0 ? set(1, 1) : set(size, size)) }));
}

// A change of the walk shows its end.
const restart = (ui, changes) => ui.set({ ...changes, time: ui.state.size ** 2 });

function cache(ui, walk, unit) {
  const { lines, time, size, line: long } = ui.state;
  const held = walk[time - 1]?.cache ?? [];
  const seen = new Set(walk.slice(0, time).map(({ row, column }) => row * size + column));
  const small = Math.max(Math.min(unit * 0.7, (size * unit) / lines), 5);
  const rows = steps(0, lines).map((slot) => steps(0, long).map((k) => s("rect", { x: k * small, y: slot * small * 1.1,
    width: small - 1, height: small - 1, class: `slot ${slot >= held.length ? "" : seen.has(held[slot] * long + k) ? "used" : "fetched"}` })));
  const words = held.length ? `row ${Math.floor((held[0] * long) / size)} was used last` : "nothing is in it yet";
  return s("svg", { width: long * small, height: lines * small * 1.1, role: "img", "aria-label": `the cache: ${words}` }, rows);
}

// Bytes fetched for each byte used: this walk, others as ghosts, the guess.
function scale(ui, ratio, guess, width) {
  const { em, state } = ui;
  const most = 2 * state.line; // beyond what can be, so that the end of the scale is no answer
  const across = linear([0, most], [0.6 * em, width - 1.5 * em]);
  const top = 1.5 * em;
  const ticks = steps(0, most + 1, 2).map((value) => [s("path", { d: line([across(value), top], [across(value), top + 1.6 * em]), class: "grid" }),
    s("text", { x: across(value), y: top + 2.7 * em, class: "soft", "text-anchor": "middle" }, value)]);
  const ask = !guess.told;
  const value = guess.value ?? 1;
  const say = (times) => guess.make(Math.round(Math.min(Math.max(times, 1), most) * 2) / 2);
  const mine = ask ? handle({ label: "your guess", text: `${value} bytes for each byte`, value, min: 1, max: most, tap: true,
    drag: (x) => say(across.value(x)), step: (dx, dy) => say(value + (dx + dy) / 2), end: (side) => say(side < 0 ? 1 : most) },
  s("rect", { x: 0, y: top - 8, width, height: 1.6 * em + 16, class: "lane" }),
  s("circle", { cx: across(value), cy: top + 0.8 * em, r: 8, class: `knob ${guess.value === null ? "unplaced" : "memory"}` }))
    : guess.value !== null && s("g", {}, tip(across(guess.value), top - 1, "down"),
      s("text", { x: across(guess.value), y: top - 0.75 * em, class: "soft", "text-anchor": "middle" }, "your guess"));
  const old = ui.before && whole(ui.before, {});
  const done = !ask && bar(across, ratio, old, top + 0.2 * em, 1.2 * em, "memory");
  return s("svg", { width, height: top + 3 * em, role: "group", "aria-label": "bytes fetched for each byte used" }, ticks, done, mine);
}

// ---- Words ----------------------------------------------------------------------------------------------------------

function question(ui, guess) {
  const { size, line: long, itemsize } = ui.state;
  const about = asked(ui.state);
  const answer = whole(ui.state, about);
  const words = [h("b", {}, "Walked by columns, how many bytes are fetched for each byte used? "),
    `The grid lies row after row; a line holds ${long} numbers, ${long * itemsize} bytes, and the cache ${about.lines} lines. Drag the ring.`];
  const off = guess.value === null ? "" : `, ${miss(guess.value, answer, (x) => plain(x))}`;
  const verdict = [h("b", {}, `By columns ${plain(answer)}${off}. `), `A column meets ${size} lines, the cache holds ${about.lines}: each has left before its next number is wanted.`];
  const tell = () => restart(ui, { ...about, revealed: [GUESS] });
  const again = () => ui.set({ ...about, time: 0, predicted: {}, revealed: [] });
  return asks({ ...guess, tell, again }, words, verdict, { show: "Walk it" });
}

function presets(ui) {
  const { order, tile, size, line: long, revealed } = ui.state;
  const one = (name, changes) => { // its number is told once it was walked
    const pressed = order === changes.order && `${tile}` === `${changes.tile}`;
    const ratio = revealed.includes(name) || pressed ? shown(name, plain(whole(ui.state, changes))) : "?";
    const go = () => restart(ui, { ...changes, revealed: [...new Set([...revealed, name])] });
    return button([name, " ", h("b", {}, ratio)], go, { "aria-pressed": `${pressed}` });
  };
  return h("div", { class: "row" }, one("rows", { order: ROWS, tile: [size, size] }), one("columns", { order: COLUMNS, tile: [size, size] }),
    one("columns in tiles", { order: COLUMNS, tile: [long, long] }));
}

function loops(ui) {
  const { order, tile: [high, wide], size } = ui.state;
  const [outer, inner] = order.split(", ");
  const swap = () => restart(ui, { order: `${inner}, ${outer}` });
  const tiled = high < size || wide < size;
  return h("p", {}, tiled ? `for each tile of ${high} × ${wide}: ` : "", h("span", { class: "mono" }, "for ", h("b", {}, outer), " … for ", h("b", {}, inner), " …"),
    " ", button("⇄ swap", swap, { "aria-label": "swap the loops" }));
}

function words(ui, walk, ratio) {
  const { time, line: long, itemsize, measured, lines, size } = ui.state;
  const missed = walk.slice(0, time).filter(({ missing }) => missing).length;
  const clock = measured !== null && h("p", {}, "Your clock: numbers 64 bytes apart took ", h("b", {}, shown("measured", plain(measured, 2))),
    ` times as long as neighbours, for ${long} times the bytes.`);
  return [
    presets(ui), loops(ui),
    h("p", {}, "a cache of ", scrub(ui, { label: "lines", value: lines, stops: [1, 2, 4, 8, 12, 16, 24, 32], set: (value) => restart(ui, { lines: value }) }), " lines"),
    range("read", steps(0, size * size + 1), time, `${time} of ${size * size}`, (value) => ui.set({ time: value })),
    h("p", {}, shown("hits", time - missed), " hits, ", h("b", { class: "memory" }, shown("misses", missed), missed === 1 ? " miss" : " misses"), ": ",
      shown("fetched", missed * long * itemsize), " bytes fetched, ", shown("used", time * itemsize), " used."),
    h("p", {}, "Fetched for each byte used: ", h("b", {}, shown("ratio", plain(ratio)))), clock];
}

export default picture({
  state: ["order", "tile", "lines", "time"],
  given: ["size", "line", "itemsize", "measured"],
  check,
  draw(ui) {
    const guess = ui.guess(GUESS);
    const walk = simulate(ui.state);
    const seen = guess.told ? walk : [];
    const ratio = ratioOf(walk.slice(0, ui.state.time), ui.state);
    const { size } = ui.state;
    const unit = Math.floor(Math.min(1.3 * ui.em, (ui.width - 18 - 9 * 0.7 * ui.em) / size));
    const wide = ui.narrow ? ui.width : Math.max(ui.width - size * unit - 13 * ui.em, 22 * ui.em);
    ui.tell(guess.told ? `${plain(ratio)} bytes fetched for each byte used` : "");
    const key = h("p", { class: "soft" }, guess.told ? "● its line was fetched; framed: now in the cache"
      : "left: memory, framed by cache lines; right: the cache, still empty");
    return [question(ui, guess), h("div", { class: "beside" }, h("div", {},
      h("div", { class: "row" }, grid(ui, seen, unit, guess.told), cache(ui, seen, unit)), key),
      h("div", {}, h("p", { class: "name" }, "bytes fetched for each byte used"), scale(ui, ratio, guess, Math.min(wide, 26 * ui.em)), guess.told ? words(ui, walk, ratio) : null))];
  },
});
