"""The exercises of notebook 03."""

import math
import random
from collections.abc import Callable

import torch

from helpers.exercises.exercise import Exercise, function, part, parts, whole

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


_Rewrite = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _rewrite(right: _Rewrite, *wrong: tuple[_Rewrite, str]) -> Exercise:
    return part(right, wrong, cases=[(_counting(2, 6, 8), _counting(2, 6, 8, start=7), _counting(8, 5))])


parts("ten_rewrites",
    a=_rewrite(lambda x, y, w: x.transpose(1, 2),
        (lambda x, y, w: x.transpose(0, 1), "You exchanged the first two names: the old way exchanges the last two.")),
    b=_rewrite(lambda x, y, w: x.flatten(1),
        (lambda x, y, w: x.mT.flatten(1),
         "The merged names are in the wrong order: (seq hidden) is the order of memory."),
        (lambda x, y, w: x.flatten(0, 1), "You merged batch and seq: the old way keeps batch.")),
    c=_rewrite(lambda x, y, w: x.unflatten(2, (2, 4)).transpose(1, 2),
        (lambda x, y, w: x.unflatten(2, (4, 2)).permute(0, 3, 1, 2),
         "You split hidden as (dim heads): view splits it with the head as the slow digit, (heads dim)."),
        (lambda x, y, w: x.unflatten(2, (2, 4)), "Your output still has seq before heads: the transpose swapped them."),
        (lambda x, y, w: x.unflatten(2, (4, 2)).transpose(1, 2), "There are two heads of four numbers, not four.")),
    d=_rewrite(lambda x, y, w: x.permute(1, 0, 2).flatten(1),
        (lambda x, y, w: x.permute(1, 2, 0).flatten(1),
         "The merged names are in the wrong order: after the permute batch comes before hidden.")),
    e=_rewrite(lambda x, y, w: x.mean(-1),
        (lambda x, y, w: x.sum(-1), "You took the sum: the old way is a mean, so the new way is one, too."),
        (lambda x, y, w: x.mean(1), "You averaged over seq: the name that the output leaves out is the one that goes."),
        (lambda x, y, w: x.mean(-1, keepdim=True), "You kept a 1 in the place of hidden: the old way drops it.")),
    f=_rewrite(lambda x, y, w: x.amax((1, 2), keepdim=True),
        (lambda x, y, w: x.amax((1, 2)), "The keepdim is lost: write a 1 in the place of each name that goes."),
        (lambda x, y, w: x.mean((1, 2), keepdim=True), "You took the mean; amax is the maximum."),
        (lambda x, y, w: x.amin((1, 2), keepdim=True), "You took the minimum; amax is the maximum.")),
    g=_rewrite(lambda x, y, w: x[:, None].expand(-1, 3, -1, -1),
        (lambda x, y, w: x[None].expand(3, -1, -1, -1), "The new dimension is in the wrong place: it follows batch."),
        (lambda x, y, w: x.repeat(1, 3, 1), "The copies are a dimension of their own: leave out the brackets.")),
    h=_rewrite(lambda x, y, w: x.repeat_interleave(2, dim=1),
        (lambda x, y, w: x.repeat(1, 2, 1),
         "You repeat the whole sequence, (copy seq): repeat_interleave repeats each element, (seq copy).")),
    i=_rewrite(lambda x, y, w: x @ w,
        (lambda x, y, w: (x @ w).mT, "The output names are swapped: batch seq out, as of a matmul."),
        (lambda x, y, w: (x @ w).sum(1), "The name seq is missing from the output, so it was summed.")),
    j=_rewrite(lambda x, y, w: x @ y.mT,
        (lambda x, y, w: y @ x.mT, "The output names are swapped: rows belong to x, columns to y."),
        (lambda x, y, w: (x * y).sum(-1),
         "You gave the two sequences one name: that keeps only equal positions. They need two names.")))


def _pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


def _back(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((x[..., ::2], x[..., 1::2]), dim=-1)


function("halves_to_pairs",
    _pairs, [
    (_back, "That is the way back, from pairs to halves: here split is the slow digit of the input."),
    (lambda x: x.clone(), "Nothing moved: with the same brackets on both sides a pattern does nothing."),
    (lambda x: _pairs(x).unflatten(-1, (-1, 2)).flip(-1).flatten(-2), "In each pair the second half came first."),
    (lambda x: torch.stack(x.chunk(2, dim=-1), dim=-1),
     "You left the pairs as a dimension of their own: merge it with brackets on the right side."),
    (lambda x: torch.stack(x.chunk(2, dim=-1), dim=-2), "You left the halves as a dimension of their own: merge them."),
    (lambda x: torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1),
     "You exchanged the halves: the numbers of a pair must meet."),
    (lambda x: _pairs(x.flatten()).view(x.shape), "You cut all of x in two: only the last dimension is split."),
    (lambda x: x.unflatten(-1, (2, -1)).reshape(*x.shape[:-1], -1, 2), "A reshape moves nothing: it keeps the order."),
    ],
    cases=[(_counting(8),), (_counting(3, 12),), (_counting(2, 3, 6),)],
    draw=lambda r: (_counting(*(r.randint(1, 4) for _ in range(r.randint(0, 3))), 2 * r.randint(2, 9)),))


def _patches(image: torch.Tensor, size: int, order: str = "ijklc", step: bool = False) -> torch.Tensor:
    """Patches with their dimensions in that order: i and j say which patch, k and l which of its pixels, c the channel.

    With `step` a patch has the pixels at equal distances, `size` of them from all over the image.
    """
    height, width, _ = image.shape
    rows, columns = height // size, width // size
    counts, names = ((size, rows, size, columns), "kiljc") if step else ((rows, size, columns, size), "ikjlc")
    parts = image.view(*counts, -1).permute([names.index(name) for name in order])
    return parts.reshape(height * width // size**2, -1)


def _draw_image(r: random.Random) -> tuple[torch.Tensor, int]:
    size = r.randint(2, 4)
    return _counting(size * r.randint(2, 4), size * r.randint(2, 4), r.randint(1, 4)), size


function("patchify",
    _patches, [
    (lambda image, size: _patches(image, size, step=True),
     "You split with the pixel as the slow digit: each patch has pixels from all over the image."),
    (lambda image, size: _patches(image, size, "jiklc"),
     "Your patches come column by column; in reading order the row of the patch is the slow digit."),
    (lambda image, size: _patches(image, size, "ijckl"), "Inside a patch your channel comes first; it comes last."),
    (lambda image, size: _patches(image, size, "ijlkc"), "Inside a patch you go down the columns; rows come first."),
    (lambda image, size: _patches(image, size, "jilkc"), "You exchanged rows and columns, of the patches and within."),
    (lambda image, size: _patches(image, size, "klijc"),
     "Each row has one pixel of every patch: merge them the other way."),
    (lambda image, size: image.reshape(-1, size * size * image.shape[2]),
     "That cuts the image's memory in pieces: a patch is a square, and its rows lie apart in memory."),
    (lambda image, size: _patches(image, size).view(image.shape[0] // size, image.shape[1] // size, -1),
     "One patch per row is asked for: merge the two dimensions that say which patch it is."),
    (lambda image, size: _patches(image, size).view(-1, size, size, image.shape[2]),
     "One row of numbers per patch is asked for: merge the three dimensions that say what is in it."),
    (lambda image, size: _patches(image, image.shape[0] // size) if image.shape[0] == image.shape[1] else [][0],
     "You took size for the number of patches: it is how many pixels a patch is wide."),
    ],
    cases=[(_counting(4, 6, 3), 2), (_counting(6, 3, 1), 3), (_counting(8, 4, 2), 2)], draw=_draw_image)


def _normal(
    over: tuple[int, ...] = (0, 1, 2), *, centre: bool = True, power: float = 0.5, correction: int = 0
) -> Callable[[torch.Tensor], torch.Tensor]:
    def normalise(images: torch.Tensor) -> torch.Tensor:
        centred = images - images.mean(over, keepdim=True) if centre else images
        return centred / images.var(over, correction=correction, keepdim=True) ** power

    return normalise


function("channel_norm",
    _normal(), [
    (_normal((1, 2)), "You normalised each image by itself: the batch has to go from the output of reduce as well."),
    (_normal((0, 1, 2, 3)), "You normalised all channels together: each needs a mean of its own, so c stays."),
    (_normal((0,)), "You normalised each pixel over the batch: height and width have to go from the output as well."),
    (_normal((3,)), "You normalised over the channels: c is the name that stays."),
    (_normal(power=1), "You divided by the variance: the standard deviation is its square root."),
    (_normal(correction=1),
     "You divided by n − 1, as torch.std does unless told otherwise; here it is the mean over all n."),
    (_normal(centre=False), "You did not subtract the mean."),
    (lambda x: x - x.mean((0, 1, 2)), "You subtracted the mean and did not divide by the standard deviation."),
    (lambda x: (x - x.mean((0, 1, 2))) / (x**2).mean((0, 1, 2)) ** 0.5,
     "The differences are squared, from the mean, and not the numbers themselves."),
    (lambda x: (x - x.mean((0, 1, 2))) / (x - x.mean((0, 1, 2))).abs().mean((0, 1, 2)),
     "That is the mean of the absolute differences: square them, and take the root of their mean."),
    (lambda x: (x - x.mean((0, 1, 2))) * x.var((0, 1, 2), correction=0) ** 0.5,
     "You multiplied by the deviation: divide."),
    (lambda x: (x - x.mean((0, 1, 2))) / (x.amax((0, 1, 2)) - x.amin((0, 1, 2))),
     "That is the range, not the deviation."),
    ],
    cases=[(_counting(2, 3, 4, 3) ** 1.5,), (_counting(3, 2, 5, 2) ** 2,)],
    draw=lambda r: (_counting(r.randint(2, 3), *(r.randint(2, 4) for _ in range(3)), start=1).sin() * 9 + 2,))


def _names(pattern: str) -> tuple[list[str], list[str]]:
    """The names of the inputs, with repetitions, and those of the output."""
    left, right = pattern.split("->")
    return left.replace(",", " ").split(), right.split()


def _loops(count: Callable[[list[str], list[str]], list[str] | set[str]], flop: int = 2) -> Callable[..., int]:
    """The FLOP where the loops run over the names that `count` gives, of those of the inputs and of the output."""
    return lambda pattern, sizes: flop * math.prod(sizes[name] for name in count(*_names(pattern)))


def _draw_pattern(r: random.Random) -> tuple[str, dict[str, int]]:
    """Names of which some are parts of others, and sizes for more names than the pattern has."""
    names = r.sample(("h", "hi", "hidden", "k", "key", "q", "seq", "b"), 6)
    both, first, second, spare = names[:2], names[2:4], names[4:5], names[5]
    result = [*r.sample(both, r.randint(0, 2)), *first[: r.randint(0, 2)], *second]
    sizes = dict(zip([*names, "batch"], r.sample(range(2, 30), 7), strict=True))
    return f"{' '.join(both + first)}, {' '.join(second + both)} -> {' '.join(result)}", sizes | {spare: 31}


function("einsum_flop",
    _loops(lambda ins, out: set(ins)), [
    (_loops(lambda ins, out: set(ins), flop=1), "You counted MACs: each is a multiplication and an addition, 2 FLOP."),
    (_loops(lambda ins, out: ins),
     "You multiplied a name once for each input that has it: the loops run once over each name."),
    (_loops(lambda ins, out: out),
     "You counted the elements of the output: each of them is a sum over the names that are missing."),
    (_loops(lambda ins, out: set(ins) - set(out)),
     "You counted only the names that are summed: that is the cost of one element of the output."),
    (_loops(lambda ins, out: ins + out), "The output has no loops of its own: take each name of the inputs once."),
    (lambda pattern, sizes: 2 * math.prod(sizes.values()),
     "You multiplied all the sizes given: take only the names that the pattern has."),
    (lambda pattern, sizes: 2 * math.prod(size for name, size in sizes.items() if name in pattern),
     "A name may be a part of another, as h of hidden: split the pattern into names."),
    (lambda pattern, sizes: 2 * sum(sizes[name] for name in set(_names(pattern)[0])), "Loops inside loops: multiply."),
    (lambda pattern, sizes: _loops(lambda i, o: set(i))(pattern, sizes) - _loops(lambda i, o: o, 1)(pattern, sizes),
     "That leaves out the first addition of each sum. It is exact, but the convention is 2 for every step."),
    (lambda pattern, sizes: 2 * math.prod(sizes[name] for name in {*pattern} - {*" ,->"}),
     "A name may have several letters: split the pattern at the blanks."),
    ],
    cases=[("i j, j k -> i k", {"i": 3, "j": 5, "k": 7}), ("i j,j k->i k", {"i": 3, "j": 5, "k": 7}),
           ("seq hidden, hidden out -> seq out", {"seq": 16, "hidden": 32, "h": 12, "heads": 4, "out": 8}),
           ("b n q d, b n k d -> b n q k", {"b": 2, "n": 12, "q": 1024, "k": 1024, "d": 64}), ("i, i ->", {"i": 1000})],
    draw=_draw_pattern)


def _attention(
    split: str = "heads dim", softmax: int = -1, merge: str = "heads dim",
    scale: Callable[[int, int], float] = lambda dim, heads: math.sqrt(dim),
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]:
    def apart(x: torch.Tensor, heads: int) -> torch.Tensor:  # (batch, heads, seq, dim)
        if split == "heads dim":
            return x.unflatten(-1, (heads, -1)).transpose(1, 2)
        return x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
        dim = q.shape[-1] // heads
        scores = apart(q, heads) @ apart(k, heads).mT / scale(dim, heads)
        result = scores.softmax(softmax) @ apart(v, heads)  # (batch, heads, seq, dim)
        return result.permute((0, 2, 1, 3) if merge == "heads dim" else (0, 2, 3, 1)).flatten(2)

    return attend


def _draw_attention(r: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    batch, heads, dim, queries, keys = (r.randint(*some) for some in ((1, 3), (2, 4), (2, 6), (2, 5), (2, 5)))
    waves = [(whole(r, batch, n, heads * dim, dtype=torch.float64)).sin() for n in (queries, keys, keys)]
    return *waves, heads


function("repair_attention",
    _attention(), [
    (_attention("dim heads", -2), "That is still the attention with both bugs."),
    (_attention("dim heads", merge="dim heads"),
     "Your brackets agree, but hidden is (heads dim): the head is the slow digit in all of them."),
    (_attention("dim heads", -2, "dim heads"),
     "The brackets agree now, the wrong way round, and the softmax is as before."),
    (_attention(softmax=-2), "The weights of a query still do not add up to 1: the softmax runs over the wrong name."),
    (_attention(softmax=1), "The weights of a query still do not add up to 1: the softmax runs over the heads."),
    (_attention("dim heads"),
     "The softmax is right now. The heads are taken apart in one order and put together in another."),
    (_attention(merge="dim heads"), "The heads are put together in another order than they were taken apart."),
    (_attention(scale=lambda dim, heads: math.sqrt(dim * heads)),
     "The scale was right: divide by the square root of dim, the width of one head, not of all heads."),
    (_attention(scale=lambda dim, heads: math.sqrt(heads)), "The scale was right: dim is what is summed, not heads."),
    (_attention(scale=lambda dim, heads: dim), "The scale was right: divide by the square root of dim, not by dim."),
    (_attention(scale=lambda dim, heads: 1), "The scale was right: scores are divided by the square root of dim."),
    (_attention(scale=lambda dim, heads: dim**-0.5), "The scale was right: divide by the root, do not multiply."),
    (lambda q, k, v, heads: _attention()(q, k, v, 1), "Each head attends by itself: take the heads apart first."),
    ],
    cases=[(*(_counting(2, n, 12, start=n).mul(1.7).sin() for n in (4, 5, 5)), 2)], draw=_draw_attention)


def _left_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """Whether (q kᵀ) v is the cheaper order."""
    queries, keys, dim, value = len(q), len(k), q.shape[1], v.shape[1]
    return queries * keys * (dim + value) <= dim * value * (queries + keys)


def _product(left: bool, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.T) @ v if left else q @ (k.T @ v)


def _qkv(queries: int, keys: int, dim: int, value: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.empty(n, m, device="meta") for n, m in ((queries, dim), (keys, dim), (keys, value)))


_r = random.Random(3)
_SIZES = [(256, 256, 8, 8), (4, 4, 64, 64), (300, 20, 16, 2), (1, 300, 16, 16), (40, 4, 16, 16), (300, 16, 16, 16),
          (1, 4096, 256, 256), *[[round(2 ** _r.uniform(0, 6)) for _ in range(4)] for _ in range(25)]]
function("cheapest_order",
    lambda q, k, v: _product(_left_first(q, k, v), q, k, v), [
    (lambda q, k, v: _product(True, q, k, v),
     "You go from left to right, as one einsum of three tensors does: sometimes the other order is cheaper."),
    (lambda q, k, v: _product(False, q, k, v),
     "You always start with k and v: for short sequences and wide heads the other order is cheaper."),
    (lambda q, k, v: _product(not _left_first(q, k, v), q, k, v),
     "You compare the two orders and take the dearer one."),
    (lambda q, k, v: _product(len(q) <= q.shape[1], q, k, v), "Four sizes count, not two: write down both costs."),
    (lambda q, k, v: _product(len(k) <= q.shape[1], q, k, v), "Four sizes count, not two: write down both costs."),
    (lambda q, k, v: _product(len(q) <= v.shape[1], q, k, v), "Four sizes count, not two: write down both costs."),
    (lambda q, k, v: _product(len(k) <= v.shape[1], q, k, v), "Four sizes count, not two: write down both costs."),
    (lambda q, k, v: _product(len(q) * len(k) <= k.shape[1] * v.shape[1], q, k, v),
     "You compare the sizes of what is in between; what counts is what both steps of an order cost."),
    (lambda q, k, v: (q @ k.T).softmax(-1) @ v,
     "You applied a softmax: there is none here, and with one the order could not be changed."),
    (lambda q, k, v: _product(True, q, k, v) / math.sqrt(q.shape[1]), "The scores are not scaled here."),
    ],
    cases=[(_counting(3, 2), _counting(4, 2), _counting(4, 5))],
    draw=lambda r: (whole(r, r.randint(2, 9), 3), whole(r, 5, 3), whole(r, 5, r.randint(2, 9))),
    cost="flops", unit="FLOP", at=[_qkv(*sizes) for sizes in _SIZES],
    same={"if scores_first <= state_first:": "where both cost the same, either will do"})
