"""The exercises and guesses of notebook 03."""

import itertools
import math
import random
from collections.abc import Callable, Sequence

import torch
from einops import rearrange, reduce

from helpers.exercises.exercise import Exercise, function, guess, part, parts, whole

# fmt: off

guess("scores_right", "Each token's score with itself is right, in both heads: query and key are rotated by the same "
      "angles. So a test with one token would pass.",
      *((none, "Not all of them are wrong.") for none in (0, "none")),
      (6, "There are two heads."), (36, "That is all the scores of one head."), (60, "So many are wrong."),
      (72, "Their shape is right, their numbers need not be."))
guess("swapped_scores", "Width and token are swapped, so features were compared.",
      ((2, 2, 2), "That is what the comment promises."), ((2, 3, 2), "That is the shape of `vectors`."),
      ((2, 2, 3), "That is the shape of the transpose."), ((3, 3), "The batch stays."),
      ("error", "No error: the two shapes fit."))
guess("misspelt_width", "The names width and widht occur once each, so each is summed by itself: 8 numbers of each "
      "input, and then the sums are multiplied.",
      (8, "A sum of 8 products was meant."), (1, "Both names are missing from the output, so both are summed."),
      (16, "The two sums are multiplied."), *((n, "out is in the output.") for n in (32, 256)),
      ("error", "No error: that is the trouble."))
guess("slow_digit", "Head 1 begins after the four channels of head 0.", (1, "That is the next channel of head 0."),
      (2, "There are two heads, and each has four channels."), (5, "That is channel 1 of head 1."),
      (8, "The numbers are 0 to 7."))
guess("converted_wrongly", "For Llama 2 70B the wrong line gives the right number, by luck: 64 / 8 is 8. For TinyLlama "
      "32 / 4 is 8, too, and it has 4 key heads, so 8 is wrong.",
      ("both", "For one of them the line is right, by luck."), ("Llama 2 70B", "Work out 64 / 8."),
      *((none, "For one of them it is not the number of key heads.") for none in ("none", "neither")))
_truth = [(said, "Write passes or raises.") for said in (True, False)]
guess("swap_in_checked_function", "What comes second is taken for the token, in the argument and in the result: they "
      "come from the same tensor, so they agree.", ("raises", "No second argument knows the width."), *_truth)
guess("flops_of_names", "It is 2 × the sizes of all different names, multiplied.",
      (lambda right: right / 2, "Those are the steps: each is 2 FLOPs."),
      (lambda right: right * 32, "The width is one loop, though both inputs have it."),
      (lambda right: right / 32, "The width is a loop, too, though the output does not have it."),
      (lambda right: right / 8, "The texts are a loop, too."), (lambda right: right / 10, "out is a loop, too."),
      *((n, "Multiply the sizes, do not add them.") for n in (66, 132)), (lambda right: right * 2, "2 FLOPs a step."))


_WORDS = ("passes", "raises")
parts("enforced",
    a=part("passes", [("raises", "Nothing checks an assignment here: its annotation only documents.")], words=_WORDS),
    b=part("passes", [("raises", "Without a type checker nobody reads the annotation of a parameter.")], words=_WORDS),
    c=part("raises", [("passes", "In one call a name has one size: width cannot be 3 in x and 4 in w.")], words=_WORDS),
    d=part("raises", [("passes", "The return value is checked, too: its shape is (2, 3), not (2,).")], words=_WORDS),
    e=part("passes", [("raises", "The checker compares sizes only, and here all are 3.")],
           words=_WORDS))


_Rewrite = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_r = random.Random(3)
_XYW = [tuple(whole(_r, *shape, most=99) for shape in ((2, 6, 8), (2, 6, 8), (8, 5))) for _ in range(2)]


def _rewrite(right: _Rewrite, *wrong: tuple[_Rewrite, str]) -> Exercise:
    return part(right, wrong, cases=_XYW)


parts("eight_rewrites",
    a=_rewrite(lambda x, y, w: x.mT,
        (lambda x, y, w: x, "Nothing moved: t and d change places."),
        (lambda x, y, w: x.transpose(0, 1), "You exchanged the first two names: the old way exchanges the last two."),
        (lambda x, y, w: x.permute(2, 1, 0), "The texts moved, too: b stays in front."),
        (lambda x, y, w: x.mT.flatten(1), "The numbers are right, but you merged d and t: leave them apart."),
        (lambda x, y, w: x.reshape(2, 8, 6),
         "A reshape moves nothing: it cuts the same row of numbers at other places.")),
    b=_rewrite(lambda x, y, w: x.unflatten(2, (2, 4)).transpose(1, 2),
        (lambda x, y, w: x.unflatten(2, (4, 2)).permute(0, 3, 1, 2),
         "You split d as (c h): view splits it with the head as the slow digit, (h c)."),
        (lambda x, y, w: x.unflatten(2, (2, 4)), "Your output still has t before h: the transpose swapped them."),
        (lambda x, y, w: x.unflatten(2, (4, 2)).transpose(1, 2), "There are two heads (of four channels), not four."),
        (lambda x, y, w: x.unflatten(2, (2, 4)).permute(0, 2, 3, 1),
         "The channels stand before the tokens: b h t c is asked for."),
        (lambda x, y, w: x.unflatten(2, (2, 4)).transpose(1, 2).flatten(0, 1),
         "The numbers are right, but you merged b and h: leave them apart."),
        (lambda x, y, w: x.reshape(2, 2, 6, 4),
         "That only cuts the row of numbers: split d first, then move h in front of t.")),
    c=_rewrite(lambda x, y, w: x.transpose(0, 1).flatten(1),
        (lambda x, y, w: x.permute(1, 2, 0).flatten(1),
         "The merged names are in the wrong order: after the permute b comes before d."),
        (lambda x, y, w: x.flatten(1), "The result has t in front: b and d merge, and t is left."),
        (lambda x, y, w: x.transpose(0, 1).flatten(0, 1),
         "The numbers are right, but b belongs in one bracket with d, not with t."),
        (lambda x, y, w: x.reshape(6, 16), "A reshape moves nothing: b has to stand between t and d."),
        (lambda x, y, w: x.transpose(0, 1), "The flatten is missing: b and d belong in one bracket."),
        (lambda x, y, w: x.flatten(0, 1), "You merged b and t: the permute puts t in front, then b and d merge.")),
    d=_rewrite(lambda x, y, w: x.mean(-1),
        (lambda x, y, w: x.sum(-1), "You took the sum: the old way is a mean, so the new way is one, too."),
        (lambda x, y, w: x.mean(1), "You averaged over t: the name that the output leaves out is the one that goes."),
        (lambda x, y, w: x.mean(0), "You averaged over b: the name that the output leaves out is the one that goes."),
        (lambda x, y, w: x.mean(-1, keepdim=True), "You kept a 1 in the place of d: the old way drops it."),
        (lambda x, y, w: x.amax(-1), "You took the maximum: the old way is a mean."),
        (lambda x, y, w: x.mean(-1).T, "The output names are swapped: b comes first.")),
    e=_rewrite(lambda x, y, w: x.amax((1, 2), keepdim=True),
        (lambda x, y, w: x.amax((1, 2)), "The keepdim is lost: write a 1 in the place of each name that goes."),
        *((lambda x, y, w, dim=dim, keep=keep: x.amax(dim, keep), "Two names go, t and d: write a 1 for each of them.")
          for dim in (0, 1, 2) for keep in (True, False)),
        (lambda x, y, w: x.amax((0, 1, 2), keepdim=True), "The texts were reduced, too: b stays."),
        (lambda x, y, w: x.amax((1, 2))[:, None],
         "The numbers are right. A 1 is missing: two names go, and each leaves one."),
        (lambda x, y, w: x.mean((1, 2), keepdim=True), "You took the mean; amax is the maximum."),
        (lambda x, y, w: x.sum((1, 2), keepdim=True), "You took the sum; amax is the maximum."),
        (lambda x, y, w: x.amin((1, 2), keepdim=True), "You took the minimum; amax is the maximum.")),
    f=_rewrite(lambda x, y, w: x.repeat_interleave(2, dim=1),
        (lambda x, y, w: x.repeat(1, 2, 1),
         "You repeat the whole text, (copy t): repeat_interleave repeats each token, (t copy)."),
        (lambda x, y, w: x[:, :, None].expand(-1, -1, 2, -1),
         "You left the copies as a dimension of their own: merge it with t in a bracket."),
        (lambda x, y, w: x.repeat_interleave(2, dim=2),
         "You repeat each number of d: dim=1 is t, so the copy stands in a bracket with t."),
        (lambda x, y, w: x.repeat_interleave(2, dim=0),
         "You repeat each text: dim=1 is t, so the copy stands in a bracket with t.")),
    g=_rewrite(lambda x, y, w: x @ w,
        (lambda x, y, w: (x @ w).mT, "The output names are swapped: b t out is asked for, as x @ w has it."),
        (lambda x, y, w: (x @ w).sum(1), "The name t is missing from the output, so it was summed."),
        (lambda x, y, w: (x @ w).sum(0), "The name b is missing from the output, so the texts were summed."),
        (lambda x, y, w: x.sum(-1, keepdim=True) * w.sum(0),
         "The name that is summed is spelt in two ways, so each is summed by itself."),
        (lambda x, y, w: x * w.sum(-1), "The output ends in d: there out belongs, and d is the name that goes."),
        (lambda x, y, w: x[..., None] * w, "The name d is in the output, so nothing was summed."),
        (lambda x, y, w: (x @ w).sum(-1), "The name out is missing from the output, so it was summed.")),
    h=_rewrite(lambda x, y, w: x @ y.mT,
        (lambda x, y, w: y @ x.mT, "The output names are swapped: rows belong to x, columns to y."),
        (lambda x, y, w: (x * y).sum(-1),
         "You gave the tokens of x and of y one name: that keeps only equal positions. They need two names."),
        (lambda x, y, w: (x @ y.mT).sum(0), "The name b is missing from the output, so the texts were summed."),
        (lambda x, y, w: x[:, :, None] * y[:, None], "The name d is in the output, so nothing was summed."),
        (lambda x, y, w: x @ x.mT, "You multiply x with itself: the second tensor is y."),
        (lambda x, y, w: x.sum(-1)[:, :, None] * y.sum(-1)[:, None],
         "The name that is summed is spelt in two ways, so each is summed by itself."),
        (lambda x, y, w: x @ y.sum(0).mT, "The texts have two names, so those of y were summed: b stands in both."),
        (lambda x, y, w: x.mT @ y, "You summed over the tokens: d is the name that goes.")))


def _rows(w: torch.Tensor, *digits: int, order: tuple[int, ...]) -> torch.Tensor:
    """The rows of w, split into digits of these sizes, in another order of the digits."""
    return w.unflatten(0, digits).permute(*order, len(digits)).flatten(0, len(digits) - 1)


def _draw_keys(r: random.Random) -> tuple[torch.Tensor, int]:
    kv, pairs = r.randint(2, 5), r.randint(3, 6)
    return whole(r, kv * 2 * pairs, r.randint(1, 5), most=999), kv


function("to_halves",
    lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(0, 2, 1)), [
    (lambda w, kv: _rows(w, kv, 2, len(w) // kv // 2, order=(0, 2, 1)),
     "That is the way of section 4, from halves to neighbours; or pair got the size 2, which is that of two."),
    (lambda w, kv: _rows(w, len(w) // 2, 2, order=(1, 0)),
     "You took all heads for one: each head has halves of its own, so kv is the slowest digit on both sides."),
    (lambda w, kv: w.clone(), "Nothing moved: pair and two have to change places."),
    (lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(2, 1, 0)),
     "The key heads moved, too: kv stays the slowest digit."),
    (lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(1, 2, 0)),
     "Only the heads moved: kv stays the slowest digit, and within a head pair and two change places."),
    (lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(1, 0, 2)),
     "The pairs have changed places with the heads: two and pair are to change places within a head."),
    (lambda w, kv: _rows(w, len(w) // kv // 2, 2, kv, order=(1, 0, 2)),
     "You took kv for the fastest digit of the rows: it is the slowest."),
    *((lambda w, kv, n=n: rearrange(w, "(kv pair two) d -> (kv two pair) d", kv=n, two=2),
       "Take `kv`, not a number: it changes from call to call.") for n in (2, 4, 8)),
    (lambda w, kv: rearrange(w, "(h pair two) d -> (h two pair) d", h=len(w) // kv, two=2),
     "kv is the number of heads: you took it for the rows of one."),
    (lambda w, kv: rearrange(w, "(kv pair two) d -> (kv two pair) d", pair=kv, two=2),
     "kv is the number of heads: you gave it to pair."),
    (lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(0, 2, 1)).unflatten(0, (kv, 2, -1)).flip(1).flatten(0, 2),
     "The second numbers of your pairs come before the first ones."),
    (lambda w, kv: w.unflatten(0, (kv, -1, 2)).transpose(1, 2),
     "You left the digits as dimensions of their own: merge them in a bracket on the right side."),
    (lambda w, kv: w.unflatten(0, (kv, -1, 2)).transpose(1, 2).flatten(1, 2),
     "The heads are still a dimension of their own: kv belongs in the bracket, too."),
    (lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(0, 2, 1)).T,
     "You transposed the weights: d stays behind the bracket."),
    (lambda w, kv: rearrange(w, "(kv pair two) d -> (kv two pair) d", two=2),
     "einops stops at the pattern. The bracket stands first, for the rows; kv and two need their sizes, pair none."),
    ],
    cases=[(torch.arange(16.0)[:, None], 2), (torch.arange(8.0)[:, None], 1), (torch.arange(72.0).view(24, 3), 4)],
    draw=_draw_keys)


def _counting(*shape: int, start: int = 0) -> torch.Tensor:
    """Different whole numbers in float64, where sums and products of them are exact."""
    return torch.arange(start, start + math.prod(shape), dtype=torch.float64).view(shape)


def _patches(image: torch.Tensor, size: int, order: str = "ijklc") -> torch.Tensor:
    """Patches with their dimensions in that order: i and j say which patch, k and l which pixel, c the channel."""
    height, width, _ = image.shape
    rows, columns = height // size, width // size
    parts = image.view(rows, size, columns, size, -1).permute(["ikjlc".index(name) for name in order])
    return parts.reshape(height * width // size**2, -1)


def _draw_image(r: random.Random) -> tuple[torch.Tensor, int]:
    size = r.randint(2, 4)
    return _counting(size * r.randint(2, 4), size * r.randint(2, 4), r.randint(1, 4)), size


function("patchify",
    _patches, [
    (lambda image, size: _patches(image, size, "jiklc"),
     "Your patches come column by column; in reading order the row of the patch is the slow digit."),
    (lambda image, size: _patches(image, size, "ijckl"), "Inside a patch your channel comes first; it comes last."),
    (lambda image, size: _patches(image, size, "ijlkc"), "Inside a patch you go down the columns; rows come first."),
    (lambda image, size: _patches(image, size, "jilkc"), "You exchanged rows and columns, of the patches and within."),
    (lambda image, size: _patches(image, size, "klijc").reshape(size**2, -1),
     "Each row has one pixel of every patch: merge them the other way."),
    (lambda image, size: _patches(image, size).T, "Each column is a patch: let the patches be the rows."),
    (lambda image, size: _patches(image, size, "ijckl").reshape(-1, size**2),
     "You put the channel with the number of the patch: it is a part of what is in a patch."),
    (lambda image, size: rearrange(image, "(y p) (x q) c -> (y x) (p q c)", p=size),
     "einops stops at the pattern. Pixels need two names, p and q, and both the size `size`."),
    (lambda image, size: _patches(image, size).view(len(image) // size, -1, size, size, image.shape[2]),
     "The numbers are right, but still in five dimensions: merge which patch it is, and what is in it."),
    *((lambda image, size, cut=cut: rearrange(image, f"{cut} c -> (y x) (p q c)", p=size, q=size),
       f"You split {what} with the pixel as the slow digit: in {names} it is the patch.")
      for cut, what, names in (("(y p) (q x)", "the width", "(x q)"), ("(p y) (x q)", "the height", "(y p)"),
                               ("(p y) (q x)", "both", "(y p) (x q)"))),
    *((lambda image, size, n=n: rearrange(image, "(y p) (x q) c -> (y x) (p q c)", p=n, q=n),
       "Take `size`, not a number: it changes from call to call.") for n in (2, 3)),
    (lambda image, size: image.reshape(-1, size * size * image.shape[2]),
     "That cuts the image's memory in pieces: a patch is a square, and its rows lie apart in memory."),
    (lambda image, size: _patches(image, size).view(image.shape[0] // size, image.shape[1] // size, -1),
     "One patch per row is asked for: merge the two dimensions that say which patch it is."),
    (lambda image, size: _patches(image, size).view(-1, size, size, image.shape[2]),
     "One row of numbers per patch is asked for: merge the three dimensions that say what is in it."),
    (lambda image, size: _patches(image, size).view(-1, size * size, image.shape[2]),
     "Pixels and channels are still apart: merge all that is in a patch into one bracket."),
    (lambda image, size: image.unflatten(1, (size, -1)).unflatten(0, (size, -1)).transpose(1, 2).reshape(size**2, -1),
     "You took size for the number of patches: it is how many pixels a patch is wide."),
    ],
    cases=[(_counting(4, 6, 3), 2), (_counting(6, 3, 1), 3), (_counting(8, 4, 2), 2)], draw=_draw_image)


def _averaged(w: torch.Tensor, digits: tuple[int, ...], gone: int) -> torch.Tensor:
    return w.unflatten(0, digits).mean(gone).flatten(0, 1)


def _draw_heads(r: random.Random) -> tuple[torch.Tensor, int, int]:
    kv, group, c = r.randint(2, 4), r.choice((2, 4)), r.randint(3, 5)
    if kv == group:
        kv += 1
    return whole(r, kv * group * c, r.randint(1, 4), most=99), kv * group, kv


function("average_heads",
    lambda w, heads, kv: _averaged(w, (kv, heads // kv, len(w) // heads), 1), [
    (lambda w, heads, kv: _averaged(w, (heads // kv, kv, len(w) // heads), 0),
     "You averaged heads that lie apart, (group kv): neighbours form a group, so kv is the slow digit."),
    (lambda w, heads, kv: w.unflatten(0, (heads, -1)).mean(0),
     "You averaged all heads into one: kv heads remain, each the average of heads // kv neighbours."),
    (lambda w, heads, kv: heads // kv * _averaged(w, (kv, heads // kv, len(w) // heads), 1),
     "You added the heads of a group: the average is asked for."),
    (lambda w, heads, kv: w.unflatten(0, (kv, heads // kv, len(w) // heads)).mean(1),
     "You left kv and c as two dimensions: merge them in a bracket."),
    (lambda w, heads, kv: _averaged(w, (heads // kv, kv, len(w) // heads), 1),
     "You gave kv and group each other's size: kv heads remain, each the average of heads // kv."),
    (lambda w, heads, kv: w.unflatten(0, (kv, heads // kv, len(w) // heads)).amax(1).flatten(0, 1),
     "You took the largest of the heads: the average is asked for."),
    *((lambda w, heads, kv, n=n: w.unflatten(0, (kv, heads // kv, len(w) // heads))[:, n].flatten(0, 1),
       "You kept one head of each group: the average of them is asked for.") for n in (0, -1)),
    (lambda w, heads, kv: _averaged(w, (kv, heads // kv, len(w) // heads), 2),
     "You averaged over the channels of each head: group is the name that goes, and c stays."),
    (lambda w, heads, kv: w.unflatten(0, (len(w) // heads, kv, heads // kv)).mean(2).transpose(0, 1).flatten(0, 1),
     "You took c for the slowest digit: the rows are (h c), so c stays last in the bracket."),
    (lambda w, heads, kv: w.unflatten(0, (kv, heads // kv, len(w) // heads)).mean(1).transpose(0, 1).flatten(0, 1),
     "The averages are right, but you merged them as (c kv): the head is the slow digit."),
    (lambda w, heads, kv: w.unflatten(0, (kv, -1)).mean(1),
     "The channels were averaged, too: c is a digit of its own, and stays in the output."),
    *((lambda w, heads, kv, sizes=sizes: reduce(w, "(kv group c) d -> (kv c) d", "mean", kv=kv, **sizes(heads, kv)),
       sentence) for sizes, sentence in (
        (lambda heads, kv: {"group": heads}, "A group has heads // kv heads, not all of them."),
        (lambda heads, kv: {"c": heads // kv}, "heads // kv is the size of group, not of c."),
        (lambda heads, kv: {"group": kv}, "A group has heads // kv heads: kv is how many groups there are."))),
    (lambda w, heads, kv: w, "Nothing was averaged: split off group, and let it go."),
    (lambda w, heads, kv: reduce(w, "(kv group c) d -> (kv c) d", "mean", kv=kv),
     "einops stops at the pattern. The bracket stands first, for the rows; kv and group need their sizes, c none."),
    (lambda w, h, kv: w.unflatten(0, (kv, h // kv, -1)).mean(1).repeat_interleave(h // kv, 0).flatten(0, 1),
     "You repeated the averages: only kv heads remain."),
    (lambda w, heads, kv: _averaged(w, (kv, heads // kv, len(w) // heads), 1).T,
     "You transposed the weights: d stays behind the bracket."),
    (lambda w, heads, kv: w[: len(w) // heads * kv],
     "You kept the first kv heads: each is to be the average of a group."),
    (lambda w, heads, kv: _averaged(w, (kv, len(w) // heads, heads // kv), 2),
     "You averaged neighbouring channels of a head: c is the fastest digit, and group is the middle one."),
    ],
    cases=[(torch.arange(24.0).view(8, 3), 4, 2), (torch.arange(16.0).view(8, 2) ** 2, 4, 1),
           (torch.arange(24.0).view(12, 2), 6, 6), (torch.arange(48.0).view(24, 2) ** 2, 6, 2)],
    draw=_draw_heads,
    same={"return reduce(w, pattern, 'mean', kv=kv, group=heads / kv)":
          "einops refuses 2.0, unless it has just seen 2: then it finds the same pattern in its cache"})


def _names(pattern: str) -> tuple[list[str], list[str]]:
    """The names of the inputs, with repetitions, and those of the output."""
    left, right = pattern.split("->")
    return left.replace(",", " ").split(), right.split()


def _loops(count: Callable[[list[str], list[str]], list[str] | set[str]], flop: int = 2) -> Callable[..., int]:
    """The FLOPs where the loops run over the names that `count` gives, of those of the inputs and of the output."""
    return lambda pattern, sizes: flop * math.prod(sizes[name] for name in count(*_names(pattern)))


def _draw_pattern(r: random.Random) -> tuple[str, dict[str, int]]:
    """Names of which some are parts of others, and sizes for more names than the pattern has."""
    names = r.sample(("h", "hi", "heads", "k", "key", "t", "token", "b"), 6)
    both, first, second, spare = names[:2], names[2:4], names[4:5], names[5]
    result = [*r.sample(both, r.randint(0, 1)), *first, *second]
    sizes = dict(zip([*names, "batch"], r.sample(range(2, 30), 7), strict=True))
    return f"{' '.join(both + first)}, {' '.join(second + both)} -> {' '.join(result)}", sizes | {spare: 31}


function("einsum_flops",
    _loops(lambda ins, out: set(ins)), [
    (_loops(lambda ins, out: set(ins), flop=1), "You counted MACs: each is a multiplication and an addition, 2 FLOPs."),
    (_loops(lambda ins, out: ins),
     "You multiplied a name once for each input that has it: the loops run once over each name."),
    (_loops(lambda ins, out: ins, flop=1), "Each name is one loop, even if both inputs have it; each step is 2 FLOPs."),
    (_loops(lambda ins, out: out),
     "You counted the elements of the output: each of them is a sum over the names that are missing."),
    (_loops(lambda ins, out: set(ins) - set(out)),
     "You counted only the names that are summed: that is the cost of one element of the output."),
    (_loops(lambda ins, out: {name for name in ins if ins.count(name) > 1}),
     "You counted only the names that both inputs have: each input has names of its own, and they are loops, too."),
    (_loops(lambda ins, out: {name for name in ins if ins.count(name) == 1}),
     "A name that both inputs have is a loop, too."),
    (lambda pattern, sizes: str(_loops(lambda ins, out: set(ins))(pattern, sizes)), "That is text: return a number."),
    *((lambda pattern, sizes, parts=parts: 2 * math.prod(
        sizes[name] for inputs, *_ in [parts(pattern)] for name in set(inputs.replace(",", " ").split())),
       "There may be no space at the arrow: split at '->'.")
      for parts in (lambda pattern: pattern.split(" -> "), lambda pattern: dict([pattern.split(" -> ")]).popitem())),
    (lambda pattern, sizes: 2 * sizes["i"] * sizes["j"] * sizes["k"],
     "Not every pattern has the names i, j and k: read the names from the pattern."),
    (lambda pattern, sizes: math.prod(sizes[name] for name in pattern.split()),
     "What you look up in `sizes` is not always a name: arrow and comma have to go, and names stay apart."),
    (lambda pattern, sizes: 2 * math.prod(sizes[name] for name in set(_names(pattern.replace(",", ""))[0])),
     "There may be no space at the comma: put one in its place, or two names become one."),
    (lambda pattern, sizes: math.prod(2 * sizes[name] for name in set(_names(pattern)[0])),
     "Multiply by 2 once, not once for each name."),
    (lambda pattern, sizes: 2 * math.prod(sizes[name] for name in set(pattern.split(",")[0].split())),
     "The second input has names of its own: they are loops, too."),
    (lambda pattern, sizes: 2 * math.prod(sizes.get(name, 1) for name in set(pattern.split())),
     "Where you split at spaces, the comma sticks to a name: replace it by a space first."),
    (lambda pattern, sizes: _loops(lambda i, o: set(i))(pattern, sizes) + _loops(lambda i, o: o, 1)(pattern, sizes),
     "The output costs nothing of its own: its additions are counted already."),
    (_loops(lambda ins, out: ins + out), "The output has no loops of its own: take each name of the inputs once."),
    (lambda pattern, sizes: 2 * math.prod({sizes[name] for name in _names(pattern)[0]}),
     "A set of sizes loses equal ones, as t and s of 1024: make it of the names."),
    (lambda pattern, sizes: 2 * math.prod(sizes.values()),
     "You multiplied all the sizes given: take only the names that the pattern has."),
    (lambda pattern, sizes: 2 * math.prod(size for name, size in sizes.items() if name in pattern),
     "A name may be a part of another, as h of heads: split the pattern into names."),
    (lambda pattern, sizes: 2 * sum(sizes[name] for name in set(_names(pattern)[0])), "Loops inside loops: multiply."),
    (lambda pattern, sizes: _loops(lambda i, o: set(i))(pattern, sizes) - _loops(lambda i, o: o, 1)(pattern, sizes),
     "That leaves out the first addition of each sum. It is exact, but the convention is 2 for every step."),
    (lambda pattern, sizes: 2 * math.prod(sizes[name] for name in {*pattern} - {*" ,->"}),
     "A name may have several letters: split the pattern at the spaces."),
    ],
    cases=[("i j, j k -> i k", {"i": 3, "j": 5, "k": 7}), ("i j,j k->i k", {"i": 3, "j": 5, "k": 7}),
           ("token width, width out -> token out", {"token": 16, "width": 32, "h": 12, "heads": 4, "out": 8}),
           ("b t h c, b s h c -> b h t s", {"b": 2, "h": 12, "t": 1024, "s": 1024, "c": 64}), ("i, i ->", {"i": 1000})],
    draw=_draw_pattern)


def _attention(
    split: Sequence[str] = ("h c",) * 3, softmax: int | None = -1, merge: str = "h c", mask: int | None = None,
    scale: Callable[[int, int], float] = lambda dim, heads: math.sqrt(dim),
) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]:
    """Attention with q, k and v taken apart by these digits, and the heads merged in that order, or not ("")."""

    def apart(x: torch.Tensor, heads: int, digits: str) -> torch.Tensor:  # b h t c
        if digits == "view":
            return x.reshape(len(x), heads, x.shape[1], -1)
        if digits == "h c":
            return x.unflatten(-1, (heads, -1)).transpose(1, 2)
        return x.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
        by = scale(q.shape[-1] // heads, heads)
        q, k, v = (apart(x, heads, digits) for x, digits in zip((q, k, v), split, strict=True))
        scores = q @ k.mT / by
        if mask is not None:
            scores = scores.masked_fill((scores == scores).triu(1 + mask * (k.shape[2] - q.shape[2])), -torch.inf)
        weights = scores if softmax is None else scores.softmax(softmax)
        result = weights @ v  # b h t c
        if not merge:
            return result
        return result.permute((0, 2, 1, 3) if merge == "h c" else (0, 2, 3, 1)).flatten(2)

    return attend


def _draw_attention(r: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    batch, heads, dim, queries, keys = (r.randint(*some) for some in ((1, 3), (2, 4), (1, 3), (2, 5), (6, 8)))
    waves = [(whole(r, batch, n, heads * 2 * dim, dtype=torch.float64)).sin() for n in (queries, keys, keys)]
    return *waves, heads


_WRONG = ("c h",) * 3
function("repair_attention",
    _attention(), [
    (_attention(_WRONG, -2), "That is still the attention with both bugs."),
    (_attention(_WRONG, merge="c h"),
     "Your brackets agree, but d is (h c): the head is the slow digit in all of them."),
    (_attention(_WRONG, -2, "c h"),
     "The brackets agree now, the wrong way round, and the softmax is as before."),
    (_attention(softmax=-2), "The weights of a query still do not add up to 1: the softmax runs over the wrong name."),
    (_attention(softmax=1), "The weights of a query still do not add up to 1: the softmax runs over the heads."),
    (_attention(_WRONG),
     "The softmax is right now. The heads are taken apart in one order and put together in another."),
    (_attention(merge="c h"), "The heads are put together in another order than they were taken apart."),
    (_attention(scale=lambda dim, heads: math.sqrt(dim * heads)),
     "The scale was right: divide by the square root of c, the width of one head, not of all heads."),
    (_attention(scale=lambda dim, heads: math.sqrt(heads)), "The scale was right: c is what is summed, not h."),
    (_attention(scale=lambda dim, heads: dim), "The scale was right: divide by the square root of c, not by c."),
    (_attention(scale=lambda dim, heads: 1), "The scale was right: scores are divided by the square root of c."),
    (_attention(scale=lambda dim, heads: dim**-0.5), "The scale was right: divide by the root, do not multiply."),
    *((lambda q, k, v, heads, of=of: _attention(scale=lambda dim, _: math.sqrt(dim / heads**of))(q, k, v, 1),
       "Each head attends by itself: take the heads apart first.") for of in (0, 1)),
    (lambda q, k, v, heads: _attention()(q, k, v, 2), "`heads` is given: it is not always 2."),
    (lambda q, k, v, heads: _attention()(q, k, k, heads), "You mix the keys: the weights mix v."),
    (lambda q, k, v, heads: q.view(0),
     "Two sizes do not meet: t and s differ. Einops calls your names a, b, c; PyTorch's own attention wants b h t c."),
    (_attention(softmax=0), "The weights of a query still do not add up to 1: the softmax runs over the texts."),
    *((_attention(mask=last), "No mask here: this attention hides no tokens.") for last in (0, 1)),
    *((lambda *a, m=m: _attention(("view",) * 3, merge=m)(*a).reshape(a[0].shape),
       "A view cannot move heads in front of tokens: split, then move.") for m in ("h c", "")),
    *((lambda *a, of=of: _attention(scale=lambda *_: a[of].shape[1] ** 0.5)(*a),
       "The scale was right: c is the last dimension, not the tokens.") for of in (0, 1)),
    (lambda *a: _attention(scale=lambda *_: 1)(*a) / math.sqrt(a[0].shape[2] // a[3]),
     "Scale the scores, before the softmax."),
    *((_attention(split),
       f"Not yet taken apart as (h c): {', '.join('qkv'[n] for n in range(3) if split[n] == 'c h')}.")
      for split in itertools.product(("h c", "c h"), repeat=3) if len(set(split)) > 1),
    (_attention(softmax=None), "The softmax is missing: the weights of a query have to add up to 1."),
    (lambda q, k, v, heads: _attention()(q, k, v, q.shape[-1] // heads),
     "`heads` is how many heads there are, the size of h: you gave it to c."),
    (lambda q, k, v, heads: v.sum(1, keepdim=True).expand_as(q),
     "The name that the second product sums is spelt in two ways, so each is summed by itself."),
    (lambda q, k, v, heads: _attention(merge="")(q, k, v, heads).reshape(q.shape),
     "A reshape moves nothing: h has to go behind t before it is merged with c."),
    (lambda q, k, v, heads: _attention()(q, k, v, heads).mT, "The result is b t d: the heads and channels come last."),
    (_attention(merge=""), "The heads are still apart: merge h and c in a bracket, h as the slow digit."),
    (lambda q, k, v, heads: _attention()(q, k, v, heads).unflatten(-1, (heads, -1)),
     "The numbers are right, but h and c are still apart: merge them in a bracket."),
    (lambda q, k, v, heads: _attention()(q, v, k, heads),
     "You exchanged k and v: keys make the scores, values are mixed."),
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


def _by(rule: Callable[[int, int, int, int], bool]) -> Callable[..., torch.Tensor]:
    """The scores first where the rule says so, of the sizes t, s, c and out."""
    return lambda q, k, v: _product(rule(len(q), len(k), q.shape[1], v.shape[1]), q, k, v)


_SIZES = [(256, 256, 8, 8), (4, 4, 64, 64), (300, 20, 16, 2), (1, 300, 16, 16), (40, 4, 16, 16), (300, 16, 16, 16),
          (1, 4096, 256, 256), *[[round(2 ** _r.uniform(1, 6)) for _ in range(4)] for _ in range(25)]]
function("cheapest_order",
    lambda q, k, v: _product(_left_first(q, k, v), q, k, v), [
    (lambda q, k, v: _product(True, q, k, v),
     "You go from left to right, as one einsum of three tensors does here: sometimes the other order is cheaper."),
    (lambda q, k, v: _product(False, q, k, v),
     "You always start with k and v: for short texts and wide heads the other order is cheaper."),
    (lambda q, k, v: _product(not _left_first(q, k, v), q, k, v),
     "You compare the two orders, and take the more expensive one."),
    *((_by(lambda *n, i=i, j=j, more=more: n[i] < n[j] + more),
       "Your condition leaves out sizes that do not cancel: each order has two products, and each its own cost.")
      for i, j in ((0, 2), (1, 2), (0, 3), (1, 3), (0, 1), (1, 0)) for more in (0, 1)),
    *((_by(lambda *n, j=j, more=more: n[0] * n[1] < n[2] * n[j] + more),
       "You compare the sizes of what is in between; what counts is what both steps of an order cost.")
      for j in (2, 3) for more in (0, 1)),
    *((_by(lambda t, s, c, out, more=more: t * s * 2 * c < c * c * (t + s) + more),
       "You took c for out, too: v has a width of its own.") for more in (0, 1)),
    *((_by(rule), "Each of the four products has three names, so three factors.") for rule in (
        lambda t, s, c, out: t + s < c + out, lambda t, s, c, out: t * s * c + s * out < s * c * out + t * c * out)),
    (_by(lambda t, s, c, out: t == 1), "A single query is one such case, not the only one: write down both costs."),
    (_by(lambda t, s, c, out: t * s * c + t * s * out < 2 * s * c * out),
     "One of your four products has the cost of another, or t stands for s: read each from its own names."),
    *((lambda q, k, v, n=n: [_product(i % 2 < 1, q, k, v) for i in range(n)][-1],
       "You compute both orders to find out, and that counts, too: work the costs out from the shapes.")
      for n in (2, 4)),
    (lambda q, k, v: q @ (k @ v), "A product sums a name that both share: q and k share c, k and v share s."),
    (lambda q, k, v: q @ k.T, "You stop at the scores: they still have to be multiplied with v."),
    *((lambda q, k, v, root=root: (q @ k.T / q.shape[1] ** root).softmax(-1) @ v,
     "You applied a softmax: there is none here, and with one the order could not be changed.") for root in (0, 0.5)),
    (lambda q, k, v: _product(True, q, k, v) / math.sqrt(q.shape[1]),
     "You divided by √c: there is no scaling in this exercise."),
    (lambda q, k, v: _product(True, q, k, v).T, "That is the transpose: t comes first."),
    ],
    cases=[(_counting(3, 2), _counting(4, 2), _counting(4, 5))],
    draw=lambda r: (whole(r, r.randint(2, 9), 3), whole(r, 5, 3), whole(r, 5, r.randint(2, 9))),
    cost="flops", unit="FLOP", at=[_qkv(*sizes) for sizes in _SIZES],
    same={"if scores_first <= state_first:": "where both cost the same, either will do"})
