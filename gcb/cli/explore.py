"""`gcb explore`: composition only."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from tyro.conf import Positional

from gcb.errors import GCBError


@dataclass
class Explore:
    """Open a web page on which to give a trained agent a task, by example or goal, and watch it. Ctrl-C stops it."""

    run_dir: Positional[Path]
    """Directory of the run."""
    data: Path | None = None
    """Directory of the run's dataset, if it was moved."""
    clips: Path | None = None
    """Directory of background videos, instead of the built-in ones."""
    host: str = "127.0.0.1"
    """Address to serve on. By default only this machine can open the page; 0.0.0.0 serves the network."""
    port: int = 8000
    """Port; if it is taken, the next free one."""
    names: tuple[str, ...] = ()
    """Host names by which the page may be opened, besides localhost and IP addresses."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Device to compute on."""
    browser: bool = False
    """Open the page in a browser."""

    def run(self) -> None:
        _check_run_dir(self.run_dir)
        try:
            from gcb.explorer.loader import RunLoader
            from gcb.explorer.serve import serve
        except ModuleNotFoundError as error:
            raise GCBError(f"the explorer needs {error.name}: pip install 'gcb[explore]'") from error

        loader = RunLoader(self.run_dir, self.data, self.clips, self.device)
        with suppress(KeyboardInterrupt):
            serve(loader, self.host, self.port, self.names, self._announce)
        Console().print("Stopped.")

    def _announce(self, url: str) -> None:
        Console().print(f"Explore {self.run_dir} at [bold]{url}[/] (Ctrl-C to stop)")
        if self.browser:
            import webbrowser

            webbrowser.open(url)


def _check_run_dir(path: Path) -> None:
    """Fail early if the directory is not a run. `Run` is imported only then, because that takes a second."""
    if not (path / "run.json").is_file():
        from gcb.runs.run_dir import Run

        Run(path)
