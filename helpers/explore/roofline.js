// A roofline: ridge, peak and slope are dragged, points are chosen. State: `machine`, `dtype`, `op`, `batch`, `width`;
// `peak` and `bandwidth` are null until they are moved away from the machine's.

const X = [0.05, 2e5], Y = [3e9, 1e17]; // the ends of the axes, in FLOP/B and FLOP/s

// FLOPs and numbers moved, as OPS in views.py.
const OPS = {
  "ReLU": (batch, width) => [batch * width, 2 * batch * width],
  "GELU, fused": (batch, width) => [9 * batch * width, 2 * batch * width],
  "linear layer": (batch, width) => [2 * batch * width ** 2, 2 * batch * width + width ** 2],
  "decoding attention": (batch, width, cached) => [4 * batch * cached * width, 2 * batch * width * (cached + 1)],
};

function checkRoof({ machine, machines, dtype, op, peak, bandwidth, batch, width }) {
  const spec = machines[machine];
  if (!spec) return `There is no machine ${machine} in the table.`;
  if (!OPS[op]) return `There is no op ${op}; there are ${Object.keys(OPS).join(", ")}.`;
  if (!spec.rates[dtype]) return lacking(machine, dtype, spec.rates);
  const [high, fast] = [peak ?? spec.rates[dtype], bandwidth ?? spec.bandwidth], ridge = high / fast;
  if (!(high >= 1e10 && high <= 2e16 && fast >= 1e9 && fast <= 3.2e13 && ridge >= 0.1 && ridge <= 1e5))
    return "The picture holds 10 GFLOP/s to 20 PFLOP/s, 1 GB/s to 32 TB/s, and a ridge of 0.1 to 100 kFLOP/B.";
  const fits = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
  return fits(batch, 65536) && fits(width, 16384) ? "" : "A batch goes from 1 to 65536 and a width from 1 to 16384.";
}

export default view(["machine", "dtype", "op", "peak", "bandwidth", "batch", "width", "machines", "itemsizes",
  "cached"], checkRoof, (ui) => {
  const { machine, machines, dtype, op, batch, width: size, itemsizes, cached } = ui.state, { em } = ui;
  const spec = machines[machine], sheet = { peak: spec.rates[dtype], bandwidth: spec.bandwidth };
  const peak = ui.state.peak ?? sheet.peak, bandwidth = ui.state.bandwidth ?? sheet.bandwidth, ridge = peak / bandwidth;
  const attainable = (x) => Math.min(peak, bandwidth * x), moved = peak !== sheet.peak || bandwidth !== sheet.bandwidth;
  const costs = Object.entries(OPS).map(([name, cost]) => {
    const [flops, numbers] = cost(batch, size, cached), nbytes = numbers * itemsizes[dtype];
    return { name, flops, nbytes, x: flops / nbytes, bound: flops / nbytes >= ridge ? "compute" : "memory" };
  });
  const { flops, nbytes, x: found, bound } = costs.find(({ name }) => name === op);

  // The picture, in pixels.
  const narrow = ui.width < 46 * em, width = narrow ? ui.width : ui.width - 19.5 * em, height = Math.min(29 * em,
    Math.max(20 * em, width * 0.8));
  const box = { left: 4.6 * em, right: width - 0.6 * em, top: 0.8 * em, bottom: height - 3.2 * em }, log = Math.log10;
  const px = (x) => box.left + ((log(x) - log(X[0])) / (log(X[1]) - log(X[0]))) * (box.right - box.left);
  const py = (y) => box.bottom - ((log(y) - log(Y[0])) / (log(Y[1]) - log(Y[0]))) * (box.bottom - box.top);
  const ux = (x) => 10 ** (log(X[0]) + ((x - box.left) / (box.right - box.left)) * (log(X[1]) - log(X[0])));
  const uy = (y) => 10 ** (log(Y[0]) + ((box.bottom - y) / (box.bottom - box.top)) * (log(Y[1]) - log(Y[0])));
  const kinks = (fast, high) => {
    const low = Math.max(X[0], Y[0] / fast);
    return [[low, fast * low], [high / fast, high], [X[1], high]].map(([x, y]) => [px(x), py(y)]);
  };
  const [start, knee, end] = kinks(bandwidth, peak), path = (points) =>
    `M${points.map((point) => point.join(" ")).join("L")}`;
  const tenth = 10 ** 0.05; // a step of the arrow keys
  const tilt = (Math.atan2(knee[1] - start[1], knee[0] - start[0]) * 180) / Math.PI;
  const third = [start[0] + (knee[0] - start[0]) * 0.4, start[1] + (knee[1] - start[1]) * 0.4];
  const grid = [];
  for (let power = -1; power <= 5; power++) grid.push(s("path", { d: `M${px(10 ** power)} ${box.top}V${box.bottom}`,
    class: "grid" }),
    s("text", { x: px(10 ** power), y: box.bottom + 1.2 * em, class: "name", "text-anchor": "middle" }, power < 0
      ? "0.1" : power > 2 ? `${10 ** (power - 3)}k` : `${10 ** power}`));
  for (let power = 10; power <= 16; power++) grid.push(s("path", { d: `M${box.left} ${py(10 ** power)}H${box.right}`,
    class: "grid" }),
    s("text", { x: box.left - 0.4 * em, y: py(10 ** power) + 0.3 * em, class: "name", "text-anchor": "end" },
      si(10 ** power, "")));

  // Labels of points keep off each other and off the roof's own: each goes to the first place that is free.
  const wide = (words) => 0.6 * em * words.length, heads = [si(peak, "FLOP/s"), `ridge ${si(ridge, "FLOP/B")}`];
  const taken = [{ x: box.right - wide(heads[0]), y: knee[1] + 1.2 * em, long: wide(heads[0]) },
    { x: knee[0] - wide(heads[1]) / 2, y: knee[1] - 1.1 * em, long: wide(heads[1]) }];
  const free = (x, y, words) => {
    const long = 0.55 * em * words.length, places = [[1, 0.4], [-1, -0.8], [1, 1.45], [-1, -1.9], [1, 2.5], [-1, -3],
      [1, 3.55]];
    for (const [way, rise] of places) {
      const here = { x: way > 0 ? x + 0.8 * em : x - 0.8 * em - long, y: y + rise * em, long, way };
      const clash = taken.some((other) => Math.abs(other.y - here.y) < em && here.x < other.x + other.long
        && other.x < here.x + long);
      if (!clash && here.x > box.left && here.x + long < box.right + em) return taken.push(here), here;
    }
    return { x: x + 0.8 * em, y: y + 4.6 * em, long, way: 1 };
  };
  const points = [...costs].sort((a, b) => (b.name === op) - (a.name === op)).map(({ name, x, bound }) => {
    const [cx, cy] = [px(Math.min(Math.max(x, X[0]), X[1])), py(attainable(x))], spot = free(cx, cy, name);
    return s("g", { class: `point ${bound} ${name === op ? "chosen" : ""}`, onclick: () => ui.set({ op: name }) },
      s("path", { d: `M${cx} ${cy}V${box.bottom}`, class: "drop" }),
      bound === "compute" ? s("rect", { x: cx - 6, y: cy - 6, width: 12, height: 12, class: "mark" }) : s("circle",
        { cx, cy, r: 6.5, class: "mark" }),
      Math.abs(spot.y - cy) > 1.5 * em && s("path",
        { d: `M${cx} ${cy}L${spot.x + (spot.way > 0 ? -3 : spot.long + 3)} ${spot.y - 0.3 * em}`, class: "lead" }),
      s("text", { x: spot.way > 0 ? spot.x : spot.x + spot.long, y: spot.y, class: "label", "text-anchor": spot.way > 0
        ? "start" : "end" }, name));
  });
  const drags = [
    handle({ label: "bandwidth", text: si(bandwidth, "B/s"), now: log(bandwidth), drag: (x, y) =>
      ui.set({ bandwidth: uy(y) / ux(x) }),
      step: (dx, dy) => ui.set({ bandwidth: bandwidth * tenth ** (dy - dx) }) },
    s("path", { d: path([start, knee]), class: "wide" }), s("path", { d: path([start, knee]), class: "roof memory" }),
    s("text", { x: 0, y: 0, class: "ink memory", "text-anchor": "middle",
      transform: `translate(${third[0] - 0.45 * em} ${third[1] - 0.6 * em}) rotate(${tilt})` }, si(bandwidth, "B/s"))),
    handle({ label: "peak", text: si(peak, "FLOP/s"), now: log(peak), drag: (x, y) => ui.set({ peak: uy(y) }),
      step: (dx, dy) => ui.set({ peak: peak * tenth ** (dx + dy) }) },
      s("path", { d: path([knee, end]), class: "wide" }), s("path", { d: path([knee, end]), class: "roof compute" }),
      s("text", { x: box.right, y: knee[1] + 1.2 * em, class: "ink compute", "text-anchor": "end" },
        heads[0])),
    handle({ label: "ridge", text: si(ridge, "FLOP/B"), now: log(ridge), drag: (x, y) => ui.set({ peak: uy(y),
      bandwidth: uy(y) / ux(x) }),
      step: (dx, dy) => ui.set(dx ? { bandwidth: bandwidth / tenth ** dx } : { peak: peak * tenth ** dy,
        bandwidth: bandwidth * tenth ** dy }) },
    s("circle", { cx: knee[0], cy: knee[1], r: 1.2 * em, class: "spot" }), s("circle", { cx: knee[0], cy: knee[1],
      r: 0.5 * em, class: "knob" }),
    s("text", { x: knee[0], y: knee[1] - 1.1 * em, class: "label bold", "text-anchor": "middle" },
      heads[1])),
  ];
  const area = `${path([start, knee, end])}V${box.top}H${start[0]}z`, region = (text, x, kind) =>
    s("text", { x, y: box.bottom - 0.6 * em, class: `ink ${kind}`, "text-anchor": kind === "memory" ? "end" : "start" },
      text);
  const choose = (name) => ui.set({ machine: name, peak: null, bandwidth: null });
  const helps = bound === "memory" ? "more bandwidth helps, a higher peak does not"
    : "a higher peak helps, more bandwidth does not";

  return h("div", { class: narrow ? "" : "columns" },
    s("svg", { width, height, role: "group", "aria-label": "roofline: FLOP/s against intensity, both logarithmic" },
      s("path", { d: area, class: "above" }), grid,
      s("path", { d: `M${knee[0]} ${knee[1]}V${box.bottom}`, class: "drop" }),
      region("memory-bound", knee[0] - 0.5 * em, "memory"), region("compute-bound", knee[0] + 0.5 * em, "compute"),
      moved && s("path", { d: path(kinks(sheet.bandwidth, sheet.peak)), class: "sheet" }),
      s("text", { x: (box.left + box.right) / 2, y: height - 0.5 * em, class: "name", "text-anchor": "middle" },
        "intensity (FLOP/B)"),
      s("text", { transform: `translate(${0.9 * em} ${(box.top + box.bottom) / 2}) rotate(-90)`, class: "name",
        "text-anchor": "middle" }, "attainable FLOP/s"),
      drags, points),
    h("div", {},
      choice("machine", Object.keys(machines), machine, choose),
      h("div", { class: "row" }, choice("dtype", Object.keys(spec.rates), dtype, (name) => ui.set({ dtype: name,
        peak: null })),
        button("as on the data sheet", () => choose(machine), { disabled: !moved })),
      choice("op", Object.keys(OPS), op, (name) => ui.set({ op: name })),
      range("batch", powers(0, 16), batch, `${batch}`, (number) => ui.set({ batch: number })),
      range("width", powers(6, 14), size, `${size}`, (number) => ui.set({ width: number })),
      h("div", { "aria-live": "polite" },
        h("p", { class: `verdict ${bound}` }, h("b", {}, shown("bound", `${bound}-bound`)), `: ${helps}.`),
        h("p", {}, shown("flops", si(flops, "FLOP")), ", ", shown("bytes", si(nbytes, "B")), ": intensity ",
          shown("intensity", si(found, "FLOP/B")),
          "; the ridge is at ", shown("ridge", si(ridge, "FLOP/B")), "."),
        h("p", {}, "To compute ", shown("compute", si(flops / peak, "s")), ", to move ",
          shown("move", si(nbytes / bandwidth, "s")),
          ": at best ", shown("attainable", si(attainable(found), "FLOP/s")), ", ", shown("share",
            si((100 * attainable(found)) / peak, "%")), " of the peak."))));
});
