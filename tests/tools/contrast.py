"""Contrast between two colours, as WCAG 2 defines it: 4.5 for text and 3 for the rest is enough."""

import numpy as np


def luminance(colour: np.ndarray) -> np.ndarray:
    """The relative luminance of colours whose last axis is red, green, blue from 0 to 1."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def contrast(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The ratio from 1 to 21 of colours to others; broadcasts."""
    lights = np.stack(np.broadcast_arrays(luminance(np.asarray(first)), luminance(np.asarray(second))))
    return (lights.max(0) + 0.05) / (lights.min(0) + 0.05)
