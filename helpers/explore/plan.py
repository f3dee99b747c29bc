"""The plan of a training run: what one GPU must hold, beside what the run takes; a cure for one costs the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traitlets import Bool, Dict, Enum, Float, Int, List, Unicode, validate

from helpers import budget, specs, units
from helpers.explore.view import GIVEN, STATE, View
from helpers.model import MODELS, Config
from helpers.units import DAY

HANDLES = ("model", "machine", "gpus", "run", "utilization", "texts", "recompute", "fused", "shared", "text_gpus")
SERVER = 8  # GPUs that share the links to the network
LINKS = 400e9  # bytes/s of a server: 8 links of 400 Gbit/s, The Llama 3 Herd of Models (2024), section 3.3
_MOST_GPUS = 2**14
_H100 = "NVIDIA H100 SXM5"


def _machine(spec: specs.Spec) -> dict[str, Any]:
    """What is trained in mixed precision on it: where it has no bfloat16, float16, which has as many bytes."""
    rates = {**spec.vector, **spec.matrix}
    dtype = "bfloat16" if "bfloat16" in rates else "float16"
    return {"memory": spec.memory, "peak": spec.peak(dtype), "dtype": dtype}


def trains(spec: specs.Spec) -> bool:
    """Whether the machine has a rate for the 16-bit numbers of mixed precision."""
    rates = {**spec.vector, **spec.matrix}
    return "bfloat16" in rates or "float16" in rates


MACHINES = {spec.name: _machine(spec) for spec in specs.table() if trains(spec)}


def many(number: float, noun: str) -> str:
    """A large number in words.

    >>> many(15e12, "tokens"), many(2400, "dollars")
    ('15 trillion tokens', '2400 dollars')
    """
    names = {1e12: "trillion ", 1e9: "billion ", 1e6: "million "}
    size = next((size for size in names if number >= size), 1)
    count = number / size
    text = f"{count:.3g}" if count < 999.5 else f"{count:.0f}"
    return f"{text} {names.get(size, '')}{noun}"


@dataclass(frozen=True)
class _Run:
    """A run whose GPU-hours are published; `active` parameters meet each of its tokens."""

    name: str
    active: float
    tokens: float
    gpu_hours: float
    gpus: int
    source: str


_RUNS = (
    _Run(
        "Llama 3 70B",
        70e9,
        15e12,
        6.4e6,
        1024,
        "Meta's model card: 6.4 million H100-hours, here on 1024 GPUs; on how many is not published",
    ),
    _Run(
        "Llama 3 405B",
        405e9,
        15.6e12,
        30.84e6,
        16_384,
        "Meta's model card: 30.84 million H100-hours; the paper: up to 16,384 GPUs, here all the time",
    ),
    _Run(
        "DeepSeek-V3",
        37e9,
        14.8e12,
        2.788e6,
        2048,
        "its report: 2.788 million hours on 2048 H800s, taken to have an H100's peak in bfloat16; most products ran "
        "in float8, whose peak is twice as high; 6 · 37 billion FLOP per token",
    ),
)


def _law(config: Config, length: int, recompute: str, fused: bool) -> dict[str, dict[str, list[float]]]:
    """By moment and term what is alive on a GPU, in bytes: so many over the GPUs that share, for each text, and once.

    Exact, since a step's bytes are a constant and a multiple of the texts, and states do not depend on them.
    """
    one, two = (budget.training(config, n, length, recompute=recompute, fused=fused).alive for n in (1, 2))
    return {
        moment: {
            term: [0, two[moment][term] - size, 2 * size - two[moment][term]]
            if term in ("activations", "loss")
            else [size, 0, 0]
            for term, size in terms.items()
        }
        for moment, terms in one.items()
    }


def _attention(fused: bool) -> str:
    return "fused" if fused else "unfused"


def _flops(config: Config, length: int, flops_per_token: float | None) -> dict[str, Any]:
    """The FLOPs of one text: those of the model, and all that run, by recomputation and attention."""
    steps = {
        (recompute, fused): budget.training(config, 1, length, recompute=recompute, fused=fused)
        for recompute in budget.RECOMPUTATIONS
        for fused in (True, False)
    }
    useful = steps["none", True].useful if flops_per_token is None else flops_per_token * length
    again = {key: step.flops - step.useful if flops_per_token is None else 0 for key, step in steps.items()}
    return {
        "useful": useful,
        "flops": {
            recompute: {_attention(fused): useful + again[recompute, fused] for fused in (True, False)}
            for recompute in budget.RECOMPUTATIONS
        },
    }


def _facts(config: Config, tokens: int, flops_per_token: float | None) -> dict[str, Any]:
    """What the picture needs of a model, as coefficients; a text is no longer than the model's context."""
    length = min(tokens, config.context)
    # Rajbhandari et al. 2020, section 7.2: gradients move twice, or with stage 3 weights twice, gradients once.
    traffic = {"beyond": 3 * 2 * config.parameters, "within": 2 * 2 * config.parameters}
    alive = {
        recompute: {_attention(fused): _law(config, length, recompute, fused) for fused in (True, False)}
        for recompute in budget.RECOMPUTATIONS
    }
    return {"length": length, "traffic": traffic, "alive": alive, **_flops(config, length, flops_per_token)}


def _published(flops_per_token: float | None) -> list[dict[str, Any]]:
    """The published runs, each with the MFU that its GPU-hours imply, counted as the picture counts.

    Where that is all products, a run of which no Config is known is left out.
    """
    found = []
    for run in _RUNS:
        config = MODELS.get(run.name)
        if flops_per_token is not None:
            per_token = 6 * run.active
        elif config is not None:
            per_token = 3 * budget.forward_flops(config, 8192) / 8192
        else:
            continue
        peak = MACHINES[_H100]["peak"]
        days = run.gpu_hours / run.gpus / 24
        mfu = specs.mfu(per_token * run.tokens / (3600 * run.gpu_hours), peak)
        found.append({"name": run.name, "gpus": run.gpus, "days": days, "mfu": mfu, "source": run.source})
    return found


_Question = Mapping[str, Any]


class Plan(View):
    """A training run in mixed precision with AdamW: at the left GB on each GPU, at the right days and dollars.

    `tokens` is the length of a text (at most the model's context); a model is a name of `MODELS`, or any Config. The
    days are those of 6N + 12·L·D·T FLOP per token and what is recomputed, or of `flops_per_token` alone, whatever is
    recomputed. `handles` are those that the reader may move, `most` the bytes at which the left scale ends. `asked` are
    questions that come first: "name", which is "gpus" or "days", "text" and "answer", and the changes of the state
    "before" it is asked and "after" the answer; without them, if recomputing whole blocks makes it fit, how many days.

    State: gpus, texts for each GPU at a time, and text_gpus that work on the same ones; recompute ("none", "selective",
    "full") and fused attention; shared, the GPUs among which the states are shared out; utilization, the part of the
    peak that computes, which is the MFU where nothing is recomputed; run, its tokens; price in dollars per GPU-hour,
    deadline in days. One GPU serves the texts of a step at once; data, pauses and traffic within a server are left out.
    Raises TraitError for what is not on a list or out of range, and what `budget.training` raises.
    """

    kind = "plan"
    model, machine = Unicode().tag(**STATE), Enum(list(MACHINES), _H100).tag(**STATE)
    gpus, shared = (Int(first, min=1, max=_MOST_GPUS).tag(**STATE) for first in (1024, _MOST_GPUS))
    texts, text_gpus = Int(1, min=1, max=256).tag(**STATE), Enum([1, 2, 4, 8], 1).tag(**STATE)
    recompute, fused = Enum(list(budget.RECOMPUTATIONS), "none").tag(**STATE), Bool(True).tag(**STATE)
    utilization = Float(0.41, min=0.02, max=1).tag(**STATE)
    run = Float(15e12, min=1e9, max=1e15).tag(**STATE)
    price, deadline = Float(2.0, min=0.01, max=100).tag(**STATE), Float(180.0, min=1, max=36_500).tag(**STATE)
    models: Dict = Dict().tag(**GIVEN)
    machines: Dict = Dict(MACHINES).tag(**GIVEN)
    published: List = List().tag(**GIVEN)
    asked: List = List().tag(**GIVEN)
    handles: List = List().tag(**GIVEN)
    links, server = Float(LINKS).tag(**GIVEN), Int(SERVER).tag(**GIVEN)
    most = Float().tag(**GIVEN)

    def __init__(
        self,
        model: str | Config = "Llama 3 70B",
        *,
        tokens: int = 8192,
        flops_per_token: float | None = None,
        handles: Sequence[str] = HANDLES,
        asked: Sequence[_Question] | None = None,
        most: float = 320e9,
        **state: Any,
    ) -> None:
        known = {model.name: model} if isinstance(model, Config) else {}
        self._configs = {**MODELS, **known}
        name = model.name if isinstance(model, Config) else model
        if name not in self._configs:
            raise ValueError(f"no model {name!r}: pass a Config, or take one of {', '.join(MODELS)}")
        if unknown := set(handles).difference(HANDLES):
            raise ValueError(f"no handle {min(unknown)!r}: take some of {', '.join(HANDLES)}")
        if asked is None:
            asked = Plan(model, tokens=tokens, handles=(), asked=(), **state)._question()
        chosen = self._configs if "model" in handles else {name: self._configs[name]}
        super().__init__(
            **{"model": name} | state,
            models={key: _facts(config, tokens, flops_per_token) for key, config in chosen.items()},
            published=_published(flops_per_token),
            handles=list(handles),
            most=most,
            asked=[dict(question) for question in asked],
        )

    @validate("model")
    def _known(self, proposal: dict[str, Any]) -> str:
        if proposal["value"] not in self.models:
            raise ValueError(f"this plan has no model {proposal['value']!r}, only {', '.join(self.models)}")
        return proposal["value"]

    @property
    def step(self) -> budget.Step:
        """What a step needs on each GPU."""
        return self._step(self.gpus, self.recompute)

    def _step(self, gpus: int, recompute: str) -> budget.Step:
        return budget.training(
            self._configs[self.model],
            self.texts,
            self.models[self.model]["length"],
            devices=min(self.shared, gpus),
            recompute=recompute,
            fused=self.fused,
            text_devices=min(self.text_gpus, gpus),
        )

    def _fits(self, gpus: int, recompute: str) -> bool:
        return self._step(gpus, recompute).peak <= MACHINES[self.machine]["memory"]

    @property
    def least(self) -> int | None:
        """The fewest GPUs that hold it, whole servers from one on; None if none do."""
        servers = [1, 2, 4, *range(SERVER, _MOST_GPUS + 1, SERVER)]
        return next((gpus for gpus in servers if self._fits(gpus, self.recompute)), None)

    def _question(self) -> list[_Question]:
        if self._fits(self.gpus, self.recompute) or not self._fits(self.gpus, "full"):
            return []
        before, needed = {"recompute": self.recompute}, units.si(self.step.peak, "B")
        self.recompute = "full"
        text = f"It needs {needed}. Recompute whole blocks, and it fits: how many days will the run take then?"
        after = {"recompute": "full"}
        return [{"name": "days", "text": text, "before": before, "after": after, "answer": self.days}]

    @property
    def seconds(self) -> tuple[float, float]:
        """The seconds of a step: of its arithmetic, and of its traffic into each server, which can hide behind it."""
        facts, machine = self.models[self.model], MACHINES[self.machine]
        flops = facts["flops"][self.recompute][_attention(self.fused)] * self.texts / min(self.text_gpus, self.gpus)
        arithmetic = flops / (machine["peak"] * self.utilization)
        if self.gpus <= SERVER:
            return arithmetic, 0
        traffic = facts["traffic"]["beyond" if min(self.shared, self.gpus) > SERVER else "within"]
        return arithmetic, traffic / LINKS

    @property
    def days(self) -> float:
        """How long the run takes, without a pause."""
        facts = self.models[self.model]
        at_once = self.gpus / min(self.text_gpus, self.gpus) * self.texts * facts["length"]  # tokens of a step
        return self.run / at_once * max(self.seconds) / DAY

    @property
    def mfu(self) -> float:
        """The model's FLOPs over what the GPUs could have done in those days."""
        facts = self.models[self.model]
        flops = facts["useful"] / facts["length"] * self.run
        return specs.mfu(flops, MACHINES[self.machine]["peak"] * self.gpus * self.days * DAY)

    def _words(self) -> str:
        gpus = f"{self.gpus} × {self.machine.removeprefix('NVIDIA ')}"
        setting = f"{self.model} on {gpus}, {many(self.run, 'tokens')}, at {self.utilization:.2g} of the peak"
        if self.asked:  # what answers the first question is not told
            kept = setting.replace(f"{self.gpus} × ", "") if self.asked[0]["name"] == "gpus" else setting
            return f"The plan of a run: {kept}.\n{self.asked[0]['text']}"
        step, memory = self.step, MACHINES[self.machine]["memory"]
        fits = "fits" if step.peak <= memory else "does not fit"
        terms = ", ".join(f"{term} {units.si(size, 'B')}" for term, size in step.alive[step.fullest].items())
        hours = self.gpus * self.days * 24
        cost = f"{many(hours, 'GPU-hours')}, {many(hours * self.price, 'dollars')}"
        return "\n".join(
            [
                f"The plan of a run: {setting}.",
                f"Each GPU: {units.si(step.peak, 'B')} {step.fullest}, which {fits}. {terms}.",
                f"The run: {self.days:.3g} days, {cost}, an MFU of {self.mfu:.2f}.",
            ]
        )


def napkin(model: str | Config = "Llama 3 70B", parameters: float | None = None, *, tokens: int = 4096) -> Plan:
    """The plan with two handles, GPUs and MFU: how many GPUs hold a model, and how long do they train?

    Whole blocks are recomputed, and each GPU has one text of so many `tokens`. The days are those of 6 FLOP for each of
    15 trillion tokens and each of so many `parameters`, without which they are those that a token meets.
    """
    config = model if isinstance(model, Config) else MODELS[model]
    state: dict[str, Any] = {"recompute": "full", "utilization": 0.5}
    first: dict[str, Any] = {
        "tokens": tokens,
        "flops_per_token": 6 * (parameters or config.active),
        "handles": ["gpus", "utilization"],
        "most": 160e9,
    }
    plan = Plan(model, **first, asked=[], **state)
    most = plan.least or _MOST_GPUS
    plan.gpus = state["gpus"] = most
    held = f"{most} hold it" if plan.least else "No number holds it"
    asked: list[_Question] = [
        {"name": "gpus", "text": f"How many H100s must hold {config.name} while it trains?", "answer": plan.least},
        {"name": "days", "text": f"{held}. How long do they train?", "before": state, "answer": plan.days},
    ]
    return Plan(model, **first, asked=asked, **state)
