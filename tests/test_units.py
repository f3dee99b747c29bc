"""Numbers with units: prefixes and rounding by hand; tables in text and HTML."""

import math
import re

import pytest

from helpers import units


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 bytes"),
        (512, "B", "512 bytes"),
        (1, "B", "1 byte"),
        (-0.0, "B", "0 bytes"),
        (1, "B/s", "1 B/s"),
        (999.9996, "B", "1 kB"),
        (1536, "B", "1.54 kB"),
        (-2.5e6, "B", "-2.5 MB"),
        (0.004, "B", "0.004 bytes"),
        (295.4, "FLOP/B", "295 FLOP/B"),
        (4e15, "FLOP", "4 PFLOP"),
        (7e18, "FLOP", "7 EFLOP"),
        (1.5, "s", "1.5 s"),
        (0.9999999, "s", "1 s"),
        (2.5e-9, "s", "2.5 ns"),
        (999.9996e-6, "s", "1 ms"),
        (3e-12, "s", "3 ps"),
        (6.3e24, "FLOP", "6.30e+24 FLOP"),
        (math.inf, "FLOP/B", "inf FLOP/B"),
        (math.nan, "s", "nan s"),
    ],
)
def test_decimal_prefixes_by_hand(value, unit, text):
    assert units.si(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (2_415_919_104, "2.25 GiB"),
        (5 * 2**40, "5 TiB"),
        (2**60, "1 EiB"),
        (2**80, "1.21e+24 bytes"),
        (math.inf, "inf bytes"),
    ],
)
def test_binary_prefixes_by_hand(value, text):
    assert units.iec(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (5400, "1.5 h"),
        (86_400, "1 day"),
        (143.9 * 86_400, "144 days"),
    ],
)
def test_durations_by_hand(seconds, text):
    assert units.duration(seconds) == text


@pytest.mark.parametrize("value", ["3", None, True, [1]], ids=repr)
@pytest.mark.parametrize("function", [lambda x: units.si(x, "B"), units.iec, units.duration])
def test_a_quantity_is_a_number(function, value):
    kind = type(value).__name__
    with pytest.raises(TypeError, match=re.escape(f"a quantity is a real number, got {value!r} ({kind})")):
        function(value)


def test_table_shows_the_same_in_text_and_html():
    table = units.table(["name", "size"], [["a<b", "1 B"], ["long name", 2], ["float", 1 / 3]])
    assert repr(table).splitlines() == [
        "name       size",
        "---------  --------",
        "a<b        1 B",
        "long name  2",
        "float      0.333333",
    ]
    assert table._repr_html_() == (
        "<table><thead><tr><th>name</th><th>size</th></tr></thead><tbody>"
        "<tr><td>a&lt;b</td><td>1 B</td></tr><tr><td>long name</td><td>2</td></tr>"
        "<tr><td>float</td><td>0.333333</td></tr></tbody></table>"
    )


def test_a_row_as_long_as_the_columns_is_wanted():
    with pytest.raises(ValueError, match=re.escape("the table has 2 columns ['name', 'size'], but a row has ['a']")):
        units.table(["name", "size"], [["a", "b"], ["a"]])
