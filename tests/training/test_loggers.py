"""Loggers: metrics.jsonl always, the others where they are installed."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.tiny import tiny_config, tiny_dataset

import gcb.training.loggers
from gcb.errors import GCBError
from gcb.training.loggers import JsonLines, TensorBoard, WeightsAndBiases, read_metrics
from gcb.training.trainer import train


def test_rows_after_the_checkpoint_and_incomplete_rows_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1, "a": 1.0}\n{"step": 2, "a": null}\n{"step": 3}\n{"step": 4, "a')
    logger = JsonLines(tmp_path, last_step=2)
    logger.write(3, {"a": 5.0, "b": float("nan")})
    logger.close()
    assert path.read_bytes() == b'{"step": 1, "a": 1.0}\n{"step": 2, "a": null}\n{"step": 3, "a": 5.0, "b": null}\n'


def test_an_incomplete_last_row_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1, "a": 1.0}\n{"step": 2, "a": 2.0}')
    assert read_metrics(tmp_path) == [{"step": 1, "a": 1.0}]
    assert read_metrics(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "content", [b'{"step": 1}\n{"step\0: 2}\n{"step": 3}\n', b'{"step": 1}\n{"step": 2, "a": []}\n{"step": 3}\n']
)
def test_a_damaged_line_before_the_last_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    with pytest.raises(GCBError, match=r"metrics\.jsonl is damaged in line 2"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_reported_before_a_directory_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(gcb.training.loggers, "find_spec", lambda package: None)
    with pytest.raises(GCBError, match=rf"{name} is on but not installed: pip install 'gcb\[{name}\]'"):
        train(tiny_config("goal_agnostic_bc", **{name: True}), tiny_dataset(), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


class Recorder:
    """Stands in for a third-party logger and records its calls."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.calls: list[Any] = [(arguments, named)]

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: self.calls.append((name, arguments, named))


def test_tensorboard_gets_every_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Recorder  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    logger = TensorBoard(tmp_path, last_step=10)
    logger.write(11, {"a": 1.0, "b": 2.0})
    logger.sync()
    logger.close()
    calls = logger._writer.calls  # pyright: ignore[reportAttributeAccessIssue]
    assert calls[0] == ((str(tmp_path / "tensorboard"),), {"purge_step": 11})
    assert [call[1] for call in calls[1:]] == [("a", 1.0, 11), ("b", 2.0, 11), (), ()]


@pytest.mark.parametrize(("variable", "mode"), [(None, "offline"), ("online", "online")])
def test_wandb_is_offline_unless_wandb_mode_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, mode: str
) -> None:
    started = Recorder()
    module = ModuleType("wandb")
    module.init = lambda **named: started.calls.append(named) or started  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setattr(os, "environ", {"WANDB_MODE": variable} if variable else {})
    logger = WeightsAndBiases(tmp_path, {"seed": 1})
    logger.write(5, {"a": 1.0})
    logger.close()
    assert started.calls[1]["mode"] == mode
    assert started.calls[1]["config"] == {"seed": 1}
    assert started.calls[2] == ("log", ({"a": 1.0},), {"step": 5})
    assert started.calls[3][0] == "finish"
