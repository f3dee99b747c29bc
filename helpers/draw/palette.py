"""The colours, lines and grounds of every figure. Blue waits for memory, vermillion computes: in the whole course."""

from typing import Any

BLUE, VERMILLION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
GREY = "#666666"
GROUNDS = ("#E3F0F9", "#E0F3EC", "#FCE9DD", "#E8E8E8")  # regions: memory-bound, in between, compute-bound, out of reach
TINTS = ("#9FD0F0", "#F5B88C", "#9EDCC5", "#E4B5D0", "#CFCFCF", "#F0E28C")  # for black digits on top
# Words in a colour are darker than its lines and marks: thin strokes need more contrast with white.
INKS = {BLUE: "#00639C", VERMILLION: "#A84600", GREEN: "#006B4F", PURPLE: "#8F3D6C", BLACK: BLACK, GREY: "#595959"}
# The styles of the lines of a chart; blue and vermillion, which have a meaning, last.
LINES: tuple[dict[str, Any], ...] = (
    {"color": GREEN, "marker": "o", "linestyle": "-"},
    {"color": PURPLE, "marker": "s", "linestyle": (0, (5, 2))},
    {"color": BLACK, "marker": "^", "linestyle": (0, (1.5, 1.2))},
    {"color": BLUE, "marker": "D", "linestyle": (0, (5, 1.5, 1, 1.5))},
    {"color": VERMILLION, "marker": "v", "linestyle": (0, (8, 2, 2, 2))},
)
DASHES = (0, (4, 3))  # of a guide
PLATE = {"boxstyle": "square,pad=0.12", "facecolor": "white", "linewidth": 0}  # behind a text that lies on a line
