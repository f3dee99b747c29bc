"""Every number of the prose comes from a cell beside it, from the spec table, or from a source that is named."""

import ast

import pytest

from tests.tools import prose
from tests.tools.course import NOTEBOOKS, plain, read


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_number_has_an_origin(path):
    missing = [f"{number.text}{number.after!r} in: {text}" for text, number in prose.without_origin(path)]
    assert not missing, "show it in a cell of its section, or cite it in tests/tools/cited.toml:\n" + "\n".join(missing)


def test_what_is_cited_is_said_and_has_a_source():
    texts = {p.stem: "\n".join(plain(c.source) for c in read(p).cells if c.cell_type == "markdown") for p in NOTEBOOKS}
    for stem, quoted in prose.CITED.items():
        for text, source in quoted.items():
            assert text in texts[stem], f"{stem} no longer says {text}: take it out of tests/tools/cited.toml"
            assert len(source) > 10, f"name the source of {text}"


def test_numbers_are_read_as_people_write_them():
    for text, value, digits in [
        ("2.42 GB", 2.42, 3), ("2 415 919 104 bytes", 2415919104, 10), ("12,850 M", 12850, 4),
        ("1.25e-8", 1.25e-8, 3), ("3.14·10²³ FLOP", 3.14e23, 3), ("2³⁰ bytes", 2**30, 15), ("2¹⁻¹⁵", 2**-14, 15),
        ("50 000", 50000, 1), ("0.0078125", 0.0078125, 5),
    ]:  # fmt: skip
        (number,) = prose.numbers(text)
        assert (number.value, number.digits) == (pytest.approx(value, rel=1e-14), digits)


def test_what_measures_nothing_is_no_number():
    for text in [
        *("float16", "an H100", "GPT-3", "int4", "E4M3", "#0072B2", "see x_13"),  # names
        *("# 13 Named", "as in notebook 14", "Table 2.1", "(15 min)", "```python\n17\n```", "[x](y17)"),  # structure
        "12 GPUs",  # a word
    ]:  # fmt: skip
        assert not list(prose.said(text))


def test_near_is_equal_to_the_digits_given():
    for text, value, near in [
        ("2.42 GB", 2415919104, True), ("2.43 GB", 2415919104, False), ("14 %", 0.143, True),
        ("14 times", 0.143, False), ("70 billion", 70e9, True), ("71 billion", 70e9, False), ("98", 98.4, True),
        ("2³⁰", 2**30, True), ("2³⁰", 1.0737e9, False),
    ]:  # fmt: skip
        assert next(prose.numbers(text)).is_near(value) is near


def test_code_counts_by_its_literals_and_their_products():
    found = prose.values(ast.parse("x = f(4 * 8 * 4)\ny = 'at 2.5 GB'\nx == 2**-8"))
    assert {4.0, 8.0, 32.0, 128.0, 2.5, 2**-8} <= found
