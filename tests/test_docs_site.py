"""The documentation's site: it builds without warnings, is complete, and needs no network to be read."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("mkdocs", reason="builds the site: pip install 'gcb[docs]'")
pytest.importorskip("mkdocstrings", reason="makes the API pages: pip install 'gcb[docs]'")

ROOT = Path(__file__).parents[1]
LOADS = {"script": "src", "img": "src", "iframe": "src", "video": "src", "source": "src", "link": "href"}
"""Elements that make a browser load something, and the attribute that says what."""


class Page(HTMLParser):
    """What a page loads, where it links to, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if address := values.get(LOADS.get(tag, "")):
            self.loaded.append(address)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does: a warning is an error (with --quiet, MkDocs would not count them)."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}


def test_every_document_is_a_page(site: Path) -> None:
    documents = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.py"), *ROOT.glob("examples/*.ipynb")]
    names = {path.relative_to(ROOT).as_posix().removeprefix("docs/") for path in documents}
    expected = {re.sub(r"\.(md|py|ipynb)$", ".html", name) for name in names}
    expected |= {f"{name}.html" for name in ("index", "contributing", "changelog", "results/index", "examples/index")}
    found = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert expected <= found
    assert len(expected) > 25


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    loaded = {(path.name, address) for path, page in pages.items() for address in page.loaded}
    assert len(loaded) > len(pages)
    assert [entry for entry in sorted(loaded) if re.match(r"(https?:)?//", entry[1])] == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']+", styles) == []


def test_everything_loaded_or_linked_exists(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for address in {*page.loaded, *page.links}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else set()
            if not target.is_file() or (anchor and target.suffix == ".html" and anchor not in known):
                broken.append(f"{path.relative_to(site)}: {address}")
    assert broken == []


def test_search_works_without_a_server(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="opens the site: pip install playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no browser: apt-get install chromium")
    requests: list[str] = []
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=program, args=options)
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto((site / "guide.html").as_uri())
        page.locator(".md-search__input").click()
        page.locator(".md-search__input").press_sequentially("bottleneck")
        page.locator(".md-search-result__link").first.wait_for(state="attached", timeout=30_000)
        links = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
        browser.close()
    assert any("method.html" in link for link in links)
    assert requests
    assert all(address.startswith(("file:", "data:", "about:", "blob:")) for address in requests)


def test_api_and_commands_are_documented(site: Path) -> None:
    agent, commands = (site / "api/agent.html").read_text(), (site / "command-line.html").read_text()
    assert "Return the mean action towards" in agent
    assert 'id="gcb.agent.Agent.act"' in agent
    assert 'id="gcb-data-import"' in commands
    assert "--eval-temperature" in commands


def test_notebook_keeps_its_pictures(site: Path) -> None:
    """The committed notebook has been run: its page shows the outputs, and they are small."""
    images = sorted(path.name for path in site.glob("examples/paper-*"))
    assert images == ["paper-0.png", "paper-1.png", "paper-2.png", "paper-3.png", "paper-4.gif"]
    assert (ROOT / "examples/paper.ipynb").stat().st_size < 2_000_000
