"""`gcb export`: composition only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from tyro.conf import Positional


@dataclass
class Export:
    """Write an agent to a folder that can be given away: safetensors, configuration, and a model card."""

    run_folder: Positional[Path]
    """Folder of the run."""
    out: Path
    """New folder; `gcb.load` and `gcb eval` take it."""
    format: Literal["safetensors", "onnx"] = "safetensors"
    """onnx adds φ, ψ and the policy as graphs for programs without PyTorch (extra `onnx`)."""

    def run(self) -> None:
        from gcb.agent.export import export_run

        folder = export_run(self.run_folder, self.out, onnx=self.format == "onnx")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        size = sum(path.stat().st_size for path in files)
        names = ", ".join(str(path.relative_to(folder)) for path in files)
        Console().print(f"{folder} ({size / 1e6:,.1f} MB): {names}")
