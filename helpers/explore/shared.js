// What the views share. Python puts this text in front of each view's own, so that every view is one module.
//
// A view is a function from its state to a tree of elements. `morph` brings what is on the page in line with a new tree
// and keeps its elements, so that the focus, a drag and CSS transitions go on.

const HANDLERS = ["onclick", "onchange", "oninput", "onkeydown", "onpointerdown", "onpointermove", "onpointerover",
  "onpointerleave", "onfocus"];
const PROPERTIES = ["value", "checked"];

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (HANDLERS.includes(name)) node[name] = value;
    else if (value != null && value !== false && !PROPERTIES.includes(name)) node.setAttribute(name, value);
  }
  // A child that is not there keeps its place, so that its sisters stay the same elements.
  node.append(...children.flat(3).map((child) => (child == null || child === false ? "" : child)));
  for (const name of PROPERTIES) if (attributes?.[name] != null) node[name] = attributes[name];
  return node;
}
const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) return void (old.data === fresh.data || (old.data = fresh.data));
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of HANDLERS) if (old[name] !== fresh[name]) old[name] = fresh[name];
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((child, place) => (place < before.length ? morph(before[place], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
  for (const name of PROPERTIES) if (name in fresh && old[name] !== fresh[name]) old[name] = fresh[name];
}

// Controls. What a control sends is checked before it becomes the state; see `view`.
const labelled = (label, control) => h("label", { class: "control" }, h("span", {}, label), control);
const choice = (label, options, value, choose) => labelled(label, h("select", {
  value, "aria-label": label, onchange: (event) => {
    const chosen = event.target.value;
    event.target.value = value; // until it is checked
    choose(chosen);
  } },
  options.map((option) => h("option", { value: option }, option || "…"))));
const field = (label, value, type, more = {}) => labelled(label, h("input",
  { type: "text", value, spellcheck: "false", autocomplete: "off", "aria-label": label, ...more,
    onchange: (event) => type(event.target.value.trim()) }));
const range = (label, options, value, text, choose) => labelled(h("span", {}, `${label} `, h("b", {}, text)), h("input",
  { type: "range", min: 0, max: options.length - 1, step: 1, value: Math.max(options.indexOf(value), 0),
    "aria-label": label, "aria-valuetext": text, oninput: (event) => choose(options[event.target.value]) }));
const button = (text, press, more = {}) => h("button", { type: "button", onclick: press, ...more }, text);
const tick = (label, checked, choose, disabled = false) => h("label", { class: "tick" },
  h("input", { type: "checkbox", checked, disabled, onchange: (event) => choose(event.target.checked) }), label);
const shown = (name, ...text) => h("span", { "data-shown": name }, ...text); // a number that the tests compare
const powers = (first, last) => Array.from({ length: last - first + 1 }, (_, k) => 2 ** (first + k));

const lacking = (machine, dtype, rates) =>
  `${machine} has no rate for ${dtype} on its spec sheet, only for ${Object.keys(rates).join(", ")}.`;

// A part of a picture that is dragged, or moved by the arrow keys: drag(x, y) in the picture's pixels, step(dx, dy).
function handle({ label, text, now, drag, step, tap }, ...shapes) {
  const at = (event) => {
    const svg = event.currentTarget.ownerSVGElement, box = svg.getBoundingClientRect();
    const scale = svg.width.baseVal.value / box.width; // slides are scaled
    drag((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  };
  return s("g", {
    class: "handle", role: "slider", tabindex: 0, "aria-label": label, "aria-valuetext": text, "aria-valuenow": now,
    onpointerdown: (event) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      event.currentTarget.focus();
      if (tap) at(event);
    },
    onpointermove: (event) => event.currentTarget.hasPointerCapture(event.pointerId) && at(event),
    onkeydown: (event) => arrows(event, step),
  }, ...shapes);
}

function arrows(event, step) {
  const moved = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!moved || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  step(...moved);
}

// A text to the right of a place, to the left (side -1) or around it (0), moved so that all of it is in the picture.
function beside(text, x, y, side, { width, em }, kind = "label") {
  const long = 0.55 * em * text.length, start = x + 0.4 * em * side - [long, long / 2, 0][side + 1];
  return s("text", { x: Math.max(Math.min(start, width - long), 0), y, class: kind }, text);
}

// Numbers as helpers.units prints them: significant digits, of two equally near numbers the one with the even digit.
function digits(x, count) {
  let [mantissa, power] = Math.abs(x).toExponential(100).split("e");
  mantissa = mantissa.replace(".", "");
  let [head, rest] = [mantissa.slice(0, count), mantissa.slice(count)];
  if (rest[0] > "5" || (rest[0] === "5" && (/[1-9]/.test(rest.slice(1))
    || head.at(-1) % 2))) head = `${BigInt(head) + 1n}`;
  if (head.length > count) [head, power] = [head.slice(0, count), +power + 1];
  return { head, power: +power, exact: /^0*$/.test(rest) };
}

function plain(x, count) {
  if (x === 0) return "0";
  const { head, power } = digits(x, Math.max(count, Math.floor(Math.log10(Math.abs(x))) + 1));
  const text = power < 0 ? `0.${"0".repeat(-power - 1)}${head}`
    : head.length > power + 1 ? `${head.slice(0, power + 1)}.${head.slice(power + 1)}` : head.padEnd(power + 1, "0");
  return (x < 0 ? "-" : "") + (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
}

function si(x, unit, count = 3) { // helpers.units.si, for numbers of at least 0
  const small = unit === "s" && x > 0 && x < 1, value = small ? x * 1e12 : x;
  for (const [power, prefix] of (small ? ["p", "n", "µ", "m", ""] : ["", "k", "M", "G", "T", "P", "E"]).entries()) {
    const text = plain(value / 1000 ** power, count);
    if (+text < 1000) return `${text} ${prefix + unit === "B" ? (text === "1" ? "byte" : "bytes") : prefix + unit}`;
  }
  const { head, power } = digits(x, count);
  return `${head[0]}.${head.slice(1)}e+${power} ${unit}`;
}

function duration(x) { // helpers.units.duration
  for (const [name, span] of [["day", 86400], ["h", 3600], ["min", 60]]) {
    const text = plain(x / span, 3);
    if (x >= span) return `${text} ${name}${name === "day" && text !== "1" ? "s" : ""}`;
  }
  return si(x, "s");
}

// A view as the host wants it. `check(state)` gives a sentence for a state that cannot be, else "". `draw(ui)` gives
// the elements for ui.state; ui.set(changes) is how its controls change it, ui.own is what only this display knows.
const view = (keys, check, draw) => ({
  render({ model, el }) {
    const problem = h("p", { class: "problem", role: "alert" }), body = h("div", { class: "body" });
    const checked = (state) => {
      try {
        return check(state);
      } catch (error) {
        return `This cannot be shown: ${error.message}.`;
      }
    };
    const say = (text) => void (problem.textContent = text);
    let quiet = false;
    const ui = { state: null, own: {}, say, redraw, set };

    function set(changes, own = {}) {
      const wrong = checked({ ...ui.state, ...changes });
      if (wrong) return say(wrong);
      Object.assign(ui.own, own);
      quiet = true;
      for (const [name, value] of Object.entries(changes)) model.set(name, value);
      quiet = false;
      model.save_changes();
      update();
    }
    function update() {
      if (quiet) return;
      const state = Object.fromEntries(keys.map((name) => [name, model.get(name)])), wrong = checked(state);
      say(wrong && ui.state ? `${wrong} The last state that can be shown stays.` : wrong);
      if (!wrong) [ui.state] = [state], redraw();
    }
    function redraw() {
      if (!ui.state) return;
      ui.width = Math.floor(el.clientWidth || 1160); // 0 on a slide that is not shown yet
      ui.em = ui.width >= 1000 ? 17 : 14;
      el.style.fontSize = `${ui.em}px`;
      morph(body, h("div", { class: "body" }, draw(ui)));
    }

    el.classList.add("course-view");
    el.replaceChildren(body, problem);
    // reveal.js and others take plain keys; Escape gives them back, and pages of slides are always theirs.
    el.onkeydown = (event) => {
      if (event.key === "Escape") return document.activeElement.blur();
      if (!/^(Page|Tab|F\d)/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
    };
    // JupyterLab listens before the view does, and would take x as "cut this cell"; Ctrl, Alt and Shift stay its own.
    const keep = (event) => el.toggleAttribute("data-lm-suppress-shortcuts",
      el.contains(event.target) && !(event.ctrlKey || event.metaKey || event.altKey || event.shiftKey));
    const watch = new ResizeObserver(() => el.clientWidth && el.clientWidth !== ui.width && redraw());
    model.on("change", update);
    update();
    watch.observe(el);
    window.addEventListener("keydown", keep, true);
    return () => {
      watch.disconnect();
      model.off("change", update);
      window.removeEventListener("keydown", keep, true);
    };
  },
});
