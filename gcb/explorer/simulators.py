"""A bounded pool of sets of simulators, each of which serves one episode at a time."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread

from gcb.errors import GCBError
from gcb.explorer.scene_renderer import SceneRenderer

POOL_SIZE = 4
"""Episodes that run at once; each uses a simulator for every agent and one for the expert, about 30 MB each."""
QUEUE_LENGTH = 64
"""Visitors that may wait for simulators."""


class Busy(GCBError):
    """The queue for simulators is full."""

    status = 503


class Simulators:
    """Simulators of one environment: one for each agent, one for the expert."""

    def __init__(self, renderer: SceneRenderer, agents: int = 1) -> None:
        self.agents = [renderer.make_env() for _ in range(agents)]
        self.expert = renderer.make_env()

    def close(self) -> None:
        for env in (*self.agents, self.expert):
            env.close()


class SimulatorPool:
    """Creates simulators when they are first needed. If none is free, visitors wait in a queue."""

    def __init__(self, renderer: SceneRenderer, agents: int = 1, size: int = POOL_SIZE) -> None:
        self.renderer, self._agents, self._idle = renderer, agents, list[Simulators]()
        self._free, self._waiting = anyio.Semaphore(size), 0
        self._threads = anyio.CapacityLimiter(size)

    def add_idle(self) -> None:
        """Create simulators before they are needed."""
        self._idle.append(Simulators(self.renderer, self._agents))

    @property
    def full(self) -> bool:
        """Whether a visitor would have to wait."""
        return self._free.value == 0

    def check_queue(self) -> None:
        """Raise `Busy` if the queue is full."""
        if self._waiting >= QUEUE_LENGTH:
            raise Busy(f"{self._waiting} visitors are already waiting to run the agent; try again in a minute.")

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[Simulators, None]:
        """Lend a set for one episode. A set in which an error occurred is closed, not reused."""
        async with AsyncExitStack() as stack:
            self._waiting += 1
            try:
                await stack.enter_async_context(self._free)
            finally:
                self._waiting -= 1
            lent = self._idle.pop() if self._idle else await self.run(Simulators, self.renderer, self._agents)
            try:
                yield lent
            except Exception:
                lent.close()
                raise
            except BaseException:  # the visitor has left
                self._idle.append(lent)
                raise
            self._idle.append(lent)

    async def run(self, function: Any, *arguments: Any) -> Any:
        """Run a function in a thread. If the visitor leaves it is still awaited, so that its simulators are at rest."""
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._threads)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
