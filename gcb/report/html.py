"""HTML in which nothing is taken for markup but what was made as such."""

import base64
import html
from collections.abc import Iterable, Sequence


class Html(str):
    """Text that is markup already."""


def safe(value: object) -> Html:
    """Anything as markup: `Html` as it is, all else escaped."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Several parts as one."""
    return Html(between.join(safe(part) for part in parts))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element; `class_` stands for class and `_` in other names for `-`. An attribute that is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def void(name: str, **attributes: object) -> Html:
    """An element without an end."""
    return Html(str(tag(name, **attributes)).removesuffix(f"</{name}>"))


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], class_: str | None = None) -> Html:
    """A table whose first column names its rows; it scrolls by itself where it is too wide."""
    head = tag("tr", *(tag("th", column, scope="col") for column in columns))
    lines = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines), class_=class_), class_="wide", tabindex=0)


def data_uri(content: bytes, kind: str) -> str:
    """A file inside the page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
