"""The checks: right answers, named mistakes, and rubbish, each answered in a calm sentence."""

import math
import re

import numpy as np
import pytest
import torch

from helpers.exercises import EXERCISES, Exercise, allocated_bytes
from helpers.selfcheck import _judge, check, compare

FUNCTIONS = [name for name, exercise in EXERCISES.items() if exercise.cases]


def judged(exercise, function):
    """The verdict on a function, or on the value or values that it returns where the exercise asks for those."""
    if exercise.cases:
        return check(exercise.name, function)
    answer = function()
    return check(exercise.name, *answer) if isinstance(answer, tuple) else check(exercise.name, answer)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.name)
def test_the_oracle_is_correct(exercise):
    assert judged(exercise, exercise.oracle).status == "correct"


@pytest.mark.parametrize(
    ("exercise", "mistake"),
    [(exercise, mistake) for exercise in EXERCISES.values() for mistake in exercise.mistakes],
    ids=lambda x: x.name if isinstance(x, Exercise) else x[:30],
)
def test_each_named_mistake_is_recognised(exercise, mistake):
    verdict = judged(exercise, exercise.mistakes[mistake])
    assert verdict.status == "not yet"
    assert verdict.message.endswith(mistake)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.name)
def test_an_exercise_has_mistakes_and_a_hint_in_sentences(exercise):
    assert len(exercise.mistakes) >= 3
    for text in (*exercise.mistakes, exercise.hint):
        assert text[0].isupper() or text.startswith(("float", "bfloat"))
        assert text[-1] in ".?"


class Hostile:
    """An answer that fails at everything."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None


def raises(*args):
    raise SystemExit("leaving")


RUBBISH = {
    "a string": "x",
    "an empty string": "",
    "NaN": math.nan,
    "infinity": math.inf,
    "a huge integer": 10**400,
    "a bool": True,
    "a complex number": 1j,
    "a list": [1, None],
    "a nested tuple": ((), ((1,),)),
    "a tensor": torch.ones(3),
    "a tensor of NaN": torch.full((), math.nan),
    "a meta tensor": torch.empty((), device="meta"),
    "an integer tensor": torch.tensor(1),
    "a sparse tensor": torch.eye(3).to_sparse(),
    "an array": np.ones(2),
    "a class": int,
    "a module": math,
    "an object that fails at everything": Hostile(),
}


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("rubbish", RUBBISH)
def test_rubbish_is_answered_calmly(exercise, rubbish):
    thing = RUBBISH[rubbish]
    verdicts = [check(exercise, thing), check(exercise, thing, thing)]
    if exercise in FUNCTIONS:
        verdicts.append(check(exercise, lambda *args: thing))
    for verdict in verdicts:
        assert verdict.status == "not yet"
        assert "\n" not in repr(verdict)
        assert len(verdict.message) < 600
        assert "Traceback" not in verdict._repr_html_()


@pytest.mark.parametrize("exercise", FUNCTIONS)
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (raises, "it raised SystemExit: leaving"),
        (lambda *args: 1 / 0, "it raised ZeroDivisionError: division by zero"),
        (lambda: 1, "it raised TypeError"),
        (lambda *args: raises.nothing, "it raised AttributeError"),
    ],
)
def test_an_answer_that_raises_is_told_so(exercise, function, words):
    verdict = check(exercise, function)
    assert verdict.status == "not yet"
    assert words in verdict.message


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("nothing", [(), (None,), (...,), (1, None), (..., 1)])
def test_dots_and_none_are_not_attempted(exercise, nothing):
    assert check(exercise, *nothing).status == "not attempted"


@pytest.mark.parametrize("exercise", FUNCTIONS)
@pytest.mark.parametrize("nothing", [None, ..., (..., ...), (1, ...)], ids=str)
def test_a_function_that_returns_dots_is_not_attempted(exercise, nothing):
    assert check(exercise, lambda *args: nothing).status == "not attempted"


def test_a_function_is_checked_by_its_name():
    def gap(value, fraction_bits):
        return ...

    assert check(gap).exercise == "gap"
    assert check(gap).status == "not attempted"


@pytest.mark.parametrize("exercise", ["gapp", "", 3, None, Hostile(), lambda: 1])
def test_an_unknown_exercise_is_no_error(exercise):
    verdict = check(exercise, 1)
    assert "there is no exercise of this name" in verdict.message
    assert check("gapp", 1).message.endswith("did you mean 'gap'?")


def test_the_learners_function_cannot_spoil_the_cases():
    def stable_sum(values):
        values.zero_()
        return values.sum()

    assert check(stable_sum).status == "not yet"
    assert EXERCISES["stable_sum"].cases[0][0][0] == 1


def difference(right, found, cases=((),)):
    """What the check says when the right answer is this and the learner's function returns that."""
    return _judge(Exercise("probe", lambda: right, {}, "Hint.", cases), (lambda: found,)).message


@pytest.mark.parametrize(
    ("right", "found", "words"),
    [
        (1.0, "1", "expected a number, got '1'"),
        (1.0, torch.tensor(1.0), "write .item()"),
        (1.0, math.nan, "got NaN (not a number)"),
        (1.0, 2, "expected 1, got 2"),
        ("a", "b", "expected 'a', got 'b'"),
        ((1, 2), 1, "expected 2 values, got 1"),
        ((1, 2), [1, 3], "value 2 of 2: expected 2, got 3"),
        (torch.zeros(2), 0, "expected a tensor, got 0"),
        (torch.zeros(2), torch.zeros(3), "expected shape (2,), got (3,)"),
        (torch.zeros(2), torch.zeros(2).half(), "expected dtype torch.float32, got torch.float16"),
        (torch.zeros(2), torch.empty(2, device="meta"), "got one on the meta device"),
        (torch.zeros(2), torch.full((2,), math.nan), "has NaN (not a number) in it"),
        (torch.zeros(2), torch.tensor([0.0, 1.0]), "expected 0 at (1,), got 1"),
    ],
)
def test_the_difference_is_named(right, found, words):
    assert words in difference(right, found)


def test_equal_answers_of_other_types_are_accepted():
    assert difference(2, 2.0) == difference((1, 2), [1.0, 2.0]) == difference(2.0, np.float64(2)) == "correct."


def test_a_value_is_not_given_away():
    message = check("card_in_gb", 3.0).message
    assert "0.0349 times the right number" in message
    assert "85.9" not in message


def test_verdicts_escape_what_a_learner_wrote():
    assert "&lt;b&gt;" in check("card_in_gb", "<b>")._repr_html_()


@pytest.mark.parametrize(
    ("guess", "measured", "unit", "words"),
    [
        (2e9, 1e9, "B", "You predicted 2 GB; it is 1 GB: ratio 2."),
        (1, 0, "", "no ratio to zero"),
        ("view", "view", "", "You predicted 'view'; it is 'view': as predicted."),
        ("copy", "view", "", "not as predicted"),
        ("2", 2, "B", "a number of B is needed"),
        (10**400, 2, "", "no ratio (OverflowError"),
        (..., 2, "B", "Predict first: replace the ... by your guess in B"),
        (None, 2, "", "Predict first"),
        (True, 2, "", "not as predicted"),
        (Hostile(), 2, "B", "an object of type Hostile"),
    ],
)
def test_compare_says_how_far_apart(guess, measured, unit, words):
    assert words in repr(compare(guess, measured, unit))


def test_compare_hides_the_value_until_there_is_a_guess():
    assert "12345" not in repr(compare(..., 12345))


X = torch.arange(12.0).view(3, 4)  # 48 byte


@pytest.mark.parametrize(
    ("function", "nbytes"),
    [
        (lambda x: x, 0),
        (lambda x: x.t()[1:].unfold(0, 2, 1).diagonal(), 0),
        (lambda x: x.expand(5, 3, 4).reshape(15, 4), 240),
        (lambda x: x.reshape(12), 0),
        (lambda x: x.t().reshape(12), 48),
        (lambda x: x.contiguous(), 0),
        (lambda x: x.t().contiguous(), 48),
        (lambda x: x[[0, 1]], 32 + 2 * 8),  # the list becomes an index of int64
        (lambda x: x + 1 + 1, 96),  # a temporary counts
        (lambda x: x.add_(1).relu_(), 0),
        (lambda x: (x[0].clone(), x[0].clone()), 32),
        (lambda x: torch.tensor(x.tolist()), 48),
        (lambda x: torch.from_numpy(x.numpy().copy()), 48),
        (lambda x: [x.clone() for _ in range(10)][-1], 480),  # freed at once, counted all the same
        (lambda x: torch.empty(0), 0),
        (lambda x: torch.eye(3).to_sparse(), 36),
    ],
)
def test_allocated_bytes_counts_new_storages(function, nbytes):
    found = allocated_bytes(function, (X.clone(),))
    assert found == nbytes or (nbytes == 36 and found >= 36)  # to_sparse asks for indices as well


SCORED = Exercise(
    "last_rows",
    cases=((X, 2), (X.double(), 1)),
    oracle=lambda x, n: x[-n:],
    mistakes={"You copied.": lambda x, n: x[-n:].clone(), "You took the first rows.": lambda x, n: x[:n]},
    hint="Slice.",
    cost=allocated_bytes,
)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, n: x[len(x) - n :], "correct."),
        (lambda x, n: x[-n:].clone(), r"the result is right, but .* takes 32 B where 0 B would do\. You copied\."),
        (lambda x, n: x.clone()[-n:], r"the result is right, but .* takes 48 B where 0 B would do\. Hint: Slice\."),
        (lambda x, n: x[:n].clone(), r".*expected 4 at \(0, 0\), got 0\. You took the first rows\."),
        (lambda x, n: x[-n:].double(), r".*expected dtype torch.float32, got torch.float64\. Hint: Slice\."),
        (lambda x, n: None, "not attempted yet.*"),
    ],
)
def test_a_right_answer_that_costs_too_much_is_told_both_costs(function, message):
    verdict = _judge(SCORED, (function,))
    assert re.fullmatch(message, verdict.message)
    assert (verdict.status == "correct") == (message == "correct.")


def test_a_cheaper_answer_than_the_oracles_is_correct():
    wasteful = Exercise("probe", lambda x: x.clone(), {}, "Hint.", ((X,),), cost=allocated_bytes)
    assert _judge(wasteful, (lambda x: x,)).status == "correct"


def test_a_cost_has_its_own_unit():
    scored = Exercise("probe", lambda n: n, {}, "Hint.", ((1,),), cost=lambda f, args: f.price, unit="FLOP")
    scored.oracle.price = 10

    def answer(n):
        return n

    answer.price = 2000
    assert "takes 2 kFLOP where 10 FLOP would do. Hint: Hint." in _judge(scored, (answer,)).message


def test_a_cost_may_be_named_as_a_field_of_a_count():
    by_name = {"bytes_eager": 96, "flops": 12}  # 48 byte read and 48 written; an addition per number
    for cost, more in by_name.items():
        unit = "FLOP" if cost == "flops" else "B"
        scored = Exercise("probe", lambda x: x + 2, {}, "Hint.", ((X.clone(),),), cost=cost, unit=unit)
        message = _judge(scored, (lambda x: x + 1 + 1,)).message
        assert f"takes {2 * more} {unit} where {more} {unit} would do" in message
        assert _judge(scored, (lambda x: x.add(2),)).status == "correct"
