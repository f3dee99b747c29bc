"""`check`: right answers however they are spelled, named mistakes, and rubbish, each answered in a calm sentence."""

import contextlib
import math
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from einops import reduce

from helpers.check import check, costs, diagnose, judge
from helpers.check.source import Source
from helpers.exercises import EXERCISES, Exercise
from helpers.exercises.exercise import exercise, part
from tests.tools import slips
from tests.tools.course import NOTEBOOKS

TWO_LINES = 200  # characters, at most, of 130 in a line of JupyterLab
SINGLE = {name: one for name, one in EXERCISES.items() if not one.parts} | {
    f"{name} {part_name}": one for name, whole in EXERCISES.items() for part_name, one in whole.parts.items()
}
MISTAKES = {
    f"{name}-{number}": (one, *mistake)
    for name, one in SINGLE.items()
    for number, mistake in enumerate(one.mistakes, start=1)
}


@pytest.fixture
def ask(monkeypatch):
    """What the check says of an answer to an exercise made for the test, whose source it does not know."""
    monkeypatch.setattr(Source, "of", lambda learner: None)

    def ask(right, *answers, mistakes=(), **options):
        EXERCISES.pop("probe", None)
        exercise("probe", right, mistakes, **options)
        return check("probe", *answers)

    yield ask
    EXERCISES.pop("probe", None)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_named_mistake_is_named(monkeypatch, mistake):
    one, formula, sentence, _ = MISTAKES[mistake]
    monkeypatch.setitem(EXERCISES, "probe", one)
    monkeypatch.setattr(diagnose, "SECONDS", 120)  # however busy the machine is
    verdict = check("probe", formula if one.cases else formula())
    assert (verdict.status, verdict.message[-len(sentence) :]) == ("not yet", sentence)
    assert sentence[-1] in ".?"
    assert len(verdict.message) <= TWO_LINES


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_lists_eight_mistakes_at_most(name):
    whole = EXERCISES[name]
    judged = [one for one in (whole, *whole.parts.values()) if not one.words or one.cases]
    assert sum(len(one.mistakes) for one in judged) <= 8  # of words to choose among, each is explained


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_one_step_slip_of_a_solution_is_accepted(path):
    total, wrong = slips.findings(path)
    assert total > 50
    assert not wrong, f"add a case or a draw, or list it in `equivalent_slips` with a reason: {wrong}"


# ---- Whatever is given, a calm sentence.


def gives(thing):
    return lambda *args: thing


def fails(*args):
    raise RuntimeError("nothing works")


Hostile = type("Hostile", (), {"__repr__": fails, "__eq__": fails, "__hash__": None})
X = torch.arange(12.0).view(3, 4)  # 48 bytes
RUBBISH = {
    "text": "x",
    "empty": "",
    "nan": math.nan,
    "inf": math.inf,
    "huge": 10**400,
    "True": True,
    "complex": 1j,
    "list": [1, None],
    "nested": ((), ((1,),)),
    "ones": torch.ones(3),
    "type": int,
    "module": math,
    "tensor nan": torch.full((), math.nan),
    "meta": torch.empty((), device="meta"),
    "sparse": torch.eye(3).to_sparse(),
    "numpy": np.ones(2),
    "long text": "many " * 99,
    "hostile": Hostile(),
    "dict": {1: 2},
    "range": range(10**12),
    "decimal": Decimal("nan"),
}
KINDS = {
    "number": (2.5, {"unit": "GB"}),
    "word": ("view", {"words": ("view", "copy")}),
    "numbers": ((1, 2.5), {}),
    "function": (lambda n: n * n, {"cases": [(3,)], "draw": lambda r: (r.random(),)}),
    "tensor": (lambda x: x.neg_(), {"cases": [(X,)], "in_place": True, "cost": "bytes_eager"}),
    "cost": (lambda x: x + x, {"cases": [(X,)], "cost": "flops"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rubbish", RUBBISH)
def test_rubbish_is_answered_calmly(ask, kind, rubbish):
    right, options = KINDS[kind]
    thing = RUBBISH[rubbish]
    for answers in ((thing,), (thing, thing), (gives(thing),)):
        verdict = ask(right, *answers, **options)
        assert verdict.status == "not yet"
        assert "\n" not in repr(verdict) and len(verdict.message) <= TWO_LINES
        assert "Traceback" not in verdict._repr_html_()


@pytest.mark.parametrize("nothing", [None, ..., (..., ...), (1, ...)], ids=repr)
def test_dots_and_none_are_not_attempted(nothing):
    name = next(name for name, one in EXERCISES.items() if one.cases)
    assert check(name, gives(nothing)).status == "not attempted"
    assert check(name, nothing).status == check(name).status == "not attempted"
    assert ("is None so far" in check(name, nothing).message) == (nothing is None)


def test_a_function_named_like_its_exercise_needs_no_other_name():
    name = next(name for name, one in EXERCISES.items() if one.cases)
    fastest = gives(...)
    fastest.__name__ = name
    assert (check(fastest).exercise, check(fastest).status) == (name, "not attempted")


# ---- Right answers, however they are written.


@pytest.mark.parametrize(
    ("right", "found"),
    [
        (2, 2.0),
        (2, "2"),
        (2, np.int64(2)),
        (2, np.array([2])),
        (2, torch.tensor(2)),
        (2, torch.tensor([[2.0]])),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        (0.5, np.float32(0.5)),
        (1.0, 1 + 0.5e-6),
        (2, Decimal("2.0")),
        (math.inf, Decimal("inf")),
        ((85.9, 2), (Decimal("85.9"), Fraction(2))),
        (2, np.float16(2)),
        (True, np.bool_(True)),
        (False, np.array(False)),
        ((1, 2), [1, 2]),
        ((1, 2), torch.Size([1, 2])),
        ((1, 2), np.array([1.0, 2.0])),
        ((0, 1), range(2)),
        ((1, 2), (torch.tensor(1), np.float64(2))),
        (((1, 2), 3), [[1, 2], 3]),
        ("bfloat16", torch.bfloat16),
        ("bfloat16", "torch.bfloat16"),
        ("bfloat16", " BF16 "),
        ("float8_e4m3fn", "e4m3"),
        ("float8_e5m2", "fp8_e5m2"),
        ("float16", np.dtype("float16")),
        (math.inf, np.inf),
        (1 / 3, torch.tensor(1 / 3, dtype=torch.bfloat16)),
        (35072974080, np.float32(35072974848)),
        ((35072974080, 1), torch.tensor([35072974848.0, 1])),
    ],
    ids=repr,
)
def test_every_spelling_of_a_right_answer_is_accepted(ask, right, found):
    assert ask(right, found).message == "correct."
    assert ask(gives(right), gives(found), cases=[()]).message == "correct." or isinstance(found, str)


@pytest.mark.parametrize(
    ("right", "found"),
    [
        (torch.ones(2), torch.full((2,), 1 + 5e-7)),
        (torch.ones(2), torch.ones(2, requires_grad=True)),
        (torch.tensor(2.0), torch.tensor([[2.0]])),
        (torch.tensor(math.nan), torch.tensor(math.nan)),
        (torch.tensor([0.0, 1.0]), torch.tensor([1e-9, 1.0])),
        (torch.ones(1), 1.0),
        (torch.ones(()), [[1.0]]),
        (torch.ones(1).long(), np.ones(1, dtype=int)),
    ],
)
def test_tensors_that_differ_in_what_does_not_matter_are_accepted(ask, right, found):
    assert ask(gives(right), gives(found), cases=[()]).message == "correct."


@pytest.mark.parametrize(
    ("right", "found", "status"),
    [
        (2**24 + 1, np.float32(2**24 + 1), "not yet"),
        (2**24 + 1, torch.tensor(2**24 + 1, dtype=torch.float), "not yet"),
        (2**53 + 1, float(2**53), "not yet"),
        (2**53 + 1, Decimal(2**53), "not yet"),
        (2**53 + 1, Decimal(2**53 + 1), "correct"),
        (2**24 + 1, float(2**24 + 1), "correct"),
    ],
    ids=repr,
)
def test_where_a_whole_number_must_be_exact_a_float_that_misses_it_is_wrong(ask, right, found, status):
    assert ask(right, found, tolerance=0).status == status


@pytest.mark.parametrize(
    "near", [35072974848, 35072974848.0, np.float64(35072974848), np.float32(35072974848 + 2**16)], ids=repr
)
def test_a_count_is_exact(ask, near):
    assert ask(35072974080, near).status == "not yet"


@pytest.mark.parametrize(
    ("right", "words", "found", "status"),
    [
        ("FLOP", ("MAC", "FLOP"), "FLOP/s", "not yet"),
        ("cache", ("cache", "clock"), "c", "not yet"),
        ("passes", ("passes", "raises"), "pass", "correct"),
        ("passes", ("passes", "raises"), "Passes.", "correct"),
        ("passes", ("passes", "raises"), "PASSES", "correct"),
    ],
)
def test_words_may_be_cut_short(ask, right, words, found, status):
    assert ask(right, found, words=words).status == status


@pytest.mark.parametrize(
    ("right", "unit", "found", "status"),
    [
        (80 * 2**30 / 1e9, "GB", "85.9 GB", "correct"),
        (80 * 2**30 / 1e9, "GB", "85.9", "correct"),
        (80 * 2**30 / 1e9, "GB", "8.59e10 bytes", "correct"),
        (85.9, "GB", "85.9 s", "not yet"),
        (22, "", "22 requests", "correct"),
        (22, "", "22 FLOP per byte", "correct"),
        (22, "", "22 GB", "not yet"),
        (22, "", "22 s", "not yet"),
        (80, "years", "29220 days", "correct"),
    ],
)
def test_numbers_may_bring_a_unit(ask, right, unit, found, status):
    assert ask(right, found, unit=unit, tolerance=1e-3).status == status


@pytest.mark.parametrize("spelling", [2.95, 2.9816, 3, "3", 3.05])
def test_an_answer_that_is_rounded_is_accepted_where_the_statement_rounds(spelling):
    assert check("gpt3_scores", spelling).status == "correct"


# ---- What is different, in words.


@pytest.mark.parametrize(
    ("right", "found", "words"),
    [
        (1.0, "1", "expected a number, got the text '1'"),
        (1.0, math.nan, "expected a number, got NaN (not a number)"),
        (1.0, 2, "expected 1, got 2"),
        (2**24 + 1, 2**24, "expected 16777217, got 16777216"),
        (989.5e12, 1.0, "expected 9.895e14, got 1"),
        (621312000.0, 667392000, "expected 621312000, got 667392000"),
        (621312000, 667392000.0, "expected 621312000, got 667392000"),
        (621312000.0, 667392000.0, "expected 6.21312e8, got 6.67392e8"),
        (2.5, Decimal("2.25"), "expected 2.5, got 2.25"),
        (2.5, Fraction(9, 4), "expected 2.5, got 2.25"),
        (8, (7,), "expected 8, got (7,)"),
        (8, [7], "expected 8, got [7]"),
        (True, 1, "expected True, got 1"),
        ("a", 1, "expected 'a', got 1"),
        ((1, 2), 1, "expected a tuple of 2 values, got the number 1"),
        ((1, 2), (torch.ones(9), 2, 3), "expected 2 values, got 3"),
        ((1, 2), [1, 3], "value 2 of 2: expected 2, got 3"),
        (((1, 2), 3), ((1, 5), 3), "entry 1 of 2, value 2 of 2: expected 2, got 5"),
        (torch.zeros(2), 0, "expected a tensor, got 0"),
        (torch.zeros(2), [0, 0], "expected a tensor, got [0, 0]"),
        (torch.zeros(2), np.zeros(2), "expected a tensor, got an array of NumPy"),
        (torch.zeros(2), torch.zeros(3), "expected shape (2,), got (3,)"),
        (torch.zeros(2), torch.empty(2, device="meta"), "expected a tensor with data, got one on the meta device"),
        (torch.zeros(2), torch.tensor([0.0, math.nan]), "the result has NaN (not a number) in it"),
        (torch.zeros(2), torch.tensor([0.0, 1.0]), "expected 0 at (1,), got 1"),
    ],
    ids=repr,
)
def test_the_difference_is_named(ask, right, found, words):
    message = ask(gives(right), gives(found), cases=[()]).message
    assert message.removesuffix(" The hint below may help.") == f"probe(): {words}."
    assert words.startswith(judge._TELLING) != message.endswith("The hint below may help.")


@pytest.mark.parametrize(
    ("right", "found", "words"),
    [
        (2.0, 1.2, "1.2 is too small, by at most a factor of two"),
        (2.0, 0.45, "0.45 is too small, by at most a factor of ten"),
        (2.0, 30.0, "30 is too large, by more than a factor of ten"),
        (2.0, 3e9, "3e9 is too large, by more than a factor of a thousand"),
        (2.0, (3.2,), "(3.2,) is too large, by at most a factor of two"),
        (2.0, Decimal("1.3"), "1.3 is too small, by at most a factor of two"),
        (2.0, -2, "-2 has the wrong sign"),
        (2.0, math.inf, "inf is not it"),
        (-5, -1, "-1 is too small in magnitude, by at most a factor of ten"),
    ],
)
def test_a_value_is_judged_without_being_told(ask, right, found, words):
    assert ask(right, found).message == f"{words}. The hint below may help."


@pytest.mark.parametrize(
    ("right", "found", "options", "words"),
    [
        ("passes", True, {"words": ("passes", "raises")}, "write 'passes' or 'raises', not True"),
        ("MAC", "MAC/FLOP", {"words": ("MAC", "FLOP")}, "write 'MAC' or 'FLOP'"),
        (85.9, "80 GiB", {"unit": "GB", "tolerance": 1e-2}, "write it in GB"),
    ],
)
def test_what_may_be_written_is_said(ask, right, found, options, words):
    assert words in ask(right, found, **options).message


def test_the_smallest_failing_case_is_shown(ask):
    message = ask(lambda a, b: a, lambda a, b: 0, cases=[(0, 1), (10**6, 2), (7, 2)]).message
    assert message.startswith("probe(7, 2): expected 7, got 0.")
    small = ask(lambda a: 1, lambda a: 2, cases=[(torch.tensor([1, 2]),)]).message
    assert small.startswith("probe(tensor([1, 2])): ")
    assert "probe(a (3, 4) float32 tensor)" in ask(lambda a: 1, lambda a: 2, cases=[(torch.ones(3, 4),)]).message


def test_a_verdict_does_not_begin_with_many_tensors(ask):
    six = torch.arange(6.0) / 7
    message = ask(lambda *x: 1, lambda *x: 2, cases=[(six, six, six, six)]).message
    assert message == (
        "probe(a (6,) float32 tensor, a (6,) float32 tensor, ...): expected 1, got 2. The hint below may help."
    )


def test_a_verdict_has_two_lines_at_most(ask):
    def long_words(x):
        raise ValueError("how long can an error be, asked the library, and went on to say, at length, " * 9)

    verdict = ask(lambda x: 1, long_words, mistakes=[(fails, "Other."), (long_words, "S" * 99 + ".")], cases=[(X,)])
    assert len(verdict.message) <= 200 and verdict.message.endswith("S.")
    assert "how long can" in verdict.message


def test_a_long_error_still_names_its_line(ask):
    def raising(x):
        raise ValueError("how long can an error be, asked the library, and went on to say, at some length, why")

    message = ask(lambda x: 1, raising, cases=[(X,)]).message
    assert "in the line `raise ValueError(" in message and len(message) <= 200


def test_one_number_has_one_form(ask):
    message = ask(lambda n: n * 10**6, lambda n: 667392000, cases=[(1,), (2,)]).message
    assert message == "probe(1): expected 1000000, got 667392000. It is 667392000 in every case."


def test_drawn_inputs_find_what_the_cases_do_not(ask):
    options = {"cases": [(2,)], "draw": lambda r: (r.randint(3, 99),)}
    assert ask(lambda n: n * n, lambda n: n + n, **options).status == "not yet"
    assert ask(lambda n: n * n, lambda n: n + n, cases=[(2,)]).status == "correct"
    assert ask(lambda n: n * n, lambda n: n**2, **options).status == "correct"


# ---- What is said of a mistake.

HALF = [(lambda n: n / 2, "You forgot to round."), (lambda n: -(-n // 2), "You rounded up.")]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda n: n * 0.5, "You forgot to round."),
        (lambda n: math.ceil(n / 2), "You rounded up."),
        (lambda n: 2 if n == 3 else 7, "The hint below may help."),  # as rounded up in the first case only
    ],
    ids=["halved", "up", "first case only"],
)
def test_a_mistake_is_named_only_if_it_explains_every_case(ask, answer, sentence):
    assert ask(lambda n: n // 2, answer, mistakes=HALF, cases=[(2,), (3,), (8,)]).message.endswith(sentence)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda n: 4 * n * n, "In every case it is 4 times the right one."),
        (lambda n: n * n / 2, "In every case it is half of the right one."),
        (lambda n: n * n / 1024, "In every case it is the right one divided by 1024."),
        (lambda n: -n * n, "In every case it is right but for its sign."),
        (lambda n: n * n + 3, "In every case it is 3 too large."),
        (lambda n: n * n - 3, "In every case it is 3 too small."),
        (lambda n: 1 / n**2, "It is the right answer for 1 / `n`."),
        (lambda n: 25, "It is 25 in every case."),
        (lambda n: n * n - n / 10, "In every case only a rounding is missing: up, down, or to the nearest?"),
        (lambda n: 3 * n * n / 4, "In every case it is 3/4 times the right one."),
        (
            lambda n: math.sqrt(2) * n * n,
            "In every case it is the right one times a constant: only a constant is wrong.",
        ),
        (lambda n: math.nan, "The hint below may help."),
    ],
)
def test_what_a_wrong_answer_has_in_common_in_every_case_is_said(ask, answer, sentence):
    assert ask(lambda n: n * n, answer, cases=[(1,), (2,), (5,)]).message.endswith(sentence)


@pytest.mark.parametrize(
    ("right", "answer", "sentence"),
    [
        (torch.arange, lambda n: torch.arange(n).roll(2), "These are the right numbers, in the wrong places."),
        (torch.arange, lambda n: torch.arange(n).flip(0), "It is right, but backwards along dimension 0."),
        (torch.arange, lambda n: torch.arange(float(n)), "The numbers are right, in another dtype: float32."),
        (torch.arange, lambda n: torch.arange(1, n), "The hint below may help."),
        (lambda n: n > 1, lambda n: True, "It says True in every case."),
    ],
)
def test_tensors_and_decisions_have_patterns_too(ask, right, answer, sentence):
    assert ask(right, answer, cases=[(1,), (2,), (5,)]).message.endswith(sentence)


@pytest.mark.parametrize(
    ("found", "question"),
    [
        (60, "what of the 8 bits of a byte?"),
        (7.5 * 64, "What of the 64 cards: is it in there, on the right side, and the right one?"),
        (8, "That is near: is something rounded too far, here or on the way?"),
        (6.8, "The hint below may help."),
        (7.4, "is something rounded too far, here or on the way?"),
        (15, "what of the 6?"),
        (5, "what of the 6?"),
        (
            7.5 * 8 * 2**30 / 1e9,
            "What of the 8 bits of a byte and the 1024 of each binary prefix: is each in there, "
            "on the right side, and the right one?",
        ),
        (
            7.5 * 2**30 / 1e9,
            "What of the 1024 of each binary prefix: is it in there, on the right side, and the right one?",
        ),
        (7.5e3, "Is its prefix the one that is asked for?"),
        (7.5e4, "Is a power of ten missing, or one too many: a million for a billion, or a zero?"),
        (1 / 7.5, "Is it upside down?"),
        (64, "That is the 64 cards, as the statement gives it: what is asked for?"),
        (0, "Is something left out, rounded away, or taken for nothing?"),
        ("7 and a half", "Write the number alone, without quotes."),
        ((7, 5), "With a comma between them they are several numbers: the decimal sign is a point."),
        (math.sqrt, "That is a function: call it, with parentheses behind its name."),
        (-7, "The hint below may help."),
    ],
)
def test_of_a_single_value_a_step_is_asked_for(ask, found, question):
    assert ask(7.5, found, unit="GB", quantities={"the 64 cards": 64, "the 6": 6}).message.endswith(question)


RUN = {
    "tolerance": 0.005,
    "quantities": {"the 6": 6, "the seconds of an hour": 3600, "the peak": 989.5e12, "the parameters": (8e9, 70e9)},
}


@pytest.mark.parametrize(
    ("found", "is_asked"),
    [(11, "small factor"), (17, ""), (21, ""), (23, "rounded too far"), (20, "rounded too far")],
)
def test_of_a_small_count_no_more_is_asked_than_it_tells(ask, found, is_asked):
    message = ask(22, found, unit="requests").message
    assert [words for words in ("small factor", "rounded too far") if words in message] == [is_asked] * bool(is_asked)


@pytest.mark.parametrize(
    ("right", "found", "options", "question"),
    [
        (40.0, 0.4, {"unit": "%"}, "Is it a fraction or in percent?"),
        (
            40.0,
            160.0,
            {"unit": "%"},
            "Is a small factor missing, in there once too often, or another one, as a 4 for a 2?",
        ),
        (40.0, 170.0, {"unit": "%"}, "Is a ratio upside down?"),
        (0.4, 1.7, {"tolerance": 0.01}, "That is more than 1: a share of what would it be?"),
        (40.0, 29.3, {"quantities": {"the 3": 3, "the 7": 7, "the 9": 9}}, "this question's: the 3, the 7 and the 9?"),
        (-5.0, -0.3125, {}, "Only a power of two is wrong: what of the exponent, and of what you divide by?"),
        (-5.0, -6.0, {}, "It lies between the same two powers of two as the right one: what of the fraction?"),
        (0.41, 0.41 * 989.5 / 312, RUN, "What of the peak: is it in there, on the right side, and the right one?"),
        (
            0.41,
            0.41 * 70 / 8 / 3600,
            RUN,
            "of an hour and the parameters: is each in there, on the right side, and the right one?",
        ),
        (0.41, 0.41 * 70 / 8, RUN, "What of the parameters: is it in there, on the right side, and the right one?"),
        (
            0.41,
            0.41 * 60,
            RUN,
            "Is a unit of time another one, as minutes for seconds, or is a step between two of them missing?",
        ),
        (0.41, 36 / 0.41, RUN, "Is it upside down?"),
    ],
)
def test_what_is_asked_of_a_value_fits_its_unit(ask, right, found, options, question):
    assert ask(right, found, **options).message.endswith(question)


def test_two_values_that_are_exchanged_are_told(monkeypatch):
    parts = {"a": part(2), "b": part(30), "c": part(5)}
    monkeypatch.setitem(EXERCISES, "probe", Exercise("probe", tuple, parts=parts))
    assert check("probe", 30, 2, 5).message == "a and b are exchanged."
    assert "exchanged" not in check("probe", 30, 4, 5).message


def test_a_name_may_be_that_of_the_variable_that_holds_the_answer():
    saxpy_intensity = lambda n, size: 2 / 3 / size  # noqa: E731
    namespace = {"check": check, "saxpy_intensity": saxpy_intensity, "other": saxpy_intensity}
    assert eval("check(saxpy_intensity)", namespace).message == "correct."
    assert eval("check(lambda n, size: 2 / 3 / size)", namespace).message.startswith("a lambda has no name")


def test_what_is_right_and_slow_is_not_called_wrong(ask, monkeypatch):
    def slow(n):
        while n > 10**9:
            pass
        return n + 1

    monkeypatch.setattr(judge.run, "SECONDS", 3)
    cases = [(10**10,), (3,), (5,), (7,)]
    verdict = ask(lambda n: n + 1, slow, cases=cases)
    assert verdict.status == "not attempted"
    assert verdict.message.startswith("right in 3 other calls, but too slow for probe(10000000000)")
    assert ask(lambda n: n + 2, slow, cases=cases).status == "not yet"


MEANT = {"view": "A view writes nothing.", "copy": "A copy writes every number."}


@pytest.mark.parametrize("word", ["copy", " Copy.", "COP"])
def test_of_a_wrong_word_it_is_said_what_it_would_mean(ask, word):
    assert ask("view", word, words=MEANT).message.endswith("is not it. A copy writes every number.")
    assert ask("view", word, words=MEANT, mistakes=[("copy", "Not here.")]).message.endswith("Not here.")
    said = ask(lambda n: ["view", "copy"][n], lambda n: word, words=MEANT, cases=[(0,), (1,)], draw=None).message
    assert "A copy writes" in said or "does not depend on `n`" in said


def test_of_a_call_that_tells_the_right_word_its_meaning_is_told(ask):
    words = {"view": MEANT["view"], "copy": MEANT["copy"], "neither": "Neither is a third."}
    right, answer = (lambda n: list(words)[n % 3]), (lambda n: list(words)[n * n % 7 % 3])
    said = ask(right, answer, words=words, cases=[(n,) for n in range(9)], draw=None).message
    assert "expected 'neither', got 'copy'" in said and said.endswith("Neither is a third.")


def test_of_two_mistakes_none_is_named_and_an_error_may_be_one(ask):
    mistakes = [(5, "You added."), (5, "You multiplied.")]
    assert ask(3, 5, mistakes=mistakes).message.endswith("The hint below may help.")

    mistakes = [(lambda n: [][0], "Mind the empty list.")]  # a mistake may be an error
    assert ask(lambda n: n, lambda n: [][1], mistakes=mistakes, cases=[(1,)]).message.endswith("Mind the empty list.")


@pytest.mark.parametrize(
    ("right", "found", "sentence"),
    [
        (9.5, 0.27, "Backward."),
        (9.5, 0.272, "Backward."),
        (9.5, 0.28, "The hint below may help."),
        (9, 0.28, "Backward."),
        (9.5, 0.2, "The hint below may help."),
        (9.5, 9.4, "is something rounded too far, here or on the way?"),
    ],
)
def test_a_rounded_value_is_its_mistake(ask, right, found, sentence):
    assert ask(right, found, mistakes=[(0.27199, "Backward.")]).message.endswith(sentence)


LINES = [
    (lambda n: [(n, n)], "Its height.", lambda points: [height for _, height in points]),
    (lambda n: [(2 * n, 3)], "Its place.", lambda points: [place for place, _ in points]),
]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda n: [(n, n)], "Its height."),
        (lambda n: [(5 * n, n)], "Its height."),
        (lambda n: [(2 * n, 2 * n)], "Its place."),
        (lambda n: [(7, 7)], "It is 7 in every case."),
    ],
)
def test_a_mistake_may_show_in_a_part_of_the_answer(ask, answer, sentence):
    assert ask(lambda n: [(n, 2 * n)], answer, mistakes=LINES, cases=[(1,), (2,), (5,)]).message.endswith(sentence)


def test_the_verdict_on_parts_has_two_lines_too(ask, monkeypatch):
    parts = {name: part(2, [(4, "S" * 90 + ".")]) for name in ("a" * 30, "b" * 30)}
    monkeypatch.setitem(EXERCISES, "probe", Exercise("probe", lambda: (2, 2), parts=parts))
    assert re.fullmatch("b+: 4 is too large, by at most a factor of two. S+.", check("probe", 2, 4).message)


def test_parts_are_judged_by_themselves(monkeypatch):
    parts = {"a": part(2, [(4, "You squared.")]), "b": part("copy", words=("view", "copy")), "c": part(3)}
    monkeypatch.setitem(EXERCISES, "probe", Exercise("probe", lambda: (2, "copy", 3), parts=parts))
    assert check("probe", 2, "copy", 3).message == "correct."
    assert check("probe", [2, "copy", 3]).message == "correct."
    assert check("probe", ..., ..., ...).status == "not attempted"
    assert check("probe", 2, ..., 3).message == "right: a, c; to do: b."
    verdict = check("probe", 4, ..., 3)
    assert (verdict.status, verdict.message[:32]) == ("not yet", "right: c; to do: b. a: 4 is too ")
    assert verdict.message.endswith("a: 4 is too large, by at most a factor of two. You squared.")
    assert "expected 3 answers, got 2" in check("probe", 2, "copy").message


def test_a_number_that_answers_another_part_is_told_where_that_is_found():
    assert check("read_roofline", 100e12, 20e12, 100e12).message.endswith(
        "the answer of at_200: what is asked for here?"
    )
    assert "at_200:" not in check("read_roofline", 100e12, 20e12, ...).message
    assert "That is the ceiling." in check("read_roofline", 50, 100e12, 100e12).message


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_parts_bear_the_names_of_stub_or_statement(path):
    for task in slips.exercises(slips.read(path)):
        names = EXERCISES[task.name].parts
        text = task.statement + task.solution
        missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
        assert not missing, task.name


def test_a_function_of_several_parts_is_judged_part_by_part():
    right = EXERCISES["eight_rewrites"].parts

    def answer(x, y, w):
        results = [one.oracle(x, y, w) for one in right.values()]
        return (results[0].mT, *results[1:])

    message = check("eight_rewrites", answer).message
    assert message.startswith("right: b, c, d, e, f, g, h. a: expected shape (2, 8, 6)")
    assert "returns None" in check("eight_rewrites", lambda x, y, w: None).message
    assert check("eight_rewrites", lambda x, y, w: (x, y)).message == "expected 8 results, got 2."
    assert "Mend that line first" in check("eight_rewrites", fails).message
    changes = check("eight_rewrites", lambda x, y, w: (x.transpose_(1, 2), fails())).message
    assert "it changed what it was given, and then raised RuntimeError" in changes and "that line" not in changes


def leaves():
    raise SystemExit("leaving")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "expected a function, got 3. Pass it without calling it."),
        (lambda: None, "Does it end in a return?"),
        (leaves, "it raised SystemExit: leaving"),
        (lambda: 1 / 0, "it raised ZeroDivisionError: division by zero"),
        (lambda x: x, "it raised TypeError"),
        (lambda: leaves.nothing, "it raised AttributeError"),
        (lambda: (lambda: [])()[0], "in the line `(lambda: (lambda: [])()[0]"),
        (lambda: [one for one in [[]] if one[0]], "it raised IndexError"),
    ],
)
def test_what_is_no_function_and_an_error_with_its_line_are_told(ask, answer, words):
    assert words in ask(lambda: 1, answer, cases=[()]).message


def test_recursion_without_an_end_is_an_error(ask):
    def again(n):
        return again(n + 1)

    assert "RecursionError" in ask(lambda n: n, again, cases=[(1,)]).message


# ---- Names.


def renamed(name):
    function = gives(1)
    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ("windws", "there is no exercise of this name. Notebook 02 has index_at, "),
        (renamed("windws"), "there is no exercise with the name of this function. Notebook 02 has index_at, "),
        (lambda x: x, 'a lambda has no name: write check("name", f).'),
        (3, "write check(function), without calling it"),
        (..., "write check(function)"),
        (Hostile(), "write check(func"),
    ],
)
def test_what_names_no_exercise_is_answered_with_those_that_there_are(thing, words):
    assert check(thing).message.startswith(words)
    assert len(check(thing).message) <= TWO_LINES


def test_the_names_are_those_of_the_notebook_that_runs(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ada/course/notebooks/05_arithmetic_intensity.ipynb")
    assert "Notebook 05 has saxpy_intensity, " in check("windws").message
    assert "Notebook 05 has saxpy_intensity, " in check(lambda x: x).message
    monkeypatch.setenv("JPY_SESSION_NAME", "Untitled.ipynb")
    check("card_in_gb", ...)
    assert "Notebook 00 has card_in_gb, " in check("xyzzy").message


def test_verdicts_show_in_text_and_in_html(ask):
    right = ask(2.5, 2.5)
    assert repr(right) == "✓ probe: correct."
    assert right._repr_html_().startswith('<div role="status" style="border-left:4px solid #009E73;padding:2px 8px">✓ ')
    assert repr(ask(2.5, ...)).startswith("○ probe: not attempted yet. Replace the ... above")
    assert "&lt;b&gt;" in ask(2.5, "<b>")._repr_html_()


# ---- What a right answer costs.


def aside(a, b):
    with ThreadPoolExecutor() as other:
        return other.submit(torch.add, a, b).result()


def twice_aside(a, b):
    return aside(aside(a, b), b) - b


ROWS = {"cases": [(X, 2)], "cost": "bytes_eager", "mistakes": [(lambda x, n: x[-n:].clone(), "You copied.")]}
SUM = {"cases": [(X, X)], "cost": "flops", "unit": "FLOP"}
ON_META = SUM | {"counted_at": [[X.to("meta")] * 2] * 2}
SCORED = {
    "a view": (lambda x, n: x[-n:], ROWS, lambda x, n: x[len(x) - n :], "correct."),
    "copied": (lambda x, n: x[-n:], ROWS, lambda x, n: x[-n:].clone(), r".* 64 bytes where 0 bytes .* You copied\."),
    "all copied": (lambda x, n: x[-n:], ROWS, lambda x, n: x.clone()[-n:], ".* 96 bytes .* × `clone` 96 bytes."),
    "by op": (
        torch.add,
        SUM,
        lambda a, b: a * 1 + b + b - b,
        r".* Counted by op: 2 × `add` 24 FLOP, 1 × `mul` 12 FLOP, .*",
    ),
    "method": (torch.add, SUM, lambda a, b: a.add(b), "correct."),
    "too dear": (torch.add, SUM, lambda a, b: a + 1 + b - 1, r".* takes 36 FLOP where 12 FLOP would do.*"),
    "limit": (torch.add, SUM | {"allowed_ratio": 2.5}, lambda a, b: a + 1 + b - 1, ".* 36 FLOP where 30 FLOP .*"),
    "numpy": (torch.add, SUM, lambda a, b: torch.from_numpy(a.numpy() + b.numpy()), r".*leaves PyTorch \(numpy\).*"),
    "asarray": (torch.add, SUM, lambda a, b: torch.tensor(np.asarray(a) + np.asarray(b)), ".*leaves PyTorch.*"),
    "tolist": (torch.add, SUM, lambda a, b: torch.tensor((a + b).tolist()), r".*leaves PyTorch \(tolist\).*"),
    "no rule": (torch.add, SUM, lambda a, b: a + b + 0 * torch.linalg.pinv(a).sum(), ".*there is no rule for.*"),
    "elsewhere": (
        torch.add,
        ON_META,
        lambda a, b: a + b + torch.zeros(3, 4, device="cpu"),
        ".* cannot be counted: it asks for another device, .* on the device of the inputs.",
    ),
}


@pytest.mark.parametrize("case", SCORED)
def test_a_right_answer_is_scored(ask, case):
    right, options, answer, message = SCORED[case]
    verdict = ask(right, answer, **options)
    assert re.fullmatch(message, verdict.message), verdict.message
    assert verdict.status == ("correct" if message == "correct." else "not yet")


def test_work_in_another_thread_is_counted_like_any_other(ask):
    assert ask(torch.add, aside, **SUM).status == "correct"
    assert "36 FLOP where 12 FLOP would do" in ask(torch.add, twice_aside, **SUM).message


def test_a_cost_that_is_too_high_in_some_calls_is_said():
    def by_tokens(q, k, v):
        return q @ k.T @ v if len(q) <= v.shape[1] else q @ (k.T @ v)

    shapes = "shapes (7, 11), (2, 11) and (2, 5)"
    said = f"Too dear in 8 of 32 calls, as for {shapes}: what would be cheaper there?"
    assert check("cheapest_order", by_tokens).message.endswith(said)


def test_a_loop_over_many_operations_is_not_counted_to_its_end(ask, monkeypatch):
    monkeypatch.setattr(costs, "_MOST_OPERATIONS", 3)
    by_rows = lambda x, y: torch.stack([x[i] + y[i] for i in range(len(x))])  # noqa: E731
    assert "cannot be counted: that takes too long" in ask(torch.add, by_rows, **SUM).message


# ---- Answers that only some cases betray.


def devices_up_to_1023(parameters, memory, per_parameter):
    return next((n for n in range(1, 1024) if n * memory >= parameters * per_parameter), None)


def batch_by_weight_bytes(D, F, ridge, weight_bytes):
    if weight_bytes * ridge * (D + F) >= 2 * D * F:
        return math.inf
    return math.ceil(weight_bytes * ridge * D * F / (2 * D * F - 2 * ridge * (D + F)))


def rounded_twice(value, exponent_bits, fraction_bits):
    mantissa, exponent = math.frexp(value)
    once = math.ldexp(round(mantissa * 2 ** (fraction_bits + 1)), exponent - fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    tiny = 2.0 ** (1 - bias - fraction_bits)
    if abs(once) < 2.0 ** (1 - bias):
        once = round(once / tiny) * tiny
    return math.copysign(math.inf, value) if abs(once) > (2 - 2.0**-fraction_bits) * 2.0**bias else once


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("devices_needed", devices_up_to_1023),
        ("critical_batch", batch_by_weight_bytes),
        ("round_to", rounded_twice),
    ],
)
def test_an_answer_that_few_cases_betray_is_refused(name, answer):
    assert check(name, answer).status == "not yet"


def into(make):
    """An addition that writes into a tensor made on the way."""
    return lambda a, b: torch.add(a, b, out=make(a))


@pytest.mark.parametrize("options", [SUM, ON_META], ids=["cpu", "meta"])
@pytest.mark.parametrize(
    "answer",
    [
        into(torch.empty_like),
        into(lambda a: torch.empty(a.shape)),
        into(lambda a: torch.empty(*a.shape)),
        into(lambda a: a.new_empty(a.shape)),
        into(lambda a: torch.empty(a.shape, device=a.device)),
        into(lambda a: torch.empty(a.shape, dtype=torch.float32)),
        into(lambda a: torch.zeros(a.shape)),
        lambda a, b: torch.add(a, b, alpha=float(np.float64(1))),
        lambda a, b: torch.stack([a + b])[0],
        lambda a, b: a.add(b, alpha=np.int64(1).item()),
    ],
    ids=["like", "shape", "sizes", "new", "device", "dtype", "zeros", "float", "stack", "item"],
)
def test_tensors_made_on_the_way_and_out_are_counted_where_the_inputs_are(ask, options, answer):
    assert ask(torch.add, answer, **options).message == "correct."


def swap_by_columns(x, i, j):
    for column in range(x.shape[1]):
        x[j, column], x[i, column] = x[i, column], x[j, column].clone()
    return x


def scores_in_place(q, k):
    scores = torch.empty(*q.shape[:3], k.shape[2])
    for head in range(q.shape[1]):
        torch.matmul(q[:, head], k[:, head * k.shape[1] // q.shape[1]].mT, out=scores[:, head])
    return scores


def grouped_by_einsum(q, k):
    return torch.einsum("bkgtc,bksc->bkgts", q.unflatten(1, (k.shape[1], -1)), k).flatten(1, 2)


def order_into_zeros(q, k, v):
    t, s, c, out = len(q), len(k), q.shape[1], v.shape[1]
    result = torch.zeros(t, out, dtype=q.dtype)
    if t * s * (c + out) <= c * out * (t + s):
        return torch.mm(torch.mm(q, k.T, out=torch.empty(t, s, dtype=q.dtype)), v, out=result)
    return torch.mm(q, torch.mm(k.T, v, out=torch.empty(c, out, dtype=q.dtype)), out=result)


def momentum_out(w, g, m, beta, rate):
    new = torch.add(g, m, alpha=beta, out=torch.empty(m.shape))
    return torch.add(w, new, alpha=-rate, out=torch.empty(w.shape)), new


def swap_by_zeros(x, i, j):
    kept = torch.zeros(x.shape[1], dtype=x.dtype)
    kept[:] = x[i]
    x[i] = x[j]
    x[j] = kept
    return x


def distances_by_steps(a, b):
    result = torch.mm(a, b.T, out=torch.empty(len(a), len(b)))
    result.mul_(-2).add_((a * a).sum(1, keepdim=True)).add_((b * b).sum(1))
    return result


CHEAP = {
    "unfold": ("windows", lambda x, n: x.unfold(-1, n, 1)),
    "as_strided": ("windows", lambda x, n: x.as_strided((len(x) - n + 1, n), 2 * x.stride(), x.storage_offset())),
    "columns": ("swap_rows", swap_by_columns),
    "in place": ("grouped_scores", scores_in_place),
    "einsum": ("grouped_scores", grouped_by_einsum),
    "zeros": ("cheapest_order", order_into_zeros),
    "row of zeros": ("swap_rows", swap_by_zeros),
    "new_zeros": ("last_logits", lambda h, w: torch.mv(w, h[-1], out=h.new_zeros(len(w)))),
    "momentum out": ("momentum_step", momentum_out),
    "steps": ("distances", distances_by_steps),
}


@pytest.mark.parametrize("way", CHEAP)
def test_every_way_that_moves_no_more_is_accepted(way):
    assert check(*CHEAP[way]).message == "correct."


def test_costs_that_are_close_are_told_apart():
    two_rows = check("last_logits", lambda hidden, weight: (hidden[-2:] @ weight.T)[-1]).message
    assert "takes 2.098209 GB where 2.09768 GB would do" in two_rows  # not 2.098 of 2.098


def test_what_a_function_prints_is_shown_once(ask, capsys):
    def printing(x, n):
        print(n)
        return x[-n:]

    assert "returns None" in ask(lambda n: n, print, cases=[(1,), (2,), (3,)]).message
    assert capsys.readouterr().out == "1\n"
    assert ask(lambda x, n: x[-n:], printing, **ROWS).status == "correct"
    assert capsys.readouterr().out == "2\n"


def test_a_large_result_is_judged_at_once():
    assert "got (2048, 2048)" in check("distances", lambda a, b: torch.zeros(2048, 2048)).message


def test_what_a_function_does_to_its_inputs_is_private_and_looked_at(ask):
    kept = torch.ones(3)
    options = {"cases": [(kept,), (torch.arange(3.0),)]}
    for right, answer in [(lambda x: x + 1, lambda x: x.add_(1)), (lambda x: x[None], lambda x: x.unsqueeze_(0))]:
        assert "leave the inputs as they are" in ask(right, answer, **options).message
    assert ask(lambda x: x.sum(), lambda x: x.zero_().sum(), **options).status == "not yet"
    assert kept.sum() == 3
    assert ask(lambda x: x.add_(1), lambda x: x.add_(1), in_place=True, **options).status == "correct"
    assert "change it in place" in ask(lambda x: x.add_(1), lambda x: x + 1, in_place=True, **options).message


def test_a_generator_holds_no_values_yet(ask):
    verdict = ask(lambda n: (n, n), lambda n: (n for _ in range(2)), cases=[(1,), (2,)])
    assert verdict.status == "not yet"
    assert verdict.message.endswith(
        "what you return is a generator, which holds no values yet: write tuple(...) around it."
    )


# ---- What a library remembers of a slip.


@pytest.mark.parametrize("name", ["group", "kv"])
def test_the_corrected_answer_passes_after_a_slip_that_einops_remembers(name):
    def wrong(w, heads, kv):  # a float where a whole number is needed
        sizes = {"group": heads // kv, "kv": kv}
        return reduce(w, "(kv group c) d -> (kv c) d", "mean", **sizes | {name: float(sizes[name])})

    def corrected(w, heads, kv):
        return reduce(w, "(kv group c) d -> (kv c) d", "mean", group=heads // kv, kv=kv)

    w = torch.arange(24.0).view(8, 3)
    with contextlib.suppress(Exception):
        wrong(w, 4, 2)  # in a cell of one's own
    assert check("average_heads", corrected).message == "correct."
    for _ in range(2):
        assert check("average_heads", wrong).status == "not yet"
        assert check("average_heads", corrected).message == "correct."
        corrected(w, 4, 2)  # and in a cell again
