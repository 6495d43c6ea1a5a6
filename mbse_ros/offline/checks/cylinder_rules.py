# SPDX-License-Identifier: Apache-2.0
"""A cylinder of a machine with several, whose forces alone do not balance: a gain of one of its pressures is wrong.

One load that all of them carry fits the others, as each has its own equation of the force balance. Which of its two
pressures it is shows where they do not change in proportion.
"""

from __future__ import annotations

import numpy as np

from ...machine import Machine
from ...machine.equations import cylinders_of, pressure_pairs
from .channel_series import Means
from .force_fit import Fit, ForceFit
from .remedies import PLAINLY, Finding

GAINS = 0.5, 0.625, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.6, 2.0    # that are tried
FAR_OFF = 3.0       # times what model and noise explain, 1: three deviations
FEWEST = 2          # other equations, with which one that lacks most is the odd one out ...
ODD = 0.8           # ... where they lack no more than this share of what it lacks


def cylinder_findings(fit: ForceFit, means: Means, now: Fit, bad: float, good: float) -> list[Finding]:
    """``now``: how forces balance; ``bad``: misfit from which they do not, and ``good``, up to which they do."""
    machine, worst = fit.machine, int(np.argmax(now.misfit))
    others = np.delete(now.misfit, worst)
    pair = _pair(machine, worst)
    if not pair or now.misfit[worst] < bad or len(others) < FEWEST or others.max() > ODD * now.worst:
        return []
    found = {name: min((_misfit(fit, means, name, gain, good), gain) for gain in GAINS) for name in pair}
    best = min(misfit for misfit, _ in found.values())
    if not np.isfinite(best):
        return []
    likely = {name: gain for name, (misfit, gain) in found.items() if misfit * PLAINLY <= best}
    words = ' or '.join(f'{name} times {gain:g}' for name, gain in likely.items())
    seen = (f'the forces of this cylinder lack up to {now.worst:.2g} times what model and noise explain, those of the '
            f'others {others.max():.2g} times')
    return [Finding('balance', tuple(likely), seen, f'they balance with {words}: look at its gain and its zero, and at '
                    'the zero of the position of this cylinder')]


def unbalanced(fit: ForceFit, now: Fit) -> list[Finding]:
    """Forces that lack far more than model and noise explain, where no change of a channel that is tried explains it:
    of which cylinder most."""
    place = int(np.argmax(now.misfit))
    names = _pair(fit.machine, place) or tuple(name for name in fit.machine.channels if name.startswith('pressure/'))
    if now.misfit[place] < FAR_OFF:
        return []
    return [Finding('forces', names, f'the forces lack up to {now.worst:.2g} times what model and noise explain, most '
                    'those of this cylinder', 'look at hoses, valves and ranges of its pressure sensors, its position, '
                    "and the machine's file; or the tool touches something for most of this log")]


def _pair(machine: Machine, place: int) -> tuple[str, ...]:
    """Pressure channels of the cylinder that an equation is of; () where it is of several."""
    cylinders = cylinders_of(machine)[machine.weighing[place]]
    return pressure_pairs(machine).get(cylinders[0], ()) if len(cylinders) == 1 else ()


def _misfit(fit: ForceFit, means: Means, name: str, gain: float, good: float) -> float:
    """Mean square of what the forces lack with a pressure times ``gain``; infinite where they do not balance."""
    found = fit.fit(means._replace(values={**means.values, name: gain * means.values[name]}))
    return float(np.mean(found.misfit ** 2)) if found is not None and found.worst <= good else float('inf')
