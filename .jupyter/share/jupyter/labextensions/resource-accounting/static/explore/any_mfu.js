// Any MFU: five switches on one run. First the setting is found that prints what was published; then the smallest and the
// largest number that can be defended are claimed, and each choice that cannot be is named with its reason.
// State: `multiply`, `attention`, `passes`, `weights`, `peak`. Given: `switches`, whose options are [name, number, why it
// cannot be defended]; `tokens_per_second`, `published`, `marks` of other runs, `ends` of what can be defended.

import { beside, button, either, h, hatching, line, logarithmic, picture, plain, s, shown, wide } from "./toolkit.js";

const SCALE = [0.01, 5];
const RANGE = "range";
const about = (x, y) => Math.abs(x / y - 1) < 0.01;
const write = (mfu) => (mfu < 0.095 ? plain(mfu, 2) : mfu.toFixed(2));

const chosen = (state, { trait, options }) => options.find(([name]) => name === state[trait]);

function mfuOf(state) {
  const [multiply, attention, passes, weights, peak] = state.switches.map((one) => chosen(state, one)[1]);
  return (multiply * passes * (weights + attention) * state.tokens_per_second) / peak;
}

function check(state) {
  const wrong = state.switches.find((one) => !chosen(state, one));
  return wrong ? `${wrong.name}: one of ${wrong.options.map(([name]) => name).join(", ")}.` : "";
}

const unfair = (state) => state.switches.map((one) => ({ name: one.name, option: chosen(state, one) })).filter(({ option }) => option[2]);

// ---- The scale ------------------------------------------------------------------------------------------------------

function scale(ui, guess) {
  const { em, state, width, before } = ui;
  const across = logarithmic(SCALE, [1.2 * em, width - 0.5 * em]);
  const now = mfuOf(state);
  const marks = Object.entries({ published: state.published, ...state.marks }).sort(([, one], [, other]) => one - other);
  const top = 3.4 * em;
  const tall = (ui.slide ? 1.15 : 1.35) * em; // a line for each mark, so that none lies on another
  const bottom = top + (marks.length + 0.6) * tall;
  const ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].map((x) => [
    s("path", { d: line([across(x), top], [across(x), bottom]), class: "grid" }),
    s("text", { x: across(x), y: bottom + 1.2 * em, class: "name", "text-anchor": x === 5 ? "end" : "middle" }, `${x}`)]);
  const others = marks.map(([name, mfu], k) => {
    const [x, y] = [across(mfu), top + (k + 0.9) * tall];
    const words = `${name} ${write(mfu)}`;
    const kind = `label ${name === "published" ? "bold" : ""}`;
    const isLeft = x + 1.4 * em + wide(words, ui) > across(1); // what cannot be begins there
    return s("g", {}, s("path", { d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z`, class: "published" }),
      s("text", { x: x + (isLeft ? -0.8 : 0.8) * em, y: y + 0.33 * em, class: kind, "text-anchor": isLeft ? "end" : "start" }, words));
  });
  const [low, high] = state.ends.map((x) => across(x));
  const claims = ["smallest", "largest"].filter((name) => state.predicted[name])
    .map((name) => s("path", { d: line([across(state.predicted[name]), top], [across(state.predicted[name]), bottom]), class: "guess" }));
  return s("svg", { width, height: bottom + 3 * em, role: "img", "aria-label": `an MFU of ${write(now)}` }, hatching(ui),
    s("rect", { x: across(1), y: top, width: across.end - across(1), height: bottom - top, fill: ui.hatch, class: "cannot" }),
    guess.told && s("rect", { x: low, y: top, width: high - low, height: bottom - top, class: "fair" }),
    guess.told && beside("can be defended", (low + high) / 2, bottom + 2.6 * em, 0, ui, "label bold", 0, width),
    ticks, claims, beside("above 1: cannot be", across(1), bottom + 2.6 * em, 1, ui, "label", 0, width), others,
    before && mfuOf(before) !== now && s("circle", { cx: across(mfuOf(before)), cy: top, r: 8, class: "ghost" }),
    s("path", { d: line([across(now), top], [across(now), bottom]), class: "drop" }),
    s("circle", { cx: across(now), cy: top, r: 8, class: `knob ${now > 1 ? "compute" : ""}` }),
    s("text", { x: across(now), y: top - 1.1 * em, class: "big", "text-anchor": "middle" },
      "MFU ", s("tspan", { "data-shown": "mfu" }, write(now))));
}

// ---- The switches ---------------------------------------------------------------------------------------------------

function row(ui, one) {
  const { state } = ui;
  const choose = (name) => {
    const after = { ...state, [one.trait]: name };
    const found = about(mfuOf(after), state.published) ? { found: state.published } : {};
    ui.set({ [one.trait]: name, predicted: { ...state.predicted, ...found } });
  };
  return either(one.name, one.options.map(([name]) => [name, name]), state[one.trait], choose);
}

// ---- The tasks ------------------------------------------------------------------------------------------------------

const objections = (state) => unfair(state).map(({ name, option }) => `“${name}: ${option[0]}”: ${option[2]}`).join("; ");

function claim(ui, name) {
  const now = mfuOf(ui.state);
  const wrong = objections(ui.state);
  if (wrong) return ui.say(`${write(now)} cannot be defended. ${wrong}.`);
  const { predicted, revealed } = ui.state;
  const done = { ...predicted, [name]: now };
  ui.set({ predicted: done, revealed: done.smallest && done.largest ? [...new Set([...revealed, RANGE])] : revealed });
}

function tasks(ui, guess) {
  const { state } = ui;
  const { predicted, published, ends } = state;
  const again = () => ui.set({ predicted: {}, revealed: [] });
  if (guess.told) {
    const [low, high] = ends.map(write);
    const yours = ["smallest", "largest"].filter((name) => predicted[name]).map((name) => `your ${name} ${write(predicted[name])}`);
    return h("div", { class: "asks" }, h("p", {}, "From ", h("b", {}, shown("smallest", low)), " to ", h("b", {}, shown("largest", high)),
      ": what can be defended, if one says what was counted", yours.length ? ` (${yours.join(", ")})` : "", ". All of it is far from ", write(published), "."),
    button("Ask me again", again));
  }
  if (!predicted.found) return h("div", { class: "asks open" },
    h("p", {}, h("b", {}, `Which setting prints the published ${write(published)}?`)),
    button("Show the setting", () => ui.set({ ...setting(state), predicted: { ...predicted, found: published } }), { class: "quiet" }));
  return h("div", { class: "asks open" },
    h("p", {}, h("b", {}, "The published number is a setting. Now defend one: "),
      "what are the smallest and the largest that you would, each by a convention that some paper uses?"),
    ["smallest", "largest"].map((name) => button(predicted[name] ? `${name}: ${write(predicted[name])} ✓` : `This is the ${name}`, () => claim(ui, name))),
    button("Show the answer", () => guess.tell(), { class: "quiet" }));
}

// The setting that prints what was published, found by trying them all.
function setting(state) {
  const all = state.switches.reduce((found, { trait, options }) =>
    found.flatMap((one) => options.map(([name]) => ({ ...one, [trait]: name }))), [{}]);
  return all.reduce((best, one) => {
    const miss = (option) => Math.abs(Math.log(mfuOf({ ...state, ...option }) / state.published));
    return miss(one) < miss(best) ? one : best;
  });
}

export default picture({
  state: ["multiply", "attention", "passes", "weights", "peak"],
  given: ["switches", "marks", "ends", "tokens_per_second", "published"],
  check,
  draw(ui) {
    const { state } = ui;
    const guess = ui.guess(RANGE);
    const now = mfuOf(state);
    const hit = about(now, state.published);
    const wrong = objections(state);
    ui.tell(`an MFU of ${write(now)}`);
    return [tasks(ui, guess), scale(ui, guess), h("div", { class: "switches" }, state.switches.map((one) => row(ui, one))),
      hit && h("p", {}, h("b", {}, `This prints ${plain(now, 4)}, as published.`)),
      guess.told && h("p", {}, shown("objections", wrong ? `Not to be defended: ${wrong}.` : "Each of these choices can be defended: say them beside the number."))];
  },
});
