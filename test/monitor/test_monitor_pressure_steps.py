# SPDX-License-Identifier: Apache-2.0
"""A single pressure that is another from one sample on, live and in a log."""

import numpy as np
import pytest
from plausibility_logs import MACHINES, log_of, machine_of, named, verdict

from mbse_ros.errors import SampleError
from mbse_ros.monitor.faults import Fault
from mbse_ros.monitor.steps import SIDE, PressureSteps, suddenness
from mbse_ros.streams.pipeline import Pipeline
from mbse_ros.streams.records import PayloadStatus

LIFT, PISTON, ROD = 'patu655_lift', 'pressure/lift_piston', 'pressure/lift_rod'
DT, AT = 0.01, 100


def since(change, begin=2.5):
    """Of the values of a log from ``begin``, s, on, by channel."""
    def faulty(log):
        first = min(stamp for _, stamp, _ in log)
        values = {(channel, stamp): value for channel, stamp, value in log}
        return [(channel, stamp, change(channel, value, lambda other, stamp=stamp: values[other, stamp])
                 if stamp - first >= begin * 1e9 else value) for channel, stamp, value in log]
    return faulty


def found(piston, rod=None, dt=DT):
    """Places, and the sample at which each was first refused, of pressures (k,), Pa; a calm rod by default."""
    machine = machine_of(LIFT)
    watch, places = PressureSteps(machine), [machine.channels.index(name) for name in (PISTON, ROD)]
    calm = 2e6 + 10e3 * np.random.default_rng(7).standard_normal(len(piston))
    refused = []
    for k, pair in enumerate(zip(piston, calm if rod is None else rod)):
        row = [0.5] * len(machine.channels)
        row[places[0]], row[places[1]] = pair
        refused.append([places.index(place) for place in watch.take(k * dt, row)])
    return refused


def pressure(k=200, seed=1):
    """A chamber in motion, Pa: a swing of 1 MPa at 2 Hz on 8 MPa, and noise."""
    t = np.arange(k) * DT
    return 8e6 + 1e6 * np.sin(2 * np.pi * 2.0 * t) + 10e3 * np.random.default_rng(seed).standard_normal(k)


def stepped(size, last=None):
    return pressure() + size * (np.arange(200) >= AT) * (np.arange(200) < (last or 200))


def test_a_step_is_refused_until_it_is_taken_back():
    assert not any(found(pressure()))
    refused = found(stepped(0.8e6))
    assert not any(refused[:AT + SIDE]) and all(row == [0] for row in refused[AT + SIDE:])
    refused = found(stepped(0.8e6, 150))
    assert all(row == [0] for row in refused[AT + SIDE:150 + SIDE]) and not any(refused[150 + SIDE:])


def test_what_a_fluid_does_is_no_step():
    k = np.arange(200)
    ramp = pressure() + 0.8e6 * np.clip((k - AT) / 4.0, 0.0, 1.0)               # a valve opens: over 40 ms
    assert not any(found(ramp))
    assert not any(found(pressure() + 3e6 * (k == AT)))                           # a spike is of others
    blow = 2e6 + 1e6 * (k >= AT) + 10e3 * np.random.default_rng(3).standard_normal(200)
    assert not any(found(stepped(0.8e6), blow))                                   # the other chamber has it, too
    assert not any(found(stepped(0.8e6), dt=0.05))                                # between rare samples valves open
    coarse = np.round(pressure() / 100e3) * 100e3
    assert not any(found(coarse)) and not any(found(np.round(np.full(200, 8.049e6) + k * 40.0, -5)))
    for stuck in ((k >= AT), (k < AT)):                                           # a sensor that repeats one value
        assert not any(found(np.where(stuck, 5e6, pressure())))
    missing = stepped(0.8e6)
    missing[AT - 1] = np.nan
    assert not any(found(missing))


def test_suddenness_is_over_what_the_changes_beside_it_scatter():
    row = np.array([[0.1, 1.0, 0.1, -1.0, 13.0, 1.0, 0.5, -0.5, 0.2]])
    assert suddenness(row, 1.0)[0] == pytest.approx((13.0 - 0.15) / (1.15 + 3.0 * 1.0))
    assert suddenness(np.array([[0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]]), 1.0)[0] == pytest.approx(9 / 12)


def test_a_gain_that_begins_while_it_works_holds_the_mass():
    """10 % of a boom's pressure: it was a load of some hundred kg more, with a good status."""
    machine = machine_of('zx200')
    log = since(lambda c, v, other: 1.1 * v if c == 'pressure/boom_piston' else v)(log_of('zx200', 500.0))
    pipeline, first, after = Pipeline(machine), log[0][1], []
    for sample in log:
        try:
            outputs = pipeline.add(*sample)
        except SampleError:
            continue
        after += [o.payload for o in outputs if o.payload.stamp_ns - first > (2.5 + (SIDE + 1) * DT) * 1e9]
    assert all(p.status is PayloadStatus.NO_DATA and Fault.JUMPED in p.faults and 'pressure/boom_piston' in p.reason
               for p in after[5:])
    assert all(p.status is not PayloadStatus.UPDATING for p in after)


@pytest.mark.parametrize('name', MACHINES)
def test_a_log_names_what_steps_midway(name):
    machine = machine_of(name)
    position = next(c for c in machine.channels if c.startswith('position/') and 'swing' not in c)
    for channel, change in ((position, lambda v: v + 0.05), (machine.channels[-2], lambda v: v + 3e6)):
        found = verdict(since(lambda c, v, other, k=channel, f=change: f(v) if c == k else v)(log_of(name)), machine)
        assert named(found) == {'step': [channel]} and 't = 2.5 s' in found.findings[0].seen


@pytest.mark.parametrize('name, pair', (('patu655', ('pressure/tilt_piston', 'pressure/tilt_rod')),
                                        ('zx200', ('pressure/boom_piston', 'pressure/boom_rod'))))
def test_a_log_names_hoses_that_are_exchanged_midway(name, pair):
    others = dict(zip(pair, pair[::-1]))
    found = verdict(since(lambda c, v, other: other(others[c]) if c in pair else v)(log_of(name)), machine_of(name))
    assert named(found) == {'swapped': list(pair)} and 'from t = 2.5 s on' in found.findings[0].seen


def test_sound_logs_have_no_steps():
    for name in MACHINES:
        for every in (1, 2, 5):
            log = log_of(name)
            stamps = sorted({stamp for _, stamp, _ in log})[::every]
            kept = set(stamps)
            kinds = named(verdict([sample for sample in log if sample[1] in kept], machine_of(name)))
            assert not {'step', 'swapped'} & set(kinds)
