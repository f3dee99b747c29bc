"""An einsum as a nest of loops: names are pulled off the result, edges are pulled longer, an order is chosen."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from traitlets import Dict, Enum, Int, Unicode, validate

from helpers.explore.view import GIVEN, STATE, StateError, View

ORDERS = ("A B", "B C", "A C")  # which two of three operands are multiplied first
_LONGEST, _MOST = 10, 4096  # cells along an edge, unless larger sizes are asked for, and then

Names = tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """A product of two operands: the names of its loops and of its result, and the FLOPs of each of its steps.

    `sums` are the additions of names that only one operand has, done before; `loops` are those of the product itself.
    """

    loops: Names
    summed: Names
    result: Names
    sums: int
    flops: int
    numbers: int


def parse(pattern: str) -> tuple[list[Names], Names]:
    """The names of the operands and of the result of an einsum as einops writes it.

    >>> parse("i j, j k -> i k")
    ([('i', 'j'), ('j', 'k')], ('i', 'k'))

    Raises ValueError for anything but two or three operands, and for a name that occurs twice in one of them, or that
    only the result has.
    """
    left, arrow, right = pattern.partition("->")
    operands, result = [tuple(part.split()) for part in left.split(",")], tuple(right.split())
    if not arrow or "->" in right or len(operands) not in (2, 3):
        raise ValueError(
            f"a pattern is two or three operands, an arrow and the result: i j, j k -> i k; got {pattern!r}"
        )
    for names in [*operands, result]:
        _check_names(names)
    if lost := set(result).difference(*operands):
        raise ValueError(f"the result has {min(lost)}, and no operand has it; got {pattern!r}")
    return operands, result


def _check_names(names: Names) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*", name):
            raise ValueError(f"{name!r} is no name: letters, digits and underscores, the first a letter")
        if names.count(name) > 1:
            raise ValueError(f"{name} occurs twice in {' '.join(names)!r}: rename one of them")


def multiply(left: Sequence[str], right: Sequence[str], wanted: Iterable[str], sizes: Mapping[str, int]) -> Product:
    """What the product of two operands costs, as `counting.count` counts `torch.einsum`.

    A name that is not wanted is summed: before the product, if only one operand has it, with n - m additions from n
    numbers to m; else within it, with a multiplication and an addition in each step of the loops. Without such a name
    of more than one size each step only multiplies.

    >>> multiply("ij", "jk", "ik", {"i": 6, "j": 4, "k": 9}).flops
    432
    """
    wanted = set(wanted)

    def numbers(names: Iterable[str]) -> int:
        return math.prod(sizes[name] for name in names)

    first = tuple(name for name in left if name in right or name in wanted)
    second = tuple(name for name in right if name in left or name in wanted)
    loops = tuple(dict.fromkeys(first + second))
    summed = tuple(name for name in loops if name not in wanted)
    result = tuple(name for name in loops if name in wanted)
    sums = numbers(left) - numbers(first) + numbers(right) - numbers(second)
    each = 2 if numbers(summed) > 1 else 1
    return Product(loops, summed, result, sums, each * numbers(loops), numbers(result))


def products(pattern: str, sizes: Mapping[str, int], order: str = "A B") -> list[Product]:
    """The one product, or in the order given the two, that compute an einsum.

    >>> [step.flops for step in products("i j, j k, k -> i", {"i": 99, "j": 99, "k": 99}, "B C")]
    [19602, 19602]
    """
    operands, result = parse(pattern)
    if len(operands) == 2:
        return [multiply(operands[0], operands[1], result, sizes)]
    left, right = ("ABC".index(letter) for letter in order.split())
    (rest,) = {0, 1, 2} - {left, right}
    first = multiply(operands[left], operands[right], (*result, *operands[rest]), sizes)
    if rest == 0:
        return [first, multiply(operands[rest], first.result, result, sizes)]
    return [first, multiply(first.result, operands[rest], result, sizes)]


class Nest(View):
    """The loops of an einsum of two or three operands as a box, with its FLOPs and the numbers that it writes.

    `pattern` is as einops writes it, `sizes` are the sizes of its names; `order` says which two of three operands come
    first. The reader pulls names off the result and back, pulls the edges of the box, and chooses the order.
    Raises ValueError for a pattern that `parse` refuses, for sizes that lack a name or are no whole number from 1 to
    the longest, which is 10 or the largest size at first, of at most 4096.
    """

    kind = "nest"
    answers: ClassVar = {"flops": (0, math.inf)}
    pattern, order = Unicode("i j, j k -> i k").tag(**STATE), Enum(list(ORDERS), "A B").tag(**STATE)
    sizes: Dict = Dict(default_value={"i": 6, "j": 4, "k": 9}).tag(**STATE)
    longest = Int(_LONGEST).tag(**GIVEN)
    asked: Dict = Dict().tag(**GIVEN)  # the pattern and the sizes of the first question

    def __init__(self, pattern: str = "i j, j k -> i k", sizes: Mapping[str, int] | None = None, **state: Any) -> None:
        known = {"i": 6, "j": 4, "k": 9, "l": 3} if sizes is None else dict(sizes)
        parse(pattern)
        longest = max([_LONGEST, *(size for size in known.values() if isinstance(size, int))])
        if longest > _MOST:
            raise ValueError(f"the picture draws sizes of at most {_MOST}, got {longest}")
        asked = {"pattern": pattern, "sizes": known}
        super().__init__(longest=longest, sizes=known, asked=asked, pattern=pattern, **state)

    @validate("pattern", "sizes")
    def _possible(self, proposal: dict[str, Any]) -> str | dict[str, int]:
        state = self._proposed(proposal)
        pattern, sizes = state["pattern"], state["sizes"]
        try:
            operands, _ = parse(pattern)
        except ValueError as error:
            raise StateError(f"{error}") from None
        for name, size in sizes.items():
            if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= self.longest:
                raise StateError(f"a size is a whole number from 1 to {self.longest}; {name} is {size!r}")
        if lacking := {name for names in operands for name in names} - sizes.keys():
            raise StateError(
                f"{min(lacking)} of {pattern!r} has no size; there are {', '.join(sizes)}: set(pattern=…, sizes=…)"
            )
        return proposal["value"]

    @property
    def products(self) -> list[Product]:
        """The one or the two products of the state, in the order chosen."""
        return products(self.pattern, self.sizes, self.order)

    def _words(self) -> str:
        operands, result = parse(self.pattern)
        names = dict.fromkeys(name for names in [*operands, result] for name in names)
        told = ", ".join(f"{name} = {self.sizes[name]}" for name in names)
        summed = ", ".join(name for name in names if name not in result) or "nothing"
        return f"Nest of loops: {self.pattern}, a loop for each name.\nSizes: {told}. Summed: {summed}."
