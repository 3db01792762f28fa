"""Keep the records of a sweep's finished runs, without their weights: python -m scripts.archive_runs SWEEP ARCHIVE

The archive is itself the directory of a sweep. `gcb table ARCHIVE/results.csv`, `gcb compare ARCHIVE` and
`gcb report ARCHIVE` read it, and `gcb sweep … --out` on a copy of it trains only what is missing. Of the metrics,
it keeps the rows of evaluations during training and the last one.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcb.envs.spec import DEFAULT_MODES
from gcb.runs.evaluations import read_eval_file
from gcb.runs.run_dir import CHECKPOINT, CONFIG, EVAL, METRICS, RECORD, Run
from gcb.sweep.results import Results
from gcb.sweep.sweep_dir import SweepDir
from gcb.training.loggers import read_metrics
from gcb.utils.dataclass_io import to_dict
from gcb.utils.files import write_atomically, write_json
from gcb.utils.text_files import read_json


def archive(sweep: Path, out: Path) -> list[str]:
    """Copy the records of all runs that are trained and evaluated; return the names of those that are not."""
    archived, left_out = SweepDir(out), []
    archived.runs.mkdir(parents=True, exist_ok=True)
    for record in sorted(SweepDir(sweep).runs.glob(f"*/{RECORD}")):
        run = Run(record.parent)
        checkpoint, results = run.checkpoint(), read_eval_file(run.path)
        if checkpoint is None or not checkpoint.finished or not results:
            left_out.append(run.path.name)
            continue
        copy, path = archived.runs / run.path.name, run.dataset.path
        copy.mkdir(exist_ok=True)
        data = replace(run.dataset, path=None, name=Path(path).name if path else run.dataset.name)
        write_json(copy / RECORD, {**read_json(record), "data": to_dict(data)})
        write_atomically(copy / CONFIG, (run.path / CONFIG).read_bytes())
        write_json(copy / CHECKPOINT, to_dict(replace(checkpoint, state=None)))
        write_json(copy / EVAL, results)
        if rows := "".join(f"{json.dumps(row)}\n" for row in kept_metrics(run.path)):
            write_atomically(copy / METRICS, rows.encode())
    for message in Results(archived, DEFAULT_MODES).update():
        print(message, file=sys.stderr)
    return left_out


def kept_metrics(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run's metrics that have evaluations, and the last one."""
    rows = read_metrics(run)
    for row in rows:
        if row is rows[-1] or any(name.startswith("eval_") for name in row):
            yield row


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for name in archive(Path(sys.argv[1]), Path(sys.argv[2])):
        print(f"{name} is not trained and evaluated yet: left out")
