# SPDX-License-Identifier: Apache-2.0
"""The exported estimator that weighs motion and mass together against the Python pipeline, tick by tick: motion, mass,
interval, statuses and faults, while loads change, sensors fail and all of them pause."""

import re
import shutil
from functools import cache

import numpy as np
import pytest
from core_support import crane
from embedded_support import ExportedEstimator, compared_ticks
from export_support import run_test
from machine_variants import changed

from mbse_ros.embedded.record import OBSERVER
from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.embedded.write import export_estimator
from mbse_ros.filters.observer_settings import ObserverSettings
from mbse_ros.machine import load_machine
from mbse_ros.monitor.faults import Fault
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.simulation.work import working_machine
from mbse_ros.streams.records import ObserverStatus, PayloadStatus

pytestmark = pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')
BETWEEN = {'doubt_after': 0.205, 'lost_after': 0.505, 'constant_after': 0.995}     # between ticks
TICK = 0.01         # s


def setup_of(name='patu655_lift', machine=None, **changes):
    machine = machine or (crane() if name == 'patu655_lift' else load_machine(name))
    # the C text does not look for an error of the force balance
    none = {'force_error': 0.0, 'pressure_error': 0.0}
    return EstimatorSetup(machine, ObserverSettings(**{**none, **changes}), PayloadSettings())


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp('c') / 'lift'
    export_estimator(setup_of(**BETWEEN), path)
    return path


@cache
def motion(payload, ticks=2600):
    """Samples and commands of a load that is moved at random; of any load in the same way."""
    machine = crane()
    work = working_machine(machine, payload, 4, 'random', duration=ticks * TICK)
    frames = [work.frame() for _ in range(ticks)]
    return (np.array([[frame.samples[name] for name in machine.channels] for frame in frames]),
            np.array([[frame.commands[name] for name in machine.commands] for frame in frames]))


def compared(folder, samples, commands, pauses=(), of=None):
    """Statuses and faults of the mass in all ticks; asserts that all numbers are those of Python. ``pauses``: by tick,
    ticks without samples before it."""
    return compared_ticks(of or setup_of(**BETWEEN), folder, samples, commands, pauses)


def test_a_load_that_changes(folder):
    samples, commands = motion(80.0)
    samples = samples[:1900].copy()
    samples[900:, 1] += 5e5 * (np.minimum(np.arange(1000) / 15, 1.0) - np.clip(np.arange(-500, 500) / 15, 0.0, 1.0))
    status, faults = compared(folder, samples, commands)
    assert {PayloadStatus.UPDATING, PayloadStatus.CHANGING, PayloadStatus.TOO_SLOW} <= status
    assert Fault.LOAD_CHANGES in faults and Fault.FIRST_MASS in faults


def test_an_error_of_the_force_balance_that_the_file_states(tmp_path):
    """Its density in the motion, and that which the mass takes more than once: it lasts longer than TIME."""
    of = setup_of(machine=changed('patu655_lift', {'cylinders/lift/force_error': {'stddev': '4 kN', 'time': '1 s'}}),
                  **BETWEEN)
    export_estimator(of, tmp_path / 'lift')
    samples, commands = (part.copy() for part in motion(80.0))
    samples[900:905, 1] = np.nan        # the balance is not used, and again
    status, _ = compared(tmp_path / 'lift', samples[:1400], commands[:1400], of=of)
    assert PayloadStatus.UPDATING in status


def test_an_accelerometer_on_a_base_that_drives(tmp_path):
    """It is silent, upside down and stuck for a while."""
    machine = changed('patu655_lift', {'sensors/base_imu': {'kind': 'accelerometer', 'body': 'ground',
                                                            'stddev': '0.05 m/s^2'}})
    of = setup_of(machine=machine, **BETWEEN)
    export_estimator(of, tmp_path / 'lift')
    work = working_machine(machine, 80.0, 4, 'random', duration=14.0, physics={'base_acceleration': 1.0})
    frames = [work.frame() for _ in range(1400)]
    samples = np.array([[frame.samples[name] for name in machine.channels] for frame in frames])
    commands = np.array([[frame.commands[name] for name in machine.commands] for frame in frames])
    own = [place for place, name in enumerate(machine.channels) if name.startswith('accelerometer/')]
    samples[700:740, own] = np.nan
    samples[900:930, own] *= -1.0
    samples[1100:1260, own] = samples[1100, own]
    status, faults = compared(tmp_path / 'lift', samples, commands, of=of)
    assert {PayloadStatus.UPDATING, PayloadStatus.NO_DATA} <= status
    assert (Fault.MISSING | Fault.FAR | Fault.STUCK) & ~faults == Fault(0)


def test_sensors_that_fail(folder):
    samples, commands = (part.copy() for part in motion(80.0))
    samples[900, 1] = np.nan
    samples[950:952, 1] += 2e6              # a spike that a shock explains
    samples[1000:1030, 2] += 2e6 * np.minimum(np.arange(1, 31) / 4, 1.0)       # rejected for long, and no step
    samples[1027:1030, 2] -= 2e6 * np.arange(1, 4) / 4
    samples[1900:1960, 2] += 3e5            # steps alone, and back
    samples[1100:1103, 0] -= 0.1            # jumps, and back
    samples[1250:1255, 1] = -3e5            # below vacuum
    samples[1400:1410, 0] = 3.0             # far away
    samples[1600:1810, 1] = samples[1600, 1]        # stuck
    samples[2200:2260, 1] = np.nan          # a pressure is silent
    samples[2400:2440] = np.nan             # all are
    status, faults = compared(folder, samples, commands)
    assert {PayloadStatus.CONTACT, PayloadStatus.IMPLAUSIBLE, PayloadStatus.NO_DATA} <= status
    expected = (Fault.MISSING | Fault.STUCK | Fault.REJECTED | Fault.JUMPED | Fault.VACUUM | Fault.FAR
                | Fault.UNMEASURED | Fault.DOUBTED | Fault.OUTSIDE_FORCE | Fault.NOT_TRUSTED | Fault.SETTLING)
    assert expected & ~faults == Fault(0)


def test_a_pressure_that_drifts_and_commands_that_come_rarely(folder):
    """The mass of its blocks steps, leans and settles; later valves move on while commands are held."""
    samples, commands = (part.copy() for part in motion(80.0))
    samples[1000:, 1] += np.minimum(np.arange(1600) / 600, 1.0) * 6e5
    commands[2100:] = commands[2100 + np.arange(500) // 10 * 10]
    status, faults = compared(folder, samples, commands)
    assert PayloadStatus.CHANGING in status and Fault.LOAD_CHANGES in faults


def test_hoses_that_are_swapped(folder):
    samples, commands = motion(80.0)
    status, faults = compared(folder, samples[:1500, [0, 2, 1]], commands[:1500])
    assert Fault.EXCHANGED in faults and PayloadStatus.UPDATING not in status


def test_two_sensors_in_one_line(folder):
    """The rod's shows the piston's pressure with its own noise; later it is plugged where it belongs."""
    samples, commands = (part.copy() for part in motion(80.0))
    samples[:900, 2] = samples[:900, 1] + np.random.default_rng(1).normal(0.0, 2e4, 900)
    status, faults = compared(folder, samples[:1700], commands[:1700])
    assert Fault.EXCHANGED in faults and PayloadStatus.IMPLAUSIBLE in status


def test_pauses_of_all_sensors(folder):
    samples, commands = motion(80.0)
    there = np.r_[0:900, 920:1300, 1400:2000]
    _, faults = compared(folder, samples[there], commands[there], {900: 20, 1280: 100})
    assert Fault.SETTLING in faults


def test_after_a_gap_of_unknown_length_the_load_may_be_another(folder):
    (light, commands), (heavy, _) = motion(20.0), motion(120.0)
    exported = ExportedEstimator(folder, 'patu655_lift', '-O1')
    before = [exported.step(*row) for row in zip(light[:900], commands)]
    exported.gap()
    after = [exported.step(*row) for row in zip(heavy[900:1800], commands[900:])]
    weighed = [one.mass for one in after if one.status == 0]
    assert abs(before[-1].held_mass - 20.0) < 8.0 and len(weighed) > 100
    assert abs(weighed[-1] - 120.0) < 8.0 and after[0].reasons == 32 and after[1].observer == OBSERVER[
        ObserverStatus.STARTING]
    exported.new_load()
    another = exported.step(heavy[1801], commands[1801])       # nothing of the load before is left
    assert np.isnan(another.mass) and not another.held_stddev < 2.0 * after[-1].held_stddev


@pytest.mark.parametrize('weighing, close', [('joint', 1e-9), ('apart', 1e-12)])
def test_closed_loops_and_several_cylinders(tmp_path, weighing, close):
    """The recorded ticks of the file's own test, compiled without a warning; nothing is allocated, nothing calls
    itself."""
    export_estimator(setup_of('patu655', weighing=weighing), tmp_path / 'c')
    done = run_test(tmp_path / 'c', 'cc', '-O0')
    off = re.findall(r'of the mass (\S+), of a position (\S+) ', done.stdout)
    assert done.returncode == 0 and max(map(float, off[0])) < close, done.stdout
    text = ''.join(path.read_text() for path in (tmp_path / 'c').glob('patu655*'))
    assert not re.search(r'\b(malloc|calloc|realloc|alloca|free|printf)\s*\(', text)
    for name, body in re.findall(r'^static [^\n;=]*?(\w+)\([^;]*?\) \{\n(.*?)^\}', text, re.DOTALL | re.MULTILINE):
        assert not re.search(rf'(?<!>)\b{name}\(', body), f'{name} calls itself'


def test_single_precision(tmp_path):
    """All recorded ticks have the statuses of Python."""
    export_estimator(setup_of(), tmp_path / 'c', single=True)
    run = run_test(tmp_path / 'c', 'cc', '-Wdouble-promotion', '-O1')
    assert run.returncode == 0, run.stdout


def test_a_wrong_zero_of_a_position(folder):
    """50 mm from the first sample on: found, and the mass is corrected by it."""
    samples, commands = motion(400.0, 1600)
    wrong = samples + 0.05 * (np.array(crane().channels) == 'position/lift')
    status, faults = compared(folder, wrong, commands)
    assert Fault.CONTRADICTION in faults and PayloadStatus.UPDATING in status
    assert PayloadStatus.IMPLAUSIBLE not in status


def test_loads_that_the_limits_exclude(tmp_path):
    """While such a load comes it changes; then no load within the limits explains it."""
    of = setup_of(machine=changed('patu655_lift', {'payload/limits': ['0 kg', '100 kg']}), **BETWEEN)
    export_estimator(of, tmp_path / 'lift')
    samples, commands = (part.copy() for part in motion(80.0, 1600))
    samples[900:, 1] += 1.5e6 * (np.minimum(np.arange(700) / 100, 1.0) - np.clip(np.arange(-350, 350) / 100, 0.0, 1.8))
    status, faults = compared(tmp_path / 'lift', samples, commands, of=of)
    assert {PayloadStatus.UPDATING, PayloadStatus.CHANGING, PayloadStatus.IMPLAUSIBLE} <= status
    assert Fault.LIMITS in faults
