"""Shapes with soft edges and light from above, painted over an image: the parts of `gcb.envs.textures`."""

import functools
import math
from dataclasses import dataclass

import numpy as np


def mix(image: np.ndarray, other: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the images, or an image and a colour, mixed with the weight (H, W) of the second."""
    return image + weight[..., None] * (other - image)


@dataclass(frozen=True)
class Shape:
    """A shape to paint. Lengths are in units of the image's side."""

    form: str
    """`ellipse`, `rectangle`, `polygon`, or `box`: a cuboid seen from a corner."""
    x: float
    y: float
    radius: float
    angle: float = 0.0
    aspect: float = 1.0
    """Ratio of length and width, at least 1."""
    corners: int = 5


def paint(
    image: np.ndarray, shape: Shape, color: np.ndarray, relief: float = 0.0, opacity: float = 1.0, blur: float = 0.0
) -> None:
    """Paint a shape over the image, in place.

    `color` is one colour (3,) or another image (side, side, 3) that shows through the shape. `relief` is the strength
    of the light from above, and `blur` the width of the soft edge.
    """
    side = len(image)
    reach = shape.radius * (1.05 if shape.form == "ellipse" else 1.5) + blur
    window, axes = [], []
    for middle in (shape.y, shape.x):
        low, high = max(math.floor((middle - reach) * side), 0), min(math.ceil((middle + reach) * side), side)
        window.append(slice(low, high))
        axes.append(((np.arange(low, high) + 0.5) / side - middle) / shape.radius)
    rows, columns = window
    y, x = axes[0][:, None], axes[1]
    cos, sin = math.cos(shape.angle), math.sin(shape.angle)
    u, v = cos * x + sin * y, shape.aspect * (cos * y - sin * x)
    depth = (1 - _gauge(shape, u, v)) * (shape.radius / shape.aspect) / max(blur, 1 / side)
    if color.ndim == 3:
        color = color[rows, columns]
    if relief:
        color = color * (1 + relief * _light(shape, u, v, y))[..., None]
    image[rows, columns] = mix(image[rows, columns], color, opacity * np.clip(depth + 0.5, 0, 1))


def _gauge(shape: Shape, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a distance of points from the centre of the shape that is 1 on its outline."""
    if shape.form == "ellipse":
        return np.sqrt(u * u + v * v)
    if shape.form == "rectangle":
        return np.maximum(np.abs(u), np.abs(v))
    corners = 6 if shape.form == "box" else shape.corners
    angles = [2 * math.pi * corner / corners for corner in range(corners)]
    return functools.reduce(np.maximum, (math.cos(angle) * u + math.sin(angle) * v for angle in angles))


def _light(shape: Shape, u: np.ndarray, v: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return how much lighter the points of a shape are in light from above: from about -1 to 1."""
    if shape.form == "ellipse":
        return 0.6 - 0.6 * y - 0.8 * (u * u + v * v)
    if shape.form == "box":
        top, left, right = (math.cos(a) * u + math.sin(a) * v for a in (-math.pi / 2, 5 * math.pi / 6, math.pi / 6))
        return np.where(top > np.maximum(left, right), 0.6, np.where(left > right, -0.1, -0.7))
    return 0.2 - 0.6 * y
