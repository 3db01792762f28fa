"""Runs the server on a free port until it is interrupted."""

import errno
import socket
from collections.abc import Callable, Iterable

import uvicorn

from gcb.errors import GCBError
from gcb.explorer.app import create_app
from gcb.explorer.loader import RunLoader

PORTS, PORTS_TRIED = 65_536, 50
TAKEN = (errno.EADDRINUSE, errno.EACCES)
GRACE_SECONDS = 1
"""For episodes that are still running when the server is stopped."""


class Server(uvicorn.Server):
    """Starts loading the run once the server accepts requests: importing torch first would delay the page."""

    def __init__(self, config: uvicorn.Config, loader: RunLoader) -> None:
        super().__init__(config)
        self._loader = loader

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loader.start()


def serve(loader: RunLoader, host: str, port: int, names: Iterable[str], announce: Callable[[str], object]) -> None:
    """Serve until Ctrl-C; `announce` receives the page's URL as soon as it can be opened."""
    with listen(host, port) as listener:
        config = uvicorn.Config(
            create_app(loader, [host, *names]),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        announce(page_url(listener))
        try:
            Server(config, loader).run(sockets=[listener])
        finally:
            loader.close()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `port`, or on the next free one."""
    if not 0 <= port < PORTS:
        raise GCBError(f"port is {port}; it must be from 0 (any free port) to {PORTS - 1}.")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (socket.gaierror, UnicodeError) as error:
        raise GCBError(f"host is {host!r}; it must be an address of this machine ({error}).") from error
    for candidate in range(port, min(port + PORTS_TRIED, PORTS)):
        try:
            dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
            return socket.create_server((host, candidate), family=family, backlog=256, dualstack_ipv6=dual)
        except OSError as error:
            if error.errno not in TAKEN:
                raise GCBError(f"cannot serve on {host}, port {candidate}: {error.strerror}.") from error
    raise GCBError(f"no port from {port} to {port + PORTS_TRIED - 1} is free; choose another with --port.")


def page_url(listener: socket.socket) -> str:
    """Return the URL at which a browser finds the page."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
