"""What may befall the episodes of a sweep in the order in which they run, whichever scaffold they belong to.

- **Drift.** Half-way the model behind the name is exchanged. Before that, a share of the episodes is served by a
  faultless model, after it the same share by one that does not do the task. A task whose pass rate is p in still
  weather so has p + share * (1 - p), then p - share * p: a step of exactly `share`, whatever p is. One standard
  deviation of an outcome that is pass or fail is taken at its largest, 0.5, so that `drift_sd` of 1 steps by 50 points.
- **Heavy tails.** Bursts of consecutive episodes fail. They begin after geometric gaps, and are as long as the whole
  part of a Pareto variable of exponent 1.5: of finite mean (2.6 episodes) and infinite variance. One burst in ten
  leaves its episodes without any measurement.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

_OUTCOME_SD = 0.5  # of a pass or fail outcome at its most uncertain
_BURST_RATE = 0.04  # chance that a burst begins with an episode outside of one: some 9 % of the episodes are in bursts
_TAIL = 1.5
_BROKEN_SHARE = 0.1


class Sky(StrEnum):
    """Who serves one episode: the model as it is, a faultless one, one that does not do the task, or none at all."""

    CLEAR = "clear"
    STRONG = "strong"
    WEAK = "weak"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What is to befall a sweep. The default is nothing."""

    drift_sd: float = 0.0
    heavy_tails: bool = False

    @property
    def step(self) -> float:
        """By how much every task's pass rate falls half-way, as a share of one."""
        return min(1.0, self.drift_sd * _OUTCOME_SD)


def forecast(weather: Weather, episodes: int, random: np.random.Generator) -> tuple[Sky, ...]:
    """Draw the sky of each episode, in the order in which they run."""
    exchanged = random.random(episodes) < weather.step
    skies = [
        (Sky.STRONG if 2 * place < episodes else Sky.WEAK) if exchanged[place] else Sky.CLEAR
        for place in range(episodes)
    ]
    place = int(random.geometric(_BURST_RATE)) - 1 if weather.heavy_tails else episodes
    while place < episodes:
        length = int(min(1 + random.pareto(_TAIL), episodes - place))
        skies[place : place + length] = [Sky.BROKEN if random.random() < _BROKEN_SHARE else Sky.WEAK] * length
        place += length + int(random.geometric(_BURST_RATE))
    return tuple(skies)
