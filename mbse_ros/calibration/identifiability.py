# SPDX-License-Identifier: Apache-2.0
"""In words: what bags do not determine of a machine's numbers, and which motion would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from .balance import CalibrationBalance
from .fit import CalibrationFit, CalibrationLog, CalibrationProblem, KnownLoad
from .plan import CandidateMotion, Planner, choose

UNKNOWN = 'unknown'         # begins the name of an unknown load
LEARNT = 0.9        # of a deviation before: a number that is known no better is hardly determined
CORRELATED = 0.9    # correlation from which two numbers cannot be distinguished
ONE_POSE = 0.1      # of the stroke within which all motion is one pose
ONE_JOINT = 0.3     # rad or m, the same of a drive
HELPS = 3           # pieces of advice
ADVICE = ['move all joints of the drives at once, each both ways over a radian or more, at several speeds: what one '
          'motion cannot distinguish, another does']
LEAST_GAIN = 0.2    # nats that a motion must add to be advised
TAKEN = 0.01        # of the largest load: one of which nothing is known, known so well, is not taken for a number
BLIND = 1e-9        # of the information of the prior: nothing depends on the number


def cannot_tell(balance: CalibrationBalance, fit: CalibrationFit, before: np.ndarray, after: np.ndarray,
                   correlation: np.ndarray) -> list[str]:
    """One line for each thing that the bags do not tell; deviations (k,) and correlation (k, k) of the numbers."""
    lines = _of_motion(balance, fit.logs) + _of_loads(fit.logs)
    names = balance.machine.parameters.names
    lines += [_bound(balance, fit, k) for k in fit.at_bound]
    kept = [k for k in range(len(names)) if after[k] > LEARNT * before[k]]
    blind = [k for k in kept if _blind(balance, fit, k)]
    lines += [f'{names[k]}: nothing in these bags depends on it: it keeps its prior' for k in blind]
    lines += [f'{names[k]}: these bags hardly determine it ({after[k] / before[k]:.0%} of its deviation is left)'
              for k in kept if k not in blind]
    for i in range(len(names)):
        lines += [f'{names[i]} and {names[j]} cannot be distinguished (correlation {correlation[i, j]:+.2f}): only '
                  'what they do together is known' for j in range(i) if abs(correlation[i, j]) > CORRELATED]
    return lines


def _bound(balance: CalibrationBalance, fit: CalibrationFit, k: int) -> str:
    """Of number k, which would be beyond what a file may say."""
    value = CalibrationProblem(balance, fit.logs).numbers(fit.u)[k]
    return (f'{balance.machine.parameters.names[k]} is at its bound, {value:g}: the bags ask for a number that it '
            'cannot be, so they do not determine it, or another number or the load is wrong')


def _blind(balance: CalibrationBalance, fit: CalibrationFit, k: int) -> bool:
    """Whether nothing depends on number k."""
    F = balance.machine.parameters.factor()
    unit = np.linalg.solve(F, np.eye(len(F))[:, k])
    unit /= np.linalg.norm(unit)
    size = len(F)
    return float(unit @ fit.information[:size, :size] @ unit) < BLIND


def _of_motion(balance: CalibrationBalance, logs: Sequence[CalibrationLog]) -> list[str]:
    """Of cylinders that did not move, in one direction alone, or in one pose."""
    machine, lines = balance.machine, []
    for c, name in enumerate(machine.actuators.names):
        what = 'cylinder' if name in machine.cylinders else 'drive'
        rows = balance.found.concerns[:, c]
        counts = [np.logical_or.reduce(log.moments.counts[:, rows], axis=1) for log in logs]
        speeds = np.concatenate([log.moments.speeds[own, c] for log, own in zip(logs, counts)])
        places = np.concatenate([log.moments.pistons[own, c] for log, own in zip(logs, counts)])
        if not len(speeds):
            lines.append(f'{what} {name} never moved steadily, away from its ends: its friction keeps its prior, '
                         'and its forces do not determine masses: move it')
            continue
        if (speeds > 0).all() or (speeds < 0).all():
            lines.append(_one_way(balance, logs, counts, c, bool(speeds[0] > 0)))
        low, high = machine.stroke[c]
        if what == 'drive' and np.ptp(places) < ONE_JOINT:
            lines.append(f'drive {name} moved in one pose alone ({places.min():.2f} to {places.max():.2f}): masses, '
                         'their centres and the offset of its effort cannot be distinguished: move it farther')
        elif np.isfinite(high) and np.ptp(places) < ONE_POSE * (high - low):
            lines.append(f'cylinder {name} moved in one pose alone ({1e3 * places.min():.0f} to '
                         f'{1e3 * places.max():.0f} mm): masses, their centres, the base and the offsets of its '
                         'pressures cannot be distinguished: move it over its stroke')
    return lines


def _one_way(balance: CalibrationBalance, logs: Sequence[CalibrationLog], counts: Sequence[np.ndarray], c: int,
             out: bool) -> str:
    """Of cylinder ``c``, which moved one way alone."""
    machine = balance.machine
    first, entries = balance.names.index(machine.actuators.entries[0]), machine.actuators.entries
    p = np.concatenate([log.moments.X[own, first:first + len(entries)] for log, own in zip(logs, counts)])
    values, symbol = machine.system.values, ca.SX.sym('p', len(entries))
    hydraulic = ca.Function('forces', [symbol, values.symbol], [machine.actuators.forces(symbol)])
    force = hydraulic(p.T, values.mean).full()[c]
    lifting = bool(np.median(force) > 0) == out
    word, other = ('lifting', 'lower it') if lifting else ('lowering', 'lift it')
    name = machine.actuators.names[c]
    if name not in machine.cylinders:
        return (f'drive {name} only moved {"forward" if out else "backward"}: friction and masses cannot be '
                'distinguished: move it the other way too')
    return (f'cylinder {name} only moved {"out" if out else "in"}: from {word} alone friction and load '
            f'cannot be distinguished, nor friction and masses: {other} too')


def _of_loads(logs: Sequence[CalibrationLog]) -> list[str]:
    """Of bags without a load, or with one that is not known."""
    lines = [f'the load of {log.name} is not known: what it weighs and friction, masses and gains are distinguished by '
             'other bags alone' for log in logs if log.load.name.startswith(UNKNOWN)]
    if not any(log.load.mass > 0.0 and not log.load.name.startswith(UNKNOWN) for log in logs):
        lines.append('no bag has a known load: what grows with the load (friction by pressure, gains, pins) is found '
                     'by the empty machine alone: lift a weight that is known')
    return lines


def taken_for_loads(problem: CalibrationProblem, u: np.ndarray) -> tuple[str, ...]:
    """Numbers that would take the error of a load that is not as told: at errors ``u`` (k + l,), if nothing were known
    of one of the loads, the number and the mass would be known by each other alone."""
    machine, k, found = problem.balance.machine, len(problem.prior), []
    if machine.description.payload is None:
        return ()
    low, high = machine.payload_data.limits
    F = problem.factor
    for told in {log.load.mass for log in problem.logs}:
        logs = [replace(log, load=KnownLoad(*('', problem.mass(log, u), high - low) if log.load.mass == told else (
            f'{log.load.mass} kg', problem.mass(log, u), log.load.stddev))) for log in problem.logs]
        own = CalibrationProblem(problem.balance, logs)
        own.noise = problem.noise
        P = np.linalg.inv(np.eye(own.size) + own.information(np.concatenate([u[:k], np.zeros(own.size - k)])))
        place = k + own.loads.index('')
        shared = F @ P[:k, place] / np.sqrt(np.einsum('ij,jk,ik->i', F, P[:k, :k], F) * P[place, place])
        if (high - low) * np.sqrt(P[place, place]) > TAKEN * high:
            found += [machine.parameters.names[i] for i in np.flatnonzero(np.abs(shared) > CORRELATED)]
    return tuple(dict.fromkeys(found))


def advice(balance: CalibrationBalance, fit: CalibrationFit) -> list[str]:
    """The motions that would add most to what the bags tell, and what they would tell of."""
    machine = balance.machine
    if machine.description.drives:
        return ADVICE
    planner, size = Planner(balance), len(machine.parameters.names)
    loads = [0.0]
    if machine.description.payload is not None:
        low, high = machine.payload_data.limits
        loads.append(float(f'{low + 0.5 * (high - low):.2g}'))
    covariance, lines = fit.covariance[:size, :size], []
    chosen, _ = choose([[item] for item in planner.candidates(loads)], covariance, 0, HELPS)
    for group in chosen:
        item, = group
        if item.gain(covariance) < LEAST_GAIN:
            break
        lines.append(in_words(planner, item, covariance))
        covariance = item.after(covariance)
    return lines or ['more motion would add little: the rest takes better sensors, or numbers that are measured']


def in_words(planner: Planner, item: CandidateMotion, covariance: np.ndarray) -> str:
    """A motion and what it would tell of most."""
    F, names = planner.factor, planner.machine.parameters.names
    before, after = (np.sqrt(np.einsum('ij,jk,ik->i', F, P, F)) for P in (covariance, item.after(covariance)))
    k = int(np.argmin(after / before))
    load = f'with a known load near {item.load:g} kg' if item.load else 'empty'
    return (f'move {item.cylinder} slowly out and in at {pose_text(planner, item)}, {load}: {names[k]} would be known '
            f'to {after[k] / before[k]:.0%} of its deviation now')


def pose_text(planner: Planner, item: CandidateMotion) -> str:
    """Where the pistons, and joints that no cylinder moves, are."""
    parts = [f'{name} {1e3 * value:.0f} mm' for name, value in zip(planner.machine.cylinders, item.pistons)]
    return ', '.join(parts)
