"""A transformer's budget, to be changed."""

import ipywidgets as widgets
from matplotlib.figure import Figure

from helpers import budget, draw, specs, units
from helpers.explore.view import HINT, View
from helpers.roofline import Roofline

_MACHINES = (
    "NVIDIA A100 SXM4 80GB",
    "NVIDIA H100 SXM5",
    "NVIDIA H200 SXM",
    "NVIDIA B200 (HGX, per GPU)",
    "NVIDIA L40S",
    "NVIDIA GeForce RTX 4090",
    "AMD Instinct MI300X",
    "Google TPU v5e",
)


class Budget(View):
    """Choose a model, a machine and a load; see what fits on each device and what bounds the step."""

    def __init__(self, model: str, machine: str, task: str) -> None:
        super().__init__()
        wide = {"style": {"description_width": "110px"}, "layout": {"width": "330px"}}
        self.model = widgets.Dropdown(options=list(budget.MODELS), value=model, description="model", **wide)
        self.machine = widgets.Dropdown(options=_MACHINES, value=machine, description="machine", **wide)
        self.task = widgets.Dropdown(options=("training", "decoding"), value=task, description="task", **wide)
        powers = {"options": [2**power for power in range(15)], "continuous_update": False, "tooltip": HINT}
        self.devices = widgets.SelectionSlider(description="devices", value=8, **powers, **wide)
        self.batch = widgets.SelectionSlider(**powers, **wide)
        lengths = powers | {"options": [2**power for power in range(7, 18)]}
        self.tokens = widgets.SelectionSlider(description="tokens each", value=4096, **lengths, **wide)
        self.recompute = widgets.Checkbox(description="recompute activations", **wide)
        for control in (self.model, self.machine, self.task, self.devices, self.batch, self.tokens, self.recompute):
            control.observe(lambda _: self._update(), "value")
        self._update()
        rows = [(self.model, self.machine), (self.task, self.devices), (self.batch, self.tokens), (self.recompute,)]
        self._open(
            [*(widgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in rows)],
            self._figure,
            "Interactive view, memory by term against a device, and the two times of a step",
        )

    def _update(self) -> None:
        training = self.task.value == "training"
        self.batch.description = "texts per device" if training else "texts in all"
        self.recompute.disabled = not training
        self._say(self._words())
        self._drawn = figure = self._figure(self._drawn)
        title = figure.axes[0].get_title(loc="left")
        self._show(figure, f"Bars: memory by term against a device, and the two times of a step. {title}.")

    @property
    def budget(self) -> budget.Step:
        """The budget of the step that the controls describe, per device."""
        model, batch = budget.MODELS[self.model.value], self.batch.value
        if self.task.value == "decoding":
            return budget.decoding(model, batch, self.tokens.value, devices=self.devices.value)
        return budget.training(
            model, batch, self.tokens.value, devices=self.devices.value, recompute=self.recompute.value
        )

    @property
    def roof(self) -> Roofline:
        """The roofline of one device, in dense bfloat16."""
        spec = specs.find(self.machine.value)
        return Roofline(spec.peak("bfloat16"), spec.bandwidth)

    def _figure(self, again: Figure | None = None) -> Figure:
        step, spec = self.budget, specs.find(self.machine.value)
        fits = "fits" if step.total <= spec.memory else "does not fit"
        title = f"{self.model.value}, {self.task.value}: {fits}, bound by {_BOUND[step.bound(self.roof)]}"
        return draw.budget(step.memory, spec.memory, step.times(self.roof), title, again=again).figure

    def _words(self) -> list[str]:
        step, spec = self.budget, specs.find(self.machine.value)
        room = spec.memory - step.total
        fits = f"{units.si(room, 'B')} left" if room >= 0 else f"{units.si(-room, 'B')} too much"
        seconds = max(step.times(self.roof))
        texts = self.batch.value
        made = texts * self.tokens.value * self.devices.value if self.task.value == "training" else texts
        word = "token" if made == 1 else "tokens"
        share = step.flops / seconds / self.roof.peak
        return [
            f"Per device: {units.si(step.total, 'B')} of {units.si(spec.memory, 'B')}, <b>{fits}</b>.",
            f"A step takes at least {units.duration(seconds)} for {units.si(made, word)}: "
            f"at most {units.si(made / seconds, 'tokens/s')}, arithmetic at {share:.1%} of its peak.",
        ]


_BOUND = {"memory": "memory", "compute": "arithmetic"}


def transformer_budget(model: str = "Llama 3 8B", machine: str = "NVIDIA H100 SXM5", task: str = "training") -> Budget:
    """A transformer's budget on a machine, to be changed: model, machine, devices, batch, length and recomputation.

    Raises ValueError for a model, a machine or a task that is not on the list.
    """
    for chosen, known in ((model, budget.MODELS), (machine, _MACHINES), (task, ("training", "decoding"))):
        if chosen not in known:
            raise ValueError(f"{chosen!r} is not on the list; take one of {', '.join(known)}")
    return Budget(model, machine, task)
