"""A few purchases that are prolonged all the time: whoever does not keep the order of a key is found out by them."""

import random
from datetime import UTC, datetime, timedelta

from chaos.sales import LIVES, Sale, random_sale
from chaos.writer import Writer

COUNT = 4
BURST = (2, 6)  # changes of one purchase right after each other, each in a transaction of its own
LEFT = (7_200.0, 86_400.0)  # seconds to the end: they outlive the campaign, unless they are let go
LET_GO_SHARE = 0.03  # of the bursts end with a purchase that will expire soon, in the middle of its changes


class HotKeys:
    """Each act is a burst of changes of one purchase."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._hot: list[Sale] = []

    def act(self, dice: random.Random) -> None:
        """Prolong one of them several times; sell a new one for one that has ended."""
        if len(self._hot) < COUNT:
            self._sell(dice)
        sale = dice.choice(self._hot)
        for _ in range(dice.randint(*BURST)):
            if not self._writer.prolong(sale, _in(dice.uniform(*LEFT))):
                break
        if dice.random() < LET_GO_SHARE:
            self._writer.prolong(sale, _in(dice.uniform(*LIVES)))
            self._hot.remove(sale)

    def _sell(self, dice: random.Random) -> None:
        sale = random_sale(dice)
        sale.ends_at = _in(dice.uniform(*LEFT))
        self._writer.sell([sale], private=True)
        self._hot.append(sale)


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
