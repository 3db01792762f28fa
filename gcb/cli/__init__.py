"""The command line. A field's docstring is the help of its option.

Modules of this package import what their commands need inside `run`: `gcb train --help` should not wait for PyTorch.
"""

from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from gcb.cli.arguments import Within
from gcb.utils.dataclass_io import EPISODES, SEED

RunDir = Annotated[Positional[Path], arg(metavar="RUN")]
"""The directory of a run, as a positional argument."""
Seed = Annotated[int, Within(SEED)]
Episodes = Annotated[int, Within(EPISODES)]
Json = FlagCreatePairsOff[Annotated[bool, arg(name="json", help="Print JSON instead of a table.")]]
