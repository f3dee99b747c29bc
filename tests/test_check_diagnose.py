"""What a check says of mistakes that nobody foresaw: each rule by an example, and silence where none holds."""

import linecache
import math
import time

import pytest
import torch
from einops import rearrange, reduce

from helpers.check import check, nearest
from helpers.exercises import EXERCISES
from helpers.exercises.exercise import exercise

NOTHING = "The hint below may help."


@pytest.fixture
def ask(monkeypatch):
    """What the check says of an answer, without what it shows of the call."""
    monkeypatch.setattr(nearest, "SECONDS", 120)  # however busy the machine is

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
    monkeypatch.setattr(nearest.Source, "of", lambda learner: None)


def written(source):
    """A function as a cell of a notebook defines it."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"math": math, "torch": torch, "rearrange": rearrange, "reduce": reduce}
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
            "depends on `heads`, and should not.",
        ),
        (product, lambda rows, cols, heads: 6 * rows * cols * heads, "the right one times 3 and `heads`²."),
        (product, lambda rows, cols, heads: rows * cols**2 / heads, "the right one times `cols`, divided by 2."),
        (product, lambda rows, cols, heads: 1.5 * rows * cols / heads, "In every case it is 3/4 times the right one."),
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
            "The right one is 0.5 times yours and 1.5 less.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, cols, heads) if heads > 1 else 0,
            "It is wrong only where `heads` is 1; else it is right.",
        ),
        (
            right,
            lambda rows, cols, heads: right(rows, cols, heads) if heads == 1 else 0,
            "It is right only where `heads` is 1.",
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
            "It is right only where `heads` divides `rows`.",
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
    ],
)
def test_the_terms_of_a_sum_are_named(ask, answer, sentence):
    assert ask(right, answer, terms=TERMS, **NUMBERS).endswith(sentence)


STEPS = [(torch.arange(4.0), torch.tensor([3.0, 1, 7, 5]), rate) for rate in (0.5, 2.0, 4.0)]


def step(weight, gradient, rate):
    new = weight * weight + gradient
    return weight - rate * new, new


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda w, g, rate: step(w, g, rate)[0], "That is value 1 alone: return all 2."),
        (lambda w, g, rate: (w - 4 * (w * w + g), w * w + g), "is wrong. Your result does not depend on `rate`."),
        (lambda w, g, rate: (w - g, g), "got -3. Your result does not depend on `rate`."),
        (lambda w, g, rate: (step(w, g, rate)[0], 2 * step(w, g, rate)[1]), "In every case it is twice the right one."),
        (lambda w, g, rate: (step(w, g, rate)[0], step(w, g, rate)[1].sin()), "Only value 2 is wrong."),
        (
            lambda w, g, rate: step,
            "You return a function, not what it gives: call it, with its arguments in parentheses.",
        ),
        (lambda w, g, rate: (step(w, g, rate)[0], None), "Only value 2 is wrong."),
    ],
)
def test_several_results_are_looked_at_one_by_one(ask, unread, answer, sentence):
    assert ask(step, answer, cases=STEPS).endswith(sentence)


def test_a_law_that_an_answer_breaks_is_told(ask):
    laws = [(lambda f: f(1, 2) == f(2, 1), "It is the same in both orders."), (lambda f: f(1) == 2, "Not asked.")]
    assert ask(lambda a, b: a * b, lambda a, b: a - b, laws=laws, cases=[(1, 5), (2, 3)]).endswith("both orders.")
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


def test_the_terms_below_a_bar_are_named(ask):
    over = {"over": lambda rows, cols, heads: rows, "terms": TERMS} | NUMBERS
    message = ask(lambda rows, cols, heads: rows / right(rows, cols, heads), lambda a, b, c: a / (6 * a * b), **over)
    assert message.endswith("All is right below the bar but attention: missing.")


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
            "Line 2, `rows - cols`: look at the operation once more; the rest is right.",
        ),
        (
            ["squares = 4 * rows ** (1 + heads)", "return 6 * rows * cols + squares * heads"],
            "Line 2, `rows ** (1 + heads)`: look at the exponent once more; the rest is right.",
        ),
        (
            ["f = lambda rows, cols, heads: 6 * rows - cols + 4 * rows ** 2 * heads", "return f(rows, cols, heads)"],
            "Line 2, `6 * rows - cols`: look at the operation once more; the rest is right.",
        ),
        (
            ["return 6 * rows * cols + (5 * rows) ** 3 * heads / (7 + heads)"],
            "By how much it is off depends on `rows` and `heads` alone.",
        ),
    ],
)
def test_the_place_of_the_one_step_that_mends_it_is_named(ask, lines, sentence):
    assert ask(right, steps(lines), **NUMBERS).endswith(sentence)


def test_the_place_in_a_lambda_is_named(ask):
    answer = lambda rows, cols, heads: 6 * rows - cols + 4 * rows**2 * heads  # noqa: E731
    message = ask(right, answer, **NUMBERS)
    assert message.endswith("`6 * rows - cols`: look at the operation once more; the rest is right.")


def test_a_search_that_takes_too_long_says_nothing_and_costs_little(ask, monkeypatch):
    monkeypatch.setattr(nearest, "SECONDS", 0.5)
    slow = written("def probe(n):\n    k = 0\n    while k < n:\n        k = k + 1\n    return k + 2 ** n % 7\n")
    begin = time.process_time()
    message = ask(lambda n: n + math.isqrt(n), slow, cases=[(n,) for n in range(3, 9)])
    assert "the rest is right" not in message
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
        (lambda x: x.sum(1), lambda x: x, "The sum of yours over its dimension 1 would be right."),
        (lambda x: x, lambda x: x.mean(2), "the mean of the right one over its dimension 2"),
        (
            lambda x: x.sum(1),
            lambda x: x.sum(0),
            "The size of dimension 0 is `x.shape[1]`, and should be `x.shape[0]`.",
        ),
        (
            lambda x: x,
            lambda x: torch.cat([x[:, :-1], 0 * x[:, -1:] - 1], 1),
            "All is right but the last entry of dimension 1.",
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
        ("rearrange(x, 'b t (h c) -> b h t c')", "cannot tell the sizes of `"),
        ("rearrange(x, 'b t d -> b d')", "The name `t` is on one side only"),
        ("rearrange(x, 'b d -> d b')", "The left side names 2 dimensions, and the tensor has 3"),
        ("reduce(x, 'b t d -> b e', 'mean')", "The name `e` stands on the right side alone"),
        ("nothing + x", "Nothing is called `nothing` here"),
        ("x / (1 // 0)", "What you divide by is 0 in this case."),
    ],
)
def test_an_error_is_explained_in_the_terms_of_shapes(ask, source, words):
    assert words in ask(lambda x: x, written(f"def probe(x):\n    return {source}\n"), cases=X)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x.mean(2)", "look at the number once more"),
        ("x.amax(1)", "which reduction is it?"),
        ("reduce(x, 'b t d -> b d', 'max')", "which reduction is it?"),
        ("reduce(x, 'b t d -> b t', 'mean')", "look at the pattern once more"),
    ],
)
def test_the_nearest_slip_of_a_tensor(ask, source, words):
    cubes = [(torch.arange(27.0 * n).view(3 * n, 3, 3) ** 2,) for n in (1,)] * 2
    assert words in ask(lambda x: x.mean(1), written(f"def probe(x):\n    return {source}\n"), cases=cubes)


# ---- Several numbers, and decisions.

LISTS = {"cases": [(n,) for n in range(2, 9)]}


@pytest.mark.parametrize(
    ("right", "answer", "sentence"),
    [
        (
            lambda n: [(n, 2 * n), (3 * n, 4)],
            lambda n: [(n, 7), (3 * n, n)],
            "the first number is right, and the second is not.",
        ),
        (lambda n: [(n, 2 * n), (3 * n, 4)], lambda n: [(n, 2 * n)], "An entry is missing."),
        (lambda n: [(n, 2 * n)], lambda n: [(n, 2 * n)] * 2, "There is one entry too many."),
        (lambda n: (n, n * n), lambda n: (n, n + 5), "Only value 2 is wrong."),
        (
            lambda n: "low" if n < 5 else "high",
            lambda n: "high"[: 9 * n],
            "Your result does not depend on `n`, though it is in there.",
        ),
        (lambda n: "abc"[n % 3], lambda n: "aac"[n % 3], "Wherever 'b' is right, yours says 'a'; all else is right."),
        (lambda n: n > 4, lambda n: n > 7, "Sometimes where True is right, yours says False; all else is right."),
    ],
)
def test_lists_and_decisions(ask, unread, right, answer, sentence):
    assert ask(right, answer, **LISTS).endswith(sentence)
