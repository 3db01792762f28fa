"""Run a notebook of `examples/` from top to bottom: `python -m scripts.run_notebook examples/paper.ipynb`.

The notebook is replaced by its executed version; the files that it writes go to a temporary directory.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import tyro
from nbclient import NotebookClient
from nbformat import NotebookNode
from tyro.conf import Positional


def execute(path: Path, parameters: Mapping[str, Any], directory: Path, timeout: int = 1800) -> NotebookNode:
    """Return the notebook, executed in `directory` with other values for names of its cell "parameters"."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    original = cell.source
    cell.source = "\n".join([original, *(f"{name} = {value!r}" for name, value in parameters.items())])
    resources = {"metadata": {"path": str(directory)}}
    NotebookClient(notebook, timeout=timeout, resources=resources, coalesce_streams=True).execute()
    cell.source = original
    return notebook


def main(notebook: Positional[Path]) -> None:
    """Execute a notebook and write it back with its outputs."""
    with tempfile.TemporaryDirectory() as directory:
        executed = execute(notebook, {}, Path(directory))
    for cell in executed.cells:
        cell.metadata.pop("execution", None)  # times of day
    nbformat.write(executed, notebook)


if __name__ == "__main__":
    tyro.cli(main)
