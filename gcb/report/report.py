"""`gcb report`: one HTML file about one run or many, with everything inside it.

The page asks for nothing from the network: its own content policy forbids it. It has no scripts.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from string import Template

from gcb.errors import GCBError
from gcb.report import report_runs, report_success
from gcb.report.html import join, safe, tag
from gcb.report.run_groups import Group, grouped, read_runs
from gcb.utils.files import explain_os_errors, write_atomically

TEMPLATE = Path(__file__).with_name("report.html")


def write_report(
    runs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    title: str = "Goal-conditioned bisimulation",
    command: str = "",
    when: datetime | None = None,
) -> Path:
    """Write the report of these runs; those that differ only in their seed are shown as one."""
    if not runs:
        raise GCBError("a report needs at least one run.")
    groups, path = grouped(read_runs(runs)), Path(out)
    page = make_page(groups, title, command, when or datetime.now().astimezone())
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, page.encode())
    return path


def make_page(groups: Sequence[Group], title: str, command: str, when: datetime) -> str:
    """The whole page as text."""
    sections = {
        "Success": join([report_success.glance(groups), report_success.success(groups)]),
        "Beside the paper": report_success.table_1(groups),
        "What it has learned": report_runs.insight(groups),
        "Watching it": report_runs.videos(groups),
        "Training": report_runs.training(groups),
        "Settings": report_runs.settings(groups),
        "Where this comes from": report_runs.provenance(groups, command, when.strftime("%Y-%m-%d %H:%M %Z")),
    }
    links = [tag("a", name, href=f"#{_anchor(name)}") for name in sections]
    body = [tag("section", tag("h2", name), part, id=_anchor(name)) for name, part in sections.items()]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=safe(title), subtitle=safe(_subtitle(groups)), links=join(links), body=join(body)
    )


def _subtitle(groups: Sequence[Group]) -> str:
    """What the report is about, in a line."""
    runs = sum(len(group.entries) for group in groups)
    methods = ", ".join(dict.fromkeys(group.method for group in groups))
    places = ", ".join(dict.fromkeys(group.place for group in groups))
    return f"{runs} {'run' if runs == 1 else 'runs'} of {methods} in {places}"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
