"""Cells that Python cannot read: a guess becomes a text, an answer a verdict, and Run All goes on."""

import pytest

from helpers.check import check, compare
from helpers.check.cells import readable

KNOWN = {"check": check, "compare": compare, "helpers": None}


def shown(cell):
    """What a cell shows whose last line is an expression."""
    *before, last = readable(cell, KNOWN).rstrip("\n").split("\n")
    names = dict(KNOWN)
    exec("\n".join(before), names)
    return repr(eval(last, names))


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
        ("answer = 80 * GIBI\ncheck('card_in_gb', answer)", "nothing is called `GIBI` here. Is it spelled right"),
    ],
)
def test_an_answer_that_python_cannot_read_gets_a_verdict(cell, words):
    name = "windows" if "windows" in cell else "card_in_gb"
    message = shown(cell)
    assert message.startswith(f"✗ {name}: {words}") and len(message) < 200


@pytest.mark.parametrize(
    "cell",
    [
        "def windows(x, size):\n    return rearrange(x, undefined)\n\n\ncheck(windows)",
        "for n in range(3):\n    m = [k for k in range(n)]\ncheck('card_in_gb', m)",
        "guess = 3 == 4\ncompare(guess, 1)",
        "%time x = 3\ncheck('card_in_gb', x)",
        "x = \n",
        "undefined",
    ],
)
def test_any_other_cell_stays_as_it_is(cell):
    assert readable(cell, KNOWN) == cell
