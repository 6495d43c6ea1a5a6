# SPDX-License-Identifier: Apache-2.0
"""A short file, without friction and hydraulics, weighs what the machine of the whole file carries, and simulates."""

from __future__ import annotations

import pytest
from machine_variants import REMOVED, changed

import mbse_ros as mbse

CYLINDERS = {'patu655_lift': ('lift',), 'zx200': ('boom', 'arm', 'bucket')}


@pytest.mark.parametrize('name, cycle, load', [('patu655_lift', 'lift_hold_lower', 300.0), ('zx200', 'boom', 1600.0)])
def test_the_true_load_is_in_the_interval_of_a_short_file(name: str, cycle: str, load: float) -> None:
    friction = {f'cylinders/{item}/friction': REMOVED for item in CYLINDERS[name]}
    short = changed(name, {'hydraulics': REMOVED, **friction})
    true, own = (mbse.estimate(mbse.simulate(plant, 14.0, payload=load, cycle=cycle).samples, short, every=0.1)
                 for plant in (name, short))
    for estimate in (true, own):
        assert estimate.lower[-1] < load < estimate.upper[-1] and not estimate.warnings
        assert estimate.upper[-1] - estimate.lower[-1] < 0.1 * short.payload_data.limits[1]
    causes = {item['cause']: item['assumed'] for item in true.to_json()['payload']['budget']}
    assert all(causes[f'cylinders.{item}.friction.scale'] for item in CYLINDERS[name])
