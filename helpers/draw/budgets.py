"""A transformer's budget: what fits on a device, and which time bounds the step."""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullLocator

from helpers import units
from helpers.draw.drawing import BLACK, BLUE, HATCHES, INKS, PLATE, TINTS, VERMILLION, drawn, note, page, wiped

_TERMS = {  # which tint and hatch a term of memory has
    "parameters": 0,
    "weights": 0,
    "gradients": 1,
    "optimizer": 2,
    "moments": 2,
    "master copy": 0,
    "activations": 3,
    "KV cache": 3,
    "logits": 4,
}


@drawn("Bars")
def budget(
    memory: Mapping[str, float],
    capacity: float,
    times: tuple[float, float],
    title: str,
    *,
    again: Figure | None = None,
) -> Figure:
    """What fits and what bounds: the memory by term against a device's capacity, above the two times of a step.

    `memory` maps the name of a term to its bytes; `times` are the seconds of the arithmetic and of the memory.
    `again` is such a figure that nobody needs any more: to draw on it is quicker.
    """
    fig = wiped(again) if again else _empty()
    top, bottom = fig.axes
    top.set_title(title)
    total, left, far = sum(memory.values()), 0.0, 1.3 * max(sum(memory.values()), capacity)
    for name, size in memory.items():
        look = {"color": TINTS[_TERMS[name]], "hatch": HATCHES[_TERMS[name]], "edgecolor": "white"}
        top.barh(0, size, left=left, label=name, **look)
        left += size
    top.axvline(capacity, color=BLACK, linewidth=1.2, label="capacity")
    verdict = "fits" if total <= capacity else "does not fit"
    look = {"color": BLACK if total <= capacity else INKS[VERMILLION], "weight": "bold", "bbox": PLATE}
    note(top, f"{units.si(total, 'B')}: {verdict}", (total, 0), **look)
    note(top, f"device: {units.si(capacity, 'B')}", (capacity, 0.68), (4, 0), fontsize=8)
    top.set(xlim=(0, far), ylim=(-0.5, 0.95), yticks=[0], yticklabels=["memory"])
    top.xaxis.set_major_formatter(EngFormatter("B"))
    kinds = {
        "arithmetic": {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "//////"},
        "moving": {"color": BLUE},
    }
    for row, ((name, look), seconds) in enumerate(zip(kinds.items(), times, strict=True)):
        bottom.barh(row, seconds, height=0.6, label=name, **look)
        bound = ": bounds the step" if seconds == max(times) else ""
        weight = "bold" if bound else "normal"
        note(bottom, f"{units.duration(seconds)}{bound}", (seconds, row), fontsize=8, weight=weight)
    bottom.set_xscale("log")
    bottom.set(xlim=(min(times) / 5, max(times) * 60), ylim=(1.5, -0.5), yticks=[0, 1], yticklabels=list(kinds))
    bottom.xaxis.set_major_formatter(EngFormatter("s"))
    bottom.xaxis.set_minor_locator(NullLocator())  # half of the time to draw went into minor ticks
    for ax in (top, bottom):
        ax.grid(axis="y", visible=False)
    fig.legend(*top.get_legend_handles_labels(), loc="lower center", ncols=6, fontsize=8)
    return fig


def _empty() -> Figure:
    fig = page(3.2, layout="none")  # a fixed layout, since the explorer redraws at every step of a slider
    axes = fig.subplots(2, 1, height_ratios=(1, 1.25))
    fig.subplots_adjust(left=0.125, right=0.975, top=0.92, bottom=0.19, hspace=0.5)
    for axis in (axis for ax in axes for axis in (ax.xaxis, ax.yaxis)):
        axis.set_label_coords(0, 0)  # there is no label, whose place each drawing would look for
    return fig
