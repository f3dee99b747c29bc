"""The block card: one block of a model, box by box, with what every lesson says about it."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from traitlets import Bool, Dict, Enum, Int, Unicode, validate

from helpers import budget, specs, units
from helpers.budget import Box
from helpers.explore.view import GIVEN, STATE, View, require_one_of
from helpers.model import MODELS, Config
from helpers.roofline import Roofline

# Boxes that are products of matrices; the work of all others the vector units do.
_PRODUCTS = {"q k v", "scores", "weighted sum", "output", "up", "gate, up", "down", "router"}
_MACHINES = {
    spec.name: {"matrix": spec.matrix["bfloat16"], "vector": spec.elementwise, "bandwidth": spec.bandwidth}
    for spec in specs.table()
    if spec.elementwise and "bfloat16" in spec.matrix
}
_FIRST = "NVIDIA H100 SXM5"
_ORDER = ["z", "b", "t", "s", "d", "f", "e", "k", "h", "kv", "c"]  # of the letters in a formula
# What each lesson asks: columns that stay empty until the answer is told, and which rule finds it.
_QUESTIONS = {
    3: ("copy", ["layout"], "Which boxes copy?", "Mark them."),
    4: ("flops", ["FLOPs", "share"], "Which boxes take the most FLOPs?", "Mark one or more."),
    5: ("memory", ["FLOP/B"], "Which boxes wait for memory?", "Mark them."),
    6: ("total", ["time"], "How long does the whole block take at least?", "Drag the mark below to your guess."),
    7: ("kept", ["kept"], "Which two kernels keep the most for the backward pass?", "Mark a box of each."),
}


@dataclass(frozen=True)
class Kernel:
    """Boxes that run together under one roof: FLOPs, bytes and kept bytes of all, least time in seconds."""

    boxes: tuple[Box, ...]
    roof: Roofline

    @property
    def flops(self) -> int:
        """Of all its boxes."""
        return sum(box.flops for box in self.boxes)

    @property
    def bytes(self) -> int:
        """Of all its boxes."""
        return sum(box.bytes for box in self.boxes)

    @property
    def kept(self) -> int:
        """In bytes, of all its boxes."""
        return sum(box.kept for box in self.boxes)

    @property
    def seconds(self) -> float:
        """The least time."""
        return self.roof.seconds(self.flops, self.bytes)

    @property
    def bound(self) -> str:
        """What binds it: "memory" or "compute"."""
        return self.roof.bound(self.flops, self.bytes)


def _tree(formula: Any) -> Any:
    """A sympy expression as nested lists, ["*", 2, "b", "t", ["+", "d", "f"]], in the course's order of letters."""
    if isinstance(formula, int) or formula.is_Integer:
        return int(formula)
    if formula.is_Symbol:
        return str(formula)
    if formula.is_Pow:
        return ["*", *[_tree(formula.base)] * int(formula.exp)]
    sign = "*" if formula.is_Mul else "+" if formula.is_Add else "min"
    return [sign, *sorted(map(_tree, formula.args), key=_place)]


def _place(tree: Any) -> tuple[Any, ...]:
    """Where a part of a formula stands: numbers, letters and products in their order, sums in brackets last."""
    if isinstance(tree, int):
        return (0, -1)
    if isinstance(tree, str):
        return (1, _ORDER.index(tree))
    letters = [_ORDER.index(part) for part in tree[1:] if isinstance(part, str)]
    return (1 if tree[0] == "*" else 2, min(letters, default=len(_ORDER)))


@cache
def _boxes(config: Config, fused: bool) -> list[dict[str, Any]]:
    """The boxes of a block as the browser wants them, with formulas in letters."""
    formulas = budget.block_formulas(config, fused=fused)
    labels = _labels([box["name"] for box in formulas])
    boxes = []
    for label, box in zip(labels, formulas, strict=True):
        trees = {name: _tree(box[name]) for name in ("parameters", "flops", "bytes", "kept")}
        trees["numbers"] = _numbers(box["shape"])
        unit = "matrix" if box["name"] in _PRODUCTS else "vector"
        boxes.append(box | trees | {"label": label, "unit": unit})
    return boxes


def _numbers(shape: str) -> Any:
    """How many numbers tensors of these named shapes have, as `_tree` writes it."""
    products = [["*", *sorted(names.split(), key=_place)] for names in shape.split(", ")]
    return products[0] if len(products) == 1 else ["+", *products]


def _labels(names: Sequence[str]) -> list[str]:
    """The names of boxes, numbered where there are several of one: norm 1, q k v, …, norm 2."""
    counts, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} {seen[name]}" if counts[name] > 1 else name)
    return labels


def _facts(config: Config) -> dict[str, Any]:
    """What the browser needs of a model."""
    letters = {"d": config.width, "h": config.heads, "c": config.channels, "f": config.hidden}
    if config.key_heads != config.heads:
        letters["kv"] = config.key_heads
    if config.experts:
        letters |= {"e": config.experts, "k": config.chosen}
    longest = config.context if config.family == "GPT-2" else None  # None: it needs no table of positions
    return {"letters": letters, "longest": longest}


def _same_formulas(one: Config, other: Config) -> bool:
    return _boxes(one, True) == _boxes(other, True) and _boxes(one, False) == _boxes(other, False)


class BlockCard(View):
    """The block of a model as boxes, with what the lessons 03 to `upto` say about each, in bfloat16.

    `batch` texts of `tokens` tokens: all of them at once, or with `decode` one new token each after so many. Costs are
    `budget.block_costs`; with `fused` attention is one kernel, and shares its bytes and its least time. The question of
    lesson `upto` is asked first, unless `asked` is False. `model` is a name of MODELS or a Config. With `only`, the
    name of a box, all others stay blank.
    Raises TraitError for a model, a machine or a lesson that is not on the list, ValueError for sizes that cannot be.
    """

    kind = "card"
    model, machine = Unicode().tag(**STATE), Enum(list(_MACHINES), _FIRST).tag(**STATE)
    batch, tokens = Int(1, min=1, max=2**12).tag(**STATE), Int(8192, min=1, max=2**17).tag(**STATE)
    decode, fused = Bool().tag(**STATE), Bool(True).tag(**STATE)
    upto = Enum(list(_QUESTIONS), 7).tag(**GIVEN)
    models: Dict = Dict().tag(**GIVEN)
    blocks: Dict = Dict().tag(**GIVEN)
    machines: Dict = Dict(default_value=_MACHINES).tag(**GIVEN)
    question: Dict = Dict().tag(**GIVEN)
    only = Unicode().tag(**GIVEN)

    def __init__(
        self,
        model: str | Config = "Llama 3 8B",
        batch: int = 1,
        tokens: int = 8192,
        *,
        asked: bool = True,
        **state: Any,
    ) -> None:
        own = {model.name: model} if isinstance(model, Config) else {}
        self._configs: dict[str, Config] = {**MODELS, **own}
        facts: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        for name, config in self._configs.items():
            same = next((key for key in blocks if _same_formulas(self._configs[key], config)), name)
            blocks[same] = {"fused": _boxes(config, True), "apart": _boxes(config, False)}
            facts[name] = _facts(config) | {"block": same}
        rule, hides, question, how = _QUESTIONS.get(state.get("upto", 7), _QUESTIONS[7])
        asks = {"rule": rule, "hides": hides, "question": question, "how": how} if asked else {}
        name = model.name if isinstance(model, Config) else model
        require_one_of(facts, name, "model")
        labels = [box["label"] for box in _boxes(self._configs[name], True)]
        if state.get("only", "") not in ("", *labels):
            raise ValueError(f"a block of {name} has no box {state['only']!r}; it has {', '.join(labels)}")
        state |= {"models": facts, "blocks": blocks, "question": asks}
        super().__init__(**{"model": name, "batch": batch, "tokens": tokens} | state)

    @validate("model", "tokens")
    def _together(self, proposal: dict[str, Any]) -> Any:
        state = self._proposed(proposal)
        model, tokens = state["model"], state["tokens"]
        require_one_of(self._configs, model, "model")
        longest = _facts(self._configs[model])["longest"]
        if longest and tokens > longest:
            raise ValueError(f"{model} has learned positions for {longest} tokens, so {tokens} are too many")
        return proposal["value"]

    @property
    def costs(self) -> list[Box]:
        """The boxes in numbers, as `budget.block_costs` gives them."""
        config = self._configs[self.model]
        return budget.block_costs(config, self.batch, self.tokens, decode=self.decode, fused=self.fused)

    @property
    def kernels(self) -> list[Kernel]:
        """The boxes as they run, each kernel under the roof of the unit that does its work."""
        machine: Mapping[str, float] = _MACHINES[self.machine]
        found = []
        for _, group in itertools.groupby(self.costs, key=lambda box: box.kernel):
            boxes = tuple(group)
            unit = "matrix" if boxes[0].name in _PRODUCTS else "vector"
            found.append(Kernel(boxes, Roofline(machine[unit], machine["bandwidth"])))
        return found

    def _words(self) -> str:
        texts = "text" if self.batch == 1 else "texts"
        way = "decoding one token each after" if self.decode else "prefill of"
        work = f"{way} {self.batch} {texts} of {self.tokens} tokens"
        opening = f"The block card of {self.model}, {work}, to lesson {self.upto:02}."
        rows = [*self._rows(), self._total()]
        shown = [row for row in rows if row.partition(" | ")[0] == self.only] if self.only else rows
        return "\n".join([opening, *shown])

    def _rows(self) -> Iterator[str]:
        for kernel in self.kernels:
            middle = len(kernel.boxes) // 2
            for place, box in enumerate(kernel.boxes):
                cells = [(3, box.layout), (3, f"{box.shape} shape")]
                cells += [(4, _count(box.parameters, " parameters")), (4, _count(box.flops, " FLOPs"))]
                cells += _told(kernel) if place == middle else []
                yield self._row(box.name, cells)

    def _total(self) -> str:
        kernels, boxes = self.kernels, self.costs
        flops, nbytes = (sum(getattr(box, name) for box in boxes) for name in ("flops", "bytes"))
        seconds = [kernel.seconds for kernel in kernels]
        waits = [kernel.seconds for kernel in kernels if kernel.bound == "memory"]
        cells = [(4, _count(sum(box.parameters for box in boxes), " parameters")), (4, _count(flops, " FLOPs"))]
        cells += [(5, units.si(nbytes, "B")), (5, f"{_intensity(flops / nbytes)} FLOP/B")]
        cells += [(6, f"{units.duration(sum(seconds))} least time"), (7, _kept(sum(box.kept for box in boxes)))]
        part = f"{sum(waits) / sum(seconds):.0%} of the least time"
        share = f"{len(waits)} of {len(kernels)} kernels, {part}, wait for memory"
        return self._row("the block", [*cells, (5, share)])

    def _row(self, name: str, cells: Sequence[tuple[int, str]]) -> str:
        return " | ".join([name, *(text for lesson, text in cells if text and lesson <= self.upto)])


def _told(kernel: Kernel) -> list[tuple[int, str]]:
    """The cells that belong to a kernel, each with its lesson."""
    intensity, ridge = kernel.flops / kernel.bytes, kernel.roof.ridge
    side = "above" if intensity > ridge else "below"
    return [
        (5, units.si(kernel.bytes, "B")),
        (5, f"{_intensity(intensity)} FLOP/B, {side} {ridge:.0f}"),
        (6, units.duration(kernel.seconds)),
        (7, _kept(kernel.kept)),
    ]


def _count(count: float, of: str) -> str:
    return units.si(count, "").strip() + of if count else ""


def _intensity(intensity: float) -> str:
    return f"{intensity:.0f}" if intensity >= 100 else f"{intensity:.3g}"


def _kept(nbytes: int) -> str:
    return f"{units.si(nbytes, 'B')} kept" if nbytes else ""
