# SPDX-License-Identifier: Apache-2.0
"""The state at an instant without a sample: nearer to the true one than the last estimate, and known as well as it
says; the observer goes on as if nobody had asked."""

from __future__ import annotations

import numpy as np
import pytest

from mbse_ros.machine import load_machine
from mbse_ros.simulation.crane import SimulatedCrane, cycle_by_name
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import ObserverStatus

AHEAD = 3       # frames of 10 ms


@pytest.mark.parametrize('name, valve', [('patu655_lift', 'orifice'), ('zx200', 'orifice'), ('patu655', 'unknown')])
def test_a_prediction_is_nearer_than_the_last_estimate(name: str, valve: str) -> None:
    machine = load_machine(name, valve)
    g = len(machine.coordinates)
    crane = SimulatedCrane(load_machine(name), 200.0, 3, cycle_by_name('random', load_machine(name), 3))
    pipeline, asked = Pipeline(machine), Pipeline(machine)
    frames = [frame for frame, _ in zip(crane.advance(2 ** 62), range(500))]
    stamps = {frame.stamp_ns: k for k, frame in enumerate(frames)}
    held, ahead, squares = [], [], []
    for frame in frames:
        for channel, value in (*((c, frame.commands[c]) for c in machine.commands),
                               *((c, frame.samples[c]) for c in machine.channels)):
            plain = pipeline.add(channel, frame.stamp_ns, value)
            for k, output in enumerate(asked.add(channel, frame.stamp_ns, value)):
                np.testing.assert_array_equal(output.state.mean, plain[k].state.mean)
                last = output.state
                place = stamps[last.stamp_ns] + AHEAD
                if last.status is not ObserverStatus.OK or not 100 < place < len(frames):
                    continue
                found = asked.observer.predicted(last, frames[place].stamp_ns)
                truth = np.concatenate([frames[place].position, frames[place].velocity])
                error = found.mean[0, :2 * g] - truth
                held.append((last.mean[-1, :2 * g] - truth)[:g])
                ahead.append(error[:g])
                squares.append(error @ np.linalg.solve(found.covariance[:2 * g, :2 * g], error) / (2 * g))
    assert len(ahead) > 300 and found.step_ns == AHEAD * 10 ** 7 and found.nis_dof == 0 and not found.channels
    rms = [np.sqrt(np.mean(np.square(item), axis=0)) for item in (ahead, held)]
    assert (rms[0] < 0.25 * rms[1]).all(), rms
    assert np.mean(squares) < 2.0
