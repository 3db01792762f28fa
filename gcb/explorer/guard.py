"""What every request must pass: no strange host or origin, no huge body; and the headers of every answer."""

import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import anyio

MOST_BYTES = 64 << 10
"""Of a body; an honest one has a few hundred."""
DRAINED_BYTES = 256 << 20
"""Read and thrown away before a large body is refused: a client that is still sending would miss the answer."""
BODY_SECONDS = 20.0
HARMLESS = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """An application in front of the application.

    A page of another site can make a browser send requests here, and can by DNS rebinding even call this server by
    that site's name. So the name must be an address, localhost or one of `names`; and what is more than a look must
    come from a page of this very server.
    """

    def __init__(self, application: Application, names: Iterable[str] = ()) -> None:
        self._application = application
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        send = _with_headers(send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if reason := self._stranger(scope["method"], headers):
            await _refuse(send, 403, reason)
            return
        try:
            with anyio.fail_after(BODY_SECONDS):
                body = await _read(receive)
        except TimeoutError:
            await _refuse(send, 408, f"the request was not complete after {BODY_SECONDS:.0f} seconds.")
            return
        if body is None:
            await _refuse(send, 413, f"the request is too large; accepted: {MOST_BYTES:,} bytes.")
            return
        await self._application(scope, _replay(body, receive), send)

    def _stranger(self, method: str, headers: dict[str, str]) -> str | None:
        """Why a request is not for us, if so."""
        host = headers.get("host", "")
        name = _name(host)
        if name not in self._names and not _is_address(name):
            return f"this server is not called {name!r}; start it with --names {name} if it shall be."
        origin = headers.get("origin")
        if method not in HARMLESS and origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return f"a page of {origin} may not ask for this."
        return None


async def _read(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large."""
    parts, size, more = [], 0, True
    while more and size < DRAINED_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        part = message.get("body", b"")
        size += len(part)
        if size <= MOST_BYTES:
            parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts) if size <= MOST_BYTES else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body in one piece; what comes after it is the client's leaving."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _with_headers(send: Send) -> Send:
    extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"reason": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
