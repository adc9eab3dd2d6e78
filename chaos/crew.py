"""The threads that use the system, and those that watch it."""

from chaos.actor import Actor
from chaos.hot_keys import HotKeys
from chaos.ledger import Ledger
from chaos.managers import Managers
from chaos.missing_topics import MissingTopics
from chaos.one_offs import OneOffs, Run
from chaos.operators import Operator
from chaos.prober import Prober
from chaos.sampler import Sampler
from chaos.system import System
from chaos.writer import Writer


class Crew:
    """A writer, managers, operators, a sampler, and one who looks after the programs."""

    def __init__(self, system: System, ledger: Ledger, seed: int) -> None:
        self.system = system
        self.writer = Writer(system.url, ledger)
        self.sampler = Sampler(system.url)
        self._watch = Actor("watch", lambda _dice: self._look_after(), pause=0.5, seed=seed)
        self._sampling = Actor("sampler", self.sampler.act, pause=0.5, seed=seed)
        self.prober = Prober(system.ports)
        self._by_hand = OneOffs("by hand", system)
        self._requeuing = OneOffs("requeuing", system)
        self.missing_topics = MissingTopics(system.url, system.bootstrap, self._requeuing, ledger)
        operator = Operator(system.ports["web"], system.operators_password, self.writer, ledger)
        managers = Managers(system.ports["web"], system.jwt_secret, self.writer, ledger)
        self._active = [
            Actor("prober", self.prober.act, pause=0.3, seed=seed),
            Actor("writer", self.writer.act, pause=0.15, seed=seed),
            Actor("hot-keys", HotKeys(self.writer).act, pause=0.2, seed=seed),
            Actor("operator", operator.act, pause=1.0, seed=seed),
            Actor("by-hand", self._by_hand.act, pause=4.0, seed=seed),
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
        """End the rest; the last commands by hand meet no faults."""
        for actor in (self._watch, self._sampling):
            actor.stop()
        self.sampler.close()
        self._by_hand.run("prune_outbox")
        self._by_hand.run("verify_outbox", "--json")
        for one in (self._by_hand, self._requeuing):
            one.close()

    @property
    def commands(self) -> list[Run]:
        """What was run beside the loops."""
        return self._by_hand.runs + self._requeuing.runs

    def troubles(self) -> list[str]:
        """Return the errors of the threads themselves."""
        return [actor.error for actor in (self._watch, self._sampling, *self._active) if actor.error]

    def _look_after(self) -> None:
        for part in self.system.parts.values():
            part.look_after()
