"""Where episodes are played: a bounded number of stages, each for one visitor at a time."""

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from gcb.envs import TabletopEnv
from gcb.explorer.errors import Busy
from gcb.explorer.scene_renderer import SceneRenderer

POOL_SIZE = 4
"""Episodes that are played at once; each keeps two simulators, some 60 MB."""
QUEUE = 64
"""Visitors that may wait for a stage."""


@dataclass
class SimulatorPair:
    """Two simulators: one for the agent, one for the expert."""

    agent: TabletopEnv
    expert: TabletopEnv

    def close(self) -> None:
        self.agent.close()
        self.expert.close()


class SimulatorPool:
    """A bounded number of stages, made when they are first needed. Who finds none free waits in line."""

    def __init__(self, studio: SceneRenderer, stages: int = POOL_SIZE) -> None:
        self._studio, self._idle = studio, list[SimulatorPair]()
        self._free, self._waiting = anyio.Semaphore(stages), 0
        self._threads = anyio.CapacityLimiter(stages)

    @property
    def crowded(self) -> bool:
        """Whether a visitor would have to wait."""
        return self._free.value == 0

    def check(self) -> None:
        """Send visitors away before the line grows too long."""
        if self._waiting >= QUEUE:
            raise Busy("too many visitors are waiting to see the agent at work; try again in a minute.")

    @asynccontextmanager
    async def stage(self):
        """A stage for one episode. One on which something broke is not used again."""
        async with AsyncExitStack() as held:
            self._waiting += 1
            try:
                await held.enter_async_context(self._free)
            finally:
                self._waiting -= 1
            stage = self._idle.pop() if self._idle else await self.run(self._build)
            try:
                yield stage
            except Exception:
                stage.close()
                raise
            except BaseException:  # the visitor has left
                self._idle.append(stage)
                raise
            self._idle.append(stage)

    async def run(self, work: Any, *arguments: Any) -> Any:
        """`work` in a thread; it is waited for even if the visitor leaves, so that its stage is at rest afterwards."""
        return await anyio.to_thread.run_sync(work, *arguments, limiter=self._threads)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _build(self) -> SimulatorPair:
        return SimulatorPair(self._studio.make(), self._studio.make())
