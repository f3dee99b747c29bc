"""The checks: right answers however they are spelled, named mistakes, and rubbish, each answered in a calm sentence."""

import contextlib
import math
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import torch

from helpers.check import check, compare, judge
from helpers.exercises import EXERCISES, GUESSES
from helpers.exercises.exercise import Exercise, exercise, part
from helpers.timing import Timing
from tests.tools import slips
from tests.tools.course import NOTEBOOKS

SINGLE = {name: one for name, one in EXERCISES.items() if not one.parts} | {
    f"{name} {letter}": one for name, whole in EXERCISES.items() for letter, one in whole.parts.items()
}


@pytest.fixture
def ask():
    """What the check says of an answer to an exercise made for the test."""

    def ask(right, *answers, wrong=(), **options):
        EXERCISES.pop("probe", None)
        exercise("probe", right, wrong, **options)
        return check("probe", *answers)

    yield ask
    EXERCISES.pop("probe", None)


def test_each_named_mistake_is_named(monkeypatch):
    for name in SINGLE:
        monkeypatch.setitem(EXERCISES, "probe", SINGLE[name])
        for formula, sentence in SINGLE[name].wrong:
            verdict = check("probe", formula if SINGLE[name].cases else formula())
            assert (verdict.status, verdict.message[-len(sentence) :]) == ("not yet", sentence), name
            assert sentence[-1] in ".?", sentence


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_one_step_slip_of_a_solution_is_accepted(path):
    total, wrong = slips.findings(path)
    assert total > 50 and not wrong, f"add a case or a draw, or list it in `same` with a reason: {wrong}"


def gives(thing):
    return lambda *args: thing


def fails(*args):
    raise RuntimeError("nothing works")


Hostile = type("Hostile", (), {"__repr__": fails, "__eq__": fails, "__hash__": None})
X = torch.arange(12.0).view(3, 4)  # 48 bytes
RUBBISH = [
    "x", "", math.nan, math.inf, 10**400, True, 1j, [1, None], ((), ((1,),)), torch.ones(3), int, math,
    torch.full((), math.nan), torch.empty((), device="meta"), torch.eye(3).to_sparse(), np.ones(2), Hostile(), {1: 2},
]  # fmt: skip


KINDS = {
    "number": (2.5, {"unit": "GB"}), "word": ("view", {"words": ("view", "copy")}), "numbers": ((1, 2.5), {}),
    "function": (lambda n: n * n, {"cases": [(3,)], "draw": lambda r: (r.random(),)}),
    "tensor": (lambda x: x.neg_(), {"cases": [(X,)], "in_place": True, "cost": "bytes_eager"}),
    "cost": (lambda x: x + x, {"cases": [(X,)], "cost": "flops"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_rubbish_is_answered_calmly(ask, kind):
    right, options = KINDS[kind]
    for answers in (answers for x in RUBBISH for answers in ((x,), (x, x), (gives(x),))):
        verdict = ask(right, *answers, **options)
        assert verdict.status == "not yet"
        assert "\n" not in repr(verdict) and len(verdict.message) < 600
        assert "Traceback" not in verdict._repr_html_()


def test_dots_and_none_are_not_attempted():
    name = next(name for name, one in EXERCISES.items() if one.cases)
    fastest = gives(...)
    fastest.__name__ = name
    assert (check(fastest).exercise, check(fastest).status) == (name, "not attempted")
    for nothing in (None, ..., (..., ...), (1, ...)):
        assert check(name, gives(nothing)).status == "not attempted"
        assert check(name, nothing).status == check(name).status == "not attempted"


def test_every_spelling_of_a_right_answer_is_accepted(ask):
    for right, found in [
        (2, 2.0), (2, "2"), (2, np.int64(2)), (2, np.array([2])), (2, torch.tensor(2)), (2, torch.tensor([[2.0]])),
        (2, Fraction(2)), (0.5, Fraction(1, 2)), (0.5, np.float32(0.5)), (1.0, 1 + 0.5e-6),
        (True, np.bool_(True)), (True, torch.tensor(True)), (False, np.array(False)),
        ((1, 2), [1, 2]), ((1, 2), torch.Size([1, 2])), ((1, 2), np.array([1.0, 2.0])), ((1, 2), torch.tensor([1, 2])),
        ((0, 1), range(2)), ((1, 2), (torch.tensor(1), np.float64(2))), (((1, 2), 3), [[1, 2], 3]),
        ("bfloat16", torch.bfloat16), ("bfloat16", "torch.bfloat16"), ("bfloat16", " BF16 "),
        ("float8_e4m3fn", "e4m3"), ("float16", "half"), ("float8_e5m2", "fp8_e5m2"), ("float16", np.dtype("float16")),
        (math.inf, float("inf")), (math.inf, np.inf), (1 / 3, torch.tensor(1 / 3, dtype=torch.bfloat16)),
        (35072974080, np.float32(35072974848)), ((35072974080, 1), torch.tensor([35072974848.0, 1])),
    ]:  # fmt: skip
        assert ask(right, found).message == "correct."


def test_tensors_that_differ_in_what_does_not_matter_are_accepted(ask):
    for right, found in [
        (torch.ones(2), torch.full((2,), 1 + 5e-7)), (torch.ones(2), torch.ones(2, requires_grad=True)),
        (torch.tensor(2.0), torch.tensor([[2.0]])), (torch.tensor(math.nan), torch.tensor(math.nan)),
        (torch.tensor([0.0, 1.0]), torch.tensor([1e-9, 1.0])),
        (torch.ones(2), [1, 1.0]), (torch.ones(2, 2), np.ones((2, 2))),
        (torch.eye(2).long(), torch.eye(2).long().tolist()),
    ]:  # fmt: skip
        assert ask(gives(right), gives(found), cases=[()]).message == "correct."


def test_where_a_whole_number_must_be_exact_a_float_that_misses_it_is_wrong(ask):
    right = 2**24 + 1
    for near in (np.float32(right), torch.tensor(right, dtype=torch.float32), float(2**53)):
        exact = right if near != 2**53 else 2**53 + 1
        assert ask(exact, near, tolerance=0).status == "not yet"
    for near in (35072974848, 35072974848.0, np.float64(35072974848), np.float32(35072974848 + 2**16)):
        assert ask(35072974080, near).status == "not yet"
    assert ask(right, float(right), tolerance=0).status == "correct"


def test_words_may_be_cut_short_and_numbers_bring_a_unit(ask):
    assert ask("FLOP", "FLOP/s", words=("MAC", "FLOP")).status == "not yet"
    for word in ("pass", "Passes.", "PASSES"):
        assert ask("passes", word, words=("passes", "raises")).status == "correct"
    assert "write 'passes' or 'raises', not True" in ask("passes", True, words=("passes", "raises")).message
    assert ask("cache", "c", words=("cache", "clock")).status == "not yet"
    assert "write 'MAC' or 'FLOP'" in ask("MAC", "MAC/FLOP", words=("MAC", "FLOP")).message

    for text in ("85.9 GB", "85.9", "8.59e10 bytes"):
        assert ask(80 * 2**30 / 1e9, text, unit="GB", tolerance=1e-3).status == "correct", text
    assert ask(85.9, "85.9 s", unit="GB").status == "not yet"
    for text, status in (
        ("22 requests", "correct"),
        ("22 FLOP per byte", "correct"),
        ("22 GB", "not yet"),
        ("22 s", "not yet"),
    ):
        assert ask(22, text).status == status, text
    assert ask(80, "29220 days", unit="years").status == "correct"
    assert {check("gpt3_scores", k).status for k in (2.95, 2.9816, 3, "3", 3.05)} == {"correct"}
    assert "write it in GB" in ask(85.9, "80 GiB", unit="GB", tolerance=1e-2).message


def test_the_difference_is_named(ask):
    for right, found, words in [
        (1.0, "1", "expected a number, got the text '1'"), (1.0, True, "expected a number, got True"),
        (1.0, math.nan, "expected a number, got NaN (not a number)"), (1.0, 2, "expected 1, got 2"),
        (2**24 + 1, 2**24, "expected 16777217, got 16777216"), (989.5e12, 1.0, "expected 9.895e14, got 1"),
        (True, 1, "expected True, got 1"), ("a", 1, "expected 'a', got 1"), ((1, 2), 1, "expected 2 values, got 1"),
        ((1, 2), [1, 3], "value 2 of 2: expected 2, got 3"),
        (((1, 2), 3), ((1, 5), 3), "entry 1 of 2, value 2 of 2: expected 2, got 5"),
        (torch.zeros(2), 0, "expected a tensor, got 0"),
        (torch.zeros(2), torch.zeros(3), "expected shape (2,), got (3,)"),
        (torch.zeros(2), torch.zeros(2).half(), "expected dtype torch.float32, got torch.float16"),
        (torch.zeros(2), torch.empty(2, device="meta"), "expected a tensor with data, got one on the meta device"),
        (torch.zeros(2), torch.tensor([0.0, math.nan]), "the result has NaN (not a number) in it"),
        (torch.zeros(2), torch.tensor([0.0, 1.0]), "expected 0 at (1,), got 1"),
    ]:  # fmt: skip
        message = ask(gives(right), gives(found), cases=[()]).message
        assert message == f"probe(): {words}. The hint below may help."


def test_a_value_is_judged_without_being_told(ask):
    for found, words in [
        (2.1, "is too large, by at most a tenth"), (3, "is too large, by at most a factor of two"),
        (0.5, "is too small, by at most a factor of ten"),
        (30.0, "is too large, by more than a factor of ten"),
        (3e9, "is too large, by more than a factor of a thousand"),
        (-2, "has the wrong sign"), (0, "is not it"), (math.inf, "is not it"),
    ]:  # fmt: skip
        assert ask(2.0, found).message == f"{found:.7g} {words}. The hint below may help.".replace("e+0", "e")
    assert "-1 is too small in magnitude, by at most a factor of ten" in ask(-5, -1).message


def test_the_smallest_failing_case_is_shown(ask):
    message = ask(lambda a, b: a, lambda a, b: 0, cases=[(0, 1), (10**6, 2), (7, 2)]).message
    assert message.startswith("probe(7, 2): expected 7, got 0.")
    small = ask(lambda a: 1, lambda a: 2, cases=[(torch.tensor([1, 2]),)]).message
    assert small.startswith("probe(tensor([1, 2])): ")
    assert "probe(a (3, 4) float32 tensor)" in ask(lambda a: 1, lambda a: 2, cases=[(torch.ones(3, 4),)]).message


def test_drawn_inputs_find_what_the_cases_do_not(ask):
    options = {"cases": [(2,)], "draw": lambda r: (r.randint(3, 99),)}
    assert ask(lambda n: n * n, lambda n: n + n, **options).status == "not yet"
    assert ask(lambda n: n * n, lambda n: n + n, cases=[(2,)]).status == "correct"
    assert ask(lambda n: n * n, lambda n: n**2, **options).status == "correct"


HALF = [(lambda n: n / 2, "You forgot to round."), (lambda n: -(-n // 2), "You rounded up.")]


def test_a_mistake_is_named_only_if_it_explains_every_case(ask):
    for answer, sentence in [
        (lambda n: n * 0.5, "You forgot to round."), (lambda n: math.ceil(n / 2), "You rounded up."),
        (lambda n: 2 if n == 3 else 7, "The hint below may help."),  # as rounded up in the first case only
    ]:  # fmt: skip
        assert ask(lambda n: n // 2, answer, wrong=HALF, cases=[(2,), (3,), (8,)]).message.endswith(sentence)


def test_what_a_wrong_answer_has_in_common_in_every_case_is_said(ask):
    cases = [(1,), (2,), (5,)]
    for answer, sentence in (
        (lambda n: 4 * n * n, "In every case it is 4 times the right one."),
        (lambda n: n * n / 2, "In every case it is half of the right one."),
        (lambda n: n * n / 1024, "In every case it is the right one divided by 1024."),
        (lambda n: -n * n, "In every case it is right but for its sign."),
        (lambda n: n * n + 3, "In every case it is 3 too large."),
        (lambda n: 1 / n**2, "In every case it is one divided by the right one."),
        (lambda n: 25, "It is 25 in every case."),
        (lambda n: n * n - n / 10, "In every case the right one is yours, rounded up."),
        (lambda n: n * n - (n > 2), "It is sometimes right and sometimes 1 too small."),
        (lambda n: n * n + 2 * n, "The hint below may help."),
    ):
        assert ask(lambda n: n * n, answer, cases=cases).message.endswith(sentence), sentence

    flipped = ask(lambda n: torch.arange(n), lambda n: torch.arange(n).flip(0), cases=cases)
    assert flipped.message.endswith("These are the right numbers, in the wrong places.")
    assert "says yes where" in ask(lambda n: n > 1, lambda n: n <= 1, cases=cases).message
    assert "hint" in ask(7, 14).message  # nothing that would give a single value away


def test_of_two_mistakes_none_is_named_and_an_error_may_be_one(ask):
    wrong = [(4, "You added."), (4, "You multiplied.")]
    assert ask(3, 4, wrong=wrong).message.endswith("The hint below may help.")

    wrong = [(lambda n: [][0], "Mind the empty list.")]  # a mistake may be an error
    assert ask(lambda n: n, lambda n: [][1], wrong=wrong, cases=[(1,)]).message.endswith("Mind the empty list.")


def test_parts_are_judged_by_themselves(monkeypatch):
    parts = {"a": part(2, [(4, "You squared.")]), "b": part("copy", words=("view", "copy")), "c": part(3)}
    monkeypatch.setitem(EXERCISES, "probe", Exercise("probe", lambda: (2, "copy", 3), parts=parts))
    assert check("probe", 2, "copy", 3).message == "correct."
    assert check("probe", ..., ..., ...).status == "not attempted"
    assert check("probe", 2, ..., 3).message == "right: a, c; to do: b."
    verdict = check("probe", 4, ..., 3)
    assert (verdict.status, verdict.message[:32]) == ("not yet", "right: c; not right yet: a; to d")
    assert verdict.message.endswith("a: 4 is too large, by at most a factor of two. You squared.")
    assert "expected 3 answers, got 2" in check("probe", 2, "copy").message


def leaves():
    raise SystemExit("leaving")


def test_what_is_no_function_and_an_error_with_its_line_are_told(ask):
    for answer, words in [
        (3, "expected a function, got 3. Pass it without calling it."), (lambda: None, "Does it end in a return?"),
        (leaves, "it raised SystemExit: leaving"), (lambda: 1 / 0, "it raised ZeroDivisionError: division by zero"),
        (lambda x: x, "it raised TypeError"), (lambda: leaves.nothing, "it raised AttributeError"),
        (lambda: (lambda: [])()[0], "in the line `(lambda: (lambda: [])()[0]"),
    ]:  # fmt: skip
        assert words in ask(lambda: 1, answer, cases=[()]).message


def test_what_no_check_can_compare_is_said():
    for things in (("xyzzy", 1), (3,), (...,), (Hostile(),)):
        assert check(*things).message.startswith("there is no exercise of this name; write check(function), without")


def endless():
    while True:
        pass


def stubborn():
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


@pytest.mark.parametrize("answer", [endless, stubborn])
def test_an_endless_loop_is_ended(ask, monkeypatch, answer):
    monkeypatch.setattr(judge, "SECONDS", 0.5)
    assert "had not come to an end after 0.5 seconds. Does a" in ask(lambda: 1, answer, cases=[()]).message


def test_a_check_leaves_the_random_generators_alone(ask):
    def seed(number):
        random.seed(number), np.random.seed(number), torch.manual_seed(number)

    def draw():
        return random.random(), np.random.rand(), torch.rand(()).item()

    seed(5)
    expected = draw()
    seed(5)
    ask(lambda: 1, lambda: seed(1) or sum(draw()), cases=[()])
    assert draw() == expected


def test_verdicts_show_in_text_and_in_html(ask):
    right = ask(2.5, 2.5)
    assert repr(right) == "✓ probe: correct."
    assert right._repr_html_().startswith('<div role="status" style="border-left:4px solid #009E73;padding:2px 8px">✓ ')
    assert repr(ask(2.5, ...)).startswith("○ probe: not attempted yet. Replace the ... above")
    assert "&lt;b&gt;" in ask(2.5, "<b>")._repr_html_()


def test_compare_says_how_far_apart():
    for guess, right, unit, words in [
        (2e9, 1e9, "B", "You predicted 2 GB; it is 1 GB: too high by a factor of 2."),
        (257, 200.0, "", "You predicted 257; it is 200: 57 too high."),
        (256, 256.0, "", "You predicted 256; it is 256: exactly right."),
        (257, 256, "", "You predicted 257; it is 256: 1 too high."),
        (99, 100, "", "You predicted 99; it is 100: 1 too low."),
        (330, 325, "", "You predicted 330; it is 325: as good as right."),
        (335, 325, "", "You predicted 335; it is 325: 10 too high."),
        (2.42e9, 2_415_919_104, "B", "You predicted 2.42 GB; it is 2.42 GB: as good as right."),
        (1, 0, "", "You predicted 1; it is 0: too high."),
        ("40 MB", 40e6, "B", "You predicted 40 MB; it is 40 MB: exactly right."),
        ("4e7", 40e6, "B", "You predicted 40 MB; it is 40 MB: exactly right."),
        ("40 MiB", 40, "MiB", "You predicted 40 MiB; it is 40 MiB: exactly right."),
        ("140e9 bytes", 140, "GB", "You predicted 140 GB; it is 140 GB: exactly right."),
        ("70 GFLOPS", 70, "GFLOP/s", "You predicted 70 GFLOP/s; it is 70 GFLOP/s: exactly right."),
        ("2 min", 120, "s", "You predicted 2 min; it is 2 min: exactly right."),
        ("144 days", 72, "days", "You predicted 144 days; it is 72 days: too high by a factor of 2."),
        ("40 %", 0.4, "", "You predicted 0.4; it is 0.4: exactly right."),
        (np.float32(2), torch.tensor([2]), "", "You predicted 2; it is 2: exactly right."),
        ([1, 12, 4], torch.Size([1, 12, 4]), "", "it is torch.Size([1, 12, 4]): as predicted."),
        ((1.0, 12), (1, 12), "", "You predicted (1.0, 12); it is (1, 12): as predicted."),
        ((1, 13), (1, 12), "", "You predicted (1, 13); it is (1, 12): not as predicted."),
        ("View", "view", "", "You predicted 'View'; it is 'view': as predicted."),
        (torch.float32, "float32", "", "You predicted torch.float32; it is 'float32': as predicted."),
        ("many", 2, "B", "'many' cannot be read as a number of B: write one, such as 2.5e9."),
        ("about 90", 260, "days", "'about 90' cannot be read as a number of days: write one, such as 3."),
        ((1, 2), 2, "B", "You predicted (1, 2); it is 2: not as predicted."),
        (True, 2, "", "You predicted True; it is 2: not as predicted."),
        (-math.inf, 1.0, "", "You predicted -inf; it is 1.0: not as predicted."),
        (math.inf, math.inf, "", "You predicted inf; it is inf: as predicted."),
        (10**400, 2, "", "which cannot be compared (OverflowError"), (Hostile(), 2, "B", "an object of type Hostile"),
    ]:  # fmt: skip
        found = repr(compare(guess, right, unit))
        assert found == words if words.startswith("You") else words in found


def test_compare_hides_the_value_and_the_reason_until_there_is_a_guess():
    for nothing in (..., None, (..., ...)):
        words = repr(compare(nothing, 12345, "B", because="It has 12345 numbers."))
        assert words == "Predict first: replace the ... by your guess in B and run the cell again."
    assert repr(compare(12345, 12345, because="So many.")).endswith("exactly right. So many.")


def test_what_is_said_of_a_guess_is_kept_outside_the_cell(monkeypatch):
    wrong = ((8, "You forgot the write."), (lambda right: right / 3, "One of three."), (math.nan, "It stays finite."))
    wrong += (("error", "It runs."),)
    monkeypatch.setitem(GUESSES, "strides", ("", [((4, 1), "Those are the old strides.")]))
    monkeypatch.setitem(GUESSES, "it", ("It moves.", wrong))
    for guess, words in [
        (8, "4 too low. You forgot the write. It moves."), (4, "too low by a factor of 3. One of three. It moves."),
        (12, "exactly right. It moves. So."), (math.nan, "not as predicted. It stays finite. It moves."),
        ("an error", "cannot be read as a number: write one, such as 3."),
        ("Error", "not as predicted. It runs. It moves."),
    ]:  # fmt: skip
        assert repr(compare(guess, 12, about="it", because="So." if guess == 12 else "")).endswith(words)
    assert "Those are the old strides." in repr(compare([4, 1], (1, 4), about="strides"))
    assert all(repr(compare(set_, {1, 4})).endswith("]: as predicted.") for set_ in ([4, 1], {1, 4}, "4, 1"))
    assert "You forgot" not in repr(compare(9, 12, about="it")) + repr(compare(8.3, 8.7, about="it"))
    assert "one byte for a weight" in repr(compare(161, 325, about="critical_rows"))
    monkeypatch.setitem(GUESSES, "near", ("", [((9, 40), "Between."), (36, "Far."), (34, "Nearest.")]))
    assert all(repr(compare(low, 50, about="near")).endswith("Between.") for low in (9, 20, 40))
    assert not any("Between" in repr(compare(far, 50, about="near")) for far in (8.9, 40.1, 34.5, 50))
    assert repr(compare(34.5, 50, about="near")).endswith("Nearest.")
    assert repr(compare(60, 50, about="near", measured=True)).endswith(": near enough for a measurement.")
    assert "27 % too high" in repr(compare(63.5, 50, about="near", measured=True))
    assert repr(compare(36.5, 50, about="near", measured=True)).endswith("27 % too low. Far.")
    assert repr(compare(60, math.nan, about="near", measured=True)) == "You predicted 60; here it cannot be measured."
    quiet, disturbed = (Timing(1.0, 1.0, 1.0, 9, disturbed=late) for late in (False, True))
    assert repr(compare(60, 50, measured=[quiet])) == repr(compare(60, 50, measured=True))
    assert "33 % too low" in repr(compare(2, 3.0, measured=True)) and "1 too low" in repr(compare(2, 3, measured=True))
    assert repr(compare(60, 50, measured=[quiet, disturbed])).endswith("The measurement was disturbed: run it again.")
    assert "disturbed" not in repr(compare(..., 50, measured=[disturbed]))
    assert "Slower" in repr(compare(0.5, 1.86, about="gelu_in_a_cache"))
    assert "Slower" not in repr(compare(0.5, 0.86, about="gelu_in_a_cache"))
    assert "It moves" not in repr(compare(..., 12, about="it")) + repr(compare("few", 12, about="it"))
    assert repr(compare(3, 12, about="that")) == "There is no guess named 'that'. Is the name misspelt?"


def test_compare_takes_amounts_as_people_write_them():
    for guess, amount, unit in (
        ("40 billion", 40, "billion parameters"), ("40B", 40, "billion parameters"), ("10 per cent", 10, "%"),
        ("50 times", 50, ""), ("50x", 50, ""), ("2 million FLOPs", 2e6, "FLOP"),
        ("a year", 365.25, "days"), ("260 D", 260, "days"),
        ("-3/4", -0.75, ""), ("3 / 8", 0.375, ""),
        ("325 rows", 325, ""), ("341 FLOP per byte", 341, ""), ("95 tokens per second", 95, "tokens/s"),
        ("85.9 gb", 85.9, "GB"), ("85 900 000 000 bytes", 85.9, "GB"), ("85.9 gigabytes", 85.9, "GB"),
        ("3 thousand", 3000, ""),
    ):  # fmt: skip
        assert "exactly right" in repr(compare(guess, amount, unit)), guess
    assert repr(compare("nan", math.nan)) == "You predicted 'nan'; it is nan: as predicted."
    assert "It stays finite" in repr(compare(math.inf, 4e-10, about="float16_run"))
    assert repr(compare(1020, 28, "%")) == "You predicted 1,020 %; it is 28 %: 992 points too high."
    assert repr(compare(2, 3, "%")) == "You predicted 2 %; it is 3 %: 1 point too low."
    assert "cannot be read" not in repr(compare("-inf", 1.5)) and "cannot be read" in repr(compare("3/0", 1.5))
    assert repr(compare(20, 40, "billion parameters")).startswith("You predicted 20 billion parameters; it is 40 bill")


@pytest.mark.parametrize(("guess", "near"), [(6e-8, True), (5.9e-8, False), (5.96e-8, True)])
def test_two_right_digits_are_as_good_as_right(guess, near):
    assert ("as good as right" in repr(compare(guess, 2.0**-24))) == near


def test_compare_names_units_a_thousand_times_off_and_per_cents_written_as_fractions_or_factors():
    for guess, right, unit, words in [
        (140, 140e9, "B", 'If you mean 140 GB, write "140 GB".'),
        (302e6, 301.99, "MFLOP", 'If you mean 302 MFLOP, write "302 MFLOP".'),
        (40e9, 40.5, "billion parameters", 'If you mean 40 billion parameters, write "40 billion parameters".'),
        (2**25, 31, "MiB", 'If you mean 32 MiB, write "32 MiB".'),
        (0.3, 28, "%", "If that is a fraction, it is 30 %."), (1.03, 2.8, "%", "If that is a factor, it is 3 % more."),
        (0.8, -25, "%", "If that is a factor, it is 20 % less."),
    ]:  # fmt: skip
        assert repr(compare(guess, right, unit)).endswith(words)
    for guess, right, unit in [
        (1e-9, 7e-7, "s"), (140, 14e9, "B"), (0.3, 295, "FLOP/B"), (5e9, 4.8e6, "B"), ("1.03 %", 2.8, "%"),
        (2.4, 2.8, "%"), (1.02, 1.02, "%"),
    ]:  # fmt: skip
        assert "If " not in repr(compare(guess, right, unit))


def aside(a, b):
    with ThreadPoolExecutor() as other:
        return other.submit(torch.add, a, b).result()


ROWS = {"cases": [(X, 2)], "cost": "bytes_eager", "wrong": [(lambda x, n: x[-n:].clone(), "You copied.")]}
SUM = {"cases": [(X, X)], "cost": "flops", "unit": "FLOP"}


def test_a_right_answer_is_scored(ask):
    for right, options, answer, message in [
        (lambda x, n: x[-n:], ROWS, lambda x, n: x[len(x) - n :], "correct."),
        (lambda x, n: x[-n:], ROWS, lambda x, n: x[-n:].clone(), r".* 64 bytes where 0 bytes would do\. You copied\."),
        (lambda x, n: x[-n:], ROWS, lambda x, n: x.clone()[-n:], r".* 96 bytes where .* The hint below may help\."),
        (torch.add, SUM, lambda a, b: a.add(b), "correct."),
        (torch.add, SUM, lambda a, b: a + 1 + b - 1, r".* takes 36 FLOP where 12 FLOP would do.*"),
        (torch.add, SUM | {"room": 2.5}, lambda a, b: a + 1 + b - 1, ".* takes 36 FLOP where 30 FLOP would do.*"),
        (torch.add, SUM, lambda a, b: torch.from_numpy(a.numpy() + b.numpy()), r".*leaves PyTorch \(numpy\).*"),
        (torch.add, SUM, lambda a, b: torch.tensor(np.asarray(a) + np.asarray(b)), ".*leaves PyTorch.*"),
        (torch.add, SUM, lambda a, b: torch.tensor((a + b).tolist()), r".*leaves PyTorch \(tolist\).*"),
        (torch.add, SUM, lambda a, b: a + b + 0 * torch.linalg.pinv(a).sum(), ".*there is no rule for.*"),
        (torch.add, SUM | {"at": 2 * [2 * [X.to("meta")]]}, lambda a, b: torch.addcmul(a, b, torch.tensor([1.0])),
         ".*a tensor made on the way is not on the device of the inputs. Use the numbers as they are."),
        (torch.add, SUM, aside, r".*only 0 FLOP were seen of the 12 FLOP that it takes\..*"),
    ]:  # fmt: skip
        verdict = ask(right, answer, **options)
        assert re.fullmatch(message, verdict.message)
        assert verdict.status == ("correct" if message == "correct." else "not yet")


def swap_by_columns(x, i, j):
    for column in range(x.shape[1]):
        x[j, column], x[i, column] = x[i, column], x[j, column].clone()
    return x


def scores_in_place(q, k):
    scores = torch.empty(*q.shape[:3], k.shape[2])
    for head in range(q.shape[1]):
        torch.matmul(q[:, head], k[:, head * k.shape[1] // q.shape[1]].mT, out=scores[:, head])
    return scores


def test_every_way_that_moves_no_more_is_accepted():
    for name, answer in [
        ("windows", lambda x, n: x.unfold(-1, n, 1)), ("swap_rows", swap_by_columns),
        ("windows", lambda x, n: x.as_strided((len(x) - n + 1, n), 2 * x.stride(), x.storage_offset())),
        ("grouped_scores", scores_in_place),
        ("grouped_scores", lambda q, k: torch.einsum("bkgtc,bksc->bkgts", q.unflatten(1, (k.shape[1], -1)), k)
                                             .flatten(1, 2)),
    ]:  # fmt: skip
        assert check(name, answer).message == "correct.", name
    two_rows = check("last_logits", lambda hidden, weight: (hidden[-2:] @ weight.T)[-1]).message
    assert "takes 2.098209 GB where 2.09768 GB would do" in two_rows  # not 2.098 of 2.098


def test_what_a_function_prints_is_shown_once(ask, capsys):
    assert "returns None" in ask(lambda n: n, print, cases=[(1,), (2,), (3,)]).message
    assert "returns None" in check("eight_rewrites", lambda x, y, w: None).message
    assert check("eight_rewrites", lambda x, y, w: (x, y)).message == "expected 8 results, got 2."
    assert check("above_the_roof", ["cache", "clock", "dtype", "count"]).message == "correct."  # in one list
    large = check("distances", lambda a, b: torch.zeros(2048, 2048))  # judged at once, not after ten seconds
    assert "got (2048, 2048)" in large.message
    assert capsys.readouterr().out == "1\n"


def test_what_a_function_does_to_its_inputs_is_private_and_looked_at(ask):
    kept = torch.ones(3)
    options = {"cases": [(kept,), (torch.arange(3.0),)]}
    for right, answer in [(lambda x: x + 1, lambda x: x.add_(1)), (lambda x: x[None], lambda x: x.unsqueeze_(0))]:
        assert "leave the inputs as they are" in ask(right, answer, **options).message
    assert ask(lambda x: x.sum(), lambda x: x.zero_().sum(), **options).status == "not yet"
    assert kept.sum() == 3
    assert ask(lambda x: x.add_(1), lambda x: x.add_(1), in_place=True, **options).status == "correct"
    assert "change it in place" in ask(lambda x: x.add_(1), lambda x: x + 1, in_place=True, **options).message


def test_a_generator_counts_as_a_tuple_and_a_dtype_alone_is_told(ask):
    assert ask(lambda n: (n, n), lambda n: (n for _ in range(2)), cases=[(1,), (2,)]).status == "correct"
    message = ask(lambda x: x.long(), lambda x: x, cases=[(torch.ones(3),), (torch.arange(3.0),)]).message
    assert message.endswith("The numbers are right.")
