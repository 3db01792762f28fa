"""The published tables follow from the records of the runs."""

from pathlib import Path

import pytest
from helpers.evaluated_runs import result, write_run

from gcb.report.rows import read_rows
from scripts.make_results import PAGES, ROOT, Results, pages, updated


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def test_the_tables_of_the_docs_are_those_of_the_records(results: Results) -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in pages(results.fragments()) if path.read_text() != text]
    assert not stale, f"run `python -m scripts.make_results`: {', '.join(stale)}"


def test_every_table_is_shown_somewhere(results: Results) -> None:
    text = "".join((ROOT / name).read_text() for name in PAGES)
    assert [name for name in results.fragments() if f"<!-- results: {name} -->" not in text] == []


def test_the_csv_files_are_those_of_the_records(results: Results) -> None:
    for name, rows in results.csv_files().items():
        assert read_rows([ROOT / "results" / f"{name}.csv"]) == sorted(rows, key=lambda row: row.key)


def test_the_best_method_of_a_column_and_its_ties_are_bold(tmp_path: Path) -> None:
    """Out of 40 episodes gcb succeeds in 30, rad in the same but one, and cpc in 10."""
    for method, successes in (("gcb", "1" * 30 + "0" * 10), ("rad", "1" * 29 + "0" * 11), ("cpc", "1" * 10 + "0" * 30)):
        write_run(tmp_path / "runs" / f"drawer-{method}-s0", method, results={"goal": result(successes)})
    lines = {line.split(" | ")[0].strip("| "): line for line in Results(tmp_path).table_1().splitlines()}
    assert "**.75 [.60, .86]**" in lines["gcb"]
    assert "**.72 [.57, .84]**" in lines["rad"]
    assert "| .25 [.14, .40] |" in lines["cpc"]
    assert "*.53 ± .04*" in Results(tmp_path).table_1()


def test_only_the_tables_of_a_page_are_replaced() -> None:
    page = "before\n<!-- results: a -->\nold\n<!-- end of results -->\nafter\n"
    assert updated(page, {"a": "new\n"}) == page.replace("old", "new")
