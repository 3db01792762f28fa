"""Hooks of mkdocs.yml: put the repository's other pages on the site, and adapt the links between them.

The Markdown files are written for a Git host, where they link to each other by their paths in the repository. The site
has the files of docs/ at its top, and beside them pages made from README.md, CONTRIBUTING.md, CHANGELOG.md, results/,
examples/, the cards of the bundled agents and the help texts of `gcb`. Links are rewritten accordingly; `mkdocs build
--strict` fails if one is broken.
"""

import ast
import base64
import os
import posixpath
import re
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gcb.cli.main import COMMANDS
from gcb.cli.main import main as run_gcb

ROOT = Path(__file__).parents[1]
MOVED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
COPIED = (
    "CITATION.cff",
    "LICENSE",
    "results/*.md",
    "results/*.csv",
    "examples/README.md",
    "gcb/runs/bundled/*/README.md",
)
EXAMPLES = ("examples/*.py", "examples/*.ipynb")
LINK = re.compile(r"(\]\()([^)\s#]+)([^)\s]*\))")
SUBCOMMANDS = re.compile(r"usage: gcb \S+ \[-h\] \{([\w,-]+)\}")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for path in repository_files(*MOVED, *COPIED):
        files.append(File.generated(config, site_path(path), abs_src_path=str(path)))
    pages: dict[str, str | bytes] = {"command-line.md": command_line_page()}
    for path in repository_files(*EXAMPLES):
        pages |= {site_path(path): script_page(path)} if path.suffix == ".py" else notebook_page(path)
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links between files of the repository to links between pages of the site."""
    here = page.file.src_uri
    sources = {site_path(path): path for path in repository_files(*MOVED, *COPIED, *EXAMPLES)}
    directory = sources.get(here, ROOT / "docs" / here).parent

    def rewrite(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(directory / link[2]))
        if not target.is_file():
            return link[0]
        return link[1] + posixpath.relpath(site_path(target), posixpath.dirname(here) or ".") + link[3]

    return LINK.sub(rewrite, markdown)


def repository_files(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def site_path(path: Path) -> str:
    """Return where a file of the repository is on the site."""
    name = path.relative_to(ROOT).as_posix()
    name = MOVED.get(name, name).removeprefix("docs/").replace("README.md", "index.md")
    return re.sub(r"^(examples/\w+)\.(py|ipynb)$", r"\1.md", name)


def script_page(path: Path) -> str:
    """Return a page with a script's docstring and code."""
    code = path.read_text()
    docstring = ast.get_docstring(ast.parse(code)) or ""
    _, _, body = code.partition(f'{docstring}\n"""\n\n')
    title, _, text = docstring.partition("\n\n")
    name, _, summary = title.partition(": ")
    intro = f"# {name}\n\n{summary[:1].upper()}{summary[1:]}\n\n{text}\n\n"
    return f'{intro}```python title="examples/{path.name}"\n{body}```\n'


def notebook_page(path: Path) -> dict[str, str | bytes]:
    """Return the page of a notebook with its outputs, and the images on it."""
    parts, images = [], {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            if "text" in output:
                parts.append(f"```text\n{output.text.rstrip()}\n```")
            elif "image/png" in output.get("data", {}):
                data = base64.b64decode(output.data["image/png"])
                name = f"{path.stem}-{len(images)}.{'gif' if data.startswith(b'GIF') else 'png'}"
                images[f"examples/{name}"] = data
                parts.append(f"![Output of the cell above]({name})")
    return {site_path(path): "\n\n".join(parts) + "\n", **images}


def command_line_page() -> str:
    """Return a page with the help text of every command."""
    parts = ["# Command line", "The output of `gcb COMMAND --help` for every command."]
    for name in COMMANDS:
        text = help_text(name)
        actions = SUBCOMMANDS.match(text)
        for command in [f"{name} {action}" for action in actions[1].split(",")] if actions else [name]:
            parts.append(f"## gcb {command}\n\n```text\n{help_text(*command.split())}\n```")
    return "\n\n".join(parts) + "\n"


def help_text(*command: str) -> str:
    """Return the help text of a command, 90 characters wide and without colours."""
    environment = {"COLUMNS": "90", "NO_COLOR": "1", "TERM": "dumb"}
    with redirect_stdout(StringIO()) as output, suppress(SystemExit), patch.dict(os.environ, environment):
        run_gcb([*command, "--help"])
    return output.getvalue().strip()
