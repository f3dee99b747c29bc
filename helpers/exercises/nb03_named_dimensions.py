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
      "angles, which keeps their dot product. So a test with one token would pass.",
      (0, "Not all of them are wrong."), (6, "There are two heads."),
      ((13, 72), "Their shape is right, their numbers need not be."))
guess("swapped_scores", "Width and token are swapped, so features were compared.",
      ((2, 2, 2), "That is what the comment promises."), ((2, 3, 2), "That is the shape of `vectors`."),
      ("error", "No error: the two shapes fit."))
guess("misspelt_width", "The names width and widht occur once each, so each is summed by itself: 8 numbers of each "
      "input, and then the sums are multiplied.",
      (8, "A sum of 8 products was meant."), (1, "Both names are missing from the output, so both are summed."),
      (16, "The two sums are multiplied."), ("error", "No error: that is the trouble."))
guess("slow_digit", "Four heads of four channels come before head 4: 4 · 4 + 1 = 17.",
      (10, "That is (c h): the left name is the slow digit."), (5, "Count whole heads, not heads."),
      (13, "That is head 3, channel 1: heads count from 0."), (16, "That is channel 0 of head 4."),
      (25, "There are four channels in a head."))
guess("neighbours_share", "The key head is the slow digit: query head = kv · 4 + group.",
      ("(group kv)", "That gives 0, 1, 0, 1, and so on: neighbours have different key heads."))
guess("scores_for_each_number", "t and s are 1024, c is 64, and all other names are in both.",
      (1024, "q has c numbers for each token and head."), (64, "s has taken the place of c."),
      (1, "q has c where the scores have s."), (12, "Both have all the heads."))
guess("swap_in_checked_function", "What comes second is taken for the token, in the argument and in the result: they "
      "come from the same tensor, so they agree. A second argument that knows the width, as `w` does in `project`, "
      "would bring it to light.", ("raises", "No second argument knows the width."))
guess("flops_of_names", "Each different name is a loop, and here each step is 2 FLOPs: multiply all the sizes.",
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
_XYW = [tuple(whole(_r, *shape, most=99) for shape in ((2, 6, 8), (2, 6, 8), (8, 5))) for _ in range(3)]


def _rewrite(right: _Rewrite, *wrong: tuple[_Rewrite, str]) -> Exercise:
    return part(right, wrong, cases=_XYW)


parts("eight_rewrites",
    a=_rewrite(lambda x, y, w: x.mT),
    b=_rewrite(lambda x, y, w: x.unflatten(2, (2, 4)).transpose(1, 2),
        (lambda x, y, w: x.unflatten(2, (4, 2)).permute(0, 3, 1, 2),
         "You split d as (c h): in memory the channels of a head lie side by side, so which digit is the slow one?"),
        (lambda x, y, w: x.unflatten(2, (4, 2)).transpose(1, 2), "Four heads of two channels? There should be two.")),
    c=_rewrite(lambda x, y, w: x.transpose(0, 1).flatten(1),
        (lambda x, y, w: x.permute(1, 2, 0).flatten(1),
         "The merged names are in the wrong order: which of them comes first after the permute?")),
    d=_rewrite(lambda x, y, w: x.mean(-1)),
    e=_rewrite(lambda x, y, w: x.amax((1, 2), keepdim=True),
        (lambda x, y, w: x.amax((1, 2)),
         "What a pattern leaves out is gone, and keepdim keeps it: a 1 may stand in the place of a name.")),
    f=_rewrite(lambda x, y, w: x.repeat_interleave(2, dim=1),
        (lambda x, y, w: x.repeat(1, 2, 1),
         "You repeat the whole text, as x.repeat does: repeat_interleave has each token twice in a row.")),
    g=_rewrite(lambda x, y, w: x @ w,
        (lambda x, y, w: x.sum(-1, keepdim=True) * w.sum(0),
         "Two sums were multiplied: is the name that both share spelled alike?")),
    h=_rewrite(lambda x, y, w: x @ y.mT,
        (lambda x, y, w: (x * y).sum(-1),
         "The tokens of x and y have one name, so only equal positions meet: each of x should meet each of y.")))


def _rows(w: torch.Tensor, *digits: int, order: tuple[int, ...]) -> torch.Tensor:
    """The rows of w, split into digits of these sizes, in another order of the digits."""
    return w.unflatten(0, digits).permute(*order, len(digits)).flatten(0, len(digits) - 1)


def _draw_keys(r: random.Random) -> tuple[torch.Tensor, int]:
    kv, pairs = r.randint(2, 5), r.randint(3, 6)
    return whole(r, kv * 2 * pairs, r.randint(1, 5), most=999), kv


_ONLY = "Run it: the shape is right, and there is no NaN. So what is left to tell?"
_NETS = ("name", "shape", "nan", "comparison")
choices("silent_bugs", _NETS,
    a=("comparison", ("shape", _ONLY), ("nan", _ONLY), ("name", "There is no name in this line.")),
    b=("name", ("shape", "The result has the shape of q: `channel` is summed, as c is."),
       ("nan", "Sums of wrong products are numbers."),
       ("comparison", "That would tell, too. But read the names of the einsum first.")),
    c=("comparison", ("shape", _ONLY), ("nan", _ONLY), ("name", "Every name stands on both sides.")),
    d=("nan", ("comparison", "That would tell, too. But look at the first token's numbers."),
       ("shape", "The mask changes no shape."), ("name", "There is no name in this line.")),
    e=("comparison", ("shape", _ONLY), ("nan", _ONLY), ("name", "There is no name in this line.")),
    f=("shape", ("comparison", "The shapes differ already: there is nothing to compare."),
       ("nan", "The numbers are right; where do they stand?"), ("name", "Every name stands on both sides.")))

exercise("to_halves",
    lambda w, kv: _rows(w, kv, len(w) // kv // 2, 2, order=(0, 2, 1)), [
    (lambda w, kv: _rows(w, kv, 2, len(w) // kv // 2, order=(0, 2, 1)),
     "That is the other way, from halves to neighbours, as in section 4. Or did pair get the 2?"),
    (lambda w, kv: _rows(w, len(w) // 2, 2, order=(1, 0)),
     "You took all heads for one: first numbers of other heads came in between. Each head has halves of its own."),
    (lambda w, kv: rearrange(w, "(kv pair two) d -> (kv two pair) d", pair=kv, two=2),
     "kv says how many heads there are: you gave it to pair."),
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
     "You averaged heads that lie kv apart, (group kv): the heads of a group are neighbours."),
    (lambda w, heads, kv: w.unflatten(0, (heads, -1)).mean(0),
     "You averaged all heads into one: how many are to remain?"),
    (lambda w, heads, kv: heads // kv * _averaged(w, (kv, heads // kv, len(w) // heads), 1),
     "You added the heads of a group up: keys of that size would make every score larger."),
    (lambda w, heads, kv: w.unflatten(0, (kv, heads // kv, -1)).amax(1).flatten(0, 1),
     "You took the largest of each group, as pooling often does: the average is asked for."),
    (lambda w, heads, kv: _averaged(w, (kv, heads // kv, len(w) // heads), 2),
     "You averaged the channels of a head: the heads stay as many, and lose their width."),
    (lambda w, heads, kv: reduce(w, "(kv group c) d -> (kv c) d", "mean", kv=kv, c=heads),
     "heads says how many heads there are: you gave it to c, the width of one."),
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


def _with_ones(attend: Callable) -> bool:
    q, k, v, heads = _draw_attention(random.Random(1))
    return bool(torch.allclose(attend(q, k, torch.ones_like(v), heads), torch.ones_like(q)))


def _heads_apart(changed: str) -> Callable[[Callable], bool]:
    """Whether a change of the last head's part of an input leaves what the other heads give as it was."""

    def holds(attend: Callable) -> bool:
        q, k, v, heads = _draw_attention(random.Random(1))
        inputs = {"q": q, "k": k, "v": v}
        c = q.shape[-1] // heads
        before = attend(*inputs.values(), heads)
        inputs[changed] = torch.cat([inputs[changed][..., :-c], inputs[changed][..., -c:] + 3], -1)
        return bool(torch.equal(attend(*inputs.values(), heads)[..., :-c], before[..., :-c]))

    return holds


exercise("repair_attention",
    lambda q, k, v, heads: _attention()(q, k, v, heads), [
    (_attention("c h", -2), "That is still the attention with both bugs."),
    (_attention(softmax=-2),
     "The heads are right now. But the weights of a query do not add up to 1: over which name does softmax run?"),
    (_attention("c h"),
     "The softmax is right now. The heads are taken apart in one order and put together in another."),
    (_attention("c h", together="c h"),
     "Your brackets agree, but with each other only: in the weights the channels of a head lie side by side."),
    (_attention(wide=True),
     "The scale was right: each score is a sum over the channels of one head, not over all of them."),
    (_attention(power=1), "You divide by c itself: the square root of it was right."),
    (_attention(power=0), "The scale is missing, which was no bug: scores grow with the channels that they sum over."),
    (lambda q, k, v, heads: _attention(shift=0)(q, k, v, heads),
     "You hid the later tokens, as a GPT does: the function as it is given hides none, and that is no bug."),
    ],
    laws=[
        (_with_ones, "The weights of a query add up to 1. So where all of v is 1, the result is 1, and yours is not."),
        *((_heads_apart(name),
           f"The last head's part of {name} changes what other heads give: are heads split and merged alike?")
          for name in ("v", "q", "k")),
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
     "You go from left to right, as it is written: for long texts and narrow heads the other order is cheaper."),
    (_by(lambda *sizes: False),
     "You always start with k and v, as linear attention does: for short texts and wide heads that is dearer."),
    (_by(lambda *sizes: not _left_first(*sizes)), "You compare the two orders, and take the more expensive one."),
    *((_by(rule), "Your condition leaves out sizes: it would do if the others were equal, and here they need not be.")
      for rule in (lambda t, s, c, out: t < c, lambda t, s, c, out: s < c)),
    (_by(lambda t, s, c, out: t * s < c * out),
     "You compare the sizes of what is in between. What counts is what both steps of an order cost."),
    (lambda q, k, v: (q @ k.T @ v, q @ (k.T @ v))[1],
     "You compute both orders to find out, and that counts, too: the shapes alone tell."),
    (lambda q, k, v: (q @ k.T / math.sqrt(q.shape[1])).softmax(-1) @ v,
     "You applied a softmax, as attention does: with one, the order could not be changed."),
    ],
    cases=[(_counting(3, 2), _counting(4, 2), _counting(4, 5))],
    draw=lambda r: (whole(r, r.randint(2, 9), 3), whole(r, 5, 3), whole(r, 5, r.randint(2, 9))),
    cost="flops", unit="FLOP",
    counted_at=[tuple(torch.empty(size, device="meta") for size in ((t, c), (s, c), (s, out)))
                for t, s, c, out in _SIZES],
    equivalent_slips={"if scores_first <= state_first:": "where both cost the same, either will do"})
