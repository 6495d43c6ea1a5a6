# SPDX-License-Identifier: Apache-2.0
"""Pressures of another line, or in another unit than they were taken for, by the balance of forces."""

from itertools import combinations

import numpy as np
import pytest
from plausibility_logs import changed, log_of, machine_of, named, verdict

from mbse_ros.machine.equations import pressure_pairs
from mbse_ros.offline.checks.force_fit import ForceFit
from mbse_ros.offline.checks.plausibility import BAD, BETTER, GOOD
from mbse_ros.offline.checks.pressure_rules import balancing_pressures, mistaken_units
from mbse_ros.offline.checks.remedies import PRESSURE_UNITS
from mbse_ros.offline.log_samples import LogSamples, means_of, series_of

FACTORS = 6894.757e-5, 1e5 / 6894.757, 0.1, 10.0        # psi for bar, bar for psi, bar for MPa, MPa for bar


@pytest.mark.parametrize('name, exchanged', [('zx200', ((0, 1), (0,), (1,))), ('zx200_can', ((0, 1),))])
def test_hoses_exchanged_between_two_cylinders(name, exchanged):
    """Both hoses, or the plugs of two sensors: nothing was found, and the estimate blamed healthy sensors."""
    machine = machine_of(name)
    for one, other in combinations(pressure_pairs(machine).values(), 2):
        for places in exchanged:
            ways = {a: b for k in places for a, b in ((one[k], other[k]), (other[k], one[k]))}
            found = verdict(changed(log_of(name), lambda c, v, w=ways: (w.get(c, c), v)), machine)
            assert {kind: set(channels) for kind, channels in named(found).items()} == {'exchanged': set(ways)}


@pytest.mark.parametrize('name, one, other', [
    ('zx200', 'pressure/boom_rod', 'pressure/boom_piston'), ('zx200', 'pressure/arm_piston', 'pressure/boom_piston'),
    ('patu655_lift', 'pressure/lift_piston', 'pressure/lift_rod'), ('zx200', 'position/arm', 'position/bucket')])
@pytest.mark.parametrize('error', (0.0, 0.005))
def test_two_channels_with_one_signal(name, one, other, error):
    """A map that names one field twice; or, of pressures, a sensor in the other's line, with a gain of its own."""
    log = log_of(name)
    offset = error * 1e5 * one.startswith('pressure')
    copied = [sample for sample in log if sample[0] != other]
    copied += [(other, stamp, (1.0 + error) * value + offset) for channel, stamp, value in log if channel == one]
    found = named(verdict(copied, machine_of(name)))
    if one.startswith('pressure') or not error:
        assert list(found) == ['same'] and set(found['same']) == {one, other}
    else:
        assert 'same' not in found


def test_copies_at_rest_are_known_by_their_noise():
    log = log_of('zx200')
    first = log[0][1]
    still = [sample for sample in log if sample[1] < first + 700_000_000]      # before the swing and after one move
    copied = [sample for sample in still if sample[0] != 'position/bucket']
    copied += [('position/bucket', stamp, value) for channel, stamp, value in still if channel == 'position/arm']
    assert 'same' not in named(verdict(still, machine_of('zx200')))
    assert set(named(verdict(copied, machine_of('zx200')))['same']) == {'position/arm', 'position/bucket'}


@pytest.mark.parametrize('name, channel', [
    ('zx200', 'pressure/boom_piston'), ('zx200', 'pressure/arm_rod'), ('zx200_can', 'pressure/bucket_rod')])
def test_one_pressure_in_another_unit_than_it_was_taken_for(name, channel):
    """The gain of the other chamber was blamed, a step of the sensor, or nothing. Where the chamber carries little, two
    units may explain a log equally well: both are named, the right one among them."""
    machine = machine_of(name)
    for factor in FACTORS:
        found = verdict(changed(log_of(name), lambda c, v, f=factor: (c, v / f if c == channel else v)), machine)
        assert named(found) == {'unit': [channel]}
        assert f'multiply by {factor:.6g}: ' in found.findings[0].remedy


def test_one_equation_names_no_unit():
    """A transducer of 400 bar that was taken for one of 250: the other chamber in another unit would explain it."""
    log = changed(log_of('patu655_lift'), lambda c, v: (c, 0.625 * v if c == 'pressure/lift_piston' else v))
    assert 'unit' not in named(verdict(log, machine_of('patu655_lift')))


def test_what_another_gain_explains_is_no_unit():
    """20 % are no unit, and forces that balance are not looked at."""
    log = changed(log_of('zx200'), lambda c, v: (c, 1.2 * v if c == 'pressure/arm_rod' else v))
    assert set(named(verdict(log, machine_of('zx200')))) == {'balance'}


def test_remedies_that_explain_a_log_equally_well_say_nothing_if_they_are_many():
    """Of a fit that any change improves as much."""
    machine = machine_of('zx200')
    means, fit = means_of(series_of(LogSamples.of(log_of('zx200')))), ForceFit(machine)
    now = fit.fit(means)

    class Any:
        def __init__(self):
            self.machine = machine

        def fit(self, means):
            return now

    assert now.worst < GOOD < BAD
    assert balancing_pressures(Any(), means, now, GOOD, np.inf) == []
    assert balancing_pressures(Any(), means, now, GOOD, BETTER) == []


def test_units_that_are_mistaken_for_each_other():
    """Each for each other, by the factor between them."""
    factors = {remedy.changes[0][2] for remedy in mistaken_units('pressure/x')}
    assert factors == {a / b for a in PRESSURE_UNITS.values() for b in PRESSURE_UNITS.values() if a != b}


@pytest.mark.parametrize('name', ('patu655_lift', 'zx200'))
@pytest.mark.parametrize('unit, size', PRESSURE_UNITS.items())
def test_a_map_that_names_a_unit_for_values_in_pa(name, unit, size):
    """All pressures are far beyond any; what they look like is said, not that it is another machine. On a machine with
    one equation the load may make up for another unit: all that are possible are named."""
    found = verdict(changed(log_of(name), lambda c, v: (c, size * v if c[:8] == 'pressure' else v)), machine_of(name))
    assert {finding.kind for finding in found.findings} == {'unit'}
    for finding in found.findings:
        assert f'multiply by {1 / size:.6g}: the values look like Pa that were taken for {unit}' in finding.remedy
