"""One run, any MFU: the choices that hide in a utilization, as switches."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

from traitlets import Dict, Enum, Float, List

from helpers import specs
from helpers.explore.view import GIVEN, STATE, View
from helpers.model import Config

_Option = tuple[str, float, str]  # what it is called, its number, and why it cannot be defended, if so
_A100 = "NVIDIA A100 SXM4 80GB"
_UNITS = {  # and why the peak of one that was not at work cannot be defended
    "matrix, bfloat16": "",
    "matrix, sparse": "half of one matrix would have to be zeros, and the run's are dense",
    "matrix, TF32": "TF32 is a format that the run did not use",
    "vector, float16": "the run's products were in bfloat16, on the matrix units",
    "vector, bfloat16": "the products ran on the matrix units, as the MFU above 1 tells",
    "vector, float32": "neither the unit nor the format is the run's",
}


def _switches(config: Config, length: int, spec: specs.Spec, vector: float) -> dict[str, list[_Option]]:
    """By name of the switch its options; multiply-adds per token where something is counted, FLOP/s for a peak.

    `vector` is the float16 rate of the vector unit, of which bfloat16 has half and float32 a quarter.
    """
    scores = 2.0 * config.layers * config.query_width * length
    head = config.vocabulary * config.width
    blocks = config.matrices - head
    matrix = spec.matrix["bfloat16"]
    peaks = (matrix, 2 * matrix, spec.matrix["tfloat32"], vector, vector / 2, vector / 4)
    return {
        "a multiply-add counts": [("2 FLOPs", 2, ""), ("1 MAC", 1, "the peak counts it as 2")],
        "attention products": [("none", 0, ""), ("half", scores / 2, ""), ("in full", scores, "")],
        "a step counts as … forward passes": [
            ("3 (the 6)", 3, ""),
            ("4 (the 8)", 4, "nothing was recomputed, and an MFU leaves it out anyway"),
        ],
        "N has": [
            ("blocks", blocks, ""),
            ("blocks, head", blocks + head, ""),
            ("blocks, head, embedding", blocks + 2 * head, "the embedding is looked up, and multiplies nothing"),
        ],
        "the peak is": [(name, peak, why) for (name, why), peak in zip(_UNITS.items(), peaks, strict=True)],
    }


class AnyMfu(View):
    """A run's MFU by five switches: find the setting that prints the published number, then the ends of what is fair.

    An A100 trained `config` in bfloat16 on texts of `length` tokens, `tokens_per_second` of them. Its vector units
    reach `vector_peak` FLOP/s in float16, half of that in bfloat16 and a quarter in float32 (NVIDIA A100 architecture
    whitepaper, table 1: 6912 cores at 1.41 GHz). `marks` are other runs' MFUs. Conventions: a multiply-add as 2 FLOPs,
    as in the peak; attention products in full (Chowdhery et al. 2022, PaLM, appendix B), half of them under a causal
    mask (the benchmark of FlashAttention) or none (Kaplan et al. 2020, whose N leaves out the vocabulary, too).
    State: the options, in the order of `switches`. Raises TraitError for one that there is not.
    """

    kind = "any_mfu"
    multiply = Enum(["2 FLOPs", "1 MAC"], "2 FLOPs").tag(**STATE)
    attention = Enum(["none", "half", "in full"], "in full").tag(**STATE)
    passes = Enum(["3 (the 6)", "4 (the 8)"], "3 (the 6)").tag(**STATE)
    weights = Enum(["blocks", "blocks, head", "blocks, head, embedding"], "blocks, head").tag(**STATE)
    peak = Enum(list(_UNITS), "matrix, bfloat16").tag(**STATE)
    switches: List = List().tag(**GIVEN)
    marks: Dict = Dict().tag(**GIVEN)
    ends: List = List().tag(**GIVEN)
    tokens_per_second, published = Float().tag(**GIVEN), Float().tag(**GIVEN)

    def __init__(
        self,
        config: Config,
        tokens_per_second: float,
        published: float,
        *,
        length: int = 1024,
        vector_peak: float = 6912 * 1.41e9 * 2 * 4,
        marks: Mapping[str, float] | None = None,
        **state: Any,
    ) -> None:
        a100 = next(spec for spec in specs.table() if spec.name == _A100)
        table = _switches(config, length, a100, vector_peak)
        traits = ("multiply", "attention", "passes", "weights", "peak")
        fair = [[number for _, number, unfair in options if not unfair] for options in table.values()]
        possible = [_mfu(tokens_per_second, *numbers) for numbers in itertools.product(*fair)]
        super().__init__(
            **state,
            switches=[
                {"trait": trait, "name": name, "options": [list(option) for option in options]}
                for trait, (name, options) in zip(traits, table.items(), strict=True)
            ],
            marks=dict(marks or {}),
            ends=[min(possible), max(possible)],
            tokens_per_second=tokens_per_second,
            published=published,
        )

    @property
    def mfu(self) -> float:
        """The MFU of the setting."""
        numbers = []
        for switch in self.switches:
            chosen = getattr(self, switch["trait"])
            numbers.append(next(number for name, number, _ in switch["options"] if name == chosen))
        return _mfu(self.tokens_per_second, *numbers)

    def _words(self) -> str:
        rows = [f"{switch['name']}: {' | '.join(name for name, _, _ in switch['options'])}" for switch in self.switches]
        question = f"One run, {self.tokens_per_second:.0f} tokens/s. Which setting prints {self.published:.2f}?"
        return "\n".join([question, *rows])


def _mfu(rate: float, multiply: float, attention: float, passes: float, weights: float, peak: float) -> float:
    return specs.mfu(math.prod((multiply, passes, weights + attention, rate)), peak)
