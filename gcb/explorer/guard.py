"""Checks of every request's host, origin and body size, and the security headers of every response."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 512 << 10
"""The page sends a few hundred bytes, or two small pictures."""
MAX_DRAINED_BYTES = 256 << 20
"""Read and discarded before a large body is refused: a client that is still sending would miss the response."""
BODY_SECONDS = 20.0
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware against requests made by pages of other sites.

    Another site's page can make a browser send requests here and, by DNS rebinding, under that site's host name. The
    host must therefore be an IP address, localhost or one of `names` (Starlette's TrustedHostMiddleware has no rule
    for IP addresses), and requests other than `SAFE_METHODS` must come from a page of this server.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str] = ()) -> None:
        self._app, self._names = app, {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        async def refuse(status: int, detail: str) -> None:
            response = JSONResponse({"detail": detail}, status, headers={"connection": "close"})
            await response(scope, receive, send_with_headers)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if detail := self._forbidden(scope["method"], headers):
            return await refuse(403, detail)
        try:
            with anyio.fail_after(BODY_SECONDS):
                body = await _read_body(receive)
        except TimeoutError:
            return await refuse(408, f"the request is incomplete after {BODY_SECONDS:.0f} seconds.")
        if body is None:
            return await refuse(413, f"the request is too large; it must be at most {MAX_BODY_BYTES:,} bytes.")
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        # A HEAD request is answered like a GET; the server leaves out the body.
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        await self._app(inner, replay, send_with_headers)

    def _forbidden(self, method: str, headers: dict[str, str]) -> str | None:
        """Return why the request is refused, or None if it is allowed."""
        host = headers.get("host", "")
        name = _host_name(host)
        if name not in self._names and not _is_address(name):
            return f"host name {name!r} is not allowed; allow it with --names {name}"
        origin = headers.get("origin")
        if method not in SAFE_METHODS and origin is not None and origin.partition("://")[2].lower() != host.lower():
            return f"requests from pages of {origin} are not allowed."
        return None


async def _read_body(receive: Receive) -> bytes | None:
    """Read the whole body; return None if it is too large."""
    parts, size, more = [], 0, True
    while more and size < MAX_DRAINED_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        part = message.get("body", b"")
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts) if size <= MAX_BODY_BYTES else None


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
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
