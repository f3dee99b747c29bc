"""The checks: right answers, named mistakes, and rubbish, each answered in a calm sentence."""

import math
import re

import numpy as np
import pytest
import torch

from helpers.exercises import EXERCISES, Exercise, allocated_bytes
from helpers.exercises.exercise import add
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
        (1.0, True, "expected a number, got True"),
        (
            1.0,
            torch.tensor(1.0),
            "expected a plain number, got a tensor of shape () and dtype torch.float32;"
            " for a tensor with one element write .item()",
        ),
        (1.0, math.nan, "expected a number, got NaN (not a number)"),
        (1.0, 2, "expected 1, got 2"),
        (1.0, 1.00001, "expected 1, got 1.00001"),
        (True, 1, "expected True, got 1"),
        ("a", "b", "expected 'a', got 'b'"),
        ("a", 1, "expected 'a', got 1"),
        ("bfloat16", torch.float16, "expected 'bfloat16', got 'float16'"),
        ((1, 2), 1, "expected 2 values, got 1"),
        ((1, 2), [1, 2, 3], "expected 2 values, got [1, 2, 3]"),
        ((1, 2), [1, 3], "value 2 of 2: expected 2, got 3"),
        (((1, 2), 3), ((1, 5), 3), "value 1 of 2: value 2 of 2: expected 2, got 5"),
        (torch.zeros(2), 0, "expected a tensor, got 0"),
        (torch.zeros(2), torch.zeros(3), "expected shape (2,), got (3,)"),
        (torch.zeros(2), torch.zeros(2).half(), "expected dtype torch.float32, got torch.float16"),
        (
            torch.zeros(2),
            torch.empty(2, device="meta"),
            "expected a tensor with data, got one on the meta device",
        ),
        (torch.zeros(2), torch.tensor([0.0, math.nan]), "the result has NaN (not a number) in it"),
        (torch.full((2,), math.nan), torch.tensor([math.nan, 1.0]), "expected nan at (1,), got 1"),
        (torch.zeros(2), torch.tensor([0.0, 1.0]), "expected 0 at (1,), got 1"),
        (torch.tensor(1.0), torch.tensor(1.5), "expected 1, got 1.5"),
        (torch.tensor([0.0]), torch.tensor([1e-9]), "expected 0 at (0,), got 1e-09"),
    ],
)
def test_the_difference_is_named(right, found, words):
    assert difference(right, found) == f"probe(): {words}. Hint: Hint."


def test_numbers_within_the_tolerance_are_equal():
    assert difference(1.0, 1 + 0.5e-6) == difference((1.0, 2.0), (1.0, 2 + 1e-6)) == "correct."
    assert difference(torch.ones(2), torch.full((2,), 1 + 5e-7)) == "correct."
    assert difference(torch.tensor(math.nan), torch.tensor(math.nan)) == "correct."
    assert difference(torch.ones(2), torch.ones(2, requires_grad=True)) == "correct."
    assert difference("Bfloat16", " bFLOAT16 ") == "correct."


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (8.0, "8 is 4 times the right number"),
        (2 / 3, "0.6666667 is 0.33333 times the right number"),
        (0, "0 is not it"),
        (-2, "-2 is not it"),
        (math.inf, "inf is not it"),
        (math.nan, "expected a number, got NaN (not a number)"),
        ("2", "expected a number, got '2'"),
    ],
)
def test_a_value_is_judged_without_being_told(found, words):
    exercise = Exercise("probe", lambda: 2.0, {}, "Hint.")
    assert _judge(exercise, (found,)).message == f"{words}. Hint: Hint."


def test_a_word_is_judged_without_being_told():
    exercise = Exercise("probe", lambda: ("memory", 1.0), {}, "Hint.")
    assert _judge(exercise, ("compute", 1.0)).message == "value 1 of 2: 'compute' is not it. Hint: Hint."
    assert _judge(exercise, ("memory", 2.0)).message == "value 2 of 2: 2 is 2 times the right number. Hint: Hint."


def test_the_call_that_failed_is_shown_with_its_arguments():
    cases = ((1, "a", torch.zeros(2, 3).half()),)
    exercise = Exercise("probe", lambda *args: 5, {}, "Hint.", cases)
    shown = "probe(1, 'a', a (2, 3) float16 tensor)"
    assert _judge(exercise, (lambda *args: 6,)).message == f"{shown}: expected 5, got 6. Hint: Hint."
    wasteful = Exercise("probe", lambda *args: 5, {}, "Hint.", cases, cost=lambda f, args: 1 if f(*args) is five else 2)
    five = 5
    assert _judge(wasteful, (lambda *args: five,)).message == "correct."


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((3,), "expected a function, got 3. Pass it without calling it."),
        ((len, 3), "expected a function, got <built-in function len>, 3. Pass it without calling it."),
        ((lambda: None,), "not attempted yet: the function returns nothing. Does it end in a return?"),
        ((lambda: ...,), "not attempted yet. Replace the ... above and run the cell again."),
        ((), "not attempted yet. Replace the ... above and run the cell again."),
        ((lambda: 1 / 0,), "probe(): it raised ZeroDivisionError: division by zero. Hint: Hint."),
        ((lambda: [][0],), "probe(): it raised IndexError: list index out of range. Hint: Hint."),
    ],
)
def test_what_is_no_answer_to_an_exercise_with_cases(answers, words):
    assert _judge(Exercise("probe", lambda: 1, {}, "Hint.", ((),)), answers).message == words


def test_an_error_without_words_is_named_and_a_long_one_cut_in_the_middle():
    def fails(*words):
        def function():
            raise ValueError(*words)

        return _judge(Exercise("probe", lambda: 1, {}, "Hint.", ((),)), (function,)).message

    assert fails() == "probe(): it raised ValueError. Hint: Hint."
    assert fails("no\n  good.") == "probe(): it raised ValueError: no good. Hint: Hint."
    long = "".join(chr(97 + i % 26) for i in range(161))
    assert fails(long[:160]) == f"probe(): it raised ValueError: {long[:160]}. Hint: Hint."
    assert fails(long) == f"probe(): it raised ValueError: {long[:77]} ... {long[-78:]}. Hint: Hint."


def test_a_long_answer_is_cut_in_the_middle():
    whole, cut = "a" * 78, "a" * 36 + "b" * 43  # and two quotation marks
    assert check("card_in_gb", whole).message.startswith(f"expected a number, got '{whole}'. ")
    assert check("card_in_gb", cut).message.startswith(f"expected a number, got '{cut[:36]} ... {cut[-37:]}'. ")


def test_a_verdict_in_text_and_in_html():
    verdict = check("card_in_gb", 3.0)
    assert repr(verdict) == f"✗ card_in_gb: {verdict.message}"
    right = check("card_in_gb", EXERCISES["card_in_gb"].oracle())
    assert repr(right) == "✓ card_in_gb: correct."
    assert right._repr_html_() == (
        '<div role="status" style="border-left:4px solid #009E73;padding:2px 8px">✓ <b>card_in_gb</b>: correct.</div>'
    )
    assert repr(check("card_in_gb", ...)).startswith("○ card_in_gb: not attempted yet. Replace the ... above")
    assert "#767676" in check("card_in_gb", ...)._repr_html_()
    assert "#D55E00" in verdict._repr_html_()


def test_what_no_check_can_compare_is_said():
    assert check("card_in_gb", Hostile(), Hostile()).status == "not yet"
    assert check("gapp", 1).message == "there is no exercise of this name; did you mean 'gap'?"
    assert check("xyzzy", 1).message == "there is no exercise of this name."
    for value in 3, ...:
        assert check(value).message.endswith('Write check(function), without calling it, or check("name", value).')
    assert repr(check(len)) == "✗ len: there is no exercise of this name."
    exercise = Exercise("probe", lambda: Hostile(), {}, "Hint.")
    EXERCISES["probe"] = exercise
    try:
        words = "the answer could not be compared (RuntimeError: no comparison)."
        assert repr(check("probe", Hostile())) == f"✗ probe: {words}"
    finally:
        del EXERCISES["probe"]


def test_equal_answers_of_other_types_are_accepted():
    assert difference("bfloat16", torch.bfloat16) == "correct."
    assert difference(2, 2.0) == difference((1, 2), [1.0, 2.0]) == difference(2.0, np.float64(2)) == "correct."


def test_a_value_is_not_given_away():
    message = check("card_in_gb", 3.0).message
    assert "0.034925 times the right number" in message
    assert "85.9" not in message


def test_verdicts_escape_what_a_learner_wrote():
    assert "&lt;b&gt;" in check("card_in_gb", "<b>")._repr_html_()


@pytest.mark.parametrize(
    ("guess", "measured", "unit", "words"),
    [
        (2e9, 1e9, "B", "You predicted 2 GB; it is 1 GB: ratio 2."),
        (2e6, 1_999_999, "FLOP", "You predicted 2 MFLOP; it is 1.999999 MFLOP: ratio 1."),
        (257, 256.0, "", "You predicted 257; it is 256: ratio 1.004."),
        (256, 256.0, "", "You predicted 256: exactly right."),
        (1, 0, "", "You predicted 1; it is 0: no ratio to zero."),
        (2.4161e9, 2_415_919_104, "B", "You predicted 2.4161 GB; it is 2.4159 GB: ratio 1."),
        (1.0000000001, 1.0, "", "You predicted 1.0000000001; it is 1: ratio 1."),
        (1 / 3, 0.25, "", "You predicted 0.333333; it is 0.25: ratio 1.333."),
        (2e9, 2e9, "B", "You predicted 2 GB: exactly right."),
        (1.00000001e9, 1e9, "B", "You predicted 1.00000001 GB; it is 1 GB: ratio 1."),
        (1.000000001e9, 1e9, "B", "You predicted 1 GB; it is 1 GB: ratio 1."),
        ("View", "view", "", "You predicted 'View'; it is 'view': as predicted."),
        ("view", "view", "", "You predicted 'view'; it is 'view': as predicted."),
        ("copy", "view", "", "You predicted 'copy'; it is 'view': not as predicted."),
        ("2", 2, "B", "You predicted '2' (a number of B is needed); it is 2 bytes: not as predicted."),
        (10**400, 2, "", "no ratio (OverflowError"),
        (..., 2, "B", "Predict first: replace the ... by your guess in B and run the cell again."),
        (None, 2, "", "Predict first: replace the ... by your guess and run the cell again."),
        (True, 2, "", "You predicted True; it is 2: not as predicted."),
        (Hostile(), 2, "B", "an object of type Hostile"),
    ],
)
def test_compare_says_how_far_apart(guess, measured, unit, words):
    found = repr(compare(guess, measured, unit))
    assert found == words if words.endswith(".") else words in found


def test_compare_hides_the_value_until_there_is_a_guess():
    assert "12345" not in repr(compare(..., 12345))


X = torch.arange(12.0).view(3, 4)  # 48 byte
KEPT = torch.ones(5)


def clones_one_after_the_other(x):
    for _ in range(10):
        x.clone()
    return x


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
        (lambda x: [x.clone() for _ in range(10)][-1], 480),
        (clones_one_after_the_other, 480),  # freed at once, counted all the same
        (lambda x: torch.empty(0), 0),
        (lambda x: KEPT, 20),  # no operation in the call, but not what the caller gave, either
    ],
)
def test_allocated_bytes_counts_new_storages(function, nbytes):
    assert allocated_bytes(function, (X.clone(),)) == nbytes


def test_allocated_bytes_lets_sparse_tensors_pass():
    assert allocated_bytes(lambda x: torch.eye(3).to_sparse(), (X,)) >= 36


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
        (lambda x, n: x[-n:].clone(), r".*right, but last_rows\(.*, 2\) takes 32 bytes where .* You copied\."),
        (lambda x, n: x.clone()[-n:], r".*right, but .* takes 48 bytes where 0 bytes would do\. Hint: Slice\."),
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


PARTS = Exercise(
    "parts",
    cases=((1,), (2,)),
    oracle=lambda n: (n, 2 * n, 3 * n),
    mistakes={
        "In b you added.": lambda n: (n, n + 2, 3 * n),
        "In c you squared.": lambda n: (n, 2 * n, n * n),
        "In b and c you did nothing.": lambda n: (n, n, n),
    },
    hint="Multiply.",
)


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        (lambda n: (..., ..., ...), "not attempted", "not attempted yet. Replace the ..."),
        (lambda n: (n, ..., 3 * n), "not attempted", "2 of 3 are right, and the others are still to do."),
        (lambda n: (n, n + 2, ...), "not attempted", "value 2 of 3: expected 2, got 3. In b you added."),
        (lambda n: (n, 7, ...), "not attempted", "value 2 of 3: expected 2, got 7. The others can wait."),
        (lambda n: (n, n + 2, n * n), "not yet", "value 2 of 3: expected 2, got 3. In b you added."),
        (lambda n: (n, 2 * n, n * n), "not yet", "value 3 of 3: expected 3, got 1. In c you squared."),
        (lambda n: (n, n, n), "not yet", "value 2 of 3: expected 2, got 1. In b and c you did nothing."),
        (lambda n: (n, n, 3 * n), "not yet", "value 2 of 3: expected 2, got 1. Hint: Multiply."),
        (lambda n: (7, n + 2, 3 * n), "not yet", "value 1 of 3: expected 1, got 7. Hint: Multiply."),
        (lambda n: (n, 2 * n), "not yet", "expected 3 values, got (1, 2). Hint: Multiply."),
    ],
)
def test_an_answer_in_parts_is_judged_part_by_part(function, status, message):
    verdict = _judge(PARTS, (function,))
    assert verdict.status == status
    assert message in verdict.message


def test_a_cost_may_be_named_as_a_field_of_a_count():
    by_name = {"bytes_eager": (96, "B", "bytes"), "flops": (12, "FLOP", "FLOP")}  # 48 bytes read, 48 written; 12 sums
    for cost, (more, unit, word) in by_name.items():
        scored = Exercise("probe", lambda x: x + 2, {}, "Hint.", ((X.clone(),),), cost=cost, unit=unit)
        message = _judge(scored, (lambda x: x + 1 + 1,)).message
        assert f"takes {2 * more} {word} where {more} {word} would do" in message
        assert _judge(scored, (lambda x: x.add(2),)).status == "correct"


def test_two_exercises_of_one_name_are_refused():
    with pytest.raises(ValueError, match="there are two exercises named 'bottleneck'"):
        add("bottleneck", oracle=lambda: 1)
