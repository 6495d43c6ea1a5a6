# SPDX-License-Identifier: Apache-2.0
"""A mass that comes from accelerations which were predicted with it: does it confirm itself?

Two runs of the same samples, which differ by what is added to the mass in the state of one of them; its covariance is
not told. ``benchmarks/circular_argument.py`` measures the same for more machines.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from core_support import VALVES, crane, simulate

from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.simulation.crane import SensorFrame
from mbse_ros.simulation.cycle import Move, WorkCycle
from mbse_ros.streams.pipeline import Output, Pipeline

ADDED = 1.0                             # kg
LIFTING, STANDING, END = 1.2, 3.2, 4.7  # s: within the lift, within the hold, of the log
SLOW = 1.1      # V
BLIND = 1e3     # force_psd, MPa^2 s: a force balance that says almost nothing


@cache
def frames(volts: float = 5.0) -> list[SensorFrame]:
    """Lift until 2.7 s, then hold."""
    return simulate(200.0, 1, WorkCycle(0.3, (Move(0.0, 0.5), Move(volts, 2.2), Move(0.0, 2.0)), timed=True))


def estimated(valve: str, added_at: float | None = None, added: float = ADDED, volts: float = 5.0, **tuning: float
              ) -> list[Output]:
    """The log, with ``added``, kg, on the mass in the state from a time on, s."""
    pipeline, outputs, start = Pipeline(crane(valve), observer=ObserverSettings(**tuning)), [], None
    for frame in frames(volts):
        start = frame.stamp_ns if start is None else start
        for channel, value in (*frame.commands.items(), *frame.samples.items()):
            for output in pipeline.add(channel, frame.stamp_ns, value):
                outputs.append(output)
                if added_at is not None and output.state.stamp_ns - start >= added_at * 1e9:
                    observer, added_at = pipeline.observer._observer, None
                    observer.running.state[len(observer.names) - 1] += added
    return outputs


def at(outputs: list[Output], time: float) -> int:
    """Row of the first output at a time, s, or later."""
    stamps = np.array([o.state.stamp_ns for o in outputs])
    return int(np.searchsorted(stamps, frames()[0].stamp_ns + time * 1e9))


def kept(plain: list[Output], other: list[Output], time: float) -> tuple[float, float]:
    """Share of what was added that is left in the state, and in the published mass."""
    k = at(plain, time)
    return ((other[k].state.mean[-1, -1] - plain[k].state.mean[-1, -1]) / ADDED,
            (other[k].payload.mass - plain[k].payload.mass) / ADDED)


@pytest.mark.parametrize('valve', VALVES)
def test_in_motion_a_wrong_mass_dies_out(valve: str) -> None:
    """After 1 s of the lift less than half is left in the state, less than a mere average of all samples so far would
    keep, and little of it has come into what is published. With a balance that says almost nothing nearly all stays:
    what takes it away are the forces, not the filter's forgetting."""
    plain, other = estimated(valve), estimated(valve, LIFTING)
    state, published = kept(plain, other, LIFTING + 1.0)
    before, after = (plain[at(plain, t)].state.covariance[-1, -1] for t in (LIFTING, LIFTING + 1.0))
    assert 0.0 <= state < min(0.5, after / before) and abs(published) < 0.4
    blind = [estimated(valve, time, force_psd=BLIND) for time in (None, LIFTING)]
    assert kept(*blind, LIFTING + 1.0)[0] > 0.85


@pytest.mark.parametrize('valve', VALVES)
def test_at_standstill_a_mass_is_not_made_from_itself(valve: str) -> None:
    """It stays, as nothing is measured: no step of the hold has information on it, its variance does not shrink, and
    what is published does not move. In the lift before, steps have information."""
    plain, other = estimated(valve), estimated(valve, STANDING)
    state, published = kept(plain, other, END - 0.1)
    assert state == pytest.approx(1.0, abs=1e-3) and published == pytest.approx(0.0, abs=1e-3)
    begin, lift = at(other, STANDING), at(other, LIFTING)
    information = [float(o.state.weighing[:, 0].sum()) for o in other]
    assert sum(information[begin + 1:]) < 1e-6 * sum(information[lift:begin])
    variance = [o.state.covariance[-1, -1] for o in other[begin:]]
    assert (np.diff(variance) >= -1e-9 * variance[0]).all()


@pytest.mark.parametrize('added', [0.01, 1.0])
def test_where_the_piston_hardly_moves_decisions_change_the_mass_by_less_than_its_interval(added: float) -> None:
    """7 mm/s, the valve's flow not known: whether the piston moves is decided again in each step, so that little mass
    decides which steps count. What is published then differs by more than what was added, never by its half-width."""
    plain, other = (estimated('unknown', time, added, SLOW) for time in (None, LIFTING))
    mass, half, off = np.array([(a.payload.mass, a.payload.upper - a.payload.mass, b.payload.mass - a.payload.mass)
                                for a, b in zip(plain, other)][at(plain, LIFTING):]).T
    known = np.isfinite(mass)
    assert known.any() and (np.abs(off[known]) < 0.3 * half[known]).all()
