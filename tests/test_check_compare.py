"""`compare`: how far a guess is from the value, in words; nothing before there is a guess."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from helpers.check import compare
from helpers.exercises import GUESSES, Guess
from helpers.timing import Timing
from tests.test_check import Hostile


def said(*arguments, **options):
    return repr(compare(*arguments, **options))


@pytest.mark.parametrize(
    ("guess", "value", "unit", "words"),
    [
        (2e9, 1e9, "B", "You predicted 2 GB; it is 1 GB: too high by a factor of 2."),
        (257, 200.0, "", "You predicted 257; it is 200: 57 too high."),
        (256, 256.0, "", "You predicted 256; it is 256: exactly right."),
        (257, 256, "", "You predicted 257; it is 256: 1 too high."),
        (99, 100, "", "You predicted 99; it is 100: 1 too low."),
        (330, 325, "", "You predicted 330; it is 325: as good as right."),
        (335, 325, "", "You predicted 335; it is 325: 10 too high."),
        (2.42e9, 2_415_919_104, "B", "You predicted 2.42 GB; it is 2.42 GB: as good as right."),
        (1, 0, "", "You predicted 1; it is 0: too high."),
        (-1, 2.5, "", "You predicted -1; it is 2.5: too low."),
        (2.5, 2.0, "", "You predicted 2.5; it is 2: 25 % too high."),
        ("40 MB", 40e6, "B", "You predicted 40 MB; it is 40 MB: exactly right."),
        ("4e7", 40e6, "B", "You predicted 40 MB; it is 40 MB: exactly right."),
        ("40 MiB", 40, "MiB", "You predicted 40 MiB; it is 40 MiB: exactly right."),
        ("140e9 bytes", 140, "GB", "You predicted 140 GB; it is 140 GB: exactly right."),
        ("70 GFLOPS", 70, "GFLOP/s", "You predicted 70 GFLOP/s; it is 70 GFLOP/s: exactly right."),
        ("2 min", 120, "s", "You predicted 2 min; it is 2 min: exactly right."),
        ("144 days", 72, "days", "You predicted 144 days; it is 72 days: too high by a factor of 2."),
        ("40 %", 0.4, "", "You predicted 0.4; it is 0.4: exactly right."),
        (
            20,
            40,
            "billion parameters",
            "You predicted 20 billion parameters; it is 40 billion parameters: too low by a factor of 2.",
        ),
        (1020, 28, "%", "You predicted 1,020 %; it is 28 %: 990 points too high."),
        (2, 3, "%", "You predicted 2 %; it is 3 %: 1 point too low."),
        (np.float32(2), torch.tensor([2]), "", "You predicted 2; it is 2: exactly right."),
        (
            [1, 12, 4],
            torch.Size([1, 12, 4]),
            "",
            "You predicted [1, 12, 4]; it is torch.Size([1, 12, 4]): as predicted.",
        ),
        ((1.0, 12), (1, 12), "", "You predicted (1.0, 12); it is (1, 12): as predicted."),
        ((1, 13), (1, 12), "", "You predicted (1, 13); it is (1, 12): not as predicted."),
        ("View", "view", "", "You predicted 'View'; it is 'view': as predicted."),
        (torch.float32, "float32", "", "You predicted torch.float32; it is 'float32': as predicted."),
        ("1 to 2", 3, "B", "You predicted 1 byte to 2 bytes; it is 3 bytes: 33 % too low."),
        ("38 to 43 %", 40, "%", "You predicted 38 % to 43 %; it is 40 %: within your range."),
        ("between 1e-3 and 2e-3", 4e-3, "", "You predicted 0.001 to 0.002; it is 0.004: too low by a factor of 2."),
        ("30-40 MB", 45e6, "B", "You predicted 30 MB to 40 MB; it is 45 MB: 11 % too low."),
        (-math.inf, 1.0, "", "You predicted -inf; it is 1: too low."),
        (10**400, 2, "", "You predicted inf; it is 2: too high."),
        (math.inf, math.inf, "", "You predicted inf; it is inf: as predicted."),
        (math.nan, 4.000000053405728e-10, "", "You predicted nan; it is 4e-10: not as predicted."),
        ("6 to 27", 27.6, "%", "You predicted 6 % to 27 %; it is 27.6 %: 0.6 points too low."),
        (
            "11 * 2 / 20",
            10,
            "%",
            "You predicted 1.1 %; it is 10 %: 8.9 points too low. If that is a factor, it is 10 % more.",
        ),
        ("nan", math.nan, "", "You predicted 'nan'; it is nan: as predicted."),
        ("less than a third", 40, "%", "You predicted less than 33.3 %; it is 40 %: 6.7 points too low."),
        ("over 90", 96.6, "%", "You predicted more than 90 %; it is 96.6 %: within your range."),
        ("28%-30%", 40, "%", "You predicted 28 % to 30 %; it is 40 %: 10 points too low."),
        ("16 bits", 2, "B", "You predicted 2 bytes; it is 2 bytes: exactly right."),
        ("27 TFLOPs", 27e12, "FLOP/s", "You predicted 27 TFLOP/s; it is 27 TFLOP/s: exactly right."),
        ("3 %", 27e12, "FLOP/s", "'3 %' cannot be read as a number of FLOP/s: write one, such as 2.5e9."),
        ("a copy", "copy", "", "You predicted 'copy'; it is 'copy': as predicted."),
    ],
)
def test_how_far_apart_they_are(guess, value, unit, words):
    assert said(guess, value, unit) == words


@pytest.mark.parametrize(
    ("guess", "value", "unit", "words"),
    [
        ("many", 2, "B", "'many' cannot be read as a number of B: write one, such as 2.5e9."),
        ("ninety nine", 260, "days", "'ninety nine' cannot be read as a number of days: write one, such as 3."),
        ("3/0", 1.5, "", "'3/0' cannot be read as a number: write one, such as 3, 1/2 or 4e-7."),
        ("9^999", 1.5, "", "'9^999' cannot be read as a number"),
        ((27, 6), 1.5, "%", "(27, 6) is no single number: a decimal has a point, as 27.6, thousands have no comma, "),
        ([1, 500], 1.5, "", "[1, 500] is no single number: "),
        (True, 1.5, "", "True cannot be read as a number: write one, such as 3, 1/2 or 4e-7."),
        (1j, 1.5, "", "1j cannot be read as a number"),
        (said, 1.5, "", "<function said> cannot be read as a number"),
        (torch.ones(3), 1.5, "", "a tensor of shape (3,) and dtype torch.float32 cannot be read as a number"),
        (Hostile(), 1.5, "B", "an object of type Hostile cannot be read as a number of B"),
        (True, (7, 8), "", "Several numbers are asked for, and True is none: write them as (1, 2)."),
        (12, "view", "", "Write a word, not 12."),
    ],
)
def test_what_cannot_be_compared_is_said(guess, value, unit, words):
    message = said(guess, value, unit, because="It is 1.5.")
    assert words in message and "1.5" not in message and "view" not in message


@pytest.mark.parametrize("nothing", [..., None, (..., ...), [1, ...], "", " … ", "?"], ids=repr)
def test_the_value_and_the_reason_are_hidden_until_there_is_a_guess(nothing):
    words = "Predict first: replace the ... by your guess in B and run the cell again."
    assert said(nothing, 12345, "B", because="It has 12345 numbers.") == words
    assert said(nothing, 12345, "B", about="cache_repeated") == words


@pytest.mark.parametrize(
    ("value", "options", "answer"),
    [
        (64e6, {"unit": "B", "because": "It reads and writes."}, "It is 64 MB. It reads and writes."),
        (2.5, {"measured": True}, "Where this was measured, it is 2.5."),
        (["view", "copy"], {}, "It is ['view', 'copy']."),
        (Hostile(), {}, "It is an object of type Hostile."),
        (math.nan, {"measured": True}, ""),
    ],
)
def test_before_a_guess_the_answer_goes_along_unseen_for_pages_and_slides(value, options, answer):
    data, metadata = compare(..., value, **options)._repr_mimebundle_()
    assert list(data) == ["text/plain"] and data["text/plain"].startswith("Predict first")
    assert metadata == ({"answer": answer} if answer else {})
    assert not compare(1, value, **options)._repr_mimebundle_()[1]


def test_the_reason_is_said_after_a_guess():
    assert said(12345, 12345, because="So many.").endswith("exactly right. So many.")


@pytest.mark.parametrize(
    ("guess", "value", "unit"),
    [
        ("40 billion", 40, "billion parameters"),
        ("40B", 40, "billion parameters"),
        ("10 per cent", 10, "%"),
        ("50 times", 50, ""),
        ("50x", 50, ""),
        ("2 million FLOPs", 2e6, "FLOP"),
        ("a year", 365.25, "days"),
        ("260 D", 260, "days"),
        ("half a year", 365.25 / 2, "days"),
        ("-3/4", -0.75, ""),
        ("3 / 8", 0.375, ""),
        ("325 rows", 325, ""),
        ("341 FLOP per byte", 341, ""),
        ("95 tokens per second", 95, "tokens/s"),
        ("85.9 gb", 85.9, "GB"),
        ("85 900 000 000 bytes", 85.9, "GB"),
        ("85.9 gigabytes", 85.9, "GB"),
        ("85,9 GB", 85.9, "GB"),
        ("1,000", 1000, ""),
        ("3 thousand", 3000, ""),
        ("about 40", 40, "%"),
        ("~40 or so", 40, "%"),
        ("forty", 40, "%"),
        ("4e1", 40, "%"),
        (40.0, 40, "%"),
        (Decimal(40), 40, "%"),
        (Fraction(40), 40, "%"),
        ({40}, 40, "%"),
        (torch.tensor([40]), 40, "%"),
        ("4 × 10⁷", 40e6, "FLOP"),
        ("4*10**7 FLOP", 40, "MFLOP"),
        ("2^10", 1024, ""),
        ("none", 0, ""),
        ("140 G", 140e9, "B"),
        ("2 x 1.57", 3.14, ""),
        ("2 * 3 / 4", 1.5, ""),
        ("2**-10", 2**-10, ""),
        ("3 × 2^4 FLOP", 48, "FLOP"),
        ("1/2 year", 365.25 / 2, "days"),
    ],
)
def test_amounts_are_taken_as_people_write_them(guess, value, unit):
    assert "exactly right" in said(guess, value, unit)


@pytest.mark.parametrize(("guess", "near"), [(6e-8, True), (5.9e-8, False), (5.96e-8, True)])
def test_two_right_digits_are_as_good_as_right(guess, near):
    assert ("as good as right" in said(guess, 2.0**-24)) == near


@pytest.mark.parametrize("guess", [[4, 1], {1, 4}, "4, 1"], ids=repr)
def test_a_set_may_come_in_any_order(guess):
    assert said(guess, {1, 4}).endswith("]: as predicted.")


# ---- What else a number may mean.


@pytest.mark.parametrize(
    ("guess", "value", "unit", "words"),
    [
        (140, 140e9, "B", 'If you mean 140 GB, write "140 GB".'),
        (302e6, 301.99, "MFLOP", 'If you mean 302 MFLOP, write "302 MFLOP".'),
        (40e9, 40.5, "billion parameters", 'If you mean 40 billion parameters, write "40 billion parameters".'),
        (2**25, 31, "MiB", 'If you mean 32 MiB, write "32 MiB".'),
        (0.3, 28, "%", "If that is a fraction, it is 30 %."),
        (1.03, 2.8, "%", "If that is a factor, it is 3 % more."),
        (0.8, -25, "%", "If that is a factor, it is 20 % less."),
    ],
)
def test_another_meaning_is_offered(guess, value, unit, words):
    assert said(guess, value, unit).endswith(words)


@pytest.mark.parametrize(
    ("guess", "value", "unit"),
    [
        (1e-9, 7e-7, "s"),
        (140, 14e9, "B"),
        (0.3, 295, "FLOP/B"),
        (5e9, 4.8e6, "B"),
        ("1.03 %", 2.8, "%"),
        (2.4, 2.8, "%"),
        (1.02, 1.02, "%"),
    ],
)
def test_no_other_meaning_is_offered_where_none_is_likely(guess, value, unit):
    assert "If " not in said(guess, value, unit)


# ---- What is said of a guess is kept outside the cell.


@pytest.fixture
def listed(monkeypatch):
    """Guesses made for the test."""
    mistakes = [
        (8, "You forgot the write."),
        (12.01, "All digits."),
        (lambda right: right / 3, "One of three."),
        (math.nan, "It stays finite."),
        ("error", "It runs."),
    ]
    monkeypatch.setitem(GUESSES, "it", Guess("It moves.", mistakes, "02"))
    monkeypatch.setitem(GUESSES, "strides", Guess("", [((4, 1), "Those are the old strides."), ("error", "It runs.")]))
    monkeypatch.setitem(GUESSES, "near", Guess("", [((9, 40), "Between."), (36, "Far."), (34, "Nearest.")]))


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (8, "4 too low. You forgot the write. It moves."),
        (4, "too low by a factor of 3. One of three. It moves."),
        (12, "exactly right. It moves."),
        (math.nan, "not as predicted. It stays finite. It moves."),
        ("an error", "cannot be read as a number: write one, such as 3, 1/2 or 4e-7."),
        ("Error", "not as predicted. It runs. It moves."),
        (9, "3 too low. It moves."),
        (12.01, "0.083 % too high. All digits. It moves."),
        (12.012, "as good as right. It moves."),
    ],
)
def test_a_listed_mistake_is_named(listed, guess, words):
    assert said(guess, 12, about="it").endswith(words)


def test_a_near_guess_is_not_yet_the_mistake(listed):
    assert "You forgot" not in said(8.3, 8.7, about="it")
    for spelled in ([4, 1], "4, 1", "(4, 1)"):
        assert "Those are the old strides." in said(spelled, (1, 4), about="strides")
    assert "'error'; it is (1, 4): not as predicted. It runs." in said("error", (1, 4), about="strides")
    assert "one byte for a weight" in said(161, 325, about="critical_rows")


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (9, "Between."),
        (20, "Between."),
        (40, "Between."),
        (34.5, "Nearest."),
        (8.9, "5.6."),
        (40.1, "20 % too low."),
        (50, "exactly right."),
    ],
)
def test_a_number_counts_more_than_a_range_and_the_nearest_most(listed, guess, words):
    assert said(guess, 50, about="near").endswith(words)


@pytest.mark.parametrize(
    ("guess", "value", "words"),
    [
        (60, 50, ": near enough for a measurement."),
        (63.5, 50, "27 % too high."),
        (36.5, 50, "27 % too low. Far."),
        (60, math.nan, "You predicted 60; here it cannot be measured."),
        (2, 3.0, "33 % too low."),
        (2, 3, "1 too low."),
    ],
)
def test_a_measurement_scatters(listed, guess, value, words):
    assert said(guess, value, about="near", measured=True).endswith(words)


def test_a_disturbed_measurement_is_told_after_a_guess():
    quiet, disturbed = (Timing(1.0, 1.0, 1.0, 9, disturbed=late) for late in (False, True))
    assert said(60, 50, measured=[quiet]) == said(60, 50, measured=True)
    assert said(60, 50, measured=[quiet, disturbed]).endswith("The measurement was disturbed: run it again.")
    assert "disturbed" in said(60, 50, because="A long reason." * 20, measured=[disturbed])
    assert "disturbed" not in said(..., 50, measured=[disturbed])


@pytest.mark.parametrize(("value", "is_said"), [(1.86, True), (0.86, False)])
def test_a_mistake_may_depend_on_the_value(value, is_said):
    assert ("Slower" in said(0.5, value, about="gelu_in_a_cache")) == is_said


def test_infinity_may_be_a_mistake():
    assert "It stays finite" in said(math.inf, 4e-10, about="float16_run")


@pytest.mark.parametrize("guess", [..., "few"], ids=repr)
def test_the_reason_is_not_said_without_a_guess(listed, guess):
    assert "It moves" not in said(guess, 12, about="it")


def test_a_name_that_no_guess_has_is_answered_with_those_that_there_are():
    words = "There is no guess named 'three_wrds'. Notebook 02 has seven_lines, three_words, "
    assert said(3, 12, about="three_wrds").startswith(words)
