"""Drawn textures: colour images with the statistics of photographs, as backgrounds for training.

`draw_texture` returns the image with a given number. The numbers take turns among the ten `KINDS`: clouds of 1/f noise,
stripes and checks, bricks and planks, Voronoi mosaics, "dead leaves" (overlapping shapes whose sizes follow a power
law), strokes, piles of boxes and balls with shadows, rooms with such objects in them, and blends of two textures. Edges
and shapes of the size of a cabinet, its handle and its button are common, because they are what an image encoder
confuses with them.

Everything is computed in float64, although pixels have 8 bits: processors add and round in different orders, and in
float32 a few pixels of a texture, and so the fingerprint of a dataset, would depend on the processor.

Shapes are placed in the unit square and noise is drawn on lattices of a fixed size, so a texture looks the same at any
resolution. A recorded clip has only the number: a change to this module changes its frames when it is rendered again.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from gcb.envs.painting import Shape, mix, paint

T = TypeVar("T")

SEED = 7126
FINEST = 64  # cells along a side of the finest lattice of noise
LATTICE = 64  # bricks and mosaics repeat after this many cells, beyond the image
LUMINANCE = np.array([0.299, 0.587, 0.114])


def draw_texture(number: int, side: int) -> np.ndarray:
    """Return texture `number` ≥ 0 as uint8 (side, side, 3)."""
    rng = np.random.default_rng((SEED, number))
    image = KINDS[number % len(KINDS)](rng, side)
    return np.round(255 * _expose(rng, image)).astype(np.uint8)


# ---- noise and colour ------------------------------------------------------------------------------------------


def _pick(rng: np.random.Generator, *values: T) -> T:
    return values[rng.integers(len(values))]


@functools.lru_cache(maxsize=64)
def _spline(cells: int, side: int) -> np.ndarray:
    """Return the matrix (side, cells + 3) from the control points of a uniform cubic B-spline to its pixels."""
    position = (np.arange(side) + 0.5) / side * cells
    first = np.floor(position).astype(int)
    f = position - first
    weights = np.stack([(1 - f) ** 3, 3 * f**3 - 6 * f**2 + 4, -3 * f**3 + 3 * f**2 + 3 * f + 1, f**3], axis=1) / 6
    matrix = np.zeros((side, cells + 3))
    np.put_along_axis(matrix, first[:, None] + np.arange(4), weights, axis=1)
    return matrix


def _noise(rng: np.random.Generator, side: int, cells: int, roughness: float, channels: int = 1) -> np.ndarray:
    """Return fractal noise (channels, side, side) with mean 0 and standard deviation 1.

    `cells` is the number of cells along a side in the coarsest octave, and `roughness` the ratio of the amplitudes of
    an octave and the one before: 0.5 gives the 1/f amplitudes of natural images.
    """
    total = np.zeros((channels, side, side))
    amplitude = 1.0
    while cells <= FINEST:
        lattice = rng.standard_normal((channels, cells + 3, cells + 3), np.float32).astype(float)
        spline = _spline(cells, side)
        total += amplitude * (spline @ lattice @ spline.T)
        cells, amplitude = 2 * cells, amplitude * roughness
    total -= total.mean(axis=(1, 2), keepdims=True)
    return total / total.std(axis=(1, 2), keepdims=True)


def _palette(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return colours (count, 3) that go together: around one hue, around two, or of any hue.

    Three in five of the main hues are those of earth, plants and sky, the rest are uniform.
    """
    hue = _pick(rng, rng.random(), rng.random(), rng.normal(0.08, 0.03), rng.normal(0.25, 0.06), rng.normal(0.58, 0.05))
    hue = hue + rng.normal(0, 0.05, count)
    scheme = rng.random()
    if scheme < 0.35:
        hue = hue + rng.uniform(0.2, 0.5) * rng.integers(0, 2, count)
    elif scheme < 0.65:
        hue = rng.random(count)
    saturation = rng.uniform(0.35, 1.0) * rng.beta(2, 1.5, count)
    value = 0.12 + 0.88 * rng.permutation((np.arange(count) + rng.random(count)) / count)
    return _hsv_to_rgb(hue, saturation, value)


def _hsv_to_rgb(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    k = (np.array([5, 3, 1]) + 6 * hue[:, None]) % 6
    return value[:, None] * (1 - saturation[:, None] * np.clip(np.minimum(k, 4 - k), 0, 1))


def _ramp(level: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Return the colours (…, 3) of levels in [0, 1], interpolated along the list of colours."""
    stops = np.linspace(0, 1, len(colors))
    return np.stack([np.interp(level, stops, channel) for channel in colors.T], axis=-1)


def _fade(colors: np.ndarray, contrast: float) -> np.ndarray:
    """Return the colours (…, 3), moved towards their mean."""
    mean = colors.reshape(-1, 3).mean(axis=0)
    return mean + contrast * (colors - mean)


def _smoothstep(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def _expose(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    """Return the image in uneven light, perhaps with grain, with a random brightness and contrast, within [0, 1]."""
    side = len(image)
    light = 1 + rng.uniform(0, 0.3) * _noise(rng, side, 1, 0.1)[0]
    tint = rng.uniform(0.88, 1.12, 3)
    grain = max(0.0, rng.uniform(-0.05, 0.05)) * _noise(rng, side, FINEST, 1.0)[0]
    image = image * (light[..., None] * tint) + grain[..., None]
    luminance = image @ LUMINANCE
    gain = min(rng.uniform(0.08, 0.26) / max(float(luminance.std()), 1e-3), 2.5)
    return np.clip((image - float(luminance.mean())) * gain + rng.uniform(0.25, 0.7), 0, 1)


# ---- surfaces --------------------------------------------------------------------------------------------------


def _plane(rng: np.random.Generator, side: int, warp: float) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates of the pixels about the centre, rotated at random and bent by about `warp`."""
    angle = rng.uniform(0, math.pi)
    axis = (np.arange(side) + 0.5) / side - 0.5
    x, y = axis[None, :], axis[:, None]
    u, v = math.cos(angle) * x + math.sin(angle) * y, math.cos(angle) * y - math.sin(angle) * x
    bend = warp * _noise(rng, side, 2, 0.4, channels=2)
    return u + bend[0], v + bend[1]


def _clouds(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return 1/f noise in a range of colours: clouds, the veins of marble, or camouflage."""
    field = _noise(rng, side, int(rng.integers(2, 9)), rng.uniform(0.4, 0.75))[0]
    colors = _palette(rng, int(rng.integers(3, 6)))
    style = rng.random()
    if style < 0.3:
        return _ramp(1 - np.minimum(np.abs(field) * rng.uniform(0.5, 1.2), 1), colors)
    level = np.clip(0.5 + field / 4, 0, 0.999)
    if style < 0.7:
        level = level * (len(colors) - 1)
        whole = np.floor(level)
        level = (whole + _smoothstep(0.5 + 4 * (level - whole - 0.5))) / (len(colors) - 1)
    return _ramp(level, colors)


def _stripes(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return stripes, checks or a plaid, between soft and sharp, straight or bent."""
    u, v = _plane(rng, side, _pick(rng, 0.0, 0.02, 0.06))
    sharpness, duty = rng.uniform(0.5, 4), rng.uniform(-0.6, 0.6)
    along, across = (2 ** rng.uniform(1.5, 4) for _ in range(2))
    first, second = (
        np.tanh(sharpness * (np.sin(2 * math.pi * cycles * axis) + shift)) / math.tanh(sharpness)
        for axis, cycles, shift in ((u, along, duty), (v, across, 0.0))
    )
    level = _pick(rng, first, first * second, (first + 0.6 * second) / 1.6)
    return _ramp(0.5 + level / 2, _palette(rng, int(rng.integers(2, 4))))


def _cell_colors(rng: np.random.Generator) -> np.ndarray:
    """Return a colour for each cell of the lattice, few or many different ones, similar or not."""
    colors = _fade(_palette(rng, _pick(rng, 2, 4, 64)), rng.uniform(0.4, 1))
    return colors[rng.integers(0, len(colors), LATTICE * LATTICE)]


def _bricks(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return bricks, tiles or planks of various colours, with joints between them."""
    u, v = _plane(rng, side, _pick(rng, 0.0, 0.01))
    rows = rng.uniform(3, 12)
    columns = rows / _pick(rng, 1.0, 2.0, 4.0)
    v = v * rows + LATTICE // 2
    row = np.floor(v)
    u = u * columns + LATTICE // 2 + row * _pick(rng, 0.0, 0.5, 0.37)
    column = np.floor(u)
    image = _cell_colors(rng)[(LATTICE * row + column).astype(int) % LATTICE**2]
    image = image * (1 + rng.uniform(0, 0.2) * _noise(rng, side, 8, 0.8)[0])[..., None]
    to_joint = np.minimum((0.5 - np.abs(u - column - 0.5)) / columns, (0.5 - np.abs(v - row - 0.5)) / rows)
    return mix(image, _palette(rng, 1)[0], 1 - _smoothstep((to_joint - rng.uniform(0, 0.006)) * 128))


def _mosaic(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return the cells of a Voronoi diagram: cobbles, shards or scales, flat or rounded, with or without joints."""
    u, v = _plane(rng, side, _pick(rng, 0.0, 0.03))
    density = rng.uniform(3, 11)
    distance, site = _two_nearest_sites(rng, u * density * rng.uniform(0.5, 1), v * density)
    colors = _cell_colors(rng)
    edge = (distance[1] - distance[0]) / density  # 0 on the border of two cells
    image = mix(colors[site[0]], colors[site[1]], 0.5 - 0.5 * np.minimum(edge * 128, 1))
    image = image * (1 - rng.uniform(0, 0.7) * distance[0] ** 2)[..., None]
    if rng.random() < 0.6:
        image = mix(image, _palette(rng, 1)[0], 1 - _smoothstep(edge / rng.uniform(0.01, 0.05)))
    return image


def _two_nearest_sites(rng: np.random.Generator, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and numbers, both (2, …), of the nearest sites, of which there is one in each unit square."""
    offset = rng.random((2, LATTICE * LATTICE), np.float32).astype(float)
    column, row = np.floor(u).astype(int), np.floor(v).astype(int)
    distance, site = np.full((2, *u.shape), np.inf), np.zeros((2, *u.shape), int)
    for shift in range(9):
        i, j = row + shift // 3 - 1, column + shift % 3 - 1
        candidate = (LATTICE * i + j) % LATTICE**2
        d = np.hypot(i + offset[0, candidate] - v, j + offset[1, candidate] - u)
        nearest, second = d < distance[0], d < distance[1]
        distance[1] = np.where(nearest, distance[0], np.where(second, d, distance[1]))
        site[1] = np.where(nearest, site[0], np.where(second, candidate, site[1]))
        distance[0], site[0] = np.where(nearest, d, distance[0]), np.where(nearest, candidate, site[0])
    return distance, site


def _surface(rng: np.random.Generator, side: int) -> np.ndarray:
    return _pick(rng, _clouds, _stripes, _bricks, _mosaic)(rng, side)


# ---- shapes ----------------------------------------------------------------------------------------------------


def _radii(rng: np.random.Generator, count: int, low: float, high: float, exponent: float) -> np.ndarray:
    """Return radii with density r^-exponent between `low` and `high`."""
    power = 1 - exponent
    return (low**power + rng.random(count) * (high**power - low**power)) ** (1 / power)


def _leaves(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return overlapping shapes of one or two forms, some of them patterned; their sizes follow a power law."""
    image, material = _clouds(rng, side), _surface(rng, side)
    forms = [_pick(rng, "ellipse", "rectangle", "polygon") for _ in range(2)]
    slender, relief, patterned = rng.uniform(0, 2), rng.uniform(0, 0.5), rng.uniform(0, 0.4)
    blur = _pick(rng, 0.0, 0.0, 0.02)
    count = int(rng.integers(40, 110))
    colors = _palette(rng, count)
    for radius, color in zip(_radii(rng, count, 0.02, 0.3, rng.uniform(1.5, 3)), colors, strict=True):
        shape = Shape(
            form=_pick(rng, *forms),
            x=rng.random(),
            y=rng.random(),
            radius=float(radius),
            angle=rng.uniform(0, math.pi),
            aspect=1 + slender * rng.random(),
            corners=int(rng.integers(3, 8)),
        )
        paint(image, shape, material if rng.random() < patterned else color, relief, blur=blur)
    return image


def _strokes(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return long thin shapes around one direction: grass, twigs, hair or cables."""
    image = _surface(rng, side)
    direction, spread = rng.uniform(0, math.pi), rng.uniform(0.05, 0.8)
    form, relief = _pick(rng, "ellipse", "rectangle"), rng.uniform(0, 0.5)
    low = rng.uniform(0.04, 0.12)
    count = int(rng.integers(40, 110))
    for radius, color in zip(_radii(rng, count, low, 4 * low, 2), _palette(rng, count), strict=True):
        shape = Shape(
            form=form,
            x=rng.random(),
            y=rng.random(),
            radius=float(radius),
            angle=direction + rng.normal(0, spread),
            aspect=rng.uniform(4, 12),
        )
        paint(image, shape, color, relief)
    return image


def _place_objects(rng: np.random.Generator, image: np.ndarray, count: int, low: float, high: float) -> None:
    """Paint solid objects with shadows over the image, the farther ones (higher up) first."""
    material = _surface(rng, len(image))
    fall_x, fall_y = rng.uniform(-0.4, 0.4), rng.uniform(0.1, 0.4)
    shade = rng.uniform(0.2, 0.6)
    black = np.zeros(3)
    upright = rng.random() < 0.5
    ys = np.sort(rng.random(count))
    radii, colors = _radii(rng, count, low, high, 1.3), _palette(rng, count)
    for y, radius, color in zip(ys, radii, colors, strict=True):
        shape = Shape(
            form=_pick(rng, "box", "box", "ellipse", "rectangle", "polygon"),
            x=rng.random(),
            y=float(y),
            radius=float(radius),
            angle=rng.normal(0, 0.15) if upright else rng.uniform(0, math.pi),
            aspect=rng.uniform(1, 1.8),
            corners=int(rng.integers(3, 8)),
        )
        shadow = replace(shape, x=shape.x + fall_x * shape.radius, y=shape.y + fall_y * shape.radius)
        paint(image, shadow, black, opacity=shade, blur=0.3 * shape.radius)
        paint(image, shape, material if rng.random() < 0.15 else color, relief=rng.uniform(0.2, 0.7))


def _pile(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return a pile of boxes, balls and plates on a surface."""
    image = _surface(rng, side)
    _place_objects(rng, image, int(rng.integers(15, 45)), 0.04, 0.22)
    return image


def _room(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return a wall and a floor, with furniture and a few objects."""
    wall, floor = (_fade(_surface(rng, side), rng.uniform(0.2, 1)) for _ in range(2))
    axis = (np.arange(side) + 0.5) / side
    horizon = rng.uniform(0.25, 0.6) + rng.normal(0, 0.15) * (axis - 0.5)
    image = mix(wall, floor, np.clip((axis[:, None] - horizon) * side + 0.5, 0, 1))
    for color in _palette(rng, int(rng.integers(1, 5))):  # windows, doors, cupboards
        shape = Shape("rectangle", rng.random(), rng.uniform(0, 0.6), rng.uniform(0.08, 0.25), aspect=rng.uniform(1, 2))
        shape = replace(shape, angle=_pick(rng, 0.0, math.pi / 2))
        paint(image, shape, 0.4 * color)
        paint(image, replace(shape, radius=0.88 * shape.radius), color, relief=0.3)
    _place_objects(rng, image, int(rng.integers(8, 25)), 0.03, 0.15)
    return image


def _blend(rng: np.random.Generator, side: int) -> np.ndarray:
    """Return a surface and another texture, one showing through holes in the other or both overlaid."""
    first, second = _surface(rng, side), _pick(rng, _surface, _leaves, _strokes, _pile)(rng, side)
    if rng.random() < 0.3:
        return mix(first, second, np.full((side, side), rng.uniform(0.3, 0.7)))
    field = _noise(rng, side, int(rng.integers(2, 5)), rng.uniform(0.2, 0.5))[0]
    return mix(first, second, _smoothstep(0.5 + rng.uniform(2, 12) * field))


KINDS: tuple[Callable[[np.random.Generator, int], np.ndarray], ...] = (
    _clouds,
    _stripes,
    _bricks,
    _mosaic,
    _leaves,
    _strokes,
    _pile,
    _room,
    _leaves,
    _blend,
)
