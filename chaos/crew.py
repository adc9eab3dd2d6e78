"""The threads that use the system, and those that watch it."""

from chaos.actor import Actor
from chaos.ledger import Ledger
from chaos.managers import Managers
from chaos.prober import Prober
from chaos.sampler import Sampler
from chaos.system import System
from chaos.writer import Writer


class Crew:
    """A writer, two managers, a sampler, and one who looks after the programs."""

    def __init__(self, system: System, ledger: Ledger, seed: int) -> None:
        self.system = system
        self.writer = Writer(system.url, ledger)
        self.sampler = Sampler(system.url)
        self._watch = Actor("watch", lambda _dice: self._look_after(), pause=0.5, seed=seed)
        self._sampling = Actor("sampler", self.sampler.act, pause=0.5, seed=seed)
        self.prober = Prober(system.ports)
        managers = Managers(system.ports["web"], system.jwt_secret, self.writer, ledger)
        self._active = [
            Actor("prober", self.prober.act, pause=0.3, seed=seed),
            Actor("writer", self.writer.act, pause=0.15, seed=seed),
            *(Actor(f"manager-{number}", managers.act, pause=0.4, seed=seed) for number in (1, 2)),
        ]

    def start(self) -> None:
        """Begin."""
        for actor in (self._watch, self._sampling, *self._active):
            actor.start()

    def rest(self) -> None:
        """End what changes something."""
        for actor in self._active:
            actor.stop()

    def stop(self) -> None:
        """End the rest."""
        for actor in (self._watch, self._sampling):
            actor.stop()
        self.sampler.close()

    def troubles(self) -> list[str]:
        """Return the errors of the threads themselves."""
        return [actor.error for actor in (self._watch, self._sampling, *self._active) if actor.error]

    def _look_after(self) -> None:
        for part in self.system.parts.values():
            part.look_after()
