"""Every ablation differs from its reference in one setting, and can be trained."""

from pathlib import Path

import pytest
import torch
from helpers.tiny import tiny_dataset, write_tiny_dataset

from gcb.cli.main import main
from gcb.errors import GCBError
from gcb.runs.ablations import ABLATIONS, ablated_config, ablation_changes
from gcb.runs.config import make_config
from gcb.runs.run_dir import Run
from gcb.training.trainer import Trainer
from gcb.utils.dataclass_io import differences, to_dict

OURS = {"components", "partners"}
PAPER = [ablation.name for ablation in ABLATIONS.values() if ablation.figure not in OURS]


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_one_setting(name: str) -> None:
    assert len(ablation_changes(name)) == 1
    ablation = ABLATIONS[name]
    reference = make_config("gcb") if ablation.reference is None else ablated_config(ablation.reference)
    assert len(differences(to_dict(reference), to_dict(ablated_config(name)))) == 1


@pytest.mark.parametrize("name", [name for name in PAPER if name not in ("both_l2", "no_gradient")])
def test_the_papers_ablations_change_one_setting_of_the_paper_preset(name: str) -> None:
    assert len(ablation_changes(name, "paper")) == 1


def test_all_ablations_of_the_appendix_exist() -> None:
    figures = {ablation.figure for ablation in ABLATIONS.values()} - OURS
    assert figures == {"ablatedim", "ablateground", "ablatemetric", "ablateCG", "ablatedecoder", "ablatedynamics"}
    dimensions = [ablation for ablation in ABLATIONS.values() if ablation.figure == "ablatedim"]
    sizes = {ablation.changes["method_config"]["size"] for ablation in dimensions}
    assert sizes | {make_config("gcb").method_config.size} == {32, 64, 128, 256, 512}
    assert {ablation.env for ablation in dimensions} == {"drawer"}
    assert {ablation.env for ablation in ABLATIONS.values() if ablation not in dimensions} == {"button_drawer"}


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_can_be_trained(name: str) -> None:
    config = make_config("gcb", "smoke", {"device": "cpu", "batch_size": 8, **ABLATIONS[name].changes})
    trainer = Trainer(config, tiny_dataset(), torch.device("cpu"))
    metrics = trainer.learner.step(trainer.next_batch(), 0)
    assert all(torch.isfinite(value) for value in metrics.values())


def test_further_changes_apply() -> None:
    config = ablated_config("ungrounded", changes={"seed": 3, "steps": 200})
    assert (config.seed, config.steps, config.method_config.grounded) == (3, 200, False)


def test_unknown_and_empty_ablations_are_refused() -> None:
    with pytest.raises(GCBError, match=r"There is no ablation 'ungroundd'; did you mean ungrounded\?"):
        ablated_config("ungroundd")
    with pytest.raises(GCBError, match="In the preset paper the ablation no_gradient changes nothing"):
        ablated_config("no_gradient", "paper")


def test_the_command_lists_and_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["ablate", "--list"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in ABLATIONS)
    data, out = write_tiny_dataset(tmp_path), tmp_path / "run"
    words = ["--data", str(data), "--out", str(out), "--preset", "smoke", "--steps", "2", "--seed", "5", "--quiet"]
    main(["ablate", "ungrounded", *words])
    config = Run(out).config
    assert (config.seed, config.steps, config.method_config.grounded) == (5, 2, False)
    assert "grounded" in capsys.readouterr().out


def test_the_command_needs_data_and_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ablate", "ungrounded"])
    assert "gcb ablate NAME --data DIR --out RUN" in capsys.readouterr().err
