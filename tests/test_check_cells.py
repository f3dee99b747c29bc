"""Cells that Python cannot read, or that raise: a guess becomes a text, an answer a verdict, and Run All goes on."""

import ast
import linecache

import pytest
import torch

from helpers.check import check, compare
from helpers.check.cells import guarded, readable


def shown(cell):
    """What a cell shows whose last line is an expression."""
    cell, name = readable(cell), f"<cell {hash(cell)}>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    *before, last = guarded(ast.parse(cell)).body
    names = {"check": check, "compare": compare, "torch": torch, "__name__": "__main__"}
    exec(compile(ast.Module(before, []), name, "exec"), names)
    return repr(eval(compile(ast.Expression(last.value), name, "eval"), names))


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        ("40", "You predicted 40 %"),
        ("40  # per cent", "You predicted 40 %"),
        ("40 %", "You predicted 40 %"),
        ("about 40 % # I think", "You predicted 40 %"),
        ("38 to 43  # per cent", "You predicted 38 % to 43 %"),
        ("2^10", "You predicted 1,024 %"),
        ("forty", "You predicted 40 %"),
        ("", "Predict first"),
        ("  # per cent", "Predict first"),
        ("…", "Predict first"),
        ("...  # per cent", "Predict first"),
        ("(40", "'(40' cannot be read as a number of %"),
        ("1 / 0", "'1 / 0' cannot be read as a number of %"),
        ("many", "'many' cannot be read as a number of %"),
        ("'40 %'", "You predicted 40 %"),
    ],
)
def test_a_guess_may_be_written_as_one_would_say_it(guess, words):
    assert shown(f'guess = {guess}\ncompare(guess, 50, "%")').startswith(words)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (
            'answer = 85 GB\n\ncheck("card_in_gb", answer)',
            "Python cannot read line 1, `answer = 85 GB`: invalid syntax. ",
        ),
        (
            "def windows(x, size):\n    return x[\n\n\ncheck(windows)",
            "Python cannot read line 2, `return x[`: '[' was never",
        ),
        (
            "def windows(x, size):\n\n\ncheck(windows)",
            "Python cannot read line 4, `check(windows)`: expected an indented",
        ),
        ("return 3\ncheck('card_in_gb', 3)", "Python cannot read line 1, `return 3`: 'return' outside function"),
        (
            "answer = 80 * GIBI\ncheck('card_in_gb', answer)",
            "line 1, `answer = 80 * GIBI`: Nothing is called `GIBI` here. Is it spelled right",
        ),
        (
            "answer = 3\ncheck('card_in_gb', anwser)",
            "line 2, `check('card_in_gb', anwser)`: Nothing is called `anwser` here. Is `answer` meant?",
        ),
        (
            "check('card_in_gb', 80 * math.pi)",
            "line 1, `check('card_in_gb', 80 * math.pi)`: `math` is not imported here: import math.",
        ),
        (
            "answer = 80 * 2^30 / 1e9\ncheck('card_in_gb', answer)",
            "the cell stopped in line 1, `answer = 80 * 2^30 / 1e9`: TypeError: unsupported operand type(s) for ^: "
            "'int' and 'float'. In Python ^ is XOR: a power is written **.",
        ),
        (
            "a, b, c, d = 'bfloat16, float16, float8_e4m3fn, float8_e5m2'\ncheck('card_in_gb', a)",
            "the cell stopped in line 1, `a, b, c, d = 'bfloat16, float16, float8_e4m3fn, float8_e5m2'`. "
            "There are more values than the 4 names. Of one text, each character is a value.",
        ),
        (
            "a, b, c = 'view' 'copy', 'view'\ncheck('card_in_gb', a)",
            "the cell stopped in line 1, `a, b, c = 'view' 'copy', 'view'`: ValueError: not enough values to unpack "
            "(expected 3, got 2). 2 values for 3 names: is one missing, or a comma?",
        ),
        (
            "answer = 1 / 0\ncheck('card_in_gb', answer)",
            "the cell stopped in line 1, `answer = 1 / 0`: ZeroDivisionError: division",
        ),
        (
            "x = torch.zeros(2)\n\ndef windows(x):\n    return x @ torch.zeros(3)\n\nwindows(x)\ncheck(windows)",
            "the cell stopped in line 4, `return x @ torch.zeros(3)`: RuntimeError: ",
        ),
    ],
)
def test_an_answer_that_cannot_run_gets_a_verdict(cell, words):
    name = "windows" if "windows" in cell else "card_in_gb"
    message = shown(cell)
    assert message.startswith(f"✗ {name}: {words}") and len(message) < 200


@pytest.mark.parametrize(
    "cell",
    [
        "def windows(x, size):\n    return rearrange(x, undefined)\n\n\nwindows",
        "guess = 3\ncompare(guess, 1)",
        "%time x = 3\ncheck('card_in_gb', x)",
        "x = \n",
        "undefined",
    ],
)
def test_any_other_cell_stays_as_it_is(cell):
    assert readable(cell) == cell


def test_a_word_that_is_written_as_a_name_belongs_in_quotes():
    said = shown("a = cache\ncheck('above_the_roof', a)")
    assert said == '✗ above_the_roof: line 1, `a = cache`: A word is written in quotes: "cache".'


def test_a_library_that_divides_by_zero_is_no_division_of_the_cell():
    said = shown("import fractions\nfractions.Fraction(1, 2) / 0\ncheck('card_in_gb', 3)")
    assert "ZeroDivisionError" in said and "What you divide by" not in said


def test_an_error_of_a_cell_without_a_check_is_raised():
    with pytest.raises(ZeroDivisionError):
        shown("guess = 1\nx = 1 / 0\ncompare(guess, 1)")


def test_a_whole_cell_shows_its_last_expression_alone():
    assert shown("answer = 3\ncheck('card_in_gb', answer)\nanswer").endswith("3")
    assert shown("answer = 3\ncheck('card_in_gb', answer)\nanswer = 4") == "None"
