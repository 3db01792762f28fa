"""The command line. A field's docstring is the help of its option."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

RunDir = Annotated[Positional[Path], arg(metavar="RUN")]
"""The directory of a run, as a positional argument."""
