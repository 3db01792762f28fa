"""Sheets of reconstructions and samples."""

from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import SIZE, tiny_config, tiny_dataset, write_tiny_dataset
from PIL import Image

import gcb
from gcb.analysis.reconstructions import COLUMNS, reconstruction_sheet
from gcb.cli.main import main
from gcb.errors import GCBError
from gcb.training.trainer import train
from gcb.utils.media import LABEL_HEIGHT


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def trained(name: str, path: Path) -> Path:
    return train(tiny_config(name, steps=2, checkpoint_every=2), tiny_dataset(), path, quiet=True).path


@pytest.mark.parametrize("name", ["vae", "cc_vae"])
def test_the_sheet_has_a_row_for_each_frame(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, data = trained(name, tmp_path / "run"), write_tiny_dataset(tmp_path)
    main(["reconstruct", str(run), "--data", str(data), "--out", str(tmp_path / "new" / "one.png"), "--rows", "3"])
    assert "image:" in capsys.readouterr().out
    with Image.open(tmp_path / "new" / "one.png") as image:
        width, height = image.size
        shown = np.asarray(image.convert("RGB"))
    assert width == len(COLUMNS) * (2 * SIZE + 2) - 2
    assert height == 3 * (2 * SIZE + LABEL_HEIGHT + 2) - 2
    frames = tiny_dataset().frames
    assert any(np.array_equal(shown[: 2 * SIZE : 2, : 2 * SIZE : 2], frame) for frame in frames)

    reconstruction_sheet(gcb.load(run), tiny_dataset(), tmp_path / "again.png", rows=3)
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "new" / "one.png").read_bytes()


def test_invalid_requests_are_named(tmp_path: Path) -> None:
    with pytest.raises(GCBError, match=r"pixel .* cc_vae, vae"):
        reconstruction_sheet(gcb.load(trained("pixel", tmp_path / "pixel")), tiny_dataset(), tmp_path / "one.png")
    agent = gcb.load(trained("vae", tmp_path / "vae"))
    with pytest.raises(GCBError, match=r"the dataset's frames are \(24, 24, 3\), the agent's \(32, 32, 3\)"):
        reconstruction_sheet(agent, tiny_dataset(size=24), tmp_path / "one.png")
    with pytest.raises(GCBError, match="0 rows"):
        reconstruction_sheet(agent, tiny_dataset(), tmp_path / "one.png", rows=0)
    assert not (tmp_path / "one.png").exists()
