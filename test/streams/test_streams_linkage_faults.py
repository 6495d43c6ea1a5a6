# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism that measure nothing: their kind and their channel are in the estimate, at once."""

from functools import lru_cache

import numpy as np
import pytest
from source_tree import ROOT

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.monitor.faults import NONE, Fault
from mbse_ros.simulation.linkage import LinkagePlantSettings, SimulatedLinkage
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage
from mbse_ros.streams.records import Measured, ObserverStatus

BEGIN, SECONDS = 1.0, 2.0       # s: of the fault, and of a log
MECHANISMS = {'four_bar': 'encoder', 'five_bar': 'encoder_1', 'excavator_arm': 'boom_stroke'}


@lru_cache
def log(name, rate):
    """The stage of a mechanism and its samples without a fault."""
    model = load_model(name, backend='vm')
    plant = SimulatedLinkage(model, (), 1, LinkagePlantSettings(rate=rate))
    return LinkageStage(model, LinkageSettings(), (), 1.0 / rate, 'vm'), [plant.frame() for _ in range(int(
        SECONDS * rate))]


def run(name, rate, spoil):
    """Estimates by their time since the fault, s, of an encoder whose samples are spoilt from ``BEGIN`` on."""
    stage, frames = log(name, rate)
    stage.reset()
    place, found = stage.channels.index(MECHANISMS[name]), {}
    for k, frame in enumerate(frames):
        samples, t = frame.samples.copy(), frame.stamp_ns * 1e-9 - BEGIN
        if t > -0.1 / rate:
            samples[place] = spoil(samples[place], k)
        inputs = {f'input/{item}': value for item, value in zip(stage.model.inputs, frame.inputs)}
        for estimate in stage.add(frame.stamp_ns, {**dict(zip(stage.channels, samples)), **inputs}):
            found[round(t, 4)] = estimate
    return found


@pytest.mark.parametrize('name', MECHANISMS)
@pytest.mark.parametrize('rate', [40.0, 200.0])
def test_a_jump_is_named_at_its_first_sample(name, rate):
    """Of 0.5 rad or m; until it is over, and the samples are not used."""
    found, channel = run(name, rate, lambda value, _: value + 0.5), MECHANISMS[name]
    assert all(e.faults & ~Fault.SETTLING == NONE for t, e in found.items() if t < -0.001)
    for t in (0.0, 1.0 / rate, 10.0 / rate):
        estimate = found[round(t, 4)]
        assert Fault.JUMPED in estimate.faults and f'jumped: {channel} by 0.' in estimate.reason
        assert estimate.status is ObserverStatus.COASTING
        assert estimate.measured[log(name, rate)[0].channels.index(channel)] is Measured.REJECTED


@pytest.mark.parametrize('rate', [40.0, 200.0])
def test_one_wrong_sample_is_a_jump_that_is_over_with_the_next(rate):
    first = round(BEGIN * rate) - 1
    found = run('four_bar', rate, lambda value, k: value + 0.5 * (k == first))
    assert Fault.JUMPED in found[0.0].faults and found[round(1.0 / rate, 4)].faults == NONE


@pytest.mark.parametrize('name, factor, unit', [
    ('four_bar', 180.0 / np.pi, 'degrees'), ('five_bar', 180.0 / np.pi, 'degrees'),
    ('excavator_arm', 1e3, 'millimetres')])
def test_another_unit_is_named_and_nothing_starts_by_it(name, factor, unit):
    found = run(name, 200.0, lambda value, _: factor * value)
    late = [e for t, e in found.items() if t > 0.3]
    assert all(Fault.UNIT in e.faults and f'{MECHANISMS[name]} in {unit}' in e.reason for e in late)
    assert all(e.status is ObserverStatus.COASTING and Fault.RESTARTED not in e.faults for e in late)


def test_a_sample_outside_the_range_of_its_sensor():
    text = (ROOT / 'config' / 'mechanisms' / 'four_bar.yaml').read_text()
    assert text.count('coordinate: theta, stddev: 17.453e-3 rad}') == 1
    model = Model(parse_mechanism(text.replace('coordinate: theta, stddev: 17.453e-3 rad}',
                                               'coordinate: theta, stddev: 17.453e-3 rad, range: [-3 rad, 3 rad]}')),
                  backend='vm')
    stage = LinkageStage(model, LinkageSettings(), ('encoder', 'crank_gyro'), 0.005, 'vm')
    for k, value in enumerate([1.0] * 40 + [2.99, 3.0, -3.1, -3.11, 1.0]):
        estimate = stage.add(10 ** 18 + k * 5_000_000, {'encoder': value, 'crank_gyro': 0.0})[-1]
        wrong = k >= 40 and (value >= 3.0 or value < -3.0 - 6.0 * 17.453e-3)
        assert (Fault.SATURATED in estimate.faults) is wrong, value
        assert (estimate.measured[0] is Measured.MISSING) is wrong
        assert ('encoder reads' in estimate.reason and 'at the end of its range, -3 to 3' in estimate.reason) is wrong
    assert stage.dropped == {'at the end of its range': 2}


@pytest.mark.parametrize('constant', [True, False])
def test_what_a_constant_sensor_leads_astray_is_in_no_other_unit(constant):
    """A gyro whose samples are for a while a unit's factor times what is predicted, beside an encoder."""
    stage, frames = log('four_bar', 200.0)
    stage.reset()
    for frame in frames[:100]:
        stage.add(frame.stamp_ns, dict(zip(stage.channels, frame.samples)))
    watch = stage._monitor.watch
    watch.constant[stage.channels.index('encoder')] = constant
    watch.units[stage.channels.index('crank_gyro')].found = 'turns a minute'
    same = frames[99].samples[stage.channels.index('encoder')]
    for frame in frames[100:105]:
        samples = dict(zip(stage.channels, frame.samples)) | {'encoder': same, 'crank_gyro': 50.0}
        last = stage.add(frame.stamp_ns, samples)[-1]
    assert (Fault.STUCK in last.faults) is constant and (Fault.UNIT in last.faults) is not constant
