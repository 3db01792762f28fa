"""Run the server on a port that is free, until it is told to stop."""

import errno
import socket
from collections.abc import Callable, Iterable

import uvicorn

from gcb.errors import GCBError
from gcb.explorer.app import create_app
from gcb.explorer.loader import RunLoader

PORTS, PORTS_TRIED = 65_536, 50
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
GRACE_SECONDS = 1
"""For episodes that are still being watched when the server is stopped."""


class Server(uvicorn.Server):
    """Loads the run only when it can already answer: importing torch would otherwise delay the page."""

    def __init__(self, settings: uvicorn.Config, explorer: RunLoader) -> None:
        super().__init__(settings)
        self._explorer = explorer

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._explorer.start()


def serve(explorer: RunLoader, host: str, port: int, names: Iterable[str], announce: Callable[[str], object]) -> None:
    """Serve until Ctrl-C; `announce` is told the page's address as soon as it can be opened."""
    with listen(host, port) as listener:
        settings = uvicorn.Config(
            create_app(explorer, [host, *names]),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        announce(address(listener))
        try:
            Server(settings, explorer).run(sockets=[listener])
        finally:
            explorer.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket on `port`, or on the next one that is free."""
    if not 0 <= port < PORTS:
        raise GCBError(f"port is {port}; accepted: 0 (any that is free) to {PORTS - 1}.")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise GCBError(f"host is {host!r}, which is no address of this machine ({error}).") from error
    for tried in range(port, min(port + PORTS_TRIED, PORTS)):
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((place[0], tried, *place[2:]))
            listener.listen(256)
        except OSError as error:
            listener.close()
            if error.errno not in _TAKEN:
                raise GCBError(f"{host}, port {tried}, cannot be served: {error.strerror}.") from error
        else:
            return listener
    raise GCBError(f"no port from {port} to {port + PORTS_TRIED - 1} is free; name another with --port.")


def address(listener: socket.socket) -> str:
    """Where a browser finds what is served there."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
