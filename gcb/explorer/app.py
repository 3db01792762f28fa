"""The server's addresses: a page, its files, and what the page asks."""

import json
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from gcb.errors import GCBError
from gcb.explorer.choices import SceneChoice, TaskRequest
from gcb.explorer.guard import Application, Guard
from gcb.explorer.loader import RunLoader

# The page is to be there before torch is.
if TYPE_CHECKING:
    from gcb.explorer.scene_renderer import View
    from gcb.explorer.session import Session, TaskSpec

log = logging.getLogger(__name__)
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
NO_STORE = {"cache-control": "no-store"}


def create_app(explorer: RunLoader, names: Iterable[str] = ()) -> Application:
    """The whole server; `names` are further host names by which it may be called."""
    app = FastAPI(title="gcb explorer", docs_url=None, redoc_url=None, openapi_url=None)
    _add_page(app)
    _add_looks(app, explorer)
    _add_questions(app, explorer)
    _add_errors(app)
    return Guard(app, names)


def _add_page(app: FastAPI) -> None:
    """The page and its files. They are read once, by name: no path of a request ever reaches the disk."""
    static = {one.name: one.read_bytes() for one in files("gcb.explorer").joinpath("static").iterdir() if one.is_file()}

    @app.get("/")
    def page() -> Response:
        return file("index.html")

    @app.get("/static/{name}")
    def file(name: str) -> Response:
        kind = TYPES.get(name.rpartition(".")[2])
        if name not in static or kind is None:
            raise HTTPException(404, "there is no such file.")
        return Response(static[name], media_type=kind, headers={"cache-control": "no-cache"})


def _add_looks(app: FastAPI, explorer: RunLoader) -> None:
    """What can be seen without asking for anything to be done."""

    @app.get("/api/run")
    def run() -> Response:
        return JSONResponse(explorer.status(), headers=NO_STORE)

    @app.get("/api/map")
    def points() -> Response:
        return JSONResponse(explorer.show.points(), headers=NO_STORE)

    @app.get("/api/task/{index}/{part}.png")
    def picture(index: int, part: Literal["state", "goal"]) -> Response:
        from gcb.explorer.images import png

        return Response(png(explorer.show.picture(index, part)), media_type="image/png", headers=NO_STORE)


def _add_questions(app: FastAPI, explorer: RunLoader) -> None:
    """What depends on a visitor's choices."""

    @app.post("/api/scene")
    def scene(choice: SceneChoice) -> dict[str, Any]:
        view = explorer.show.scene(choice)
        return {"image": view.large_before, **_plain(view)}

    @app.post("/api/told")
    def told(asked: TaskRequest) -> dict[str, Any]:
        brief = explorer.show.brief(asked)
        here = {"words": brief.here.words, "done": brief.here.done, **_plain(brief.here)}
        return {"before": brief.before, "after": brief.after, "words": brief.words, "here": here}

    @app.post("/api/understand")
    def understand(asked: TaskRequest) -> dict[str, Any]:
        return explorer.show.understand(asked)

    @app.post("/api/play")
    async def play(asked: TaskRequest) -> Response:
        show = explorer.show
        brief = await run_in_threadpool(show.ask, asked)
        return Film(_lines(show, brief), media_type="application/x-ndjson", headers=NO_STORE)


class Film(StreamingResponse):
    """A stream whose source is closed when the visitor leaves, so that the next one finds the stage free."""

    async def stream_response(self, send: Any) -> None:
        async with aclosing(cast("AsyncGenerator[bytes, None]", self.body_iterator)):
            await super().stream_response(send)


async def _lines(show: "Session", brief: "TaskSpec") -> AsyncGenerator[bytes, None]:
    """The events of an episode as lines of JSON, each as soon as it is there."""
    try:
        if show.stages().crowded:
            yield _line({"kind": "waiting"})
        async with show.stages().stage() as stage:
            events = show.play(stage, brief)
            while event := await show.stages().run(next, events, None):
                yield _line(event)
    except GCBError as error:
        yield _line({"kind": "error", "reason": str(error)})
    except Exception:
        log.exception("an episode broke off")
        yield _line({"kind": "error", "reason": "the simulator broke off; the server's log says why."})


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, allow_nan=False).encode() + b"\n"


def _plain(view: "View") -> dict[str, Any]:
    """What the page's controls show of a scene."""
    from gcb.explorer.labels import share

    scene = view.scene
    return {"task": scene.task, "before": share(scene.opening), "after": share(scene.target)}


def _add_errors(app: FastAPI) -> None:
    """Whatever goes wrong, the answer is JSON with a reason that a person can read."""

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "path"))
        return _reason(422, f"{place or 'the request'}: {first['msg']}.")

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return _reason(error.status_code, str(error.detail))

    @app.exception_handler(GCBError)
    async def impossible(_: Request, error: GCBError) -> Response:
        return _reason(getattr(error, "status", 422), str(error))

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return _reason(500, "something broke in the server; its log says what.")


def _reason(status: int, reason: str) -> Response:
    return JSONResponse({"reason": reason}, status)
