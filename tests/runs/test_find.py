"""Runs by path, and by the name of an agent that comes with the package."""

from pathlib import Path

import pytest

import gcb
from gcb.cli.main import main
from gcb.errors import GCBError
from gcb.runs.find import BUNDLED, DEFAULT_AGENT, bundled_agents, find_run


def test_names_are_those_of_the_directories_in_the_package() -> None:
    assert DEFAULT_AGENT in bundled_agents()
    assert {path.name for path in BUNDLED.iterdir() if path.is_dir()} == set(bundled_agents())


def test_a_directory_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_run(DEFAULT_AGENT) == BUNDLED / DEFAULT_AGENT
    (tmp_path / DEFAULT_AGENT).mkdir()
    assert find_run(DEFAULT_AGENT) == Path(DEFAULT_AGENT)
    assert find_run(tmp_path / "nowhere") == tmp_path / "nowhere"


@pytest.mark.parametrize("name", ["button-drawr", "button_drawer", "Button-Drawer"])
def test_a_misspelt_name_is_answered_with_the_right_one(name: str) -> None:
    with pytest.raises(GCBError, match=rf"{name} is not a directory, .*; did you mean button-drawer\?"):
        gcb.load(name)


def test_another_name_is_answered_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["explore", "zzz"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"accepted: {', '.join(bundled_agents())} or the directory of a run.")


@pytest.mark.parametrize("command", [["eval", DEFAULT_AGENT, "--episodes", "1"], ["analyse", DEFAULT_AGENT]])
def test_nothing_is_written_into_the_package(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(BUNDLED.rglob("*"))
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 2
    assert f"copy it first: gcb export {DEFAULT_AGENT} --out DIR" in capsys.readouterr().err
    assert sorted(BUNDLED.rglob("*")) == before


@pytest.mark.parametrize("command", [["explore"], ["held-out", "DATA"], ["export", "--out", "OUT"]])
def test_commands_say_how_to_get_an_agent_of_the_hub(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command[:1], "hf://owner/name", *command[1:]])
    assert end.value.code == 2
    assert "hf://owner/name is on the Hub" in (error := capsys.readouterr().err)
    assert "hf download owner/name --local-dir DIR" in error


def test_a_report_takes_agents_by_name(tmp_path: Path) -> None:
    main(["report", DEFAULT_AGENT, "--out", str(tmp_path / "report.html")])
    assert DEFAULT_AGENT in (tmp_path / "report.html").read_text()
