# SPDX-License-Identifier: Apache-2.0
"""Whether pistons move the way that the commands of their valves send them."""

from __future__ import annotations

import numpy as np

from ...machine import Machine
from .channel_series import STEP, Means
from .force_fit import EVERY, ForceFit
from .remedies import Finding, reversed_

OPEN = 0.3          # of the largest command, from which a valve is open
MOVING = 0.01       # m/s
LEAST = 10          # instants
AGAINST = 0.15      # share of them that go with the command
PLAINLY = 1.5       # times the misfit, from which the balance of forces says which of the two it is


def command_findings(machine: Machine, fit: ForceFit, means: Means, mended: set[str]) -> list[Finding]:
    """Cylinders that move against their commands. ``mended``: channels whose remedy ``means`` have already."""
    if fit.unmeasured:
        return []
    pistons, findings = fit.pistons(means), []
    for cylinder, (command, sign) in valves_of(machine).items():
        if command not in means.values:
            continue
        column = pistons[:, machine.cylinders.index(cylinder)]
        rows = np.flatnonzero(np.isfinite(column))
        rows = rows[:-1][(np.diff(rows) == EVERY) & (means.window[rows[:-1]] == means.window[rows[1:]])]
        speed = (column[rows + EVERY] - column[rows]) / (EVERY * STEP)
        sent = sign * means.values[command][rows]
        open_ = np.abs(sent) > OPEN * np.nanmax(np.abs(means.values[command]), initial=1e-9)
        moving = open_ & (np.abs(speed) > MOVING)
        count, along = int(moving.sum()), float(np.mean(sent[moving] * speed[moving] > 0)) if moving.any() else 1.0
        if count >= LEAST and along < AGAINST:
            findings.append(_against(machine, fit, means, cylinder, command, f'goes the way of its command in '
                                     f'{100 * along:.0f} % of {count} instants of motion', mended))
    return findings


def _against(machine: Machine, fit: ForceFit, means: Means, cylinder: str, command: str, seen: str, mended: set[str]
             ) -> Finding:
    """Which of the two is the wrong way round, as far as the balance of forces tells."""
    position, (low, high) = f'position/{cylinder}', machine.stroke[machine.cylinders.index(cylinder)]
    negate = f'multiply {command} by -1, or swap a and b of its valve in the file'
    seen = f'the piston of {cylinder} {seen}'
    if position not in machine.channels:
        return Finding('reversed', (command,), seen, f'{negate}; or a position is counted the wrong way')
    other = reversed_(position, float(low), float(high), 'm')
    now, then = fit.fit(means), fit.fit(means._replace(values=other.mended(means.values)))
    if now is not None and then is not None and now.worst > PLAINLY * then.worst and position not in mended:
        return Finding('reversed', (position,), seen, other.words)
    if now is not None and then is not None and then.worst > PLAINLY * now.worst:
        return Finding('reversed', (command,), seen, negate)
    return Finding('reversed', (position, command), seen, f'{other.words.partition(":")[0]}; or {negate}')


def valves_of(machine: Machine) -> dict[str, tuple[str, float]]:
    """Command of each cylinder whose valve is modelled, and the sign of a command that extends it."""
    hydraulics, found = machine.hydraulics, {}
    for name in machine.modelled_valves:
        valve = hydraulics.valves[name]
        for port, sign in ((valve.a, 1.0), (valve.b, -1.0)):
            volume = hydraulics.volumes.get(port)
            for cylinder, side in volume.chambers if volume else ():
                if side == 'piston':
                    found[cylinder] = f'command/{name}', sign
    return found
