"""The exercises of notebook 03."""

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.exercise import function, part, parts

# fmt: off

_WORDS = ("passes", "raises")
parts("enforced",
    a=part("passes", [("raises", "Nothing checks an assignment here: its annotation only documents.")], words=_WORDS),
    b=part("passes", [("raises", "Without a type checker nobody reads the annotation of a parameter.")], words=_WORDS),
    c=part("raises", [("passes", "In one call a name has one size: seq cannot be 3 in x and 4 in w.")], words=_WORDS),
    d=part("raises", [("passes", "The return value is checked, too: its shape is (2, 3), not (2,).")], words=_WORDS),
    e=part("passes", [("raises", "The checker compares sizes, and names mean nothing to it: here they agree.")],
           words=_WORDS))


def _counting(*shape: int, start: int = 0) -> torch.Tensor:
    """Different whole numbers in float64, where sums and products of them are exact."""
    return torch.arange(start, start + math.prod(shape), dtype=torch.float64).view(shape)


_XYW = [(_counting(2, 6, 8), _counting(2, 6, 8, start=7), _counting(8, 5))]
parts("ten_rewrites",
    a=part(lambda x, y, w: x.transpose(1, 2), [], cases=_XYW),
    b=part(lambda x, y, w: x.flatten(1), [
        (lambda x, y, w: x.mT.flatten(1),
         "The merged names are in the wrong order: (seq hidden) is the order of memory."),
    ], cases=_XYW),
    c=part(lambda x, y, w: x.unflatten(2, (2, 4)).transpose(1, 2), [
        (lambda x, y, w: x.unflatten(2, (4, 2)).permute(0, 3, 1, 2),
         "You split hidden as (dim heads): view splits it with the head as the slow digit, (heads dim)."),
        (lambda x, y, w: x.unflatten(2, (2, 4)), "Your output still has seq before heads: the transpose swapped them."),
    ], cases=_XYW),
    d=part(lambda x, y, w: x.permute(1, 0, 2).flatten(1), [
        (lambda x, y, w: x.permute(1, 2, 0).flatten(1),
         "The merged names are in the wrong order: after the permute batch comes before hidden."),
    ], cases=_XYW),
    e=part(lambda x, y, w: x.mean(-1), [
        (lambda x, y, w: x.sum(-1), "You took the sum: the old way is a mean, so the new way is one, too."),
        (lambda x, y, w: x.mean(1),
         "You averaged over seq: the name that is missing from the output is the one that goes."),
    ], cases=_XYW),
    f=part(lambda x, y, w: x.amax((1, 2), keepdim=True), [
        (lambda x, y, w: x.amax((1, 2)), "The keepdim is lost: write a 1 in the place of the dimension."),
        (lambda x, y, w: x.mean((1, 2), keepdim=True), "You took the mean; amax is the maximum."),
        (lambda x, y, w: x.amin((1, 2), keepdim=True), "You took the minimum; amax is the maximum."),
    ], cases=_XYW),
    g=part(lambda x, y, w: x[:, None].expand(-1, 3, -1, -1), [
        (lambda x, y, w: x[None].expand(3, -1, -1, -1),
         "The new dimension is in the wrong place: it comes right after batch."),
    ], cases=_XYW),
    h=part(lambda x, y, w: x.repeat_interleave(2, dim=1), [
        (lambda x, y, w: x.repeat(1, 2, 1),
         "You repeat the whole sequence, (copy seq): repeat_interleave repeats each element, (seq copy)."),
    ], cases=_XYW),
    i=part(lambda x, y, w: x @ w, [], cases=_XYW),
    j=part(lambda x, y, w: x @ y.mT, [
        (lambda x, y, w: y @ x.mT, "The output names are swapped: rows belong to x, columns to y."),
        (lambda x, y, w: (x * y).sum(-1),
         "You gave the two sequences one name: that keeps only equal positions. They need two names."),
    ], cases=_XYW))


def _pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


function("halves_to_pairs",
    _pairs, [
    (lambda x: torch.cat((x[..., ::2], x[..., 1::2]), dim=-1),
     "That is the way back, from pairs to halves: here split is the slow digit of the input."),
    (lambda x: x.clone(), "Nothing moved: with the same brackets on both sides a pattern does nothing."),
    (lambda x: (_pairs(x).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)),
     "In each pair the second half came first: only the order of the digits changes."),
    (lambda x: torch.stack(x.chunk(2, dim=-1), dim=-1),
     "You left the pairs as an axis of their own: merge it with brackets on the right side."),
    ], cases=[(_counting(8),), (_counting(3, 12),), (_counting(2, 3, 6),)])


def _patches(image: torch.Tensor, size: int, order: str, step: bool = False) -> torch.Tensor:
    """Patches with their axes in that order: i and j say which patch, k and l which of its pixels, c the channel.

    With `step` a patch has the pixels at equal distances, `size` of them from all over the image.
    """
    height, width, _ = image.shape
    rows, columns = height // size, width // size
    counts, axes = ((size, rows, size, columns), "kiljc") if step else ((rows, size, columns, size), "ikjlc")
    parts = image.view(*counts, -1).permute([axes.index(axis) for axis in order])
    return parts.reshape(height * width // size**2, -1)


function("patchify",
    lambda image, size: _patches(image, size, "ijklc"), [
    (lambda image, size: _patches(image, size, "ijklc", step=True),
     "You split with the pixel as the slow digit: each patch has pixels from all over the image."),
    (lambda image, size: _patches(image, size, "jiklc"),
     "Your patches come column by column; in reading order the row of the patch is the slow digit."),
    (lambda image, size: _patches(image, size, "ijckl"),
     "Inside a patch your channel comes first; the order asked for is row, column, channel."),
    (lambda image, size: _patches(image, size, "ijlkc"),
     "Inside a patch you go down the columns; the order asked for is row, column, channel."),
    (lambda image, size: image.reshape(-1, size * size * image.shape[2]),
     "That cuts the image's memory in pieces: a patch is a square, and its rows lie apart in memory."),
    (lambda image, size: _patches(image, size, "ijklc").view(image.shape[0] // size, image.shape[1] // size, -1),
     "One patch per row is asked for: merge the two axes that say which patch it is."),
    ], cases=[(_counting(4, 6, 3), 2), (_counting(6, 3, 1), 3), (_counting(8, 4, 2), 2)])


def _standardised(
    axes: tuple[int, ...] = (0, 1, 2), centre: bool = True, root: bool = True, correction: int = 0
) -> Callable[[torch.Tensor], torch.Tensor]:
    def normalise(images: torch.Tensor) -> torch.Tensor:
        spread = images.var(axes, correction=correction, keepdim=True)
        centred = images - images.mean(axes, keepdim=True) if centre else images
        return centred / (spread.sqrt() if root else spread)

    return normalise


function("channel_norm",
    _standardised(), [
    (_standardised((1, 2)),
     "You normalised each image by itself: the batch has to go from the output of reduce as well."),
    (_standardised((0, 1, 2, 3)),
     "You normalised all channels together: each channel needs a mean of its own, so c stays."),
    (_standardised((0,)),
     "You normalised each pixel over the batch: height and width have to go from the output as well."),
    (_standardised(root=False), "You divided by the variance: the standard deviation is its square root."),
    (_standardised(correction=1),
     "You divided by n − 1, as torch.std does unless told otherwise; here the mean over all n is asked for."),
    (_standardised(centre=False), "You did not subtract the mean."),
    (lambda images: (images - images.mean((0, 1, 2))),
     "You subtracted the mean and did not divide by the standard deviation."),
    ], cases=[(_counting(2, 3, 4, 3) ** 1.5,), (_counting(3, 2, 5, 2) ** 2,)])


def _names(pattern: str) -> tuple[list[str], list[str]]:
    """The names of the inputs, with repetitions, and those of the output."""
    left, right = pattern.split("->")
    return left.replace(",", " ").split(), right.split()


def _product(names: Any, sizes: dict[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


function("einsum_flop",
    lambda pattern, sizes: 2 * _product(set(_names(pattern)[0]), sizes), [
    (lambda pattern, sizes: _product(set(_names(pattern)[0]), sizes),
     "You counted MAC: each is a multiplication and an addition, 2 FLOP."),
    (lambda pattern, sizes: 2 * _product(_names(pattern)[0], sizes),
     "You multiplied a name once for each operand that has it: the loops run once over each name."),
    (lambda pattern, sizes: 2 * _product(_names(pattern)[1], sizes),
     "You counted the elements of the output: each of them is a sum over the names that are missing."),
    (lambda pattern, sizes: 2 * _product(set(_names(pattern)[0]) - set(_names(pattern)[1]), sizes),
     "You counted only the names that are summed: that is the cost of one element of the output."),
    (lambda pattern, sizes: (2 * _product(sizes, sizes)),
     "You multiplied all the sizes given: take only the names that the pattern has."),
    (lambda pattern, sizes: 2 * _product(set(_names(pattern)[0]), sizes) - _product(_names(pattern)[1], sizes),
     "That leaves out the first addition of each sum. It is exact, but the convention is 2 for every step."),
    ],
    cases=[
        ("i j, j k -> i k", {"i": 3, "j": 5, "k": 7}), ("i j,j k->i k", {"i": 3, "j": 5, "k": 7}),
        ("batch seq hidden, hidden out -> batch seq out", {"batch": 4, "seq": 16, "hidden": 32, "heads": 4, "out": 8}),
        ("b n q d, b n k d -> b n q k", {"b": 2, "n": 12, "q": 1024, "k": 1024, "d": 64}), ("i, i ->", {"i": 1000}),
    ])


def _attention(
    split: str = "heads dim", softmax: int = -1, width: str = "dim", merge: str = "heads dim"
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]:
    def apart(x: torch.Tensor, heads: int) -> torch.Tensor:  # (batch, heads, seq, dim)
        if split == "heads dim":
            return x.unflatten(-1, (heads, -1)).transpose(1, 2)
        return x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
        scale = {"dim": q.shape[-1] // heads, "hidden": q.shape[-1], "none": 1}[width]
        weights = (apart(q, heads) @ apart(k, heads).mT / math.sqrt(scale)).softmax(softmax)
        result = weights @ apart(v, heads)  # (batch, heads, seq, dim)
        return result.permute((0, 2, 1, 3) if merge == "heads dim" else (0, 2, 3, 1)).flatten(2)

    return attend


def _waves(*shape: int) -> torch.Tensor:
    """Numbers between −1 and 1 without a pattern that an index could hide in."""
    return (_counting(*shape) * 1.7 + shape[1]).sin()


function("repair_attention",
    _attention(), [
    (_attention("dim heads", -2), "That is still the attention with both bugs."),
    (_attention("dim heads", merge="dim heads"),
     "Your brackets agree, but hidden is (heads dim): the head is the slow digit in all of them."),
    (_attention(softmax=-2), "The weights of a query still do not add up to 1: the softmax runs over the wrong name."),
    (_attention("dim heads"),
     "The softmax is right now. The heads are taken apart in one order and put together in another."),
    (_attention(width="hidden"),
     "The scale was right: divide by the square root of dim, the width of one head, not of all heads."),
    (_attention(width="none"), "The scale was right: scores are divided by the square root of dim."),
    ],
    cases=[
        (_waves(2, 5, 8), _waves(2, 6, 8), _waves(2, 6, 8) ** 2, 2),
        (_waves(1, 4, 12), _waves(1, 4, 12) ** 3, _waves(1, 4, 12) + 1, 3),
    ])


def _from_the_left(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Whether (q kᵀ) v is the cheaper order."""
    queries, keys, dim, value = len(q), len(k), q.shape[1], v.shape[1]
    return queries * keys * (dim + value) <= dim * value * (queries + keys)


def _product_of(left: bool, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.T) @ v if left else q @ (k.T @ v)


function("cheapest_order",
    lambda q, k, v: _product_of(_from_the_left(q, k, v), q, k, v), [
    (lambda q, k, v: _product_of(True, q, k, v),
     "You go from left to right, as one einsum of three tensors does: the first step makes every query "
     "meet every key."),
    (lambda q, k, v: _product_of(False, q, k, v),
     "You always start with k and v: for short sequences and wide heads the other order is cheaper."),
    (lambda q, k, v: _product_of(not _from_the_left(q, k, v), q, k, v),
     "You compare the two orders and take the dearer one."),
    (lambda q, k, v: ((q @ k.T).softmax(-1) @ v),
     "You applied a softmax: there is none here, and with one the order could not be changed."),
    ],
    cases=[
        (_counting(256, 8), _counting(256, 8, start=3), _counting(256, 8, start=1)),
        (_counting(4, 64), _counting(4, 64, start=3), _counting(4, 64, start=1)),
        (_counting(300, 16), _counting(20, 16, start=3), _counting(20, 2, start=1)),
    ],
    cost="flops",
    unit="FLOP")
