"""What an exercise and a guess are made of, and the lists of all."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch

DRAWS = 30  # random inputs beside the readable cases


class Mistake(NamedTuple):
    """A likely mistake: a formula that makes it, with the oracle's arguments, and the sentence that names it.

    seen_in: takes from an outcome the part in which the mistake shows, where it leaves the rest as it is.
    """

    formula: Callable[..., Any]
    sentence: str
    seen_in: Callable[[Any], Any] | None = None


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise; each file writes its own with `exercise`, `parts` and `choices`, which put it on the list.

    oracle: `oracle(*case)` returns the right answer. Without cases the answer is a value, and it takes no arguments.
    mistakes: those that the check cannot read from the outcomes, or would word worse; at most eight, those of all
        parts together.
    cases: the arguments of readable calls, one for each boundary that the statement names.
    draw: `draw(r)` gives the arguments of one more call, drawn with the `random.Random` r from the exercise's domain.
    tolerance: how far numbers may be off, relative to the right one; without it whole numbers must be equal, and
        others within 1e-6.
    words: the words that may be answered; where it is a mapping, with what each would mean, a sentence that is true in
        every case and that a wrong word is answered with. unit: that of the answer, or of the cost.
    in_place: the first argument itself must become the result.
    cost: a right answer must also cost no more than `allowed_ratio` times the oracle's: the name of a field of what
        `count` gives, as "bytes_eager". `counted_at` lists the arguments at which it is counted, if not those of the
        cases; a mistake is named where its costs are within a factor of `same_cost_ratio`.
    parts: the exercises of which this one is a list, by the names that stub and text give them; each is judged by
        itself.
    equivalent_slips: one-step slips of the notebook's solution that are right all the same: their line, and why.
    variables: what varies, by its name, from the arguments, where these are no plain numbers.
    terms: the right answer is the sum of these, by the words for each. Where `over` is given, it is that over the sum.
    quantities: for a value, the numbers of the statement that one may leave out or take for another, by their words;
        of a tuple the first is the right one, and the others may be taken for it.
    laws: what holds of every right answer, as functions of the answer that say whether it does, and of each what is
        said where it does not.
    notebook: the number of the notebook, as "05".
    """

    name: str
    oracle: Callable[..., Any]
    mistakes: Sequence[Mistake] = ()
    cases: Sequence[tuple[Any, ...]] = ()
    draw: Callable[[random.Random], tuple[Any, ...]] | None = None
    tolerance: float | None = None
    words: Sequence[str] | Mapping[str, str] = ()
    unit: str = ""
    in_place: bool = False
    cost: str = ""
    counted_at: Sequence[tuple[Any, ...]] = ()
    allowed_ratio: float = 1.01
    same_cost_ratio: float = 1
    parts: Mapping[str, "Exercise"] = field(default_factory=dict)
    equivalent_slips: Mapping[str, str] = field(default_factory=dict)
    variables: Callable[..., Mapping[str, float]] | None = None
    terms: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    over: Callable[..., float] | None = None
    quantities: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)
    laws: Sequence[tuple[Callable[[Callable[..., Any]], bool], str]] = ()
    notebook: str = ""

    @cached_property
    def inputs(self) -> tuple[tuple[Any, ...], ...]:
        """The arguments of every call: the cases, then those drawn, which are the same each time."""
        if not self.draw:
            return tuple(self.cases) or ((),)
        generator = random.Random(self.name)
        return (*self.cases, *(self.draw(generator) for _ in range(DRAWS)))


@dataclass(frozen=True)
class Guess:
    """What `compare` says of a guess: why the value is what it is, and of wrong guesses what went wrong.

    mistakes: pairs of a likely prediction, in the unit asked for, or a function of the right value that gives one, and
        the sentence that names the mistake. A tuple stands for all numbers from its first to its second.
    notebook: the number of the notebook, as "05".
    """

    because: str = ""
    mistakes: Sequence[tuple[Any, str]] = ()
    notebook: str = ""


EXERCISES: dict[str, Exercise] = {}
GUESSES: dict[str, Guess] = {}
_notebook = ""  # whose table is being read


def notebook(number: str) -> None:
    """What follows belongs to the notebook of that number, such as "05"."""
    global _notebook
    _notebook = number


def guess(name: str, because: str = "", *mistakes: tuple[Any, str]) -> None:
    """Put on the list what `compare` says of a guess; the arguments are the fields of `Guess`."""
    GUESSES[name] = Guess(because, mistakes, _notebook)


def part(right: Any, mistakes: Sequence[tuple[Any, ...]] = (), name: str = "", **options: Any) -> Exercise:
    """An exercise whose answer is the value `right`, or with cases the function `right`.

    `mistakes` are rows with the fields of `Mistake`; their formulas are values or functions, as `right` is.
    """
    options = {"notebook": _notebook} | options
    if options.get("cases"):
        return Exercise(name, right, [Mistake(*row) for row in mistakes], **options)
    rows = [Mistake(_constant(answer), sentence) for answer, sentence in mistakes]
    return Exercise(name, _constant(right), rows, **options)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def exercise(name: str, right: Any, mistakes: Sequence[tuple[Any, ...]] = (), **options: Any) -> None:
    """Put on the list an exercise with one answer, as `part` makes it. Options are the fields of `Exercise`."""
    EXERCISES[name] = part(right, mistakes, name, **options)


def parts(name: str, *, equivalent_slips: Mapping[str, str] | None = None, **each: Exercise) -> None:
    """Put on the list an exercise of several parts, in the order in which `check` takes their answers."""
    EXERCISES[name] = Exercise(name, tuple, parts=each, equivalent_slips=equivalent_slips or {}, notebook=_notebook)


def choices(name: str, words: Sequence[str] | Mapping[str, str], **each: tuple[Any, ...]) -> None:
    """Put on the list an exercise that chooses among words: of each part the right one, then its `mistakes`.

    What is said of a wrong word is its sentence among these, or else what `words` says that it would mean.
    """
    chosen = {letter: part(right, mistakes, words=words) for letter, (right, *mistakes) in each.items()}
    EXERCISES[name] = Exercise(name, tuple, parts=chosen, notebook=_notebook)


def whole(r: random.Random, *shape: int, most: int = 4, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor of small whole numbers: their sums and products are exact in whatever order they are formed."""
    generator = torch.Generator().manual_seed(r.getrandbits(32))
    return torch.randint(-most, most + 1, shape, generator=generator).to(dtype)
