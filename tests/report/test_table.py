"""results.csv and the Markdown table made from it, checked against numbers worked out by hand."""

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gcb.cli.main import main
from gcb.envs.spec import MODES
from gcb.errors import GCBError
from gcb.report.paper import COLUMNS, TABLE_1, table_1_cell, table_1_row
from gcb.report.rows import Row, read_rows, write_rows
from gcb.report.table import MODE_NAMES, Cell, make_table
from gcb.utils.statistics import Criterion, Rate

RESULTS = Path(__file__).parents[2] / "results"
ROW = Row("drawer", False, "gcb", "", 0, "goal", "all", 100, 40, 30, 35, 3000, 61.5, "d1", "0.1.0", "c1", 0, 0.5)
NOT_SUPPORTED = replace(ROW, episodes=0, successes=0, successes_at_end=0, successes_declared=0)


def test_a_mean_over_two_seeds_by_hand() -> None:
    cell = Cell((Rate(40, 100), Rate(60, 100)))
    assert cell.mean == 0.5
    # The standard deviation of .4 and .6 is .1 √2, of their mean .1; t for one degree of freedom is 12.7062.
    assert cell.seed_interval == pytest.approx(1.27062, abs=1e-5)
    # Wilson for 100 of 200: .5 ± z / (1 + z²/200) · √(.25/200 + z²/(4 · 200²)), z = 1.96: ± .0686.
    assert cell.pooled.interval == pytest.approx((0.4314, 0.5686), abs=1e-4)
    assert str(cell) == "0.500 ± 1.271 [0.431, 0.569]"


def test_one_seed_has_no_interval_over_seeds() -> None:
    cell = Cell((Rate(0, 10),))
    assert cell.seed_interval is None
    # Wilson for 0 of n: the upper end is z² / (n + z²) = 3.8415 / 13.8415.
    assert str(cell) == "0.000 [0.000, 0.278]"
    assert str(Cell((Rate(0, 0),))) == "NA"


def test_the_mean_weights_seeds_equally() -> None:
    cell = Cell((Rate(1, 2), Rate(0, 8)))
    assert cell.mean == 0.25
    assert cell.pooled.value == 0.1


def test_a_table_has_a_row_for_each_method_and_a_column_for_each_env_and_mode() -> None:
    rows = [
        ROW,
        replace(ROW, seed=1, successes=60),
        replace(ROW, mode="strict", successes=20),
        replace(ROW, method="gcbc", successes=50, config_hash="c2"),
        replace(NOT_SUPPORTED, method="gcbc", mode="strict", config_hash="c2"),
        replace(ROW, env="button_drawer", video=True, dataset_hash="d2"),
        replace(ROW, task="drawer", successes=1),
        replace(ROW, method="gc_dbc", variant="wide", config_hash="c3"),
    ]
    text = make_table(rows, "gcb table results.csv")
    lines = text.splitlines()
    assert lines[0] == "| method | drawer, goal image | button_drawer + video, goal image | drawer, strict analogy |"
    assert lines[1] == "| --- | --- | --- | --- |"
    assert lines[2].startswith("| gcb | 0.500 ± 1.271 [0.431, 0.569] | 0.400 [")
    assert lines[3].startswith("| gc_dbc (wide) | 0.400 [")
    assert lines[3].endswith("| – | – |")
    assert lines[4].startswith("| gcbc | 0.500 [0.404, 0.596] | – | NA |")
    assert "Success at any step: the mean over seeds" in text
    assert "± is the 95 % t-interval of the mean over seeds" in text
    assert "Seeds: 1 to 2; episodes per seed: 100; evaluation seed: 0; evaluation temperature: 0.5;" in text
    assert "training steps: 3,000; gcb 0.1.0." in text
    assert text.endswith("Made by `gcb table results.csv`.\n")


def test_columns_are_in_the_order_of_the_modes() -> None:
    rows = [replace(ROW, mode=mode) for mode in ("free", "goal", "loose", "strict")]
    names = ["goal image", "strict analogy", "loose analogy", "free analogy"]
    assert make_table(rows, "").splitlines()[0] == f"| method | {' | '.join(f'drawer, {name}' for name in names)} |"
    assert set(MODE_NAMES) == set(MODES)


@pytest.mark.parametrize(
    ("criterion", "cell", "caption"),
    [
        ("any_step", "0.400", "Success at any step: the mean"),
        ("at_end", "0.300", "Success at the end: the mean"),
        ("declared", "0.350", "Success when declared done: the mean"),
    ],
)
def test_every_criterion_has_its_table(criterion: Criterion, cell: str, caption: str) -> None:
    text = make_table([ROW], "", criterion=criterion)
    assert f"| gcb | {cell} [" in text
    assert caption in text
    assert ("never declares the task done, it is judged at the end" in text) == (criterion == "declared")


def test_success_on_one_task() -> None:
    rows = [ROW, replace(ROW, task="drawer", successes=1)]
    assert "| gcb | 0.010 [" in make_table(rows, "", task="drawer")
    with pytest.raises(GCBError, match=r"task is 'button'.* all, drawer"):
        make_table(rows, "", task="button")


def test_a_criterion_that_was_not_measured_is_a_dash() -> None:
    old = replace(ROW, method="gcbc", successes_declared=None, config_hash="c2")
    lines = make_table([ROW, replace(ROW, seed=1, successes_declared=45), old], "", criterion="declared").splitlines()
    assert lines[2].startswith("| gcb | 0.400 ± ")
    assert lines[3] == "| gcbc | – |"
    assert "–: not run, or not measured." in lines[5]
    assert "–: not run." in make_table([ROW, old], "")
    with pytest.raises(GCBError, match="criterion is 'declared', but the results lack it; `gcb eval` measures it"):
        make_table([old], "", criterion="declared")


def test_the_papers_results_are_below_ours() -> None:
    rows = [ROW, replace(ROW, mode="strict"), replace(ROW, env="button_drawer", mode="strict"), replace(ROW, seed=0)]
    rows += [replace(row, method="gc_dbc", mode="strict", env="button_drawer", config_hash="c2") for row in rows[:1]]
    lines = make_table(rows, "", paper=True).splitlines()
    assert lines[3] == "| *paper* | *0.533 ± 0.037* |  | *0.403 ± 0.041* |"
    assert lines[5] == "| *paper* | *0.269 ± 0.025* |  | *NA* |"


def test_the_papers_table_matches_its_column_sums() -> None:
    assert list(TABLE_1) == ["GCB", "CPV", "GC-DBC", "CCVAE", "VAE", "CPC", "CURL", "RAD", "Pixel"]
    # Each column of the paper, added up by hand; GC-DBC has no analogies.
    columns = [[cell for cell in column if cell] for column in zip(*TABLE_1.values(), strict=True)]
    assert [len(column) for column in columns] == [9, 9, 9, 9, 8, 8]
    assert len(columns) == len(COLUMNS)
    means = [sum(mean for mean, _ in column) for column in columns]
    assert means == pytest.approx([3.4, 2.363, 3.021, 1.711, 1.692, 1.13], abs=1e-9)
    errors = [sum(error for _, error in column) for column in columns]
    assert errors == pytest.approx([0.256, 0.193, 0.286, 0.205, 0.188, 0.164], abs=1e-9)
    assert table_1_row("cc_vae") == 3
    assert table_1_row("gcbc") == len(TABLE_1)
    assert table_1_cell("cc_vae", ("button_drawer", True, "strict")) == "0.095 ± 0.009"
    assert table_1_cell("gcb", ("drawer", False, "strict")) is None
    assert table_1_cell("gcbc", ("drawer", False, "goal")) is None


def test_seeds_with_different_settings_are_not_averaged() -> None:
    with pytest.raises(GCBError, match=r"config_hash differs .*: c1 and c9"):
        make_table([ROW, replace(ROW, seed=1, config_hash="c9")], "")
    with pytest.raises(GCBError, match=r"dataset_hash differs .*: d1 and d9"):
        make_table([ROW, replace(ROW, seed=1, dataset_hash="d9")], "")
    with pytest.raises(GCBError, match=r"eval_temperature differs .*: 0\.5 and 0\.25"):
        make_table([ROW, replace(ROW, seed=1, eval_temperature=0.25)], "")


def test_rows_round_trip_through_a_file_and_are_sorted(tmp_path: Path) -> None:
    rows = [replace(ROW, seed=2), replace(ROW, video=True), ROW, replace(NOT_SUPPORTED, mode="strict")]
    rows.append(replace(ROW, mode="loose", successes_declared=None))
    write_rows(tmp_path / "a.csv", rows)
    write_rows(tmp_path / "b.csv", reversed(rows))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert read_rows([tmp_path / "a.csv", tmp_path / "b.csv"]) == [rows[index] for index in (2, 4, 3, 0, 1)]
    header, first, *_ = (tmp_path / "a.csv").read_text().splitlines()
    entry = dict(zip(header.split(","), first.split(","), strict=True))
    assert (entry["video"], entry["rate"], entry["rate_at_end"]) == ("false", "0.4000", "0.3000")
    assert (entry["successes_declared"], entry["rate_declared"]) == ("35", "0.3500")
    for suffix, successes in (("", 40), ("_at_end", 30), ("_declared", 35)):
        low, high = Rate(successes, 100).interval
        assert (entry[f"low{suffix}"], entry[f"high{suffix}"]) == (f"{low:.4f}", f"{high:.4f}")
    _, _, not_measured, not_supported, *_ = (tmp_path / "a.csv").read_text().splitlines()
    assert ",40,30,NA,3000," in not_measured
    assert not_measured.endswith(",NA,NA,NA")
    assert ",0,0,0,0,3000," in not_supported
    assert not_supported.endswith(",NA" * 9)


def test_a_file_without_declared_successes_can_be_read(tmp_path: Path) -> None:
    write_rows(tmp_path / "new.csv", [ROW])
    lines = [line.split(",") for line in (tmp_path / "new.csv").read_text().splitlines()]
    kept = [index for index, name in enumerate(lines[0]) if not name.endswith("_declared")]
    assert len(kept) == len(lines[0]) - 4
    (tmp_path / "old.csv").write_text("".join(",".join(line[index] for index in kept) + "\n" for line in lines))
    (row,) = read_rows([tmp_path / "old.csv"])
    assert row == replace(ROW, successes_declared=None)
    assert (row.rate(), row.rate("at_end"), row.rate("declared")) == (Rate(40, 100), Rate(30, 100), None)


def test_a_table_of_the_shipped_results_names_the_command_that_makes_it(tmp_path: Path, monkeypatch) -> None:
    shutil.copy(RESULTS / "table1.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    main(["table", "table1.csv", "--paper", "--out", "table1.md"])
    text = Path("table1.md").read_text()
    assert "| *paper* | *0.533 ± 0.037* |" in text
    command = re.findall(r"^Made by `gcb (.*)`\.$", text, re.MULTILINE)[0]
    Path("table1.md").unlink()
    main(shlex.split(command))
    assert Path("table1.md").read_text() == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("successes,", "wins,"), "has no column 'successes'"),
        ((",100,40,", ",many,40,"), "line 2: episodes is 'many'; accepted: int."),
        ((",100,40,", ",100,140,"), "line 2: successes is 140; accepted: 0 to 100"),
        ((",30,35,", ",30,101,"), "line 2: successes_declared is 101; accepted: 0 to 100"),
        ((",30,35,", ",30,some,"), "line 2: successes_declared is 'some'; accepted: int."),
        (("false", "maybe"), "line 2: video is 'maybe'; accepted: bool."),
        ((",0.1.0,c1,", "\n"), "line 2: gcb_version is None; accepted: str."),
    ],
)
def test_an_error_names_the_file_and_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "results.csv"
    write_rows(path, [ROW])
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(GCBError) as error:
        read_rows([path])
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_two_files_with_different_results_are_an_error(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv", [ROW])
    write_rows(tmp_path / "b.csv", [replace(ROW, successes=41)])
    with pytest.raises(GCBError, match=r"b.csv has a different result .* for drawer False gcb  0 goal all"):
        read_rows([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_the_command_writes_the_table_and_names_itself(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("results.csv"), [ROW])
    main(["table", "results.csv", "--paper", "--criterion", "declared", "--out", "docs/table.md"])
    printed = capsys.readouterr().out
    assert Path("docs/table.md").read_text() == printed
    assert "Made by `gcb table results.csv --criterion declared --paper --out docs/table.md`." in printed
    assert "| gcb | 0.350 [" in printed
    for words in (["table", "none.csv"], ["table"], ["table", "results.csv", "--criterion", "always"]):
        with pytest.raises(SystemExit):
            main(words)
