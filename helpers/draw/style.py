"""The look of every figure, whatever the learner's own settings are: one style, five colours, empty axes."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation

_FILE = Path(__file__).with_name("course.mplstyle")
# Parsed once: a widget redraws often. The backend is no matter of style, and resetting it would load pyplot.
_STYLE = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
_STYLE |= matplotlib.rc_params_from_file(_FILE, use_default_template=False)

WIDTH = 6.4  # inches; at 110 dpi a figure is at most 704 pixels wide
BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
TINTS = ("#BBDDF2", "#F6C9A8", "#BDE8D8", "#EBCBDD", "#DDDDDD")  # of the five colours, for black digits on top
GREY = "#767676"
# Words in a colour are darker than its lines and marks: thin strokes need more contrast with white.
INKS = {BLUE: BLUE, VERMILLION: "#B04A00", GREEN: "#007A59", PURPLE: "#9C4676", BLACK: BLACK}
MARKERS = "os^Dv"
SQUARE = {"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0}  # behind a text
HATCHES = ("", "///", "...", "\\\\\\", "xxx")


def styled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a drawing function in the course's style, whatever the learner's own settings are."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with matplotlib.rc_context(_STYLE):
            return function(*args, **kwargs)

    return wrapper


def page(height: float, width: float = WIDTH, **options: Any) -> Figure:
    """An empty figure without axes, no wider than the course's page; sizes in inches."""
    fig = Figure(figsize=(min(width, WIDTH), height), **options)
    FigureCanvasAgg(fig)
    return fig


@styled
def figure(width: float = WIDTH, height: float = 3.0) -> tuple[Figure, Axes]:
    """An empty figure in the course's style with one pair of axes: `fig, ax = draw.figure()`."""
    fig = page(height, width)
    return fig, fig.subplots()


def canvas(height: float, title: str, xlabel: str = "", ylabel: str = "") -> tuple[Figure, Axes]:
    """A figure of the full width with a title and labels on its axes."""
    fig, ax = figure(height=height)
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return fig, ax


def wiped(fig: Figure) -> Figure:
    """The figure with nothing on its axes. They and their ticks stay, which take a quarter of the time to draw."""
    for group in (*fig.legends, *(bars for ax in fig.axes for bars in ax.containers)):
        group.remove()
    for ax in fig.axes:
        for artist in (*ax.lines, *ax.patches, *ax.collections, *ax.texts):
            artist.remove()
    return fig


def note(ax: Axes, text: str, at: tuple[float, float], shift: tuple[float, float] = (5, 0), **style: Any) -> Annotation:
    """A text beside a place of the plot, shifted from it by so many points."""
    return ax.annotate(text, at, xytext=shift, textcoords="offset points", **{"va": "center"} | style)


def apart(places: dict[str, float], gap: float) -> dict[str, float]:
    """The same places, moved up where two are closer than the gap."""
    moved: dict[str, float] = {}
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        moved[name] = max(place, max(moved.values(), default=-math.inf) + gap)
    return moved
