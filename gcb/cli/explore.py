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
    """Open a web page on which to tell a trained agent what to do by example, and watch it. Ctrl-C ends it."""

    run_folder: Positional[Path]
    """Folder of the run."""
    data: Path | None = None
    """Folder of the run's dataset, if it lies elsewhere now."""
    clips: Path | None = None
    """Folder of clips for video behind the scene, instead of the built-in ones."""
    host: str = "127.0.0.1"
    """Address to serve on. This machine alone can open the page, unless it is another, such as 0.0.0.0."""
    port: int = 8000
    """Port, or the next one that is free."""
    names: tuple[str, ...] = ()
    """Host names by which the page may be opened, besides localhost and addresses."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "cpu"
    """Where to compute."""
    browser: bool = False
    """Open the page in a browser at once."""

    def run(self) -> None:
        _check_folder(self.run_folder)
        try:
            from gcb.explorer.loader import RunLoader
            from gcb.explorer.serve import serve
        except ModuleNotFoundError as error:
            raise GCBError(f"the explorer needs {error.name}: pip install 'gcb[explore]'") from error

        explorer = RunLoader(self.run_folder, self.data, self.clips, self.device)
        with suppress(KeyboardInterrupt):
            serve(explorer, self.host, self.port, self.names, self._announce)
        Console().print("The page is closed.")

    def _announce(self, address: str) -> None:
        Console().print(f"{self.run_folder} can be explored at [bold]{address}[/] (Ctrl-C ends it)")
        if self.browser:
            import webbrowser

            webbrowser.open(address)


def _check_folder(folder: Path) -> None:
    """A wrong folder is told at once. Only then is `gcb.runs.run_dir` needed here, which takes a second to import."""
    if not (folder / "run.json").is_file():
        from gcb.runs.run_dir import Run

        Run(folder)
