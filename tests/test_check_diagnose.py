"""What a check says of mistakes that nobody foresaw: each rule by an example, and silence where none holds."""

import linecache
import math
import time
from pathlib import Path

import pytest
import torch
from einops import einsum, rearrange, reduce

from helpers.check import check, diagnose, nearest
from helpers.check.run import sandbox
from helpers.check.runner import OutOfTime
from helpers.check.source import Source
from helpers.exercises import EXERCISES
from helpers.exercises.exercise import exercise

NOTHING = "The hint below may help."


@pytest.fixture
def ask(monkeypatch):
    """What the check says of an answer, without what it shows of the call."""
    monkeypatch.setattr(nearest, "SECONDS", 120)  # however busy the machine is
    monkeypatch.setattr(diagnose, "SECONDS", 120)

    def ask(right, answer, **options):
        EXERCISES.pop("probe", None)
        exercise("probe", right, (), **options)
        verdict = check("probe", answer)
        assert verdict.status == "not yet" and len(verdict.message) <= 200
        return verdict.message

    yield ask
    EXERCISES.pop("probe", None)


@pytest.fixture
def unread(monkeypatch):
    """No source is known, so that no nearest slip is looked for."""
    monkeypatch.setattr(Source, "of", lambda learner: None)


def written(source):
    """A function as a cell of a notebook defines it."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"math": math, "torch": torch, "rearrange": rearrange, "reduce": reduce, "einsum": einsum}
    exec(compile(source, name, "exec"), namespace)
    return namespace["probe"]


# ---- A function of numbers.


def right(rows, cols, heads):
    return 6 * rows * cols + 4 * rows**2 * heads


def product(rows, cols, heads):
    return 2 * rows * cols / heads


NUMBERS = {
    "cases": [(2, 3, 5), (7, 2, 1), (4, 9, 2)],
    "draw": lambda r: (r.randint(1, 99), r.randint(1, 99), r.randint(1, 9)),
}


@pytest.mark.parametrize(
    ("right", "answer", "sentence"),
    [
        (product, lambda rows, cols, heads: 2 * rows * cols, "does not depend on `heads`: all else is right."),
        (product, lambda rows, cols, heads: 2 * rows * cols / 4, "does not depend on `heads`."),
        (
            product,
            lambda a, b, c: 2 * a * b * c / c,
            "does not depend on `c`, though it is in there: all else is right.",
        ),
        (product, lambda *all: 2 * all[0] * all[1], "does not depend on `heads`: all else is right."),
        (
            lambda rows, cols, heads: rows * cols,
            lambda rows, cols, heads: rows * cols + heads,
            "depends on `heads`, and should not. In every case it is too large by a term that grows with `heads`.",
        ),
        (product, lambda rows, cols, heads: 6 * rows * cols * heads, "the right one times 3 and `heads`²."),
        (product, lambda rows, cols, heads: rows * cols**2 / heads, "the right one times `cols`, divided by 2."),
        (product, lambda rows, cols, heads: 1.5 * rows * cols / heads, "In every case it is 3/4 times the right one."),
        (
            product,
            lambda rows, cols, heads: 2.4 * product(rows, cols, heads),
            "In every case it is 2.4 times the right one.",
        ),
        (product, lambda rows, cols, heads: 2.4 * rows * cols / heads, "times a constant: only a constant is wrong."),
        (
            product,
            lambda rows, cols, heads: 1 / product(rows, cols, heads),
            "Upside down: it grows with `heads`, and falls with `rows` and `cols`.",
        ),
        (
            product,
            lambda rows, cols, heads: 9 * heads / (rows * cols),
            "the right one times a constant and `heads`², divided by `rows`² and `cols`².",
        ),
        (product, lambda rows, cols, heads: rows * cols**2, "Your result does not depend on `heads`."),
        (
            product,
            lambda rows, cols, heads: round(product(rows, cols, heads), 2),
            "It is rounded to too few digits: round, if at all, what you print.",
        ),
        (
            lambda rows, cols, heads: rows * cols * heads,
            lambda rows, cols, heads: rows * cols * heads if rows % 2 else 1,
            "In the calls tried it is wrong only where `rows` is even.",
        ),
        (
            lambda rows, cols, heads: rows + cols,
            lambda rows, cols, heads: 2 ** (rows + cols - 1).bit_length(),
            "In the calls tried it is right only where the right answer is a power of two.",
        ),
        (lambda rows, cols, heads: rows // 99 + heads, lambda rows, cols, heads: 0, "rounded down to 0, as by //?"),
        (
            lambda rows, cols, heads: rows * cols * heads / 86400,
            lambda rows, cols, heads: rows * cols * heads / 60 / 60 / 60,
            "Only a unit of time is wrong: how many seconds, minutes and hours are in what is asked for?",
        ),
        (
            right,
            lambda rows, cols, heads: 6 * rows * cols - 4 * rows**2 * heads,
            "it is too small by a term that grows with `rows`² and `heads`.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, cols, heads) + rows * cols * heads,
            "it is too large by a term that grows with `rows`, `cols` and `heads`.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, heads, cols),
            "It would be right with `cols` and `heads` exchanged.",
        ),
        (
            right,
            lambda rows, cols, heads: 2 * right(rows, cols, heads) + 3,
            "It is right but for a factor of 2, and for a constant that is added.",
        ),
        (
            product,
            lambda rows, cols, heads: 2 * rows * cols * heads,
            "It grows with `heads`, and should fall: is a quotient upside down, or a sign wrong?",
        ),
        (
            product,
            lambda rows, cols, heads: heads / rows / cols * math.log(2 + rows),
            "Upside down: it grows with `heads`, and falls with `rows` and `cols`.",
        ),
        (
            lambda rows, cols, heads: rows * cols**2,
            lambda rows, cols, heads: rows**2 * cols,
            "the right one times `rows`, divided by `cols`: is one taken for the other?",
        ),
        (
            lambda rows, cols, heads: rows * cols % (heads + 7),
            lambda rows, cols, heads: rows * cols % (heads + 8),
            "It is the right answer for one more than `heads`.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, rows - cols, heads),
            "It is the right answer for `rows` - `cols` in place of `cols`.",
        ),
        (
            right,
            lambda rows, cols, heads: (6 * rows * cols, 4 * rows**2 * heads),
            "One number is asked for, and you return several: their sum would be right.",
        ),
        (
            right,
            lambda rows, cols, heads: (6 * rows, heads),
            "One number is asked for, and you return several.",
        ),
        (
            lambda rows, cols, heads: (rows, cols),
            lambda rows, cols, heads: rows,
            "One number is not enough: return them all, in a tuple or a list.",
        ),
        (
            lambda rows, cols, heads: rows * heads if cols > 9 else math.inf,
            lambda rows, cols, heads: heads**1.5 * rows if cols > 9 else math.inf,
            "Where the right answer is finite and not 0: In every case it is the right one times √`heads`.",
        ),
        (
            lambda rows, cols, heads: rows * cols * (7 if heads == 1 else 1),
            lambda rows, cols, heads: rows * cols * heads**2,
            "Where `heads` is not 1: In every case it is the right one times `heads`².",
        ),
        (
            lambda rows, cols, heads: rows * cols * heads,
            lambda rows, cols, heads: rows * cols * heads + (heads < 3) * (cols % 5),
            "In the calls tried it is wrong only where `heads` is below 3, and there not always.",
        ),
        (
            lambda rows, cols, heads: rows if cols > 9 else math.inf,
            lambda rows, cols, heads: math.inf,
            "It is infinite in every case.",
        ),
        (
            lambda rows, cols, heads: rows % 7 + heads % 3 + cols % 5,
            lambda rows, cols, heads: rows % 7 + heads % 3 + cols % 5 + max(0, rows * cols * heads % 11 - 4),
            ", else too large: what differs?",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, cols, heads) if heads > 1 else 0,
            "In the calls tried it is wrong only where `heads` is 1.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, cols, heads) if heads == 1 else 0,
            "In the calls tried it is right only where `heads` is 1.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, cols, heads) + math.sin(cols),
            "By how much it is off depends on `cols` alone.",
        ),
        (
            product,
            lambda rows, cols, heads: math.floor(product(rows, cols, heads)),
            "You round down: the right one need not be whole.",
        ),
        (
            lambda rows, cols, heads: rows // heads,
            lambda rows, cols, heads: -(-rows // heads),
            "In the calls tried it is right only where `heads` divides `rows`.",
        ),
    ],
)
def test_what_is_wrong_with_a_formula_is_said_in_the_names_of_its_arguments(ask, unread, right, answer, sentence):
    assert ask(right, answer, **NUMBERS).endswith(sentence)


TERMS = {
    "the MLP": lambda rows, cols, heads: 6 * rows * cols,
    "attention": lambda rows, cols, heads: 4 * rows**2 * heads,
}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda rows, cols, heads: 6 * rows * cols, "All is right but attention: missing."),
        (lambda rows, cols, heads: 3 * rows * cols + 4 * rows**2 * heads, "All is right but the MLP: half of it."),
        (
            lambda rows, cols, heads: 6 * rows * cols + 4 * rows * heads,
            "All is right but attention: yours is the right one divided by `rows`.",
        ),
        (
            lambda rows, cols, heads: right(rows, cols, heads) + heads * math.ceil(rows**0.6),
            "All is right but attention.",
        ),
    ],
)
def test_the_terms_of_a_sum_are_named(ask, unread, answer, sentence):
    assert ask(right, answer, terms=TERMS, **NUMBERS).endswith(sentence)


STEPS = [(torch.arange(4.0), torch.tensor([3.0, 1, 7, 5]), rate) for rate in (0.5, 2.0, 4.0)]


def step(weight, gradient, rate):
    new = weight * weight + gradient
    return weight - rate * new, new


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda w, g, rate: (w - g, g), "got -3. Your result does not depend on `rate`."),
        (
            lambda w, g, rate: step,
            "You return a function, not what it gives: call it, with its arguments in parentheses.",
        ),
    ],
)
def test_several_results_are_looked_at_together(ask, unread, answer, sentence):
    assert ask(step, answer, cases=STEPS).endswith(sentence)


def test_a_law_that_an_answer_breaks_is_told(ask):
    laws = [(lambda f: f(1, 2) == f(2, 1), "It is the same in both orders."), (lambda f: f(1) == 2, "Not asked.")]
    assert ask(lambda a, b: a * b, lambda a, b: a - b, laws=laws, cases=[(1, 5), (2, 3)]).endswith("both orders.")
    ignores = ask(lambda a, b: a * b, lambda a, b: 2 * a, laws=laws, cases=[(1, 5), (2, 3)])
    assert "does not depend on `b`" in ignores and "orders" not in ignores
    assert "Not asked." not in ask(lambda a, b: a * b, lambda a, b: a**2 * b**2, laws=laws, cases=[(1, 5), (2, 3)])


@pytest.mark.parametrize(
    ("exercise", "holds"),
    [
        pytest.param(one, holds, id=f"{name}-{number}")
        for name, one in EXERCISES.items()
        for number, (holds, _) in enumerate(one.laws, start=1)
    ],
)
def test_each_law_holds_of_the_right_answer(exercise, holds):
    assert holds(exercise.oracle)


ABOVE_AND_BELOW = {
    lambda a, b, c: a / (12 * a * b + 4 * a**2 * c): "the MLP: twice; or all else, above it as well, half of it.",
    lambda a, b, c: (
        a / (right(a, b, c) + b * c)
    ): "What you divide by has a term too many, that grows with `b` and `c`.",
    lambda a, b, c: (a + b * c) / right(a, b, c): "What you divide has a term too many, that grows with `b` and `c`.",
}


def test_the_terms_below_a_bar_are_named(ask):
    over = {"over": lambda rows, cols, heads: rows, "terms": TERMS} | NUMBERS
    message = ask(lambda rows, cols, heads: rows / right(rows, cols, heads), lambda a, b, c: a / (6 * a * b), **over)
    assert message.endswith("All is right below the bar but attention: missing.")
    for answer, words in ABOVE_AND_BELOW.items():
        assert ask(lambda rows, cols, heads: rows / right(rows, cols, heads), answer, **over).endswith(words)


def test_the_tensors_of_a_sum_are_named(ask):
    terms = {"the squares": lambda x: x * x, "the ones": lambda x: torch.ones(())}
    message = ask(lambda x: x * x + 1, lambda x: 1 - 2 * x * x, terms=terms, cases=X)
    assert message.endswith("All is right but the squares: -2 times.")


@pytest.mark.parametrize(
    "answer",
    [
        lambda rows, cols, heads: math.sin(rows * cols * heads),
        lambda rows, cols, heads: rows**0.3 + cols**1.7 + heads * rows,
    ],
)
def test_nothing_is_said_where_nothing_holds(ask, answer):
    assert ask(right, answer, **NUMBERS).endswith(NOTHING)


# ---- The nearest slip.


def steps(lines):
    return written("def probe(rows, cols, heads):\n" + "".join(f"    {line}\n" for line in lines))


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            ["pairs = rows - cols", "return 6 * pairs + 4 * rows ** 2 * heads"],
            "Line 2, `rows - cols`: look at the `-` once more. All else is right.",
        ),
        (
            ["squares = 4 * rows ** (1 + heads)", "return 6 * rows * cols + squares * heads"],
            "Line 2, `rows ** (1 + heads)`: look at the exponent once more. All else is right.",
        ),
        (
            ["f = lambda rows, cols, heads: 6 * rows - cols + 4 * rows ** 2 * heads", "return f(rows, cols, heads)"],
            "Line 2, `6 * rows - cols`: look at the `-` once more. All else is right.",
        ),
        (
            ["return 6 * rows * cols + 4 * (rows ^ 2) * heads"],
            "`rows ^ 2`: in Python ^ is no power: a power is written **. All else is right.",
        ),
        (
            ["pairs = 6 * rows + 4 * rows ** 2 * heads / cols", "return pairs / (1 / cols) * 1e9"],
            "`pairs / (1 / cols) * 1e9`: which unit does it have already? All else is right.",
        ),
        (
            ["cols, rows = rows, cols", "return 6 * rows * cols + 4 * rows ** 2 * heads"],
            "Line 2, `cols, rows`: in which order do they come? All else is right.",
        ),
        (
            ["return 6 * rows * cols + 4 * rows ** (2 * heads)"],
            "`rows ** (2 * heads)`: what is computed first there? Mind the brackets. All else is right.",
        ),
        (
            ["total = 0", "for row in range(rows):", "    total += 6 * cols", "    return total"],
            "Line 5, `return total`, ends the loop in its first round: does it belong behind the loop?",
        ),
        (
            ["if heads != 5:", "    return 6 * rows * cols"],
            "Here it comes to its end without a return: does each way through it have one?",
        ),
        (
            ["if heads == 5:", "    return", "return 6 * rows * cols + 4 * rows ** 2 * heads"],
            "Line 3, `return`, returns None: what is asked for there?",
        ),
        (
            ["if heads == 5:", "    return 7 * cols", "return 6 * rows * cols + 4 * rows ** 2 * heads"],
            "Line 2, `heads == 5`: is that a case of its own? All else is right.",
        ),
        (
            ["if heads != 5 and rows:", "    return 6 * rows * cols + 4 * rows ** 2 * heads", "return 7 * rows"],
            "Line 2, `heads != 5 and rows`: is all of it needed? All else is right.",
        ),
        (
            ["return 6 * rows * cols + (5 * rows) ** 3 * heads / (7 + heads)"],
            "By how much it is off depends on `rows` and `heads` alone.",
        ),
    ],
)
def test_the_place_of_the_one_step_that_mends_it_is_named(ask, lines, sentence):
    assert ask(right, steps(lines), **NUMBERS).endswith(sentence)


@pytest.mark.parametrize("row", ["'cpu'", "3"])
def test_a_name_of_the_notebook_in_the_place_of_an_argument_is_named(ask, row):
    answer = written(f"row = {row}\ndef probe(rows, cols, heads):\n    return 6.5 * row * cols * heads\n")
    assert ask(right, answer, **NUMBERS).endswith("`row` is the notebook's, and no argument: is `rows` meant?")


def test_what_the_function_computes_itself_may_be_missing(ask):
    answer = written("def probe(n):\n    step = n % 3 + n % 5 + 0.25\n    return n * n + step\n")
    right = lambda n: (n * n + n % 3 + n % 5 + 0.25) * (n % 3 + n % 5 + 0.25)  # noqa: E731
    assert "is a factor missing, or one too many?" in ask(right, answer, cases=[(n,) for n in range(9)])


def test_another_share_of_a_threshold_is_found(ask):
    answer = written("def probe(n):\n    return n % 17 > 2 * (n % 11)\n")
    message = ask(lambda n: n % 17 > 1.5 * (n % 11), answer, cases=[(n,) for n in range(200)])
    assert message.endswith("look at the `2` once more. All else is right.")


def test_a_loop_that_ends_too_early_is_named(ask):
    lines = "count = 0\n    for k in range(n):\n        if k % 3 == 1:\n            break\n        count += 1\n"
    message = ask(
        lambda n: n - (n + 1) // 3,
        written(f"def probe(n):\n    {lines}    return count\n"),
        cases=[(n,) for n in range(9)],
    )
    assert message.endswith("Line 5, `break`: does the loop end too early there? All else is right.")


def test_the_place_in_a_lambda_is_named(ask):
    answer = lambda rows, cols, heads: 6 * rows - cols + 4 * rows**2 * heads  # noqa: E731
    message = ask(right, answer, **NUMBERS)
    assert message.endswith("`6 * rows - cols`: look at the `-` once more. All else is right.")


def test_a_search_that_takes_too_long_says_nothing_and_costs_little(ask, monkeypatch):
    monkeypatch.setattr(nearest, "SECONDS", 0.5)
    slow = written("def probe(n):\n    k = 0\n    while k < n:\n        k = k + 1\n    return k + 2 ** n % 7\n")
    begin = time.process_time()
    message = ask(lambda n: n + math.isqrt(n), slow, cases=[(n,) for n in range(3, 9)])
    assert "All else is right" not in message
    assert time.process_time() - begin < 20


def test_an_edited_program_builds_no_huge_number_or_range(ask):
    begin = time.process_time()
    long = written("def probe(n):\n    return sum(range(n + 2)) * n % 7 * n\n")
    assert ask(lambda n: math.isqrt(n), long, cases=[(10**6,), (3,), (17,)])
    power = written("def probe(n):\n    return n * n * n % 7 * n\n")
    assert ask(lambda n: math.isqrt(n), power, cases=[(10**9,), (3,), (17,)])
    assert time.process_time() - begin < 60


# ---- Tensors.

X = [
    (torch.arange(24.0).view(2, 3, 4) ** 2,),
    (torch.arange(30.0).view(3, 5, 2).sin(),),
    (torch.arange(48.0).view(3, 4, 4),),
]


@pytest.mark.parametrize(
    ("right", "answer", "words"),
    [
        (lambda x: x + 1, lambda x: (x + 1).mT, "It is right with dimensions 1 and 2 exchanged."),
        (lambda x: x + 1, lambda x: (x + 1).permute(1, 2, 0), "It is the right one permuted by (1, 2, 0)"),
        (lambda x: x + 1, lambda x: (x + 1).flip(1), "backwards along dimension 1."),
        (lambda x: x + 1, lambda x: (x + 1).flatten(1), "in their order: only the shape is not."),
        (lambda x: x + 1, lambda x: x.clone(), "It is `x` in every case, as it was given."),
        (lambda x: x.roll(1, 1), lambda x: x.roll(2, 1), "From 0 on, yours has the entries of dimension 1 1, 2 and 0"),
        (lambda x: x[1:].exp(), lambda x: x[1:], "From 0 on, yours has the rows 1 of `x`, as they are."),
        (
            lambda x: 2 * x.flatten(1).flip(1),
            lambda x: 2 * x,
            "The right numbers, in 3 dimensions in place of 2: which merge",
        ),
        (lambda x: x + 1, lambda x: (x + 1) * x.shape[2] ** 0.3, "times a number, here "),
        (
            lambda x: x.sum(1),
            lambda x: x.sum(0),
            "The size of dimension 0 is `x.shape[1]`, and should be `x.shape[0]`.",
        ),
        (lambda x: x, lambda x: x * ((x - x) / (x - x)), "The first NaN comes out of `div`"),
        (lambda x: x / 3, lambda x: (x / 3).half().float(), "It agrees to the digits of float16 alone"),
        (lambda x: x / 3, lambda x: (x / 3).bfloat16(), "It agrees to the digits of bfloat16 alone"),
        (
            lambda x: x.sum(1),
            lambda x: torch.ones(x.shape[0], x.shape[2]).cumsum(0),
            "does not depend on the numbers in `x`, though it is in there",
        ),
        (lambda x: x, lambda x: x.half(), "The numbers are right, in another dtype: float16."),
        (lambda x: x.sum(2)[:, :1], lambda x: x.argmax(), "It has 0 dimensions, and the right one 2."),
        (
            lambda x: x.amax(2, keepdim=True),
            lambda x: x.amax(2, keepdim=True).expand_as(x) + x.stride(2),
            "The size of dimension 2 is `x.shape[2]`, and should be 1.",
        ),
        (lambda x: x.sum(1), lambda x: (x.shape[0], x.shape[2]), "That is the shape of the result"),
        (
            lambda x: x.double().exp().sum(1).to(x.dtype),
            lambda x: x.exp().cumsum(1)[:, -1] * 1.0001,
            "Each step of yours is rounded to float32",
        ),
    ],
)
def test_tensors_are_told_by_what_they_have_in_common(ask, unread, right, answer, words):
    cases = X if "half" not in words and "float16" not in words else [(x.round(),) for (x,) in X]
    assert words in ask(right, answer, cases=cases)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x @ x", "A product of (2, 3, 4) and (2, 3, 4): 4 meets 3, and they must be equal."),
        ("x + x[:, :2]", "Aligned at the right, (2, 3, 4) and (2, 2, 4) differ in a size that is not 1."),
        ("x.view(7)", "`view` of a tensor of shape (2, 3, 4)"),
        ("rearrange(x, 'b t (h c) -> b h t c', h=3)", "A bracket of length 4 cannot be split by 3"),
        ("rearrange(x, 'b t (h c) -> b h t c')", "cannot tell the sizes of `h`, `c`: give all"),
        ("rearrange(x, 'b t d -> b d')", "The name `t` is on one side only"),
        ("rearrange(x, 'b d -> d b')", "The left side names 2 dimensions, and the tensor has 3"),
        ("reduce(x, 'b t d -> b e', 'mean')", "The name `e` stands on the right side alone"),
        ("nothing + x", "Nothing is called `nothing` here. Is it spelled right"),
        ("cat([x, x])", "Nothing is called `cat` here, but `torch.cat`."),
        ("ceil(x)", "Nothing is called `ceil` here, but `torch.ceil` and `math.ceil`."),
        ("x ^ 2.0", "In Python ^ is XOR: a power is written **."),
        ("itertools.chain(x)", "`itertools` is not imported here: import itertools."),
        ("np.ones(3)", "`np` is not imported here: import numpy as np."),
        ("repeat(x, 'a b c -> a b c d', d=2)", "`repeat` is not imported here: from einops import repeat."),
        ("torch.nn.functional.linear(x, torch.ones(5, 4).double())", "Tensors of two dtypes meet there, and need one"),
        ("torch.nn.Linear(3, 2)(x)", "Tensors of shapes (2, 3, 4) and (2, 3) and (2,) meet there: do they fit?"),
        ("torch.einsum('ij,ij->i', x[0], x[:, 0])", "`einsum` was given (3, 4) and (2, 4): do these shapes fit?"),
        ("einsum(x, x[:, :2], 'b t d, b t d -> b t')", "(2, 2, 4): do they fit its names? (einops calls these a, b, c"),
        ("next(n for n in x.shape if n > 9)", "next() found nothing: is the condition right"),
        ("torch.cat([x, x[:, :, :1]], 1)", "Joined along dimension 1, all other sizes must be equal, and 4 meets 1."),
        ("torch.stack([x[0], x[0, 1:]])", "stack needs tensors of one shape"),
        ("x.T * x.clone", "it gives nothing until it is called, with parentheses."),
        ("x / (1 // 0)", "What you divide by is 0 in this case."),
        ("2 * ... * x[..., 0]", "A `...` is still there: line 2."),
        ("torch.cat([x[..., 0], ...])", "A `...` is still there: line 2."),
        ("rearrange(x, 'b t d -> b t d', 'mean')", "sizes by name: it combines no numbers."),
        ("rearrange('x', 'b t d -> d b t')", "a name in quotes is no variable"),
        ("[size for size in x.stride]", "it gives nothing until it is called, with parentheses."),
    ],
)
def test_an_error_is_explained_in_the_terms_of_shapes(ask, source, words):
    assert words in ask(lambda x: x, written(f"def probe(x):\n    return {source}\n"), cases=X)


@pytest.mark.parametrize(
    "source",
    ["rearrange(x, 'b t d -> b d t', 'mean')", "rearrange(x, 'b t (d k) -> b t d k', k=0)", "x.new_zeros(3, 1)(2)"],
)
def test_an_error_of_what_the_answer_calls_is_not_blamed_on_its_own_arguments(ask, source):
    message = ask(lambda x: x, written(f"def probe(x):\n    return {source}\n"), cases=X)
    assert "Keep the arguments" not in message and "divide" not in message


def test_arguments_that_are_not_the_stubs_are_told(ask):
    assert ask(lambda x: x, written("def probe():\n    return 1\n"), cases=X).endswith("it is called with 1.")


def test_a_word_that_is_written_as_a_name_belongs_in_quotes(ask):
    answer = written("def probe(n):\n    return cache\n")
    message = ask(lambda n: "cache", answer, cases=[(1,), (2,)], words=("cache", "memory"))
    assert message.endswith('A word is written in quotes: "cache".')


def test_a_mend_that_takes_away_the_effect_of_what_is_around_it_blames_no_name(ask):
    lines = "g = len(x) // 2\n    return x.repeat(g, 1)"
    rows = [(torch.arange(3.0 * n).view(n, 3),) for n in (4, 6, 8)]
    message = ask(lambda x: x.clone(), written(f"def probe(x):\n    {lines}\n"), cases=rows)
    assert "belongs there" not in message and "once more, step by step" in message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: (x @ x.flip(0).T).diagonal(), "the diagonal of the right one"),
        (lambda x: (x @ x.flip(0).T).sum(1), "That is the right one summed over dimension 1."),
    ],
)
def test_a_part_of_the_right_tensor_is_told(ask, unread, answer, words):
    cases = [(torch.arange(2.0 * n).view(n, 2) ** 2 + 1,) for n in (3, 4, 5)]
    assert words in ask(lambda x: x @ x.flip(0).T, answer, cases=cases)
    raising = lambda x: answer(x) if len(x) != 5 else 1 / 0  # noqa: E731
    assert words in ask(lambda x: x @ x.flip(0).T, raising, cases=cases)


def test_nobody_waits_longer_for_a_diagnosis_than_it_may_take(ask, unread, monkeypatch):
    monkeypatch.setattr(diagnose, "SECONDS", 0.5)
    judged = [(n, n + 1) for n in range(2, 8)]

    def answer(a, b):
        while (a, b) not in judged:
            pass
        return a * b + a % 3

    begin = time.process_time()
    assert "expected" in ask(lambda a, b: a * b, answer, cases=judged)
    assert time.process_time() - begin < 5


def test_the_search_leaves_time_to_the_rules_that_come_after_it(ask, monkeypatch):
    deadlines = []
    monkeypatch.setattr(nearest, "_mending", lambda attempt, source, edits, deadline: deadlines.append(deadline.clock))
    begin = time.perf_counter()
    ask(lambda x: x + 1, written("def probe(x):\n    return x + 2\n"), cases=[(1,), (2,), (4,)])
    assert max(deadlines) < time.perf_counter() + 0.7 * diagnose.SECONDS and begin < min(deadlines)


def test_calls_go_on_after_a_diagnosis_that_was_too_slow(ask):
    with sandbox(10) as place:
        with place.hurried(0), pytest.raises(OutOfTime):
            place.run(lambda: 1)
        with place.hurried(0.1), pytest.raises(OutOfTime):
            place.run(lambda: [None for _ in iter(int, 1)])
        assert place.run(lambda: 1) == 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x.mean(2)", "look at the `2` once more"),
        ("x.amax(1)", "which reduction is it?"),
        ("reduce(x, 'b t d -> b d', 'max')", "which reduction is it?"),
        ("reduce(x, 'b t d -> b t', 'mean')", "look at the pattern once more"),
    ],
)
def test_the_nearest_slip_of_a_tensor(ask, source, words):
    cubes = [(torch.arange(27.0 * n).view(3 * n, 3, 3) ** 2,) for n in (1,)] * 2
    assert words in ask(lambda x: x.mean(1), written(f"def probe(x):\n    return {source}\n"), cases=cubes)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x.reshape(len(x), -1, x.shape[1])", "`x.reshape(len(x), -1, x.shape[1])`: a reshape moves no number"),
        ("x.mT.mT.reshape(len(x), -1, x.shape[1])", "are the dimensions in the right order before and behind it?"),
        ("rearrange(x, 'b (t u) c -> b c (t u)', u=x.shape[1]).cos()", "is all of it needed?"),
    ],
)
def test_what_is_in_the_wrong_place_is_named(ask, source, words):
    assert words in ask(lambda x: x.mT, written(f"def probe(x):\n    return {source}\n"), cases=X)


@pytest.mark.parametrize(
    "lines",
    ["return reduce(x, 'b t (c d) -> b t d', 'sum', c=2)", "p = 'b t (c d) -> b t d'; return reduce(x, p, 'sum', c=2)"],
)
def test_a_size_that_is_given_to_the_wrong_name_is_named(ask, lines):
    cases = [(x.repeat(1, 1, 3),) for (x,) in X]
    answer = written(f"def probe(x):\n    {lines}\n")
    assert "which name has that size?" in ask(
        lambda x: reduce(x, "b t (c d) -> b t d", "sum", d=2), answer, cases=cases
    )


def test_two_sizes_that_are_exchanged_are_named(ask):
    answer = written("def probe(x):\n    return rearrange(x, '(a b c) d -> (a c b) d', a=2, b=3)\n")
    right = lambda x: rearrange(x, "(a b c) d -> (a c b) d", a=3, b=2)  # noqa: E731
    cases = [(torch.arange(48.0 * n).view(-1, 2 * n),) for n in (1, 2, 3)]
    assert ask(right, answer, cases=cases).endswith("which name has that size? All else is right.")


def test_the_place_that_makes_a_right_answer_dear_is_named(ask):
    source = "def probe(x):\n    y = x.clone()\n    return y + 1\n"
    message = ask(lambda x: x + 1, written(source), cases=X, cost="bytes_eager", unit="B")
    assert message.endswith("Line 2, `x.clone()`: is all of it needed? All else is right.")


def test_all_else_is_right_is_said_only_of_what_is_cheap_enough(ask):
    source = "def probe(x):\n    y = x.clone()\n    return y.mean(2)\n"
    message = ask(lambda x: x.mean(1), written(source), cases=X, cost="bytes_eager", unit="B")
    assert message.endswith("look at the `2` once more. The rest makes the right numbers.")


@pytest.mark.parametrize(
    "line",
    ["return x[0] if len(x) == 5 else x[i]", "return x[abs(i)]"],
)
def test_a_sign_that_works_by_luck_is_not_asked_for(ask, line):
    answer = written(f"def probe(x, i):\n    {line}\n")
    cases = [(tuple(range(7, 12)), n) for n in range(1, 4)] + [((3, 4), 1)]
    message = ask(lambda x, i: x[-i], answer, cases=cases)
    assert "sign" not in message


# ---- Arguments that are several numbers.


def draw_notes(r):
    dims = r.randint(1, 4)
    return tuple(tuple(r.randint(low, 9) for _ in range(dims)) for low in (2, 1))


PAIRS = [
    ((2, 3), (3, 1)),
    ((2, 3), (1, 2)),
    ((4, 5, 6), (30, 6, 1)),
    ((4, 5, 6), (1, 5, 4)),
    ((7,), (3,)),
    ((8,), (1,)),
]
NOTES = {"cases": PAIRS, "draw": draw_notes}


def dot(shape, stride):
    return sum(size * step for size, step in zip(shape, stride, strict=True))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda shape, stride: sum(stride), "Your result does not depend on the numbers in `shape`."),
        (lambda shape, stride: [0] * dot(shape, stride), "and you return several: how many they are would be right."),
        (
            lambda shape, stride: dot(shape, stride) + (len(shape) < 3) * shape[0] % 5,
            "In the calls tried it is wrong only where `shape` has at most two entries, and there not always.",
        ),
        (
            lambda shape, stride: dot(shape, stride) - (list(stride) != sorted(stride, reverse=True)) * max(stride),
            "In the calls tried it is right only where the entries of `stride` never rise.",
        ),
    ],
)
def test_arguments_of_several_numbers_are_looked_at_as_a_whole(ask, unread, answer, sentence):
    assert sentence in ask(dot, answer, **NOTES)


def test_edits_that_take_much_memory_are_not_tried(ask):
    resource = pytest.importorskip("resource")
    if not Path("/proc/self/statm").exists():
        pytest.skip("here nobody can say how much memory there is")
    wild = written("def probe(n):\n    return torch.ones(3 * n).sum().item() + n % 7\n")  # n * n is one edit
    before = resource.getrlimit(resource.RLIMIT_AS), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert ask(lambda n: math.isqrt(n) + 0.5, wild, cases=[(30_000,), (30,), (17,)])
    assert resource.getrlimit(resource.RLIMIT_AS) == before[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before[1] < 3 * 2**20  # in KiB


# ---- Several numbers, and decisions.

LISTS = {"cases": [(n,) for n in range(2, 9)]}


@pytest.mark.parametrize(
    ("right", "answer", "sentence"),
    [
        (
            lambda n: "low" if n < 5 else "high",
            lambda n: "high"[: 9 * n],
            "It says 'high' in every case.",
        ),
    ],
)
def test_lists_and_decisions(ask, unread, right, answer, sentence):
    assert ask(right, answer, **LISTS).endswith(sentence)


def test_a_mistake_that_is_seen_in_a_part_of_a_result_is_not_looked_for_in_a_part_of_the_calls(unread):
    def flat_roof(peak, bandwidth, low, high):
        middle = [peak / bandwidth] if low < peak / bandwidth < high else []
        return [(place, peak) for place in (low, *middle, high)]

    message = check("roof_points", flat_roof).message
    assert message.endswith("It is right in some calls, as roof_points(8, 4, 2, 4): what differs?")
