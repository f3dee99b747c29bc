"""The exercises and guesses of notebook 03."""

import math
import random
from collections.abc import Callable

import torch
from einops import rearrange, reduce

from helpers.exercises.exercise import Exercise, choices, exercise, guess, notebook, part, parts, whole

notebook("03")

# fmt: off

guess("scores_right", "Each token's score with itself is right, in both heads: query and key are rotated by the same "
      "angles. So a test with one token would pass.",
      *((none, "Not all of them are wrong.") for none in (0, "none")),
      (6, "There are two heads."), (72, "Their shape is right, their numbers need not be."))
guess("swapped_scores", "Width and token are swapped, so features were compared.",
      ((2, 2, 2), "That is what the comment promises."), ((2, 3, 2), "That is the shape of `vectors`."),
      ("error", "No error: the two shapes fit."))
guess("misspelt_width", "The names width and widht occur once each, so each is summed by itself: 8 numbers of each "
      "input, and then the sums are multiplied.",
      (8, "A sum of 8 products was meant."), (1, "Both names are missing from the output, so both are summed."),
      (16, "The two sums are multiplied."), ("error", "No error: that is the trouble."))
guess("slow_digit", "Head 1 begins after the four channels of head 0.", (1, "That is the next channel of head 0."),
      (2, "There are two heads, and each has four channels."), (5, "That is channel 1 of head 1."))
guess("swap_in_checked_function", "What comes second is taken for the token, in the argument and in the result: they "
      "come from the same tensor, so they agree.", ("raises", "No second argument knows the width."))
guess("flops_of_names", "It is 2 × the sizes of all different names, multiplied.",
      (lambda right: right / 2, "Those are the steps: each is 2 FLOPs."),
      (lambda right: right * 32, "The width is one loop, though both inputs have it."),
      (lambda right: right / 32, "The width is a loop, too, though the output does not have it."),
      (lambda right: right / 8, "The texts are a loop, too."))


choices("enforced", ("passes", "raises"),
    a=("passes", ("raises", "Nothing checks an assignment here: its annotation only documents.")),
    b=("passes", ("raises", "Without a type checker nobody reads the annotation of a parameter.")),
    c=("raises", ("passes", "In one call a name has one size: width cannot be 3 in x and 4 in w.")),
    d=("raises", ("passes", "The return value is checked, too: its shape is (2, 3), not (2,).")),
    e=("passes", ("raises", "The checker compares sizes only, and here all are 3.")))


_Rewrite = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_r = random.Random(3)
_XYW = [tuple(whole(_r, *shape, most=99) for shape in ((2, 6, 8), (2, 6, 8), (8, 5))) for _ in range(2)]


def _rewrite(right: _Rewrite, *wrong: tuple[_Rewrite, str]) -> Exercise:
    return part(right, wrong, cases=_XYW)


parts("eight_rewrites",
    a=_rewrite(lambda x, y, w: x.mT,
        (lambda x, y, w: x.transpose(0, 1), "You exchanged the first two names: the old way exchanges the last two.")),
    b=_rewrite(lambda x, y, w: x.unflatten(2, (2, 4)).transpose(1, 2),
        (lambda x, y, w: x.unflatten(2, (4, 2)).permute(0, 3, 1, 2),
         "You split d as (c h): view splits it with the head as the slow digit, (h c)."),
        (lambda x, y, w: x.unflatten(2, (2, 4)), "Your output still has t before h: the transpose swapped them."),
        (lambda x, y, w: x.unflatten(2, (4, 2)).transpose(1, 2), "There are two heads (of four channels), not four.")),
    c=_rewrite(lambda x, y, w: x.transpose(0, 1).flatten(1),
        (lambda x, y, w: x.permute(1, 2, 0).flatten(1),
         "The merged names are in the wrong order: after the permute b comes before d.")),
    d=_rewrite(lambda x, y, w: x.mean(-1),
        (lambda x, y, w: x.sum(-1), "You took the sum: the old way is a mean, so the new way is one, too."),
        (lambda x, y, w: x.mean(1), "You averaged over t: the name that the output leaves out is the one that goes.")),
    e=_rewrite(lambda x, y, w: x.amax((1, 2), keepdim=True),
        (lambda x, y, w: x.amax((1, 2)), "The keepdim is lost: write a 1 in the place of each name that goes."),
        (lambda x, y, w: x.amax(2, keepdim=True), "Two names go, t and d: write a 1 for each of them.")),
    f=_rewrite(lambda x, y, w: x.repeat_interleave(2, dim=1),
        (lambda x, y, w: x.repeat(1, 2, 1),
         "You repeat the whole text, (copy t): repeat_interleave repeats each token, (t copy)."),
        (lambda x, y, w: x[:, :, None].expand(-1, -1, 2, -1),
         "You left the copies as a dimension of their own: merge it with t in a bracket.")),
    g=_rewrite(lambda x, y, w: x @ w,
        (lambda x, y, w: (x @ w).mT, "The output names are swapped: b t out is asked for, as x @ w has it."),
        (lambda x, y, w: (x @ w).sum(0), "The name b is missing from the output, so the texts were summed."),
        (lambda x, y, w: x.sum(-1, keepdim=True) * w.sum(0),
         "The name that is summed is spelt in two ways, so each is summed by itself.")),
    h=_rewrite(lambda x, y, w: x @ y.mT,
        (lambda x, y, w: y @ x.mT, "The output names are swapped: rows belong to x, columns to y."),
        (lambda x, y, w: (x * y).sum(-1),
         "You gave the tokens of x and of y one name: that keeps only equal positions. They need two names.")))


def _rows(w: torch.Tensor, *digits: int, order: tuple[int, ...]) -> torch.Tensor:
    """The rows of w, split into digits of these sizes, in another order of the digits."""
    return w.unflatten(0, digits).permute(*order, len(digits)).flatten(0, len(digits) - 1)


def _draw_keys(r: random.Random) -> tuple[torch.Tensor, int]:
    kv, pairs = r.randint(2, 5), r.randint(3, 6)
    return whole(r, kv * 2 * pairs, r.randint(1, 5), most=999), kv


exercise("to_halves",
    lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(0, 2, 1)), [
    (lambda w, kv: _rows(w, kv, 2, len(w) // kv // 2, order=(0, 2, 1)),
     "That is the way of section 4, from halves to neighbours; or pair got the size 2, which is that of two."),
    (lambda w, kv: _rows(w, len(w) // 2, 2, order=(1, 0)),
     "You took all heads for one: each head has halves of its own, so kv is the slowest digit on both sides."),
    (lambda w, kv: rearrange(w, "(kv pair two) d -> (kv two pair) d", pair=kv, two=2),
     "kv is the number of heads: you gave it to pair."),
    (lambda w, kv: w.unflatten(0, (kv, -1, 2)).transpose(1, 2),
     "You left the digits as dimensions of their own: merge them in a bracket on the right side."),
    (lambda w, kv: rearrange(w, "(kv pair two) d -> (kv two pair) d", two=2),
     "einops stops at the pattern. The bracket stands first, for the rows; kv and two need their sizes, pair none."),
    ],
    cases=[(torch.arange(16.0)[:, None], 2), (torch.arange(8.0)[:, None], 1), (torch.arange(72.0).view(24, 3), 4)],
    draw=_draw_keys)


def _counting(*shape: int, start: int = 0) -> torch.Tensor:
    """Different whole numbers in float64, where sums and products of them are exact."""
    return torch.arange(start, start + math.prod(shape), dtype=torch.float64).view(shape)


def _averaged(w: torch.Tensor, digits: tuple[int, ...], gone: int) -> torch.Tensor:
    return w.unflatten(0, digits).mean(gone).flatten(0, 1)


def _draw_heads(r: random.Random) -> tuple[torch.Tensor, int, int]:
    kv, group, c = r.randint(2, 4), r.choice((2, 4)), r.randint(3, 5)
    if kv == group:
        kv += 1
    return whole(r, kv * group * c, r.randint(1, 4), most=99), kv * group, kv


exercise("average_heads",
    lambda w, heads, kv: _averaged(w, (kv, heads // kv, len(w) // heads), 1), [
    (lambda w, heads, kv: _averaged(w, (heads // kv, kv, len(w) // heads), 0),
     "You averaged heads that lie apart, (group kv): neighbours form a group, so kv is the slow digit."),
    (lambda w, heads, kv: w.unflatten(0, (heads, -1)).mean(0),
     "You averaged all heads into one: kv heads remain, each the average of heads // kv neighbours."),
    (lambda w, heads, kv: heads // kv * _averaged(w, (kv, heads // kv, len(w) // heads), 1),
     "You added the heads of a group: the average is asked for."),
    (lambda w, heads, kv: w.unflatten(0, (kv, heads // kv, -1)).amax(1).flatten(0, 1),
     "You took the largest of each group: the average is asked for."),
    (lambda w, heads, kv: _averaged(w, (kv, heads // kv, len(w) // heads), 2),
     "You averaged the channels: the name that goes is group."),
    (lambda w, heads, kv: _averaged(w, (heads // kv, kv, len(w) // heads), 1),
     "You gave kv and group each other's size: kv heads remain, each the average of heads // kv."),
    (lambda w, heads, kv: reduce(w, "(kv group c) d -> (kv c) d", "mean", kv=kv),
     "einops stops at the pattern. The bracket stands first, for the rows; kv and group need their sizes, c none."),
    ],
    cases=[(torch.arange(24.0).view(8, 3), 4, 2), (torch.arange(16.0).view(8, 2) ** 2, 4, 1),
           (torch.arange(24.0).view(12, 2), 6, 6), (torch.arange(48.0).view(24, 2) ** 2, 6, 2)],
    draw=_draw_heads)


def _attention(
    apart: str = "h c", softmax: int = -1, together: str = "h c", *,
    wide: bool = False, power: float = 0.5, shift: int | None = None,
) -> Callable:
    """Attention with the heads taken apart and put together in these orders, scaled by the width of one or of all."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
        scale = (q.shape[-1] if wide else q.shape[-1] // heads) ** power
        q, k, v = (rearrange(x, f"b t ({apart}) -> b h t c", h=heads) for x in (q, k, v))
        scores = q @ k.mT / scale
        if shift is not None:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1 + shift), -math.inf)
        return rearrange(scores.softmax(softmax) @ v, f"b h t c -> b t ({together})")

    return attend


def _draw_attention(r: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    batch, heads, dim, queries, keys = (r.randint(*some) for some in ((1, 3), (2, 4), (1, 3), (2, 5), (6, 8)))
    q, k, v = (whole(r, batch, n, heads * 2 * dim, dtype=torch.float64).sin() for n in (queries, keys, keys))
    return q, k, v, heads


exercise("repair_attention",
    _attention(), [
    (_attention("c h", -2), "That is still the attention with both bugs."),
    (_attention(softmax=-2), "The weights of a query still do not add up to 1: the softmax runs over the wrong name."),
    (_attention("c h"),
     "The softmax is right now. The heads are taken apart in one order and put together in another."),
    (_attention("c h", together="c h"),
     "Your brackets agree, but d is (h c): the head is the slow digit in all of them."),
    (_attention(together="c h"), "The heads are put together in another order than they were taken apart."),
    (_attention(wide=True),
     "The scale was right: divide by the square root of c, the width of one head, not of all heads."),
    (_attention(softmax=1), "The softmax runs over the heads: the weights of a query add up to 1 over the keys."),
    (_attention(power=0), "The scale is missing: divide the scores by the square root of c."),
    (_attention(power=1), "The scale is the square root of c, not c itself."),
    *((lambda q, k, v, h, late=late: _attention(shift=late * (k.shape[1] - q.shape[1]))(q, k, v, h),
       "You hid the later tokens: the function as it is given hides none, and that is no bug.") for late in (0, 1)),
    (lambda q, k, v, heads: _attention()(q, k, v, q.shape[-1] // heads),
     "`heads` is how many heads there are, the size of h: you gave it to c."),
    ],
    cases=[(*(_counting(2, n, 12, start=n).mul(1.7).sin() for n in (4, 5, 5)), 2)], draw=_draw_attention)


def _left_first(t: int, s: int, c: int, out: int) -> bool:
    """Whether (q kᵀ) v is the cheaper order."""
    return t * s * (c + out) <= c * out * (t + s)


def _by(rule: Callable[[int, int, int, int], bool]) -> Callable[..., torch.Tensor]:
    """The scores first where the rule says so, of the sizes t, s, c and out."""
    return lambda q, k, v: q @ k.T @ v if rule(len(q), len(k), q.shape[1], v.shape[1]) else q @ (k.T @ v)


_SIZES = [(256, 256, 8, 8), (4, 4, 64, 64), (300, 20, 16, 2), (1, 300, 16, 16), (40, 4, 16, 16), (300, 16, 16, 16),
          (1, 4096, 256, 256), *[[round(2 ** _r.uniform(1, 6)) for _ in range(4)] for _ in range(25)]]
exercise("cheapest_order",
    _by(_left_first), [
    (_by(lambda *sizes: True),
     "You go from left to right, as one einsum of three tensors does here: sometimes the other order is cheaper."),
    (_by(lambda *sizes: False),
     "You always start with k and v: for short texts and wide heads the other order is cheaper."),
    (_by(lambda *sizes: not _left_first(*sizes)), "You compare the two orders, and take the more expensive one."),
    *((_by(rule),
       "Your condition leaves out sizes that do not cancel: each order has two products, and each its own cost.")
      for rule in (lambda t, s, c, out: t < c, lambda t, s, c, out: t <= c, lambda t, s, c, out: s < c,
                   lambda t, s, c, out: s <= c, lambda t, s, c, out: t < out, lambda t, s, c, out: t <= out)),
    *((_by(rule), "You compare the sizes of what is in between; what counts is what both steps of an order cost.")
      for rule in (lambda t, s, c, out: t * s < c * out, lambda t, s, c, out: t * s <= c * out)),
    (lambda q, k, v: (q @ k.T @ v, q @ (k.T @ v))[1],
     "You compute both orders to find out, and that counts, too: work the costs out from the shapes."),
    (lambda q, k, v: (q @ k.T / math.sqrt(q.shape[1])).softmax(-1) @ v,
     "You applied a softmax: there is none here, and with one the order could not be changed."),
    ],
    cases=[(_counting(3, 2), _counting(4, 2), _counting(4, 5))],
    draw=lambda r: (whole(r, r.randint(2, 9), 3), whole(r, 5, 3), whole(r, 5, r.randint(2, 9))),
    cost="flops", unit="FLOP",
    counted_at=[tuple(torch.empty(size, device="meta") for size in ((t, c), (s, c), (s, out)))
                for t, s, c, out in _SIZES],
    equivalent_slips={"if scores_first <= state_first:": "where both cost the same, either will do"})
