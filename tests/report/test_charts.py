"""Training curves: deterministic SVG images of what the groups logged."""

import re
from typing import Any

import pytest

from gcb.report.charts import curve_chart
from gcb.report.run_groups import RunGroup, RunRecord


def group(*seeds: dict[int, float], metric: str = "loss") -> RunGroup:
    """Return a group whose seeds logged these losses by step."""
    missing: Any = None
    metrics = [[{"step": step, metric: loss} for step, loss in seed.items()] for seed in seeds]
    records = tuple(RunRecord(missing, None, {}, rows, {}) for rows in metrics)
    return RunGroup(records, "label", "", "#123456")


def svg(*groups: RunGroup) -> str:
    content = curve_chart(groups, "loss")
    assert content is not None
    return content.decode()


def test_one_line_per_group_and_a_band_if_there_are_several_seeds() -> None:
    one = svg(group({1: 0.5, 2: 0.25}))
    assert one.count("stroke: #123456") == 1
    assert "fill-opacity" not in one
    several = svg(group({1: 0.5, 2: 0.25}, {1: 0.75, 2: 0.5}), group({1: 1.0, 2: 2.0}))
    assert several.count("stroke: #123456") == 2
    assert several.count("fill-opacity") == 1


@pytest.mark.parametrize(
    ("metric", "values", "ends"),
    [
        ("eval_goal", (0.0, 0.1), (0.0, 0.05 + 12.7062 * 0.05)),
        ("eval_goal", (0.9, 1.0), (0.95 - 12.7062 * 0.05, 1.0)),
        ("loss", (1.0, 3.0), (0.0, 2 + 12.7062)),
        ("loss", (-1.0, 1.0), (-12.7062, 12.7062)),
    ],
)
def test_a_band_ends_where_the_metric_does(metric: str, values: tuple[float, float], ends: tuple[float, float]) -> None:
    curve = group(*({1: value} for value in values), metric=metric).curve(metric)
    assert curve is not None
    assert curve[2] is not None
    assert [end.item() for end in curve[2]] == pytest.approx(ends, abs=1e-3)


def test_a_single_point_has_a_marker() -> None:
    marker = r"<use[^>]*#123456"
    assert re.search(marker, svg(group({5: 1.0})))
    assert not re.search(marker, svg(group({5: 1.0, 6: 2.0})))


def test_steps_are_abbreviated_and_text_stays_text() -> None:
    assert ">2k</text>" in svg(group({500: 0.1, 2000: 0.3}))


def test_groups_without_the_metric_are_left_out() -> None:
    assert curve_chart([group({})], "loss") is None
    assert curve_chart([group({1: 1.0})], "accuracy") is None
    assert svg(group({1: 1.0, 2: 2.0}), group({})).count("stroke: #123456") == 1


def test_the_image_is_deterministic_and_has_no_date() -> None:
    charts = [svg(group({1: 0.5, 2: 0.25}, {1: 0.75, 2: 0.5})) for _ in range(2)]
    assert charts[0] == charts[1]
    assert "<dc:date>" not in charts[0]


@pytest.mark.parametrize("points", [5_000, 50_000])
def test_long_curves_are_thinned(points: int) -> None:
    assert len(svg(group({step: float(step % 7) for step in range(points)}))) < 30_000
