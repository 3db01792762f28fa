"""A dataset as a job of a sweep: it is collected once, and runs wait for it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gcb.data import CollectConfig, Dataset, collect, open_dataset
from gcb.data.format import MANIFEST, PARTIAL
from gcb.data.output_dir import JOURNAL
from gcb.errors import GCBError
from gcb.sweep.jobs import State
from gcb.utils.files import read_json


@dataclass(frozen=True)
class DataJob:
    """Collect a dataset, if it is not there yet."""

    folder: Path
    config: CollectConfig | None
    """How to collect it; None for one that somebody else has put there."""

    @property
    def name(self) -> str:
        return f"data-{self.folder.name}"

    @property
    def needs(self) -> Path | None:
        return None

    def state(self) -> State:
        try:
            if (self.folder / MANIFEST).exists():
                self._check(open_dataset(self.folder))
                return State("done", 1.0)
            if self.config is None:
                raise GCBError(
                    f"there is no dataset {self.folder}, and only drawer and button_drawer are collected by a sweep"
                )
        except GCBError as error:
            return State("impossible", reason=str(error))
        return State("begun", self._share()) if (self.folder / PARTIAL).exists() else State("new")

    def work(self, processes: int = 1) -> None:
        assert self.config is not None, "a dataset without a configuration is done or impossible"
        collect(self.config, self.folder, workers=processes)

    def to_dict(self) -> dict[str, Any]:
        config = None if self.config is None else asdict(self.config)
        return {"kind": "data", "folder": str(self.folder), "config": config}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], out: Path) -> "DataJob":
        config = plain["config"]
        return cls(Path(plain["folder"]), None if config is None else CollectConfig(**config))

    def _check(self, dataset: Dataset) -> None:
        """Whoever collected it, and with whatever seed: it must be of the world, the size and the number asked for."""
        if self.config is None:
            return
        there, asked = dataset.config, self.config
        options, wanted = there.get("options", {}), asked.options
        pairs = (
            ("env", there.get("env"), asked.env),
            ("video", bool(options.get("video")), bool(wanted.get("video"))),
            ("image size", dataset.frames.shape[1], wanted.get("image_size")),
            ("transitions", dataset.transitions, asked.transitions),
        )
        if found := [f"{name} is {old!r} there and {new!r} here" for name, old, new in pairs if old != new]:
            raise GCBError(f"{self.folder} holds another dataset: {'; '.join(found)}. Name another --data-root")

    def _share(self) -> float:
        """What the journal of an unfinished collection is sure of."""
        journal = self.folder / PARTIAL / JOURNAL
        try:
            return read_json(journal)["transitions"] / self.config.transitions if self.config else 0.0
        except (GCBError, KeyError, TypeError):
            return 0.0  # not written yet, or just moved on
