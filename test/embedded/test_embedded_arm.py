# SPDX-License-Identifier: Apache-2.0
"""The exported estimator of an arm with measured efforts against the Python pipeline, tick by tick, over logs of
a load: another load, contacts, efforts that fall silent, are far off or stuck, encoders that jump, pauses."""

import shutil
from functools import cache

import numpy as np
import pytest
from embedded_support import compared_ticks
from small_arm import TEXT, log

from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.embedded.write import export_estimator
from mbse_ros.errors import SettingError
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import Fault
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.streams.records import PayloadStatus

pytestmark = pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')
RATE = 125.0
FIRST = 1e-5        # of the first masses: samples off by 2e-16 change Python's by 3e-8


def arm_of(folder, text=TEXT, **changes):
    """The arm's estimator."""
    file = folder / 'small_arm.yaml'
    file.write_text(text)
    # the C text does not look for an error of the force balance
    return EstimatorSetup(load_machine(file), ObserverSettings(force_error=0.0, pressure_error=0.0, **changes),
                          PayloadSettings(), RATE)


@pytest.fixture(scope='module')
def arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp('c')
    of = arm_of(folder)
    export_estimator(of, folder / 'c')
    return of, folder / 'c'


@cache
def moved(load, duration=16.0):
    """Samples (n, channels) of the arm with a load, kg."""
    found = log(duration, load)
    names = [f'{kind}/{joint}' for kind, joint in (('position', 'shoulder_angle'), ('position', 'elbow_angle'),
                                                   ('effort', 'shoulder'), ('effort', 'elbow'))]
    return np.array([found[name][1] for name in names]).T


def compared(arm, samples, pauses=()):
    """See ``compared_ticks``."""
    return compared_ticks(*arm, samples, np.zeros((len(samples), 0)), pauses, FIRST)


def test_a_load_is_taken_and_dropped(arm):
    light, heavy = moved(0.5), moved(3.0)
    status, faults = compared(arm, np.concatenate([light[:700], heavy[700:1400], light[1400:]]))
    assert {PayloadStatus.UPDATING, PayloadStatus.CHANGING, PayloadStatus.NO_DATA} <= status
    assert {Fault.FIRST_MASS, Fault.LOAD_CHANGES} <= set(faults)


def test_sensors_that_fail(arm):
    samples = moved(3.0).copy()
    samples[600, 2] = np.nan
    samples[650:652, 3] += 30.0             # a spike
    samples[700:790, 3] = np.nan            # an effort is silent, for longer than one is believed
    samples[900:1000, 2] = np.nan           # the other one
    samples[1080:1120, 3] = 300.0           # no drive gives so much
    samples[1200:1203, 0] += 0.1            # jumps, and back
    samples[1300:1460, 3] = samples[1300, 3]        # stuck
    samples[1600:1640] = np.nan             # all are missing
    status, faults = compared(arm, samples)
    assert {PayloadStatus.UPDATING, PayloadStatus.NO_DATA} <= status
    expected = Fault.MISSING | Fault.FAR | Fault.JUMPED | Fault.STUCK | Fault.UNMEASURED
    assert expected & ~faults == Fault(0)


def test_forces_that_no_load_explains(arm):
    """The tool touches something; later an effort steps, which shocks and is rejected."""
    samples = moved(3.0)[:1400].copy()
    touch = np.clip(np.minimum(np.arange(150), np.arange(150, 0, -1)) / 12, 0.0, 1.0)
    samples[700:850, 2:] += np.outer(touch, [25.0, -8.0])
    samples[1150:1175, 3] -= 60.0
    status, faults = compared(arm, samples)
    assert {PayloadStatus.UPDATING, PayloadStatus.CONTACT, PayloadStatus.CHANGING} <= status
    assert (Fault.REJECTED | Fault.OUTSIDE_FORCE | Fault.DOUBTED) & ~faults == Fault(0)


def test_pauses_of_all_sensors(arm):
    samples = moved(3.0)
    compared(arm, samples[np.r_[0:900, 920:1300, 1400:2000]], {900: 20, 1280: 100})


def test_an_arm_whose_file_calls_its_numbers_exact_is_refused(tmp_path):
    """Nothing in C looks for what is wrong then, and the mass would be sure of itself."""
    exact = TEXT.replace('value: 2 N*m, stddev: 30 %', 'value: 2 N*m').replace('value: 3, stddev: 30 %', 'value: 3')
    with pytest.raises(SettingError, match=r'drives\.shoulder\.friction'):
        export_estimator(arm_of(tmp_path, exact), tmp_path / 'c')
