# SPDX-License-Identifier: Apache-2.0
"""A wrong gain of one pressure of an excavator, by the cylinder whose forces alone do not balance."""

import numpy as np
import pytest
from plausibility_logs import changed, log_of, machine_of, named, verdict


@pytest.mark.parametrize('name, channel, gain', (
    ('zx200', 'pressure/arm_rod', 1.2), ('zx200_can', 'pressure/bucket_piston', 0.9),
    ('zx200', 'pressure/bucket_rod', 1.1)))
def test_the_cylinder_whose_pressure_has_another_gain(name, channel, gain):
    """It was a load, or another cylinder was blamed."""
    found = verdict(changed(log_of(name), lambda c, v: (c, gain * v if c == channel else v)), machine_of(name))
    assert set(named(found)) == {'balance'} and channel in found.findings[0].channels
    cylinder = channel.rpartition('_')[0]
    assert all(name.startswith(cylinder) for name in found.findings[0].channels)


@pytest.mark.parametrize('channel', ('pressure/arm_piston', 'pressure/bucket_rod'))
def test_the_cylinder_that_is_farthest_off_where_nothing_explains_it(channel):
    """A hose behind a closed valve: nothing wrong was seen."""
    rng, cylinder = np.random.default_rng(1), channel.partition('/')[2].partition('_')[0]
    noise = {item.name: item.sensor.noise for item in machine_of('zx200').all_channels}[channel]
    found = verdict(changed(log_of('zx200'), lambda c, v: (c, 5e6 + noise * rng.normal() if c == channel else v)),
                    machine_of('zx200'))
    assert named(found) == {'forces': [f'pressure/{cylinder}_piston', f'pressure/{cylinder}_rod']}


def test_what_no_gain_of_one_cylinder_explains_names_none():
    """A small gain is within what a model may lack; of two cylinders nothing says which is the odd one."""
    for name, channel, gain in (('zx200', 'pressure/arm_rod', 1.02), ('patu655', 'pressure/tilt_piston', 1.1)):
        found = verdict(changed(log_of(name), lambda c, v, k=channel, g=gain: (c, g * v if c == k else v)),
                        machine_of(name))
        assert 'balance' not in named(found)
    both = 'pressure/arm_rod', 'pressure/bucket_piston'
    found = verdict(changed(log_of('zx200'), lambda c, v: (c, 1.3 * v if c in both else v)), machine_of('zx200'))
    assert 'balance' not in named(found)
