"""How a number in a code cell is changed, how far the change can reach, and that what is explained is still there."""

import pytest

from tests import mutate_cells
from tests.course import NOTEBOOKS, read


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("n = 3", [("n = 4", 1, "3")]),
        ("x = 2.0", [("x = 3.0", 1, "2.0")]),
        ("x = 0.0", [("x = 0.5", 1, "0.0")]),  # 1.5 times nothing would be no change
        ("n = 1_000", [("n = 1001", 1, "1_000")]),
        ("n = -1", [("n = -2", 1, "1")]),
        ("a = '3 of 4', True, None  # 5", []),
        ("n = 'µ²', 7", [("n = 'µ²', 8", 1, "7")]),  # a column is a number of bytes
        ("f(\n    1,\n)\n", [("f(\n    2,\n)\n", 2, "1")]),
        ("n = 3 * 3", [("n = 4 * 3", 1, "3"), ("n = 3 * 4", 1, "3")]),
    ],
)
def test_each_number_is_changed_alone(source, expected):
    assert list(mutate_cells.mutants(source)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('f"{n * 2} of 10"', 'f"{n * 3} of 10"'),
        ("x = f'{7}'", "x = f'{8}'"),
        ('y = 5, f"7 {n:.3f}"', 'y = 6, f"7 {n:.3f}"'),
    ],
)
def test_in_an_f_string_only_code_is_changed(source, expected):
    assert [changed for changed, _, _ in mutate_cells.mutants(source)] == [expected]


@pytest.mark.parametrize(
    ("cells", "index", "last"),
    [
        pytest.param(["n = 3", "m = 1", "n", "m"], 0, 2, id="up to the last use"),
        pytest.param(["n = 3", "m = 1", "n", "m"], 1, 3, id="of this name alone"),
        pytest.param(["n = 3", "m = n + 1", "k = m", "k", "1"], 0, 3, id="through what is made of it"),
        pytest.param(["n = 3", "n = 4", "n"], 0, 0, id="until the name is bound anew"),
        pytest.param(["n = 3", "n = n + 1", "n"], 0, 2, id="bound anew from itself"),
        pytest.param(["n = 3", "n += 1", "n"], 0, 2, id="an augmented assignment uses what it binds"),
        pytest.param(["a = []", "a.append(2)", "b = 1", "a"], 1, 3, id="changed in place"),
        pytest.param(["a = []", "b = [a]\nb.append(2)", "a"], 1, 2, id="changed in place through another name"),
        pytest.param(["n = 3", "def f():\n    return n", "k = 1", "f()"], 0, 3, id="a function called later uses it"),
        pytest.param(["def f():\n    return n", "n = 3", "k = 1", "f()"], 1, 3, id="a function defined before uses it"),
        pytest.param(
            ["a = []", "def put(x):\n    a.append(x)", "put(3)", "k = 1", "a"], 2, 4, id="a function changes it"
        ),
        pytest.param(["n = 3", "def f():\n    return n", "k = 1", "k"], 0, 1, id="a function that is never called"),
        pytest.param(["def f():\n    return 3", "k = 1", "f()", "k"], 0, 2, id="a number in the function itself"),
        pytest.param(
            ["n = 3", "def f():\n    return n", "def g():\n    return f()", "k = 1", "g()"], 0, 4, id="one calls one"
        ),
        pytest.param(["n = 3", "def f(n):\n    return n", "f(1)"], 0, 0, id="a parameter of the same name"),
        pytest.param(["n = 3", "[n for n in range(2)]"], 0, 0, id="a comprehension's own name"),
        pytest.param(["n = 3", "[k + n for k in range(2)]"], 0, 1, id="a name in a comprehension"),
        pytest.param(["n = 3", "f'{n}'"], 0, 1, id="a name in an f-string"),
        pytest.param(["import math", "n = math.ceil(3)", "math.floor(1)"], 1, 1, id="a module is no trace"),
        pytest.param(["print(3)", "print(4)"], 0, 0, id="nor is a built-in"),
    ],
)
def test_a_change_reaches_the_cells_that_may_see_it(cells, index, last):
    assert mutate_cells.reach(cells, index) == last + 1


def test_what_is_explained_stands_in_the_notebook():
    notebooks = {path.stem: path for path in NOTEBOOKS}
    for stem, reasons in mutate_cells.EXPLAINED.items():
        code = "\n".join(cell.source for cell in read(notebooks[stem]).cells if cell.cell_type == "code")
        lines = {line.strip() for line in code.splitlines()}
        for reason, explained in reasons.items():
            assert len(reason) > 10 and set(explained) <= lines, set(explained) - lines
