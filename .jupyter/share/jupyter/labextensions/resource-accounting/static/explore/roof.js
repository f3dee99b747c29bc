// The chart under every roof: FLOP/s against FLOPs per byte, both logarithmic, its two regions, and the marks of ops.

import { decades, line, logarithmic, s, si, tip } from "./toolkit.js";

export function frame({ em }, [width, height], [intensities, rates]) {
  const [left, right, top, bottom] = [3.6 * em, width - 0.8 * em, 1.6 * em, height - 2.9 * em];
  const across = logarithmic(intensities, [left, right]);
  const up = logarithmic(rates, [bottom, top]);
  return { width, height, left, right, top, bottom, across, up };
}

export function axes({ across, up, left, right, top, bottom, height }, em) {
  const short = (x) => (x >= 1000 ? `${x / 1000}k` : `${+x.toPrecision(3)}`);
  const columns = decades(across).map((x) => [
    s("path", { d: line([across(x), top], [across(x), bottom]), class: "grid" }),
    s("text", { x: across(x), y: bottom + 1.3 * em, class: "name", "text-anchor": "middle" }, short(x))]);
  const rows = decades(up).map((y) => [
    s("path", { d: line([left, up(y)], [right, up(y)]), class: "grid" }),
    s("text", { x: left - 0.4 * em, y: Math.min(up(y) + 0.3 * em, bottom), class: "name", "text-anchor": "end" }, si(y, "").trim())]);
  return [columns, rows,
    s("text", { x: right, y: height - 0.4 * em, class: "name", "text-anchor": "end" }, "intensity: FLOPs per byte"),
    s("text", { x: 0, y: 0.9 * em, class: "name" }, "FLOP/s")];
}

// The corners of a roof within the frame: where the slope comes in, the ridge, the right end of the ceiling.
export function corners({ across, up }, bandwidth, peak) {
  const from = Math.max(across.from, up.from / bandwidth);
  return [[from, bandwidth * from], [peak / bandwidth, peak], [across.to, peak]].map(([x, y]) => [across(x), up(y)]);
}

export function regions({ em }, box, { ridge }) {
  const x = box.across(ridge);
  const wash = (from, to, look) => s("rect", { x: from, y: box.top, width: Math.max(to - from, 0),
    height: box.bottom - box.top, class: `wash ${look}` });
  const words = (text, at, side, look) => s("text", { x: at + side * 0.6 * em, y: box.bottom - 0.6 * em,
    class: `ink ${look}`, "text-anchor": side < 0 ? "end" : "start" }, text);
  return [wash(box.left, x, "memory"), wash(x, box.right, "compute"),
    s("path", { d: line([x, box.top], [x, box.bottom]), class: "drop" }),
    x - box.left > 9.4 * em && words("waits for memory", x, -1, "memory"),
    box.right - x > 6 * em && words("computes", x, 1, "compute")];
}

// What lies above the roof cannot be.
export const above = (box, { bandwidth, peak }) => {
  const [start, knee, end] = corners(box, bandwidth, peak);
  return s("path", { d: `${line(start, knee, end)}V${box.top}H${box.left}V${start[1]}z`, class: "above" });
};

export function mark(box, op, look) {
  const [x, y] = [box.across(op.x), box.up(op.y)];
  const shape = op.bound === "compute" ? s("rect", { x: x - 6, y: y - 6, width: 12, height: 12, class: `mark ${look}` })
    : s("circle", { cx: x, cy: y, r: 6.5, class: `mark ${look}` });
  const way = { "-1": "left", 1: "right" }[box.across.beyond(op.x)];
  return [shape, way && tip(x + (way === "left" ? -10 : 10), y, way)];
}
