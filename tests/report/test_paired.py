"""Paired differences between methods, from eval.json to tables, checked against numbers worked out by hand."""

import csv
import io
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.evaluated_runs import result, write_run

from gcb.errors import GCBError
from gcb.report.paired import Comparison, Evaluation, PairedRow, compare, default_reference
from gcb.report.paired_table import caption, csv_text, markdown, table_headings, table_rows
from gcb.report.report import write_report
from gcb.report.run_groups import RunGroup, find_runs, group_by_env, read_runs
from gcb.utils.files import write_json
from gcb.utils.statistics import Criterion, Estimate
from gcb.utils.text_files import read_json

OURS, THEIRS = "11001101", "01010001"
# The differences are 1, 0, 0, -1, 1, 1, 0, 0: mean .25; the sum of squares 4 - 8 · .25² = 3.5, over 7 is .5, and
# 1.96 · √(.5 / 8) = .48999.
BETTER, WORSE = "1" * 16, "0" * 8 + "1" * 8
# The differences are 1 in 8 of 16 episodes: mean .5; 16 · .25 / 15 = .26667, and 1.96 · √(.26667 / 16) = .25303.


def groups_of(*runs: Path) -> list[RunGroup]:
    return group_by_env(read_runs(runs))


def names(groups: Sequence[RunGroup]) -> list[str]:
    return [group.name for group in groups]


def results(successes: str, *modes: str, **settings: Any) -> dict[str, Any]:
    """Return an eval.json with these successes in every mode."""
    return {mode: result(successes, mode, **settings) for mode in modes or ("goal",)}


def test_a_difference_by_hand(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(OURS))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS))
    comparison = compare(groups_of(gcbc, gcb))
    (row,) = comparison.rows
    assert (row.method, row.mode, row.variant, row.trained_on) == ("gcbc", "goal", "", "")
    assert (row.reference_success, row.success) == (5 / 8, 3 / 8)
    assert (row.difference.value, row.difference.samples) == (0.25, 8)
    assert row.difference.interval == pytest.approx((-0.24, 0.74), abs=1e-4)
    assert (row.seeds, row.reference_seeds, row.result) == (1, 1, "tie")
    assert comparison.notes == ()
    (reverse,) = compare(groups_of(gcbc, gcb), "gcbc").rows
    assert (reverse.method, reverse.difference.value) == ("gcb", -0.25)


def test_seeds_are_averaged_in_every_episode(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "gcb-0", seed=0, results=results("1100")),
        write_run(tmp_path / "gcb-1", seed=1, results=results("1010")),
        write_run(tmp_path / "gcbc", "gcbc", seed=7, results=results("0100")),
    ]
    comparison = compare(groups_of(*runs))
    (row,) = comparison.rows
    # Success per episode is 1, .5, .5, 0 and 0, 1, 0, 0, so the differences are 1, -.5, .5, 0.
    assert (row.reference_success, row.success, row.difference.value) == (0.5, 0.25, 0.25)
    # The sum of squares 1.5 - 4 · .25² = 1.25, over 3 is .41667; 1.96 · √(.41667 / 4) = .63257.
    assert row.difference.interval == pytest.approx((0.25 - 0.63257, 0.25 + 0.63257), abs=1e-4)
    assert (row.seeds, row.reference_seeds) == (1, 2)
    assert table_rows(comparison)[0][-2] == "1 and 2 × 4"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"), [(BETTER, WORSE, "ahead"), (WORSE, BETTER, "behind"), (OURS, OURS, "tie")]
)
def test_the_result_says_whether_the_interval_excludes_0(tmp_path: Path, ours: str, theirs: str, expected: str) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(ours))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(theirs))
    (row,) = compare(groups_of(gcb, gcbc)).rows
    assert row.result == expected


def row_with(difference: Estimate) -> PairedRow:
    evaluation = Evaluation('{"env": "gcb/Drawer-v0", "options": {}}', 0, 0.5)
    return PairedRow(evaluation, "", "goal", "gcbc", "", 0.5, 0.6, difference, 1, 1, frozenset(), frozenset())


@pytest.mark.parametrize(("low", "high", "expected"), [(0.0, 0.2, "tie"), (-0.2, 0.0, "tie"), (0.001, 0.2, "ahead")])
def test_an_interval_that_ends_at_0_is_a_tie(low: float, high: float, expected: str) -> None:
    assert row_with(Estimate((low + high) / 2, (low, high), 10)).result == expected


def test_a_rounded_0_has_no_minus() -> None:
    comparison = Comparison("gcb", "any_step", (row_with(Estimate(-1e-5, (-0.1, 0.1), 1000)),), ())
    assert table_rows(comparison)[0][5] == "+0.000 [-0.100, +0.100]"
    assert ",0.0000,-0.1000,0.1000,tie," in csv_text(comparison)


@pytest.mark.parametrize(
    ("criterion", "ours", "theirs"), [("any_step", 1.0, 0.75), ("at_end", 0.75, 0.5), ("declared", 0.5, 0.0)]
)
def test_every_criterion_counts_its_successes(tmp_path: Path, criterion: Criterion, ours: float, theirs: float) -> None:
    gcb = write_run(tmp_path / "gcb", results=results("1edd"))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results("1ee0"))
    comparison = compare(groups_of(gcb, gcbc), criterion=criterion)
    (row,) = comparison.rows
    assert (row.reference_success, row.success, row.difference.value) == (ours, theirs, ours - theirs)
    text = " ".join(caption(comparison))
    assert ("never declares the task done, it is judged at the end" in text) == (criterion == "declared")


def test_modes_are_those_that_both_have_in_their_order(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(OURS, "free", "strict", "goal"))
    rad = write_run(tmp_path / "rad", "rad", results=results(THEIRS, "free", "strict", "goal", "loose"))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS))
    groups = groups_of(gcb, gcbc, rad)

    def rows(comparison: Comparison) -> list[tuple[str, str]]:
        return [(row.mode, row.method) for row in comparison.rows]

    every = compare(groups)
    assert rows(every) == [("goal", "rad"), ("goal", "gcbc"), ("strict", "rad"), ("free", "rad")]
    assert every.notes == ()
    assert rows(compare(groups, modes=["free", "goal"])) == [("goal", "rad"), ("goal", "gcbc"), ("free", "rad")]
    loose = compare(groups, modes=["loose"])
    assert loose.rows == ()
    assert "rad in drawer by loose analogy: not compared, as gcb was not evaluated in the same" in loose.notes[0]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"seed": 1000}, "drawer, evaluation seed 1000, temperature 0.5"),
        ({"eval_temperature": 0.0}, "drawer, evaluation seed 0, temperature 0"),
        ({"video": "builtin"}, "drawer, evaluation seed 0, temperature 0.5, video builtin"),
        ({"env": "button_drawer"}, "button_drawer, evaluation seed 0, temperature 0.5"),
    ],
)
def test_only_the_same_episodes_are_paired(tmp_path: Path, settings: dict[str, Any], named: str) -> None:
    runs = [
        write_run(tmp_path / "gcb", results=results(OURS)),
        write_run(tmp_path / "rad", "rad", results=results(THEIRS)),
        write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS, **settings)),
        write_run(tmp_path / "cta", "cta", results=results(THEIRS, **settings)),
    ]
    comparison = compare(groups_of(*runs))
    assert [row.method for row in comparison.rows] == ["rad"]
    reason = f"not compared, as gcb was not evaluated in the same episodes ({named})"
    assert comparison.notes == (f"gcbc, cta in drawer by goal image: {reason}",)


def test_seeds_with_another_evaluation_are_pairs_of_their_own(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "gcb-0", seed=0, results=results("1111")),
        write_run(tmp_path / "gcb-1", seed=1, results=results("0000", seed=1000)),
        write_run(tmp_path / "gcb-2", seed=2, results=results("0000", seed=5)),
        write_run(tmp_path / "gcbc-0", "gcbc", seed=0, results=results("0000")),
        write_run(tmp_path / "gcbc-1", "gcbc", seed=1, results=results("1100", seed=1000)),
    ]
    comparison = compare(groups_of(*runs))
    assert [(row[0], row[5].split()[0], row[6]) for row in table_rows(comparison)] == [
        ("drawer (evaluation seed 0, temperature 0.5)", "+1.000", "1 × 4"),
        ("drawer (evaluation seed 1000, temperature 0.5)", "-0.500", "1 × 4"),
    ]
    assert comparison.notes == (
        "gcb in drawer by goal image: left out, as nothing else was evaluated with evaluation seed 5, temperature 0.5",
    )
    assert "Evaluation seed: 0 to 1,000; evaluation temperature: 0.5; training steps: 12" in caption(comparison)[-1]


def test_the_first_common_episodes_are_paired(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results("1100" + "1" * 6))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results("0100"))
    comparison = compare(groups_of(gcb, gcbc))
    (row,) = comparison.rows
    assert (row.reference_success, row.success, row.difference.value, row.difference.samples) == (0.5, 0.25, 0.25, 4)
    assert comparison.notes == (
        "gcbc in drawer by goal image: only the first 4 of 10 episodes are compared, as some runs have no more",
    )


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (result("10", tasks=["drawer", "button"]), "the tasks in the episodes differ; evaluate the runs again"),
        (result("1"), "an interval needs at least 2 episodes"),
    ],
)
def test_what_cannot_be_paired_is_left_out(tmp_path: Path, theirs: dict[str, Any], reason: str) -> None:
    gcb = write_run(tmp_path / "gcb", results=results("11"))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results={"goal": theirs})
    comparison = compare(groups_of(gcb, gcbc))
    assert comparison.rows == ()
    assert comparison.notes == (f"gcbc in drawer by goal image: not compared, as {reason}",)


def test_a_criterion_that_was_not_measured_is_noted(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results("1d"))
    old = result("11")
    for rates in (old["all"], *old["tasks"].values()):
        del rates["declared"]
    old["outcomes"] = [outcome[:3] for outcome in old["outcomes"]]
    gcbc = write_run(tmp_path / "old", "gcbc", results={"goal": old})
    assert len(compare(groups_of(gcb, gcbc)).rows) == 1
    comparison = compare(groups_of(gcb, gcbc), criterion="declared")
    assert comparison.rows == ()
    assert comparison.notes == ("old by goal image: left out, as success when declared done was not measured",)


def test_the_same_seed_counts_once(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "a" / "gcb", results=results("1100"))
    copy = write_run(tmp_path / "b" / "gcb", results=results("0000"))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results("0100"))
    comparison = compare(groups_of(gcb, copy, gcbc))
    (row,) = comparison.rows
    assert (row.reference_success, row.reference_seeds) == (0.5, 1)
    assert comparison.notes == (f"{copy}: left out, as an earlier run has the same method, settings and seed",)


def test_environments_are_compared_on_their_own(tmp_path: Path) -> None:
    """The preset may depend on the environment: other settings there do not make a variant."""
    runs = []
    for env, video, steps in (("drawer", "builtin", 20), ("button_drawer", None, 12), ("drawer", None, 12)):
        for method, successes in (("gcb", OURS), ("gcbc", THEIRS)):
            name = f"{env}{'_video' if video else ''}-{method}-s0"
            evaluated = results(successes, env=env, video=video)
            runs.append(write_run(tmp_path / name, method, env=env, video=video, steps=steps, results=evaluated))
    groups = groups_of(*runs)
    assert names(groups) == ["gcb", "gcbc"] * 3
    comparison = compare(groups)
    assert [row[:3] for row in table_rows(comparison)] == [
        ("drawer", "goal image", "gcbc"),
        ("drawer + video", "goal image", "gcbc"),
        ("button_drawer", "goal image", "gcbc"),
    ]
    # Without gcb in one of them, the others are compared.
    comparison = compare(groups[1:])
    assert len(comparison.rows) == 2
    assert comparison.notes == ("gcbc in drawer + video: not compared, as there is no run of gcb",)


def test_an_evaluation_elsewhere_says_where_the_agents_were_trained(tmp_path: Path) -> None:
    settings = {"env": "button_drawer", "video": "builtin"}
    gcb = write_run(tmp_path / "gcb", results=results(OURS, **settings))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS, **settings))
    comparison = compare(groups_of(gcb, gcbc))
    assert table_rows(comparison)[0][0] == "button_drawer + video (trained on drawer)"
    (row,) = csv.DictReader(io.StringIO(csv_text(comparison)))
    assert (row["env"], row["video"], row["trained_on"]) == ("button_drawer", "true", "drawer")


def test_another_dataset_is_noted(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(OURS))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", dataset="larger", results=results(THEIRS))
    comparison = compare(groups_of(gcb, gcbc))
    assert len(comparison.rows) == 1
    assert comparison.notes == ("gcbc in drawer: trained on another dataset than gcb",)


def test_variants_have_their_names_in_the_sweep(tmp_path: Path) -> None:
    write_run(tmp_path / "drawer-gcb-s0", results=results(OURS))
    write_run(tmp_path / "drawer-gcb-wide-s0", results=results(THEIRS), method_config={"size": 16})
    write_run(tmp_path / "drawer-gcb-wide-s1", seed=1, results=results(THEIRS), method_config={"size": 16})
    (tmp_path / "drawer-gcb-wide-s2").mkdir()  # has not started
    groups = groups_of(*find_runs([tmp_path]))
    assert names(groups) == ["gcb", "gcb (wide)"]
    comparison = compare(groups)
    assert [(row.method, row.variant, row.seeds) for row in comparison.rows] == [("gcb", "wide", 2)]
    assert table_rows(comparison)[0][2] == "gcb (wide)"
    (row,) = compare(groups, "gcb (wide)").rows
    assert (row.variant, row.difference.value) == ("", -0.25)


def test_other_variants_are_named_by_their_settings(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "a", results=results(OURS))
    other = write_run(tmp_path / "b", results=results(THEIRS), iql={"discount": 0.5})
    gcbc = write_run(tmp_path / "c", "gcbc", results=results(THEIRS))
    groups = groups_of(gcb, other, gcbc)
    assert names(groups) == ["gcb (iql.discount 0.99)", "gcb (iql.discount 0.5)", "gcbc"]
    ambiguous = compare(groups)
    assert ambiguous.rows == ()
    assert ambiguous.notes == (
        f"gcbc in drawer: not compared, as several runs are gcb: {', '.join(names(groups)[:2])}",
    )
    assert len(compare(groups, names(groups)[1]).rows) == 2
    assert default_reference(groups) == "gcb (iql.discount 0.99)"
    assert default_reference(groups[2:]) == "gcbc"


def test_equal_names_of_two_sweeps_are_told_apart(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one" / "drawer-gcb-s0", results=results(OURS))
    two = write_run(tmp_path / "two" / "drawer-gcb-s0", results=results(OURS), steps=20)
    assert names(groups_of(one, two)) == ["gcb (steps 12)", "gcb (steps 20)"]
    three = write_run(tmp_path / "three" / "drawer-gcb-s0", dataset="another", results=results(OURS))
    assert names(groups_of(one, three)) == [f"gcb ({one})", f"gcb ({three})"]


def test_a_reference_without_runs_is_an_error(tmp_path: Path) -> None:
    groups = groups_of(write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS)))
    with pytest.raises(GCBError, match="there is no run of the reference 'rad'; accepted: gcbc"):
        compare(groups, "rad")
    with pytest.raises(GCBError, match="there is no run of the reference 'gcb'; did you mean gcbc"):
        compare(groups)


@pytest.mark.parametrize(
    "damage",
    [
        {"outcomes": None},
        {"outcomes": [["drawer"]] * 8},
        {"outcomes": [["drawer", None, False, None, False]] * 8},
        {"seed": "one"},
        {"env": {"env": "gcb/Drawer-v0"}},
        {"env": []},
        {"eval_temperature": None},
        {"all": {"any_step": {"successes": 9, "of": 8}}},
    ],
)
def test_a_damaged_evaluation_is_named(tmp_path: Path, damage: dict[str, Any]) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(OURS))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS))
    content = read_json(gcbc / "eval.json")
    write_json(gcbc / "eval.json", {"goal": {**content["goal"], **damage}})
    with pytest.raises(GCBError, match=r"gcbc/eval\.json(: goal is damaged| is damaged: goal\.)") as error:
        compare(groups_of(gcb, gcbc))
    assert "\n" not in str(error.value)


def test_runs_are_found_in_directories(tmp_path: Path) -> None:
    one, two = (write_run(tmp_path / "runs" / name, results=results(OURS)) for name in ("b", "a"))
    (tmp_path / "runs" / "notes.txt").touch()
    assert find_runs([tmp_path / "runs"]) == [two, one]
    assert find_runs([tmp_path]) == [two, one], "a sweep's directory"
    assert find_runs([one]) == [one]
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "nowhere", tmp_path / "empty", tmp_path / "runs" / "notes.txt"):
        with pytest.raises(GCBError, match="has no runs; accepted: a run, or a directory of runs"):
            find_runs([one, path])


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    gcb = write_run(tmp_path / "gcb", results=results(OURS) | results(BETTER, "strict"))
    rad = write_run(tmp_path / "rad", "rad", results=results(THEIRS) | results(WORSE, "strict"))
    return compare(groups_of(gcb, rad))


def test_the_table_in_markdown(comparison: Comparison) -> None:
    text = markdown(comparison, "gcb compare runs --out table.md")
    lines = text.splitlines()
    assert lines[0] == f"| {' | '.join(table_headings(comparison))} |"
    assert lines[1] == "| --- | --- | --- | --- | --- | --- | --- | --- |"
    assert lines[2] == "| drawer | goal image | rad | 0.375 | 0.625 | +0.250 [-0.240, +0.740] | 1 × 8 | tie |"
    assert lines[3] == "| drawer | strict analogy | rad | 0.500 | 1.000 | +0.500 [+0.247, +0.753] | 1 × 16 | ahead |"
    assert "Success at any step, and the success of gcb minus that of the method in the same episodes" in text
    assert "the numbers of seeds may differ" in text
    assert "95 % interval of the difference over episodes" in text
    assert "It does not cover the variation between training seeds." in text
    assert text.endswith("Made by `gcb compare runs --out table.md`.\n")


def test_the_table_as_csv(comparison: Comparison) -> None:
    goal, strict = csv.DictReader(io.StringIO(csv_text(comparison)))
    assert list(goal.items()) == [
        *(("env", "drawer"), ("video", "false"), ("trained_on", ""), ("mode", "goal"), ("method", "rad")),
        *(("variant", ""), ("reference", "gcb"), ("criterion", "any_step"), ("success", "0.3750")),
        *(("reference_success", "0.6250"), ("difference", "0.2500"), ("low", "-0.2400"), ("high", "0.7400")),
        *(("result", "tie"), ("seeds", "1"), ("reference_seeds", "1"), ("episodes", "8")),
        *(("eval_seed", "0"), ("eval_temperature", "0.5")),
    ]
    assert (strict["low"], strict["high"], strict["result"]) == ("0.2470", "0.7530", "ahead")


def test_notes_are_part_of_the_markdown(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(OURS))
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS + "11"))
    comparison = compare(groups_of(gcb, gcbc))
    assert f"\n\n- {comparison.notes[0]}\n\nMade by" in markdown(comparison, "")
    assert "first 8 of 10 episodes" in comparison.notes[0]


def test_the_report_has_a_section_if_there_are_several_methods(tmp_path: Path) -> None:
    gcb = write_run(tmp_path / "gcb", results=results(OURS))
    variant = write_run(tmp_path / "variant", results=results(THEIRS), steps=20)
    gcbc = write_run(tmp_path / "gcbc", "gcbc", results=results(THEIRS + "11"))
    rad = write_run(tmp_path / "rad", "rad")

    def page(*runs: Path) -> str:
        return re.sub(' data-label="[^"]*"', "", write_report(runs, tmp_path / "report.html").read_text())

    text = page(gcbc, gcb)
    assert "<h2>Paired differences</h2>" in text
    assert '<a href="#paired">' in text
    assert "<td>+0.250 [-0.240, +0.740]</td><td>1 × 8</td><td>tie</td>" in text
    assert "It does not cover the variation between training seeds." in text
    assert "only the first 8 of 10 episodes are compared" in text
    assert 'id="paired"' not in page(gcb, variant)
    assert "No other method was evaluated in the same episodes as gcb." in page(rad, gcb)


def test_torch_is_not_imported() -> None:
    code = "import sys, gcb.report.paired_table, gcb.cli.compare; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
