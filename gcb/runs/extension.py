"""More steps for a finished run: `gcb train --steps 6000` on a run of 3,000 steps.

From the last step of the old run on, everything that depends on the number of steps is as in a run of the new number:
the learning rate jumps to where the longer schedule is at that step. Such a run is not the same as one that was started
with as many steps, so run.json records the extension: {"extended": [{"from": 3000, "to": 6000}]}.
"""

from typing import Any

from gcb.runs.config import TrainConfig, write_config
from gcb.runs.run_dir import CONFIG, RECORD, Run
from gcb.utils.dataclass_io import to_dict
from gcb.utils.files import write_json
from gcb.utils.os_errors import explain_os_errors
from gcb.utils.text_files import read_json


def extends(run: Run, config: TrainConfig[Any]) -> bool:
    """Return whether a configuration asks for more steps of a finished run, and for nothing else."""
    checkpoint = run.checkpoint()
    if checkpoint is None or checkpoint.state is None or checkpoint.step != run.config.steps:
        return False  # not finished, stopped by a time limit, or an exported agent
    return config.steps > run.config.steps and {**to_dict(config), "steps": 0} == {**to_dict(run.config), "steps": 0}


def extend(run: Run, config: TrainConfig[Any]) -> None:
    """Record that a run is trained further, to `config.steps`; the caller holds the directory's lock."""
    record, added = read_json(run.path / RECORD), {"from": run.config.steps, "to": config.steps}
    earlier = [extension for extension in record.get("extended", []) if extension != added]
    # A kill between the two files is no harm: the same command writes both again.
    with explain_os_errors(run.path, "The finished run is kept"):
        write_json(run.path / RECORD, {**record, "extended": [*earlier, added]})
        write_config(run.path / CONFIG, config)
