"""The whole report, quickly; and the page that quotes it."""

import pickle
import re
from pathlib import Path

import pytest

from gcb.errors import GCBError
from gcb.theory import run
from gcb.theory.report import SECTIONS
from gcb.theory.verdicts import as_markdown
from gcb.utils.text_files import read_json

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"
FIGURES = {"grid", "convergence", "bounds", "sufficiency", "functions", "arithmetic", "learned", "scaling"}


def _essence(table: str) -> list[tuple[str, ...]]:
    """Where, claim and verdict of each row."""
    rows = [re.split(r"(?<!\\)\|", line) for line in table.splitlines() if line.startswith("| ") and "**" in line]
    return [tuple(cell.strip() for cell in row[1:4]) for row in rows]


# One test, not four: the run takes seconds, and tests on several processes would repeat it.
def test_the_report_is_as_expected_and_as_the_page_tells_it(tmp_path):
    folder = tmp_path / "new" / "folder"
    verdicts = run(folder, quick=True, quiet=True)
    assert [verdict.claim for verdict in verdicts if not verdict.as_expected] == []
    assert len(verdicts) > 40
    assert {path.stem for path in folder.glob("*.png")} == FIGURES
    assert (folder / "verdicts.md").read_text(encoding="utf-8") == as_markdown(verdicts)
    written = read_json(folder / "verdicts.json")
    assert [row["claim"] for row in written["verdicts"]] == [verdict.claim for verdict in verdicts]
    assert set(written["numbers"]) == {"arithmetic", "scaling", "q_learning", "functions", "learned"}
    assert _essence(PAGE.read_text(encoding="utf-8")) == _essence(as_markdown(verdicts))


def test_the_page_shows_every_figure_and_they_are_small():
    shown = re.findall(r"\]\((theory/\w+\.png)\)", PAGE.read_text(encoding="utf-8"))
    assert {Path(name).stem for name in shown} == FIGURES
    assert all((PAGE.parent / name).stat().st_size < 200_000 for name in shown)


def test_sections_can_be_sent_to_another_process():
    for name, section in SECTIONS.items():
        assert pickle.loads(pickle.dumps(section)) is not None, name


@pytest.mark.parametrize("bad", [-1, -5])
def test_no_workers_are_refused(tmp_path, bad):
    with pytest.raises(GCBError, match="workers"):
        run(tmp_path, workers=bad)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(GCBError, match="could not be written"):
        run(tmp_path / "file" / "inside")
