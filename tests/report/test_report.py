"""The report: one self-contained file, nothing unescaped, with the numbers of the evaluations."""

import base64
import json
import re
import shutil
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import tiny_config, tiny_dataset

from gcb.analysis.analyse import ANALYSIS_DIR
from gcb.cli.main import main
from gcb.data import Dataset
from gcb.envs.spec import EnvSpec
from gcb.errors import GCBError
from gcb.evaluation.evaluate import EvalResult
from gcb.evaluation.rollouts import Outcome
from gcb.report.report import write_report
from gcb.report.run_groups import RunGroup, group_runs, read_runs
from gcb.report.success import overview, paper_rows, success_table
from gcb.runs.config import TrainConfig, make_config, write_config
from gcb.training.trainer import train
from gcb.utils.files import write_json
from gcb.utils.media import write_video
from gcb.utils.text_files import read_json

NASTY = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Parses a page strictly: every element must be closed; records every URL that it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has {name}"
            if name in ("src", "href", "srcset", "poster", "data", "action"):
                self.loads.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def write_results(run: Path, **successes: int) -> None:
    """Write an eval.json with ten episodes in each mode, five of each task, of which the first are successful.

    At the end there is one success less, and two less when declared done.
    """
    results = {}
    for mode, count in successes.items():
        tasks = ["drawer"] * 5 + ["button"] * 5
        outcomes = [
            Outcome(task, 3 if i < count else None, i < count - 1, 5, i < count - 2) for i, task in enumerate(tasks)
        ]
        results[mode] = EvalResult(mode, EnvSpec("gcb/ButtonDrawer-v0"), 0, 2, outcomes).to_dict()
    write_json(run / "eval.json", results)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two seeds of gcb and one of gcbc, the first with figures and videos."""
    directory = tmp_path_factory.mktemp("report")
    data = Dataset.from_arrays(
        **tiny_dataset().arrays(), config={"env": "gcb/ButtonDrawer-v0", "seed": 0, "options": {"video": None}}
    )
    made = {}
    for name, method, seed in (("one", "gcb", 0), ("two", "gcb", 1), (f"bc {NASTY[2:10]}", "gcbc", 0)):
        made[name[:3]] = directory / name.replace("/", "")
        config = tiny_config(method, steps=4, log_every=2, seed=seed)
        train(config, data, made[name[:3]], quiet=True)
    write_results(made["one"], goal=5, strict=4)
    write_results(made["two"], goal=7, strict=4)
    (made["one"] / ANALYSIS_DIR).mkdir()
    (made["one"] / ANALYSIS_DIR / "map.png").write_bytes(b"\x89PNG not really")
    rate = {"value": 0.5, "interval": [0.2, 0.8], "of": 10}
    numbers: dict[str, Any] = {
        "about": {"step": 4, "seed": 0},
        "skipped": {"arithmetic": NASTY},
        "values": {"pairs": 10, "pearson": rate, "spearman": {**rate, "value": None}},
    }
    write_json(made["one"] / ANALYSIS_DIR / "numbers.json", numbers)
    write_video(made["one"] / "videos" / "goal.mp4", np.zeros((3, 32, 32, 3), np.uint8), fps=5)
    return made


@pytest.fixture(scope="module")
def page(runs: dict[str, Path]) -> str:
    out = runs["one"].parent / "out" / "report.html"
    when = datetime(2026, 1, 2, tzinfo=timezone.utc)
    write_report(list(runs.values()), out, title=NASTY, command=f"gcb report {NASTY}", when=when)
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
    return out.read_text()


def test_the_page_needs_no_network(page: str) -> None:
    parsed = Page(page)
    assert parsed.loads
    assert all(load.startswith(("data:", "#")) for load in parsed.loads)
    assert not re.search(r"https?://|//[a-z]|url\(|@import", re.sub(r"base64,[^\"]*", "", page))
    assert "default-src 'none'" in page
    assert "script" not in parsed.tags
    assert not {"link", "iframe", "object", "embed"} & set(parsed.tags)


def test_user_text_is_escaped(page: str) -> None:
    assert "<script" not in page
    assert NASTY in Page(page).words


def test_images_and_videos_are_embedded(page: str, runs: dict[str, Path]) -> None:
    for path, media_type in ((f"{ANALYSIS_DIR}/map.png", "image/png"), ("videos/goal.mp4", "video/mp4")):
        content = base64.b64encode((runs["one"] / path).read_bytes()).decode()
        assert f"data:{media_type};base64,{content}" in page


def test_success_rates_match_the_evaluations(page: str) -> None:
    words = Page(page).words
    # 5 and 7 of 10: mean .6; Wilson of 12 of 20; t(.975, 1) · sd / √2 = 12.706 · .1414 / 1.4142 = 1.271.
    assert "0.600 ± 1.271 [0.387, 0.781]" in words
    assert "gcb, goal image 60 %" in words
    assert "0.440 ± 0.026" in words  # the paper's GCB in Button and Drawer
    assert "0.403 ± 0.041" in words
    assert "2 × 10" in words
    # 4 and 6 of 10 at the end: Wilson of 10 of 20; 3 and 5 when declared done: Wilson of 8 of 20.
    rates = "0.600 ± 1.271 [0.387, 0.781] 0.500 ± 1.271 [0.299, 0.701] 0.400 ± 1.271 [0.219, 0.613]"
    assert f"gcb goal image all tasks {rates} 2 × 10" in words
    assert "at any step at the end when declared done seeds × episodes" in words
    assert "one was evaluated at step 2, but is now at step 4" in words


def without_declared(run: Path, out: Path, mode: str | None = None) -> Path:
    """Copy a run as if it, or one mode of it, had been evaluated before that criterion was measured."""
    shutil.copytree(run, out)
    results = read_json(out / "eval.json")
    for name, result in results.items():
        if mode in (None, name):
            for rates in (result["all"], *result["tasks"].values()):
                del rates["declared"]
    write_json(out / "eval.json", results)
    return out


def test_older_evaluations_lack_a_criterion(runs: dict[str, Path], tmp_path: Path) -> None:
    old = without_declared(runs["one"], tmp_path / "old")
    (group,) = group_runs(read_runs([old]))
    assert group.cell("goal", criterion="declared") is None
    assert str(group.cell("goal", criterion="at_end")) == "0.400 [0.168, 0.687]"
    headings, rows = success_table([group])
    assert headings == ("agent", "task given by", "task", "at any step", "at the end", "seeds × episodes")
    assert {len(row) for row in rows} == {len(headings)}
    write_report([old], tmp_path / "report.html")
    assert "at any step at the end seeds × episodes" in Page((tmp_path / "report.html").read_text()).words


def test_a_rate_that_only_some_evaluations_have_is_a_dash_elsewhere(runs: dict[str, Path], tmp_path: Path) -> None:
    mixed = without_declared(runs["one"], tmp_path / "mixed", mode="strict")
    headings, rows = success_table(group_runs(read_runs([mixed])))
    column = headings.index("when declared done")
    declared = {row[1:3]: row[column] for row in rows}
    assert declared["goal image", "all tasks"] == "0.300 [0.108, 0.603]"
    assert declared["strict analogy", "all tasks"] == "–"
    # A mean over some of the seeds would not be comparable with the other columns.
    _, rows = success_table(group_runs(read_runs([without_declared(runs["one"], tmp_path / "old"), runs["two"]])))
    assert {row[column] for row in rows} == {"–"}


def test_the_page_states_its_provenance(page: str) -> None:
    words = Page(page).words
    assert "2026-01-02 00:00 UTC" in words
    assert "gcb/ButtonDrawer-v0" in words
    assert "4 of 4" in words
    assert "torch" in words
    assert "method_config:" in words
    assert "Skipped: arithmetic" in words
    assert "has not been analysed yet: gcb analyse" in words


def test_seeds_of_the_same_settings_are_one_group(runs: dict[str, Path]) -> None:
    groups = group_runs(read_runs([*runs.values(), runs["one"]]))
    assert [(group.label, len(group.records)) for group in groups] == [("gcb", 2), ("gcbc", 1)]
    curve = groups[0].curve("actor_loss")
    assert curve is not None
    steps, mean, band = curve
    assert steps.tolist() == [2, 4]
    values = [[row["actor_loss"] for row in record.metrics] for record in groups[0].records]
    np.testing.assert_allclose(mean, np.mean(values, axis=0))
    assert band is not None
    half = 12.7062 * np.abs(np.diff(values, axis=0)[0]) / 2
    low = -np.inf if np.min(values) < 0 else 0
    np.testing.assert_allclose(band, [np.maximum(mean - half, low), mean + half], rtol=1e-4)
    assert groups[0].curve("no such thing") is None


def change_config(run: Path, config: TrainConfig[Any]) -> None:
    """Change the settings of a run, as if it had started with them."""
    write_config(run / "config.yaml", config)


def test_labels_name_the_settings_that_differ(runs: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in runs["two"].iterdir():
        if path.is_file():
            (other / path.name).write_bytes(path.read_bytes())
    change_config(other, tiny_config("gcb", steps=4, log_every=2, seed=1, iql={"discount": 0.5}))
    labels = [group.label for group in group_runs(read_runs([runs["one"], other]))]
    assert labels == ["gcb, iql.discount 0.99", "gcb, iql.discount 0.5"]
    change_config(other, make_config("gcb", "paper"))
    assert [group.label for group in group_runs(read_runs([runs["one"], other]))] == ["gcb, one", "gcb, other"]


def test_labels_of_a_sweeps_runs_name_the_variant(runs: dict[str, Path], tmp_path: Path) -> None:
    names = ("slide-gcb-s0", "slide-gcb-short_sighted-s1")
    for name, source in zip(names, ("one", "two"), strict=True):
        shutil.copytree(runs[source], tmp_path / name)
    change_config(tmp_path / names[1], tiny_config("gcb", steps=4, log_every=2, seed=1, iql={"discount": 0.5}))
    groups = group_runs(read_runs([tmp_path / name for name in names]))
    assert [group.label for group in groups] == ["gcb", "gcb, short_sighted"]
    assert [group.name for group in groups] == ["gcb", "gcb (short_sighted)"]


def test_the_same_settings_in_two_environments_are_one_row_of_table_1(runs: dict[str, Path], tmp_path: Path) -> None:
    for name in ("config.yaml", "eval.json"):
        (tmp_path / name).write_bytes((runs["one"] / name).read_bytes())
    record = read_json(runs["one"] / "run.json")
    record["data"] |= {"fingerprint": "another", "config": {"env": "gcb/Drawer-v0"}}
    write_json(tmp_path / "run.json", record)
    groups = group_runs(read_runs([runs["one"], tmp_path]))
    assert [group.label for group in groups] == ["gcb, Button and Drawer", "gcb, Drawer"]
    row, *others = paper_rows(groups)
    assert row.method == "GCB"
    # Goal images in both environments, and analogies in the one that the paper has them for.
    goal, analogy = "0.500 [0.237, 0.763]", "0.400 [0.168, 0.687]"
    assert [ours and str(ours) for ours, *_ in row.cells] == [goal, None, goal, None, analogy, None]
    assert [paper for _, paper, _ in row.cells][:2] == ["0.533 ± 0.037", "0.448 ± 0.033"]
    assert "GCB" not in [other.method for other in others]
    twice = [row.method for row in paper_rows([*groups, groups[0]])]
    assert twice.count("GCB") == 2


def test_a_mark_is_at_its_value(runs: dict[str, Path], tmp_path: Path) -> None:
    write_report([runs["one"]], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    goal, _ = overview(group_runs(read_runs([runs["one"]])))
    assert (goal.mean, goal.paper) == (0.5, 0.44)
    assert (goal.low, goal.high) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert 'class="whisker" style="left:23.7%;width:52.7%"' in page
    assert 'class="point" style="left:50.0%"' in page
    assert 'class="diamond" style="left:44.0%"' in page


def test_a_run_without_results(runs: dict[str, Path], tmp_path: Path) -> None:
    for name in ("config.yaml", "run.json"):
        (tmp_path / name).write_bytes((runs["one"] / name).read_bytes())
    write_report([tmp_path], tmp_path / "report.html")
    words = Page((tmp_path / "report.html").read_text()).words
    assert "None of these runs has been evaluated yet" in words
    assert "There are no metrics yet" in words
    assert "none yet" in words


def test_large_videos_are_not_embedded(runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcb.report.report.MAX_VIDEO_BYTES", 10)
    write_report([runs["one"]], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "data:video" not in text
    assert "goal.mp4 is too large" in text


def test_the_command_and_invalid_paths(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.html"
    main(["report", str(runs["one"]), str(runs["two"]), "--out", str(out)])
    assert f"report: {out}" in " ".join(capsys.readouterr().out.split())
    assert f"gcb report {runs['one']} {runs['two']} --out {out}" in Page(out.read_text()).words
    before = out.read_bytes()
    for arguments, message in (
        ([str(tmp_path / "nowhere")], "nowhere"),
        ([str(tmp_path)], "has no runs"),
        ([], "no run is given"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["report", *arguments, "--out", str(out)])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
    assert out.read_bytes() == before


def test_damaged_results_are_named(runs: dict[str, Path], tmp_path: Path) -> None:
    for name in ("config.yaml", "run.json"):
        (tmp_path / name).write_bytes((runs["one"] / name).read_bytes())
    (tmp_path / "eval.json").write_text(json.dumps({"goal": {"all": {}, "tasks": {}}}))
    with pytest.raises(GCBError, match=r"eval.json: goal is damaged"):
        write_report([tmp_path], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    assert isinstance(group_runs(read_runs([tmp_path]))[0], RunGroup)


@pytest.mark.parametrize(
    "change", [{"about": []}, {"skipped": None}, {"values": {"pairs": "many"}}, {"arithmetic": {}}]
)
def test_damaged_numbers_are_named(runs: dict[str, Path], tmp_path: Path, change: dict[str, Any]) -> None:
    run = shutil.copytree(runs["one"], tmp_path / "run")
    path = run / ANALYSIS_DIR / "numbers.json"
    write_json(path, {**read_json(path), **change})
    with pytest.raises(GCBError, match=r"numbers\.json is damaged"):
        write_report([run], tmp_path / "report.html")
