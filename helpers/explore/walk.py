"""A grid that is walked in some order, a number at a time, through a small cache of whole lines."""

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, ClassVar

from traitlets import Enum, Float, Int, List, validate

from helpers.explore.view import GIVEN, STATE, StateError, View

SIZE, LINE, ITEMSIZE = 16, 8, 8  # numbers in a row and in a cache line, bytes in a number
ORDERS = ("row, column", "column, row")  # the outer loop first


def places(order: str, tile: tuple[int, int], size: int = SIZE) -> Iterator[tuple[int, int]]:
    """The row and column of each number of a square grid, in the order in which two loops reach it.

    >>> list(places("column, row", (2, 2), 2))
    [(0, 0), (1, 0), (0, 1), (1, 1)]

    The grid is walked tile by tile (rows, columns), and the numbers of a tile in the same order as the tiles.
    """
    high, wide = tile
    corners = _pairs(order, range(0, size, high), range(0, size, wide))
    for top, left in corners:
        rows, columns = range(top, min(top + high, size)), range(left, min(left + wide, size))
        yield from _pairs(order, rows, columns)


def _pairs(order: str, rows: range, columns: range) -> list[tuple[int, int]]:
    if order == "row, column":
        return [(row, column) for row in rows for column in columns]
    return [(row, column) for column in columns for row in rows]


def misses(addresses: Iterator[int] | list[int], lines: int, line: int = LINE) -> list[bool]:
    """Whether each number, given by its place in memory, is missing in a cache of so many lines, and fetched.

    >>> misses([0, 1, 8, 0, 16, 8], lines=2)  # the line of 8 is the one that was used least recently, and leaves
    [True, False, True, False, True, True]

    The cache holds any lines (it is fully associative), and lets go of the one that was used least recently (LRU).
    """
    cache: OrderedDict[int, None] = OrderedDict()
    found = []
    for address in addresses:
        tag = address // line
        found.append(tag not in cache)
        cache[tag] = None
        cache.move_to_end(tag)
        if len(cache) > lines:
            cache.popitem(last=False)
    return found


class Walk(View):
    """A grid of 16 × 16 float64 in row-major order, cache lines of 8, and a small LRU cache: walked in any order.

    State: `order` of the two loops, the outer one first; `tile`, its rows and columns, the whole grid at first; `lines`
    of the cache; `time`, how many numbers have been read. `measured` is the ratio of two times that a clock gave, of
    numbers 64 bytes apart to as many neighbours; it is shown beside the answer. Predictions are in bytes per byte.
    Raises TraitError for an order that is none of the two, and StateError, a ValueError, for a tile that is not within
    the grid and a ratio that is none.
    """

    kind = "walk"
    answers: ClassVar = {"columns": (1, 2 * LINE)}  # to the end of the scale
    order = Enum(ORDERS, ORDERS[1]).tag(**STATE)
    tile = List(Int(), [SIZE, SIZE]).tag(**STATE)
    lines = Int(8, min=1, max=32).tag(**STATE)
    time = Int(0, min=0, max=SIZE * SIZE).tag(**STATE)
    measured = Float(None, allow_none=True).tag(**GIVEN)
    size, line, itemsize = Int(SIZE).tag(**GIVEN), Int(LINE).tag(**GIVEN), Int(ITEMSIZE).tag(**GIVEN)

    def __init__(self, measured: float | None = None, **state: Any) -> None:
        super().__init__(measured=measured, **state)

    @validate("tile")
    def _within(self, proposal: dict[str, Any]) -> list[int]:
        tile = proposal["value"]
        if len(tile) != 2 or not all(1 <= side <= SIZE for side in tile):
            raise StateError(f"a tile has two sides, rows and columns, of 1 to {SIZE} numbers each, got {tile}")
        return tile

    @validate("measured")
    def _ratio(self, proposal: dict[str, Any]) -> float | None:
        ratio = proposal["value"]
        if ratio is not None and not 0 < ratio < math.inf:
            raise StateError(f"measured is the ratio of two times, above 0, or None for no clock; got {ratio}")
        return ratio

    def fetched(self) -> list[bool]:
        """For each number in the order of the walk, whether a line had to be fetched for it."""
        rows, columns = self.tile
        walked = places(self.order, (rows, columns))
        return misses((row * SIZE + column for row, column in walked), self.lines)

    def _words(self) -> str:
        question = "How many bytes are fetched for each byte used, when a grid is walked by columns?"
        grid = f"{SIZE} × {SIZE} numbers of {ITEMSIZE} bytes, row after row in memory, {LINE} in a cache line"
        return f"{question}\n{grid}; a cache of {self.lines} lines."
