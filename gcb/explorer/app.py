"""The HTTP API of the explorer and its static page."""

import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, cast

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from gcb.errors import GCBError
from gcb.explorer.choices import SceneChoice, SuccessRequest, TaskRequest
from gcb.explorer.guard import Guard
from gcb.explorer.loader import RunLoader

# Imported late, so that the page opens before torch is loaded.
if TYPE_CHECKING:
    from gcb.explorer.episode import Event
    from gcb.explorer.scene_renderer import RenderedScene
    from gcb.explorer.session import Session
    from gcb.explorer.simulators import SimulatorPool, Simulators

log = logging.getLogger(__name__)
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def create_app(loader: RunLoader, names: Iterable[str] = ()) -> Guard:
    """Build the server; `names` are host names it may be reached by, besides localhost and IP addresses."""
    app = FastAPI(title="gcb explorer", docs_url=None, redoc_url=None, openapi_url=None)
    _add_page(app)
    _add_api(app, loader)
    _add_episodes(app, loader)
    _add_error_handlers(app)
    return Guard(app, names)


def _add_page(app: FastAPI) -> None:
    """Serve the page. Its files are read once, here: no path in a request ever reaches the disk."""
    static = {file.name: file.read_bytes() for file in files("gcb.explorer").joinpath("static").iterdir()}

    @app.get("/")
    def page() -> Response:
        return static_file("index.html")

    @app.get("/static/{name}")
    def static_file(name: str) -> Response:
        media_type = MEDIA_TYPES.get(name.rpartition(".")[2])
        if name not in static or media_type is None:
            raise HTTPException(404, f"there is no file {name!r}.")
        return Response(static[name], media_type=media_type)


def _add_api(app: FastAPI, loader: RunLoader) -> None:
    @app.get("/api/status")
    def status() -> dict[str, Any]:
        return loader.status()

    @app.get("/api/map")
    def map_points() -> Response:
        return JSONResponse(loader.session.map_points())

    @app.get("/api/tasks/{index}/{part}.png")
    def task_image(index: int, part: Literal["state", "goal"]) -> Response:
        from gcb.explorer.display import encode

        state, goal = loader.session.task_index().pair(index)
        return Response(encode(goal if part == "goal" else state, "png"), media_type="image/png")

    @app.post("/api/scene")
    def scene(choice: SceneChoice) -> dict[str, Any]:
        rendered = loader.session.pool().renderer.scene(choice)
        return {"image": rendered.before_url, **_scene_fields(rendered)}

    @app.post("/api/task")
    def task(request: TaskRequest) -> dict[str, Any]:
        spec = loader.session.task_spec(request)
        images = {"before_image": spec.before_url, "after_image": spec.after_url}
        return {**images, "label": spec.label, "scene": _scene_fields(spec.scene)}

    @app.post("/api/analysis")
    def analysis(request: TaskRequest) -> dict[str, Any]:
        return loader.session.analyse(request)


def _add_episodes(app: FastAPI, loader: RunLoader) -> None:
    """Add what runs in simulators of the pool: an episode, its film, and many episodes."""

    @app.post("/api/episode")
    async def episode(request: TaskRequest) -> Response:
        session = loader.session
        spec = await run_in_threadpool(session.prepare_episode, request)
        return _event_stream(session, lambda simulators: session.run_episode(simulators, request, spec))

    @app.post("/api/film")
    async def film(request: TaskRequest) -> Response:
        session = loader.session
        spec = await run_in_threadpool(session.prepare_episode, request)
        events = session.recorded(request)
        if events is None:
            async with session.pool().acquire() as simulators:
                events = await session.pool().run(list, session.run_episode(simulators, request, spec))
        content = await run_in_threadpool(session.film, spec, events)
        return Response(content, media_type="video/mp4")

    @app.post("/api/success")
    async def success(request: SuccessRequest) -> Response:
        session = loader.session
        await run_in_threadpool(session.prepare_success, request)
        return _event_stream(session, lambda simulators: session.count_successes(simulators, request))


class EventStream(StreamingResponse):
    """A stream whose source is closed when the visitor leaves, which frees the simulators."""

    async def stream_response(self, send: Any) -> None:
        async with aclosing(cast("AsyncGenerator[bytes, None]", self.body_iterator)):
            await super().stream_response(send)


def _event_stream(session: "Session", start: Callable[["Simulators"], Iterator["Event"]]) -> EventStream:
    return EventStream(_event_lines(session.pool(), start), media_type="application/x-ndjson")


async def _event_lines(
    pool: "SimulatorPool", start: Callable[["Simulators"], Iterator["Event"]]
) -> AsyncGenerator[bytes, None]:
    """Yield events as lines of JSON, each as soon as it occurs; `start` makes them in simulators of the pool."""
    try:
        if pool.full:
            yield _json_line({"type": "waiting"})
        async with pool.acquire() as simulators:
            events = start(simulators)
            while event := await pool.run(next, events, None):
                yield _json_line(event)
    except GCBError as error:
        yield _json_line({"type": "error", "detail": str(error)})
    except Exception:
        log.exception("an episode failed")
        yield _json_line({"type": "error", "detail": "the simulator failed; see the server's log."})


def _json_line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, allow_nan=False).encode() + b"\n"


def _scene_fields(rendered: "RenderedScene") -> dict[str, Any]:
    from gcb.explorer.display import open_fraction

    scene = rendered.scene
    drawer = {"drawer_before": open_fraction(scene.opening), "drawer_after": open_fraction(scene.target)}
    return {"task": scene.task, "label": rendered.label, "solved": rendered.solved, **drawer}


def _add_error_handlers(app: FastAPI) -> None:
    """Answer every error with JSON whose `detail` is a readable message, as FastAPI does for `HTTPException`."""

    @app.exception_handler(RequestValidationError)
    async def invalid_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "path"))
        return JSONResponse({"detail": f"{place or 'request'}: {first['msg']}."}, 422)

    @app.exception_handler(GCBError)
    async def gcb_error(_: Request, error: GCBError) -> Response:
        return JSONResponse({"detail": str(error)}, getattr(error, "status", 422))

    @app.exception_handler(Exception)
    async def internal_error(_: Request, error: Exception) -> Response:
        return JSONResponse({"detail": "internal error; see the server's log."}, 500)
