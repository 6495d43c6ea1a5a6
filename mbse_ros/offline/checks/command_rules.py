# SPDX-License-Identifier: Apache-2.0
"""Whether commands are those of the valves, and pistons move the way that they send them, and not without one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...filters.between_samples import CLOSED, SELDOM, WHOLE, moves_on
from ...machine import Machine
from ..log_samples import STEP, Means, Series
from .force_fit import EVERY, ForceFit
from .remedies import Finding, reversed_

OPEN = 0.3          # of the largest command, from which a valve is open
MOVING = 0.01       # m/s
LEAST = 10          # instants
AGAINST = 0.15      # share of them that go with the command
AFTER = 0.5         # s after a valve was open
SLOW, TRAVEL = 0.015, 0.04      # of the stroke that a piston moves in that time, and since closed: less is a swing
UNSENT = 0.3        # share of the instants of motion in which the valve is closed
TOO_MUCH, LASTING = 1.5, 0.3    # times that limit, and s, of a command in another unit
PLAINLY = 1.5       # times the misfit, from which the balance of forces says which of the two it is
FEWEST = 3          # such changes


def command_findings(machine: Machine, fit: ForceFit, means: Means, mended: set[str]) -> list[Finding]:
    """Commands beyond what valves take, cylinders that move against their commands, or without. ``mended``: channels
    whose remedy ``means`` have already."""
    findings = [finding for name in machine.modelled_valves for finding in _too_large(machine, name, means)]
    if fit.unmeasured:
        return findings
    pistons, large = fit.pistons(means), {name for finding in findings for name in finding.channels}
    for cylinder, (command, sign) in valves_of(machine).items():
        if command not in means.values or command in large:
            continue
        column = pistons[:, machine.cylinders.index(cylinder)]
        rows = np.flatnonzero(np.isfinite(column))
        rows = rows[:-1][(np.diff(rows) == EVERY) & (means.window[rows[:-1]] == means.window[rows[1:]])]
        speed = (column[rows + EVERY] - column[rows]) / (EVERY * STEP)
        sent = sign * means.values[command][rows]
        open_ = np.abs(sent) > OPEN * np.nanmax(np.abs(means.values[command]), initial=1e-9)
        moving = open_ & (np.abs(speed) > MOVING)
        count, along = int(moving.sum()), float(np.mean(sent[moving] * speed[moving] > 0)) if moving.any() else 1.0
        unsent, moved = _unsent(machine, command, means, column, float(np.ptp(
            machine.stroke[machine.cylinders.index(cylinder)])))
        if unsent >= LEAST and unsent > UNSENT * moved:
            findings.append(Finding('command', (command,), f'closes its valve for {unsent * EVERY * STEP:.1f} s '
                                    f'in which the piston of {cylinder} moves', 'look at what sends it, or do without '
                                    'commands (valve: unknown)'))
        elif count >= LEAST and along < AGAINST:
            findings.append(_against(machine, fit, means, cylinder, command, f'goes the way of its command in '
                                     f'{100 * along:.0f} % of {count} instants of motion', mended))
    return findings


def seldom_findings(machine: Machine, series: Mapping[str, Series]) -> list[Finding]:
    """Commands that come, or change, more rarely than sensors do while a valve opens or closes: they are held in
    between, so that flows are wrong which no sensor measures. A valve that is switched steps from closed."""
    intervals = [float(np.median(np.diff(series[name].t))) for name in machine.channels
                 if name in series and series[name].t.size > FEWEST]
    usual, found = float(np.median(intervals)) if intervals else np.inf, dict[str, tuple[float, float]]()
    for valve in machine.modelled_valves:
        own = series.get(name := f'command/{valve}')
        if own is None:
            continue
        changes = np.flatnonzero(np.diff(own.values))
        steps, gaps = np.diff(own.values)[changes], np.diff(own.t[changes + 1])
        limit = _limit(machine, valve)
        gaps = gaps[moves_on(own.values[changes[1:]], steps[1:], steps[:-1], gaps, limit)]
        if gaps.size >= FEWEST and (gap := float(np.median(gaps))) > max(SELDOM * usual, WHOLE):
            found[name] = float(np.max(np.abs(steps))) / limit, gap
    if not found:
        return []
    most, gap = max(found.values())
    return [Finding('rate', tuple(found), f'changes at {1 / gap:.2g} Hz, by up to {100 * most:.0f} % of its limit at '
                    f'once, where the sensors come at {1 / usual:.3g} Hz: how the valve moves in between is not seen',
                    'record it as often as the sensors, or do without commands (valve: unknown)')]


def _limit(machine: Machine, valve: str) -> float:
    """Of its command, V; 0 where the file gives none."""
    limit = machine.hydraulics.valves[valve].command_limit
    return limit.value if limit is not None else 0.0


def _too_large(machine: Machine, valve: str, means: Means) -> list[Finding]:
    """A command in another unit."""
    name, limit = f'command/{valve}', _limit(machine, valve)
    values = np.abs(means.values.get(name, np.zeros(0)))
    if not limit or np.sum(values > TOO_MUCH * limit) * STEP < LASTING:
        return []
    return [Finding('range', (name,), f'up to {np.nanmax(values):.3g} V, the limit of the file is {limit:g} V',
                    'look at its unit: V are expected, not per cent, mA or counts')]


def _unsent(machine: Machine, command: str, means: Means, piston: np.ndarray, stroke: float) -> tuple[int, int]:
    """Instants before which a piston (k,) of some ``stroke``, m, has moved for some time while its valve had been
    closed for as long, away from where it was then; and all before which it has moved."""
    rows, steps = np.flatnonzero(np.isfinite(piston)), round(AFTER / STEP)
    first, last = rows[:-(steps // EVERY)], rows[steps // EVERY:]
    if not len(last):
        return 0, 0
    moved = (last - first == steps) & (means.window[first] == means.window[last]) & (
        np.abs(piston[last] - piston[first]) > max(MOVING * AFTER, SLOW * stroke))
    closed = _closed(machine, command, means)
    began = np.maximum.accumulate(np.where(closed, 0, np.arange(len(closed))))
    unsent = moved & closed[first] & closed[last]
    farthest = np.zeros(len(closed))        # from there, by the instant from which it is closed
    np.maximum.at(farthest, began[last], np.abs(piston[last] - np.interp(began[last], rows, piston[rows])) * unsent)
    return int(np.sum(unsent & (farthest[began[last]] > TRAVEL * stroke))), int(moved.sum())


def _closed(machine: Machine, command: str, means: Means) -> np.ndarray:
    """Whether a valve has been closed for some time at the instants (k,) of the grid."""
    most = CLOSED * _limit(machine, command.partition('/')[2])
    values, steps = np.abs(means.values[command]), round(AFTER / STEP)
    closed = np.zeros(len(values), dtype=bool)
    if len(values) > steps:
        recent = np.lib.stride_tricks.sliding_window_view(values, steps + 1).max(axis=1)
        closed[steps:] = (recent <= most) & (means.window[steps:] == means.window[:-steps])
    return closed


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
