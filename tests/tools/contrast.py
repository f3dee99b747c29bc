"""Contrast between two colours, as WCAG 2 defines it: text needs at least 4.5, lines and marks at least 3."""

import numpy as np
from matplotlib.colors import to_rgb


def luminance(colour: str) -> float:
    """The relative luminance of a colour, from 0 to 1."""
    parts = np.asarray(to_rgb(colour))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(first: str, second: str) -> float:
    """The ratio of two colours, such as "#0072B2" and "white", from 1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)
