"""What a figure is made of, in text: `python -m tests.figures` stores it for every figure that the tests draw.

A line per artist, with what is not matplotlib's default: kind, place, colour, width, marker, hatch, text. No pixels and
no sizes of letters, so the text is the same on every platform. Look at the difference before you commit: each line that
changed is something that a learner sees.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch
from matplotlib.spines import Spine
from matplotlib.text import Annotation, Text

FOLDER = Path(__file__).with_name("figures")
_COLOURS = {"color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"}
_EACH = ("alpha", "zorder", "clip_on", "visible")
_LINE = (
    "color", "linewidth", "linestyle", "marker", "markersize", "markerfacecolor", "markeredgecolor", "markeredgewidth",
    "markevery", "fillstyle", "drawstyle",
)  # fmt: skip
_PATCH = ("facecolor", "edgecolor", "linewidth", "linestyle", "hatch")
_TEXT = ("color", "fontsize", "fontweight", "fontstyle", "fontfamily", "rotation", "ha", "va")
_USUAL = {
    "alpha": None, "visible": True, "marker": "None", "markevery": None, "fillstyle": "full", "drawstyle": "default",
    "linestyle": "-", "hatch": None, "fontweight": "normal", "fontstyle": "normal", "rotation": 0.0, "ha": "left",
    "va": "baseline", "color": "#000000", "fontfamily": "['DejaVu Sans']", "clip_on": True,
}  # fmt: skip


def describe(figure: Figure) -> str:
    """The artists of a figure in the order in which they are kept, a line each."""
    figure.canvas.draw()  # places the labels, and makes the ticks
    size = " × ".join(map(_value, figure.get_size_inches()))
    engine = figure.get_layout_engine()
    lines = [f"figure {size} in, {figure.dpi:g} dpi, {to_hex(figure.get_facecolor())}, {type(engine).__name__}"]
    lines += [f"title {_text(text)}" for text in (figure._suptitle,) if text is not None]
    for artist in (*figure.texts, *figure.legends, *figure.lines, *figure.patches):
        lines += _lines(artist)
    for ax in figure.axes:
        # A place that is fixed is the same on every platform; any other follows from the sizes of letters.
        placed = f", at {_array(ax.get_position().bounds)}" if engine is None else ""
        first, *rest = _axes(ax)
        lines += ["", first + placed, *rest]
    return "\n".join(lines) + "\n"


def _axes(ax: Axes) -> Iterable[str]:
    kept = "shown" if ax.axison else "off"
    yield f"axes {kept}, aspect {_value(ax.get_aspect())}, {to_hex(ax.get_facecolor())}"
    for place in ("left", "center", "right"):
        if ax.get_title(loc=place):
            yield f"  title {place} {ax.get_title(loc=place)!r}"
    if not ax.axison:
        yield f"  x {_ends(ax.xaxis)}, y {_ends(ax.yaxis)}"
    else:
        shown = [name for name, spine in ax.spines.items() if spine.get_visible()]
        yield f"  spines {' '.join(shown)}"
        yield from (f"  {name} {_axis(axis)}" for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)))
    for artist in ax.get_children():
        own = {ax.patch, ax.title, ax._left_title, ax._right_title}
        if not isinstance(artist, Axis | Spine) and artist not in own:
            yield from (f"  {line}" for line in _lines(artist))


def _axis(axis: Axis) -> str:
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if tick.get_visible() and low <= tick.get_loc() <= high]
    words = [f"{_value(tick.get_loc())}={tick.label1.get_text()}" for tick in ticks]
    first = ticks[0] if ticks else None
    look = "" if first is None else (
        f"; size {first.label1.get_fontsize():g}, mark {first._size:g} × {first._width:g} {first._tickdir},"
        f" label {'shown' if first.label1.get_visible() else 'off'} pad {first._pad:g}"
        f", grid {_line_look(first.gridline) if first.gridline.get_visible() else 'off'}"
    )  # fmt: skip
    label = f"{axis.get_label_text()!r} {_style(axis.label, _TEXT)}".rstrip()
    return f"{label} {axis.get_scale()} {_ends(axis)}: {' '.join(words)}{look}; {len(axis.get_minorticklocs())} minor"


def _ends(axis: Axis) -> str:
    return " to ".join(map(_value, axis.get_view_interval()))


def _line_look(line: Line2D) -> str:
    return _style(line, ("color", "linewidth", "linestyle", "alpha", "zorder"))


def _lines(artist: Artist) -> Iterable[str]:
    """An artist, and below it what it is made of."""
    name = type(artist).__name__
    label = str(artist.get_label() or "")
    named = "" if not label or label.startswith("_") else f" {label!r}"
    common = f"{name}{named}{_where(artist)}"
    if isinstance(artist, Text):
        if artist.get_text():
            yield f"{common} {_text(artist)}"
    elif isinstance(artist, Line2D):
        dashes = artist._unscaled_dash_pattern[1]
        dashed = f"dashes={_value(tuple(dashes))} " if dashes else ""
        yield f"{common} {_style(artist, (*_LINE, *_EACH))} {dashed}{_array(artist.get_xydata())}"
    elif isinstance(artist, Patch):
        path = artist.get_path().transformed(artist.get_patch_transform())
        yield f"{common} {_style(artist, (*_PATCH, *_EACH))} {_array(path.vertices)}"
    elif isinstance(artist, Collection):
        look = [("face", artist.get_facecolor()), ("edge", artist.get_edgecolor())]
        colours = " ".join(f"{what}={_colours(rows)}" for what, rows in look)
        widths, styles = _array(artist.get_linewidth()), [_value(style) for style in artist.get_linestyle()]
        shapes = [path.vertices for path in artist.get_paths()]
        corners = _array(np.concatenate(shapes)) if shapes else ""
        sizes = _array(artist.get_sizes()) if hasattr(artist, "get_sizes") else ""
        transform = artist.get_transform()
        if artist.axes is None or transform != artist.axes.transData:
            common += f" scaled by {_array(transform.transform((1, 1)) - transform.transform((0, 0)))}"
        yield (
            f"{common} {colours} width={widths} style={' '.join(dict.fromkeys(styles))} hatch={artist.get_hatch()}"
            f" sizes={sizes} {_style(artist, _EACH)} at {_array(artist.get_offsets())} of {len(shapes)}: {corners}"
        )
    elif isinstance(artist, AxesImage):
        limits = " to ".join(map(_value, artist.get_clim()))
        data = np.asarray(artist.get_array(), float)
        yield (
            f"{common} {data.shape} mean {data.mean():.3g}, {artist.get_cmap().name} {limits}, extent"
            f" {_array(artist.get_extent())}, {artist.get_interpolation()} {_style(artist, _EACH)}"
        )
    elif isinstance(artist, Legend):
        frame = artist.get_frame_on()
        yield f"{common} at {artist._loc_real!r} in {artist._ncols} columns, frame {frame} {_style(artist, _EACH)}"
        for part in (*artist.legend_handles, *artist.get_texts(), artist.get_title()):
            yield from (f"  {line}" for line in _lines(part))
    else:
        yield f"{common} {_style(artist, _EACH)}"


def _text(text: Text) -> str:
    words = [repr(text.get_text()), _style(text, (*_TEXT, *_EACH)), f"at {_array(text.get_position())}"]
    if text._linespacing != "normal":
        words.append(f"spacing {_value(text._linespacing)}")
    if isinstance(text, Annotation):
        words.append(f"of {_array(text.xy)} in {_value(text.xycoords)}, {_value(text.anncoords)}")
        if text.arrow_patch:
            kind = type(text.arrow_patch.get_arrowstyle()).__name__
            words.append(f"arrow ({_style(text.arrow_patch, _PATCH)} {kind})")
    box = text.get_bbox_patch()
    if isinstance(box, FancyBboxPatch):
        style = box.get_boxstyle()
        words.append(f"box ({type(style).__name__} {_value(vars(style))} {_style(box, (*_PATCH, 'alpha'))})")
    return " ".join(words)


def _where(artist: Artist) -> str:
    """The coordinates that an artist lies in."""
    ax, figure = getattr(artist, "axes", None), artist.get_figure()
    if ax is None:
        known = {"figure": figure.transSubfigure} if figure is not None else {}
    else:
        known = {"": ax.transData, "axes": ax.transAxes}
        known |= {"x data, y axes": ax.get_xaxis_transform(), "x axes, y data": ax.get_yaxis_transform()}
    found = [name for name, transform in known.items() if artist.get_transform() == transform]
    return "" if found in ([""], []) else f" in {found[0]}"


def _style(artist: Artist, names: Iterable[str]) -> str:
    found = []
    for name in names:
        value = getattr(artist, f"get_{name}")()
        text = _colours(value) if name in _COLOURS else _value(value)
        if text != _value(_USUAL.get(name, "")):
            found.append(f"{name}={text}")
    return " ".join(found)


def _colours(value: Any) -> str:
    """Each colour once, in order, with its share of the whole if there are several."""
    rows = [to_hex(row, keep_alpha=row[3] < 1) for row in to_rgba_array(value)]
    return ",".join(f"{row}" if len(set(rows)) == 1 else f"{row}×{rows.count(row)}" for row in dict.fromkeys(rows))


def _array(values: Any) -> str:
    """The first numbers, and of many all the rest in one sum that depends on their order."""
    flat = np.ma.filled(np.ma.asarray(values, float), np.nan).ravel()
    text = " ".join(map(_value, flat[:12]))
    return text if len(flat) <= 12 else f"{text} … {len(flat)}: {_value(float(flat @ np.arange(1, len(flat) + 1)))}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={_value(part)}" for key, part in value.items())
    if isinstance(value, tuple | np.ndarray):
        return f"({' '.join(map(_value, value))})"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    return f"{value:.3g}" if value else "0"


def path(name: str) -> Path:
    """Where the text of a figure lies."""
    return FOLDER / f"{name.replace(',', '').replace(' ', '_')}.txt"


def store() -> None:
    """Write the text of every figure that the tests draw."""
    from tests.test_draw import FIGURES

    FOLDER.mkdir(exist_ok=True)
    for name, draw in FIGURES.items():
        path(name).write_text(describe(draw()), encoding="utf-8")


if __name__ == "__main__":
    store()
