"""`gcb train` and `gcb eval`: options of the method and the preset, from a dataset to a table of results."""

from pathlib import Path
from typing import Any

import pytest
from helpers.slide_env import ENV
from helpers.tiny import tiny_config, tiny_dataset

from gcb.cli.main import parse as parse_words
from gcb.cli.train import Train
from gcb.data import Dataset, write_dataset
from gcb.errors import GCBError
from gcb.runs.config import make_config, write_config
from gcb.runs.evaluations import read_results
from gcb.training.loggers import read_metrics


def parse(*arguments: str) -> Any:
    return parse_words(arguments)


def test_preset_and_method_set_the_defaults() -> None:
    command = parse("train", "--data", "d", "--out", "r", "--method", "gcbc", "--preset", "smoke")
    assert isinstance(command, Train)
    assert command.config == make_config("gcbc", "smoke")
    assert (command.data, command.out) == (Path("d"), Path("r"))


def test_every_setting_is_an_option() -> None:
    command = parse(
        *["train", "--data", "d", "--out", "r", "--method=gcbc", "--preset=smoke", "--seed", "4"],
        *["--iql.expectile", "0.8", "--method-config.size", "16", "--minutes", "2.5", "--goals.p-original", "0.5"],
    )
    changes = {"seed": 4, "iql": {"expectile": 0.8}, "method_config": {"size": 16}, "minutes": 2.5}
    assert command.config == make_config("gcbc", "smoke", changes)
    nested = parse(
        *["train", "--data", "d", "--out", "r", "--preset=smoke", "--transitions-per-episode", "4"],
        *["--method-config.partners.source", "none", "--method-config.policies", "goal"],
    )
    own = {"policies": "goal", "partners": {"source": "none"}}
    assert nested.config == make_config("gcb", "smoke", {"transitions_per_episode": 4, "method_config": own})


def test_settings_of_a_run_can_be_reused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    write_config(path, make_config("gcbc", "smoke", {"seed": 9}))
    command = parse("train", "--data", "d", "--out", "r", "--settings", str(path), "--steps", "7")
    assert command.config == make_config("gcbc", "smoke", {"seed": 9, "steps": 7})
    with pytest.raises(GCBError, match=r"--method is 'gcb', but .* is a configuration of 'gcbc'"):
        parse("train", "--data", "d", "--out", "r", "--settings", str(path), "--method", "gcb")


def test_settings_of_gcb_0_1_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("method: gcb\ngradient_clip: 1.0\n")
    with pytest.raises(GCBError, match="gradient_clip is not a setting"):
        parse("train", "--data", "d", "--out", "r", "--settings", str(path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "gcbb"], "no method 'gcbb'; did you mean"),
        (["--preset", "large"], "There is no preset 'large'"),
        (["--preset", "smoke", "--iql.expectile", "2"], "iql.expectile is 2.0"),
    ],
)
def test_invalid_options_are_named(arguments: list[str], message: str) -> None:
    with pytest.raises(GCBError) as error:
        parse("train", "--data", "d", "--out", "r", *arguments)
    assert message in str(error.value)


def test_help_explains_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("train", "--help")
    text = " ".join(capsys.readouterr().out.split())
    for option in ("--steps", "--iql.temperature", "--goals.p-future", "--method-config.size", "--random-shift"):
        assert option in text
    assert "Number of gradient steps." in text


def test_train_and_eval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = Dataset.from_arrays(**tiny_dataset().arrays(), config={"env": ENV, "options": {"check_actions": False}})
    write_dataset(data, tmp_path / "data")
    write_config(tmp_path / "config.yaml", tiny_config("goal_agnostic_bc", steps=4, checkpoint_every=2))
    common = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--quiet"]
    train = parse("train", "--settings", str(tmp_path / "config.yaml"), *common, "--eval-every", "4")
    train.eval_episodes = 3
    train.run()
    assert "is finished: 4 steps" in " ".join(capsys.readouterr().out.split())
    assert [row["step"] for row in read_metrics(tmp_path / "run") if "eval_goal" in row] == [4]
    train.run()
    assert "was already finished: 4 steps" in " ".join(capsys.readouterr().out.split())
    parse("eval", str(tmp_path / "run"), "--episodes", "4", "--modes", "goal", "loose", "--no-videos").run()
    printed = capsys.readouterr().out
    assert "at the end" in printed
    assert "when declared" in printed
    assert "loose" in printed
    assert read_results(tmp_path / "run").keys() == {"goal", "loose"}
    assert not (tmp_path / "run" / "videos").exists()
    train.eval_every = 3
    with pytest.raises(GCBError, match="eval_every is 3; accepted: a multiple of 2"):
        train.run()


@pytest.mark.parametrize(
    ("options", "preset", "hint"),
    [({"video": "builtin"}, "laptop", True), ({"video": "builtin"}, "laptop_video", False), ({}, "laptop", False)],
)
def test_a_dataset_with_video_distractors_prompts_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, str], preset: str, hint: bool
) -> None:
    data = Dataset.from_arrays(**tiny_dataset().arrays(), config={"env": ENV, "options": options})
    write_dataset(data, tmp_path / "data")
    common = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--quiet"]
    small = ["--steps", "1", "--warmup-steps", "0", "--batch-size", "4", "--method-config.size", "8"]
    parse("train", "--method", "goal_agnostic_bc", "--preset", preset, *common, *small).run()
    assert ("--preset laptop_video" in " ".join(capsys.readouterr().err.split())) is hint
