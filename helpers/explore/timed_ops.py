"""The reader's own ops under the roof that was measured: their times are predicted, then shown."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from traitlets import Dict, List, Unicode, validate

from helpers import draw
from helpers.explore.view import GIVEN, STATE, View, require_one_of
from helpers.roofline import Roofline

_CLOSE = 1.1  # two times within a tenth count as equal


class _Op(Protocol):
    name: str
    flops: int
    bytes: int


class _Timing(Protocol):
    low: float
    disturbed: bool


def _verdict(seconds: float, work: float, memory: float) -> str:
    """What a time says, beside the time of the work in a cache and that of the bytes."""
    low, high = max(work, memory), work + memory
    if seconds > _CLOSE * high:
        if seconds - work > 3 * memory:
            return "above its bracket, by more than its bytes explain, so its work was slower than when timed alone"
        return "above its bracket, so its bytes were more or slower than counted, or its work was slower"
    if seconds < work / _CLOSE:
        return "below its bracket, so computing was measured too slow"
    if seconds < memory / _CLOSE:
        return "below its bracket, so its bytes come from a cache, or faster than measured"
    if high < _CLOSE * low:
        return "in its bracket, whose ends are one"
    side = "overlapping" if seconds < (low + high) / 2 else "taking turns"
    return f"in its bracket, nearer to {side}"


def _judged(op: _Op, timing: _Timing, roof: Roofline, work: float | None) -> dict[str, Any]:
    """All that the picture tells of an op; `work` is the time of its work in a cache, nan if that was not measured."""
    cost = float(op.flops), float(op.bytes)
    unknown = work is not None and math.isnan(work)
    compute = op.flops / roof.peak if work is None or unknown else work
    move = op.bytes / roof.bandwidth
    told: dict[str, Any] = {
        "name": op.name,
        "flops": cost[0],
        "bytes": cost[1],
        "seconds": timing.low,
        "disturbed": timing.disturbed,
        "least": roof.seconds(*cost),
        "bound": roof.bound(*cost),
        "compute": compute,
        "move": move,
        "verdict": "nothing tells, since its work alone was not measured",
    }
    if unknown:
        return told
    verdict = _verdict(timing.low, compute, move)
    longer = "compute" if compute >= move else "memory"
    bracket = [max(compute, move), compute + move]
    return told | {"bracket": bracket, "longer": longer, "verdict": verdict, "inside": verdict.startswith("in ")}


def _decades(values: Sequence[float], margin: float) -> list[float]:
    """The ends of a logarithmic axis that holds these values and some room, at whole powers of ten."""
    low, high = math.log10(min(values) / margin), math.log10(max(values) * margin)
    return [10.0 ** math.floor(low), 10.0 ** math.ceil(high)]


class TimedOps(View):
    """Ops that were timed, as rings to be dragged to the time that one expects; then the clock is shown.

    `ops` have a name, flops and bytes, `times` the fastest seconds, as `machine.ops` and `machine.time_ops` give them;
    `roof` is what was measured. `work` are seconds of each op in a cache, by name, nan where they tell nothing; without
    them the FLOPs at the peak stand for it. Predictions are in `predicted`, in seconds by name.
    Raises ValueError for no ops, and TraitError for an op that is not among them.
    """

    kind = "timed_ops"
    op = Unicode().tag(**STATE)
    runs: List = List().tag(**GIVEN)
    roof: Dict = Dict().tag(**GIVEN)
    ends: List = List().tag(**GIVEN)

    def __init__(
        self,
        ops: Sequence[_Op],
        times: Sequence[_Timing],
        roof: Roofline,
        work: Mapping[str, float] | None = None,
        **state: Any,
    ) -> None:
        if not ops:
            raise ValueError("no ops to show: pass those that were timed, with their times")
        known = {} if work is None else work
        pairs = zip(ops, times, strict=True)
        runs = [_judged(op, timing, roof, known.get(op.name)) for op, timing in pairs]
        intensities = [run["flops"] / run["bytes"] for run in runs]
        rates = [run["flops"] / run["seconds"] for run in runs]
        ends = [_decades([*intensities, roof.ridge], 2), _decades([*rates, roof.peak], 2)]
        measured = {"peak": roof.peak, "bandwidth": roof.bandwidth}
        super().__init__(**{"op": runs[0]["name"]} | state, runs=runs, roof=measured, ends=ends)

    @validate("op")
    def _known(self, proposal: dict[str, Any]) -> str:
        names = [run["name"] for run in self.runs]
        if names:
            require_one_of(names, proposal["value"], "op")
        return proposal["value"]

    def _drawing(self) -> draw.Drawing:
        roof = Roofline(**self.roof)
        points = []
        for run in self.runs:
            intensity = run["flops"] / run["bytes"]
            points.append(draw.Point(run["name"], intensity, roof.attainable(intensity)))
        return draw.roofline({"measured": roof}, points, "Each op at the least time that the roof allows")
