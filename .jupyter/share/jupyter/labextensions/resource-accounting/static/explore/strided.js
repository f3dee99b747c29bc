// What a note of offset, shape and stride says: its cells, the pairs that merge, the views that exist.

export const product = (numbers) => numbers.reduce((all, number) => all * number, 1);
export const tuple = (numbers) => `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`.replaceAll("-", "−");

const dense = (shape) => shape.map((_, k) => product(shape.slice(k + 1).map((size) => Math.max(size, 1))));
const indexOf = (place, shape) => shape.map((size, k) => Math.floor(place / product(shape.slice(k + 1))) % size);
export const cellOf = (index, { offset, stride }) => index.reduce((sum, i, k) => sum + i * stride[k], offset);

// The elements in order, each with its index and its cell, which may be none of the storage.
export function elements(note) {
  const indices = Array.from({ length: product(note.shape) }, (_, place) => indexOf(place, note.shape));
  return indices.map((index) => ({ index, cell: cellOf(index, note) }));
}

export function contiguous({ shape, stride }) {
  const steps = dense(shape);
  return product(shape) === 0 || shape.every((size, k) => size === 1 || stride[k] === steps[k]);
}

// Neighbouring dimensions, with the step inside a row of the later one, the jump from its end to the next row, and
// whether one stride serves both.
export function pairs({ shape, stride }) {
  return shape.slice(1).map((size, k) => ({
    k, size, outer: stride[k], inner: stride[k + 1], step: stride[k + 1], jump: stride[k] - (size - 1) * stride[k + 1],
    merge: stride[k] === size * stride[k + 1],
  }));
}

// The stride of a view, or null, and the rule that decides.
export function plan({ shape, stride }, view) {
  const count = product(shape);
  const wanted = [...view];
  const no = (reason) => ({ stride: null, reason });
  if (wanted.filter((size) => size === -1).length === 1) {
    const known = -product(wanted);
    if (known === 0) return no("the size of -1 cannot be told beside a size of 0");
    wanted[wanted.indexOf(-1)] = Math.floor(count / known);
  }
  if (wanted.some((size) => size < 0) || product(wanted) !== count) return no(`the shape ${tuple(wanted)} does not have ${count} elements`);
  if (count === 0) {
    const same = `${wanted}` === `${shape}`;
    return { stride: same ? stride : dense(wanted), reason: "a tensor without elements has every view of 0 elements" };
  }
  return fillRuns(shape, stride, wanted);
}

function fillRuns(shape, stride, wanted) {
  const found = runs(shape, stride);
  const result = [];
  for (const [place, run] of found.entries()) {
    const sizes = take(wanted.slice(result.length), product(run.map((k) => shape[k])));
    if (!sizes) { // a wanted size reaches beyond this run, so the next one would have to merge
      const [last, first] = [run.at(-1), found[place + 1][0]];
      return { stride: null, pair: last,
        reason: `dimensions ${last} and ${first} must merge, but stride ${stride[last]} is not ${shape[first]} × ${stride[first]}` };
    }
    result.push(...dense(sizes).map((step) => step * stride[run.at(-1)]));
  }
  while (result.length < wanted.length) result.push(1);
  return { stride: result, reason: "wherever dimensions must merge, stride[k] = size[k + 1] · stride[k + 1]" };
}

// The dimensions, with neighbours that can merge in one list; a size of 1 takes no steps and is left out.
function runs(shape, stride) {
  const found = [];
  shape.forEach((size, k) => {
    if (size === 1) return;
    const last = found.at(-1)?.at(-1);
    if (last !== undefined && stride[last] === size * stride[k]) found.at(-1).push(k);
    else found.push([k]);
  });
  return found;
}

// The first of these sizes that multiply to a count; null if there are none.
function take(sizes, count) {
  const end = sizes.findIndex((_, k) => product(sizes.slice(0, k + 1)) === count);
  return end < 0 ? null : sizes.slice(0, end + 1);
}
