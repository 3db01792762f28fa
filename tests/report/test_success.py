"""What the report says about seeds that differ in their evaluations, and how it fits on a phone."""

from pathlib import Path
from typing import Any

import pytest
from helpers.evaluated_runs import result, write_run

from gcb.report.report import write_report
from gcb.report.run_groups import group_runs, read_runs
from gcb.report.success import overview, paper_rows, success_table
from gcb.runs.evaluations import write_evaluation
from gcb.runs.run_dir import Run
from gcb.utils.statistics import Rate

PHONE = {"width": 375, "height": 800}


def seeds(directory: Path, *successes: str, method: str = "gcb") -> list[Path]:
    """Write a run for each seed."""
    return [
        write_run(directory / f"{method}-s{seed}", method, seed, results={"goal": result(marks)})
        for seed, marks in enumerate(successes)
    ]


def test_unequal_numbers_of_episodes_are_shown(tmp_path: Path) -> None:
    groups = group_runs(read_runs([*seeds(tmp_path, "1101", "10"), *seeds(tmp_path, "11", "00", method="gcbc")]))
    assert [row[-1] for row in success_table(groups)[1]] == ["2 × 2 to 4", "2 × 2"]


def test_seeds_that_agree_have_the_interval_of_their_episodes(tmp_path: Path) -> None:
    zero, ones, differ = (
        overview(group_runs(read_runs(seeds(tmp_path / marks, *marks.split()))))[0]
        for marks in ("00000 00000", "11111 11111", "11111 00000")
    )
    assert (zero.low, zero.high) == Rate(0, 10).interval
    assert (ones.low, ones.high) == pytest.approx(Rate(10, 10).interval)
    assert zero.high > 0.2
    assert (differ.low, differ.high) == (0.0, 1.0)  # the t-interval of 0 and 1 is wider than Wilson's of 5 of 10


def test_what_can_be_compared_is_side_by_side_and_the_best_are_marked(tmp_path: Path) -> None:
    """Out of 40 episodes gcb succeeds in 30, rad in the same but one, and cpc in 10."""
    for method, successes in (("cpc", "1" * 10 + "0" * 30), ("rad", "1" * 29 + "0" * 11), ("gcb", "1" * 30 + "0" * 10)):
        for env in ("drawer", "button_drawer"):
            evaluation = result(successes, env=env)
            write_run(tmp_path / f"{env}-{method}-s0", method, env=env, results={"goal": evaluation})
    write_run(tmp_path / "drawer-curl-s0", "curl", results={"goal": result("1" * 40, seed=5)})  # other episodes
    text = write_report([tmp_path], tmp_path / "page.html").read_text()
    groups = group_runs(read_runs(sorted(tmp_path.glob("*-s0"))))
    assert [mark.label for mark in overview(groups)] == [
        *(f"{method}, Button and Drawer, goal image" for method in ("gcb", "cpc", "rad")),
        *(f"{method}, Drawer, goal image" for method in ("gcb", "cpc", "curl", "rad")),
    ]
    best = {row.method: [best for _, _, best in row.cells] for row in paper_rows(groups)}
    assert best["GCB"] == best["RAD"] == [False, False, True, False, False, False]
    assert not any(best["CPC"])
    assert best["CURL"] == [True, *[False] * 5]  # nothing was evaluated in its episodes
    assert text.count('<strong class="best">') == 3


def test_the_page_names_the_runs_of_a_group_and_all_evaluations(tmp_path: Path) -> None:
    paths = seeds(tmp_path, "1101", "10")
    write_evaluation(Run(paths[0]), {**result("111", seed=1000), "mode": "goal"})
    text = write_report(paths, tmp_path / "page.html").read_text()
    assert "<b>gcb</b> <span>gcb-s0, gcb-s1</span>" in text
    rows = [line for line in text.splitlines() if '<td data-label="evaluation seed">' in line]
    assert [row.partition('data-label="evaluation seed">')[2].split("<")[0] for row in rows] == ["0", "1000", "0"]


def test_the_page_fits_on_a_phone(tmp_path: Path, browser: Any) -> None:
    """Nothing is wider than the screen, also no table inside its frame, and every cell says what it is."""
    long = "a_method_with_quite_a_long_name_of_its_own"
    paths = [*seeds(tmp_path, "1101", "10"), *seeds(tmp_path, "1001", "11", method="gcbc")]
    paths.append(paths[0].rename(tmp_path / long))
    page = browser.new_page(viewport=PHONE)
    page.goto(write_report(paths[1:], tmp_path / "page.html").as_uri())
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    too_wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText.slice(0, 80))"
    assert page.eval_on_selector_all(".wide", too_wide) == []
    assert page.eval_on_selector_all("td:not([data-label])", "all => all.length") == 0
    page.close()


@pytest.mark.parametrize("kept", [1, 4])
def test_a_smaller_evaluation_does_not_change_the_report(tmp_path: Path, kept: int) -> None:
    (path,) = seeds(tmp_path, "1101")
    write_evaluation(Run(path), {**result("0" * kept, eval_temperature=0.0), "mode": "goal"})
    assert [row[3] for row in success_table(group_runs(read_runs([path])))[1]] == ["0.750 [0.301, 0.954]"]
