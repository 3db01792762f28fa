"""Drawn textures: fixed by their number, different from each other, and rich in contrast, colour and edges."""

import colorsys
import hashlib
import time

import numpy as np
import pytest

from gcb.envs.backgrounds import TEXTURES
from gcb.envs.textures import KINDS, draw_texture


@pytest.fixture(scope="module")
def textures() -> np.ndarray:
    return np.stack([draw_texture(number, 128) for number in TEXTURES.values()])


def shrink(images, side):
    """Return the means of square blocks, (…, side, side, 3)."""
    step = images.shape[-2] // side
    return images.reshape(*images.shape[:-3], side, step, side, step, 3).astype(float).mean(axis=(-4, -2))


def luminance(images):
    return images @ np.array([0.299, 0.587, 0.114])


def test_a_number_gives_the_same_bytes(textures):
    for number in range(len(KINDS)):
        again = draw_texture(number, 128)
        assert again.dtype == np.uint8
        assert again.tobytes() == textures[number].tobytes()


def test_recorded_numbers_keep_their_textures(textures):
    """Clips in datasets refer to textures by number."""
    expected = [
        [109.1, 131.1, 173.9, 180.1],
        [193.6, 160.1, 198.0, 153.2],
        [124.8, 108.6, 90.3, 86.7],
        [88.3, 115.9, 105.6, 153.9],
        [177.1, 104.4, 143.3, 102.0],
        [61.3, 77.6, 54.3, 60.6],
        [143.4, 127.7, 143.0, 149.9],
        [162.1, 176.9, 156.0, 137.6],
        [110.7, 112.9, 99.9, 87.4],
        [159.8, 137.1, 138.4, 171.4],
    ]
    means = shrink(textures[: len(KINDS)], 2).mean(axis=-1).reshape(-1, 4)
    np.testing.assert_allclose(means, expected, atol=0.5)


def test_textures_do_not_depend_on_the_processor(textures):
    """In float32, kernels of NumPy and OpenBLAS for different processors gave different pixels."""
    expected = "78599128f2f065c8"
    assert hashlib.sha256(textures.tobytes()).hexdigest()[:16] == expected


def test_textures_differ_from_each_other(textures):
    small = shrink(textures, 16).reshape(len(textures), -1)
    for index in range(1, len(small)):
        assert np.abs(small[:index] - small[index]).mean(axis=1).min() > 10


def test_every_texture_has_contrast_and_edges(textures):
    grey = luminance(textures)
    assert grey.std(axis=(1, 2)).min() > 18
    steps = np.abs(np.diff(grey, axis=2))
    assert np.percentile(steps, 98, axis=(1, 2)).min() > 10
    assert np.mean((grey < 3) | (grey > 252), axis=(1, 2)).max() < 0.4  # not burnt out


def test_textures_vary_in_brightness_contrast_scale_and_hue(textures):
    grey = luminance(textures)
    assert np.ptp(grey.mean(axis=(1, 2))) > 80
    assert np.ptp(grey.std(axis=(1, 2))) > 30
    detail = np.abs(np.diff(grey, axis=2)).mean(axis=(1, 2)) / grey.std(axis=(1, 2))
    assert detail.max() > 4 * detail.min()
    mean_colors = textures.mean(axis=(1, 2)) / 255
    hues = np.array([colorsys.rgb_to_hsv(*color)[0] for color in mean_colors])
    assert len(set(np.floor(12 * hues))) == 12
    chroma = np.ptp(textures.astype(int), axis=-1).mean(axis=(1, 2))
    assert np.median(chroma) > 30
    assert np.mean(chroma > 8) > 0.98


def test_amplitudes_fall_off_as_in_natural_images(textures):
    """The amplitude spectrum of natural images is about 1/f: its slope in log-log coordinates is about -1."""
    grey = luminance(textures) * np.outer(np.hanning(128), np.hanning(128))
    power = np.mean(np.abs(np.fft.fft2(grey)) ** 2, axis=0)
    frequency = np.hypot(*np.meshgrid(*2 * [np.fft.fftfreq(128, 1 / 128)]))
    rings = 2 ** np.arange(2, 6)
    amplitude = [np.sqrt(power[(frequency >= f) & (frequency < 1.5 * f)].mean()) for f in rings]
    slope = np.polyfit(np.log(rings), np.log(amplitude), 1)[0]
    assert -1.6 < slope < -0.8


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_a_texture_looks_the_same_at_any_resolution(number, textures):
    large = shrink(draw_texture(number, 256), 32)
    assert np.abs(large - shrink(textures[number], 32)).mean() < 2


def test_drawing_is_fast(textures):
    start = time.process_time()
    for number in range(2 * len(KINDS)):
        draw_texture(number, 128)
    assert (time.process_time() - start) / (2 * len(KINDS)) < 0.05  # 5 ms on an idle machine
