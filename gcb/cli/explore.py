"""`gcb explore`."""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from gcb.cli.output import say
from gcb.errors import GCBError
from gcb.runs.find import DEFAULT_AGENT, find_run
from gcb.utils.quiet import unsilenced


@dataclass
class Explore:
    """Open a web page on which to give a trained agent a task, by example or goal, and watch it. Ctrl-C stops it."""

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="[RUN [RUN]]")] = ()
    """A run's directory or the name of a bundled agent; two to see them side by side. By default button-drawer."""
    data: Path | None = None
    """Directory of the (first) run's dataset, if it was moved."""
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
        runs = [find_run(run) for run in self.runs or (DEFAULT_AGENT,)]
        self._check(runs)
        from gcb.explorer.loader import RunLoader
        from gcb.explorer.serve import serve

        loader = RunLoader(runs, self.data, self.clips, self.device, _report)
        with suppress(KeyboardInterrupt):
            serve(loader, self.host, self.port, self.names, self._announce)
        with unsilenced():
            say("Stopped.")
        if threading.active_count() > 1:
            os._exit(0)  # a normal exit would interrupt threads inside PyTorch, which then aborts

    def _check(self, runs: list[Path]) -> None:
        """Fail early on errors that can be found without the imports that take seconds."""
        if len(runs) > 2:
            raise GCBError(f"{len(runs)} runs are given; accepted: one, or two side by side.")
        for path in runs:
            if not (path / "run.json").is_file():
                from gcb.runs.run_dir import Run

                Run(path)
        if self.data is not None and not (self.data / "manifest.json").is_file():
            from gcb.data import open_dataset

            open_dataset(self.data)
        if self.device != "cpu":
            from gcb.agent.build import pick_device

            pick_device(self.device)

    def _announce(self, url: str) -> None:
        what = " and ".join(self.runs) or f"{DEFAULT_AGENT}, which comes with gcb,"
        with unsilenced():
            say(f"Explore {what} at {url} (Ctrl-C to stop)")
        if self.browser:
            import webbrowser

            webbrowser.open(url)


def _report(problem: str) -> None:
    print(f"gcb: {problem}", file=sys.stderr, flush=True)
