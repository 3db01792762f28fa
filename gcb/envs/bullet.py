"""PyBullet, imported without its banner, and with a helpful error if it is missing."""

import atexit
import sys
import weakref

from gcb.errors import NotInstalled
from gcb.utils.quiet import quiet

MISSING = (
    "PyBullet, which gcb's environments need, is not installed for this CPython {}.{}: `conda install -c conda-forge "
    "pybullet` has it for 3.10 to 3.14, pip for 3.10 and 3.11 (docs/guide.md has how to build it for others). "
    "Everything else works without it."
)

try:
    with quiet():
        import pybullet
        import pybullet_data
        from pybullet_utils.bullet_client import BulletClient
except ModuleNotFoundError as missing:
    raise NotInstalled(MISSING.format(*sys.version_info)) from missing


_clients: weakref.WeakSet[BulletClient] = weakref.WeakSet()


def connect() -> BulletClient:
    """Start a new simulation without a window."""
    with quiet():
        client = BulletClient(pybullet.DIRECT)
    _clients.add(client)
    return client


@atexit.register
def _disconnect_all() -> None:
    """Disconnect what is still open at exit: later, when modules are gone, the clients' destructors would fail."""
    for client in list(_clients):
        if client.isConnected():
            client.disconnect()


__all__ = ["BulletClient", "connect", "pybullet", "pybullet_data"]
