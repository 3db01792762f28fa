"""From the folders of finished runs to one CSV."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from gcb.errors import GCBError
from gcb.report.rows import ALL, Row, write_rows
from gcb.runs.config import TrainConfig
from gcb.runs.run_dir import Run, read_results
from gcb.sweep.folder import RESULTS, Folder
from gcb.sweep.run_job import RunJob
from gcb.utils.dataclass_io import to_dict

DIGITS = 12
"""Of a hash; enough to tell any two apart that ever meet."""


class Results:
    """DIR/results.csv: every run of the folder that is finished as it was asked, whichever sweep it belongs to."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._known: dict[str, tuple[bytes, list[Row]]] = {}
        self._told: set[str] = set()

    def write(self) -> list[str]:
        """Write the file anew; return what is newly found to be wrong with a run, which is then left out.

        A run that was found finished once is not looked at again.
        """
        known, wrong = {}, []
        for name in self.folder.job_names():
            try:
                if entry := self._entry(name):
                    known[name] = entry
            except GCBError as error:
                wrong.append(f"{name} is not in {RESULTS}: {error}")
        self._known = known
        write_rows(self.folder.path / RESULTS, (row for _, rows in known.values() for row in rows))
        fresh = [line for line in wrong if line not in self._told]
        self._told.update(fresh)
        return fresh

    def _entry(self, name: str) -> tuple[bytes, list[Row]] | None:
        asked, known = self.folder.job_bytes(name), self._known.get(name)
        if known is not None and known[0] == asked:
            return known
        job = self.folder.read_job(name)
        if not isinstance(job, RunJob) or job.state().word != "done":
            return None
        return asked, list(rows_of(job))


def rows_of(job: RunJob) -> Iterator[Row]:
    """The rows of a finished run, one for each mode and task, and one without episodes for a mode that is NA."""
    run = Run(job.folder)
    results, checkpoint = read_results(job.folder), run.checkpoint()
    assert checkpoint is not None, "the run is finished"
    common = {
        "env": job.env,
        "video": job.video,
        "method": job.config.method,
        "variant": job.variant,
        "seed": job.config.seed,
        "steps": checkpoint.step,
        "train_seconds": round(checkpoint.seconds, 1),
        "dataset_hash": run.dataset.fingerprint[:DIGITS],
        "config_hash": config_hash(run.config),
        "eval_seed": job.eval_seed,
        "eval_temperature": job.eval_temperature,
    }
    for mode in job.modes:
        if mode not in job.possible_modes:
            nothing = {"episodes": 0, "successes": 0, "successes_at_end": 0, "gcb_version": run.gcb_version}
            yield Row(mode=mode, task=ALL, **nothing, **common)
            continue
        try:
            result = results[mode]
            for task, rates in ((ALL, result["all"]), *result["tasks"].items()):
                yield Row(mode=mode, task=task, **_counts(rates), gcb_version=result["gcb"], **common)
        except (KeyError, TypeError) as error:
            raise GCBError(f"{job.folder}: the evaluation by {mode} is damaged ({error!r})") from error


def config_hash(config: TrainConfig[Any]) -> str:
    """The same for all seeds of one setting, and for nothing else."""
    plain = {name: value for name, value in to_dict(config).items() if name != "seed"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:DIGITS]


def _counts(rates: Mapping[str, Any]) -> dict[str, int]:
    return {
        "episodes": rates["any_step"]["of"],
        "successes": rates["any_step"]["successes"],
        "successes_at_end": rates["at_end"]["successes"],
    }
