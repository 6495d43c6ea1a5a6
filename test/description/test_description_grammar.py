# SPDX-License-Identifier: Apache-2.0
"""Every type of joint, force, spring, driver and sensor in each type of coordinates: derivatives equal finite
differences, and all coordinates and formulations give the same accelerations and samples."""

from functools import cache

import numpy as np
import pytest
from grammar_runs import model_of, run
from mechanism_grammar import JOINTS, drivers, text

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.formulations.by_name import FORMULATIONS
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.partition import choose_independent
from mbse_ros.dynamics.sensor_equations import sensor_function
from mbse_ros.errors import SettingError

KINDS = {2: ('natural', 'reference_point', 'relative'), 3: ('reference_point', 'relative')}
STEP = 1e-6
CASES = [(dimension, joint) for dimension, joints in JOINTS.items() for joint in joints]


@cache
def without_driver(dimension, joint, kind):
    return Model(parse_mechanism(text(dimension, joint)), kind, backend='vm')


def built(dimension, joint, kind, driver=''):
    """A model, and the state equations with the sensors' as kernels."""
    model = without_driver(dimension, joint, kind)
    if driver:
        start = float(model.start.q[model.names.index(driver)])
        model = Model(parse_mechanism(text(dimension, joint, driver, start)), kind, backend='vm')
    partition = model.partition()
    return model, partition, Kernel(sensor_function(partition.system, partition.system.values.symbol), 'vm')


def inputs(model):
    return np.linspace(0.5, -0.7, len(model.inputs))


def check_derivatives(model, partition, sensors):
    """Along one direction of the state, against central differences."""
    g, rng = len(partition.independent), np.random.default_rng(1)
    q, zd, along, u = model.start.q, rng.uniform(-1.0, 1.0, g), rng.uniform(-1.0, 1.0, 2 * g), inputs(model)
    rates, (h, H) = partition.rates(q, zd, u), sensors(q, zd, u, [0.0], partition.parameters)
    found = []
    for step in (STEP, -STEP):
        there = partition.position(q[partition.independent] + step * along[:g], q)
        speeds = zd + step * along[g:]
        found.append(np.concatenate([partition.rates(there, speeds, u).zdd,
                                     sensors(there, speeds, u, [0.0], partition.parameters)[0]]))
    exact = np.concatenate([rates.A[g:] @ along, H.reshape(len(h), 2 * g) @ along])
    assert np.isfinite(exact).all() and np.isfinite(rates.qdd).all()
    slope = (found[0] - found[1]) / (2 * STEP)
    assert exact == pytest.approx(slope, rel=1e-5, abs=1e-5 * max(1.0, np.abs(exact).max()))
    for name in FORMULATIONS:
        if name not in ('penalty', 'matrix_r'):
            qdd = model.accelerations(q, partition.velocity(q, zd), u, 0.0, name)
            assert qdd == pytest.approx(rates.qdd, rel=1e-6, abs=1e-6 * np.abs(rates.qdd).max()), name


def at_rest(model, partition, sensors, given):
    """Samples where named coordinates have the values of a dictionary, which is filled where it is empty."""
    q = model.start.q
    if given:
        J = model.residual(q)[1][model.active]
        chosen = model.partition(choose_independent(J, candidates=[model.names.index(name) for name in given]))
        q = chosen.position([given[model.names[i]] for i in chosen.independent], q)
    given.update((name, q[model.names.index(name)]) for name in model.description.coordinates)
    return sensors(q, np.zeros(len(partition.independent)), inputs(model), [0.0], partition.parameters)[0]


@pytest.mark.parametrize('dimension, joint', CASES)
def test_all_forces_and_sensors_in_all_coordinates(dimension, joint):
    """Where the named coordinates determine the position, all coordinates give the same samples there."""
    samples, given = [], {}
    for kind in KINDS[dimension][::-1]:
        parts = built(dimension, joint, kind)
        check_derivatives(*parts)
        if (dimension, joint) != (3, 'distance'):
            samples.append(at_rest(*parts, {} if joint == 'spherical' else given))      # whose starts are the same
    for other in samples[1:]:
        assert other == pytest.approx(samples[0], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize('dimension, joint', CASES)
def test_drivers_in_relative_coordinates(dimension, joint):
    """Of the joint where it has a coordinate, else of a distance, with the sensor of its force."""
    driver = 'j' if 'j' in drivers(dimension, joint) else 'd'
    model, partition, sensors = built(dimension, joint, 'relative', driver)
    assert f'drivers.{driver}' in model.rows and model.degrees_of_freedom == len(partition.independent)
    check_derivatives(model, partition, sensors)


@pytest.mark.parametrize('dimension, joint, kind, tool, options', [
    (2, 'prismatic', 'natural', 'errorEKF_FE', 'actuators=u1,u3'), (2, 'slot', 'relative', 'CEKF_penalty', ''),
    (2, 'revolute', 'natural', 'UKF_acceleration', 'alone=true'),
    (3, 'fixed', 'relative', 'DEKF', ''), (2, 'slot', 'relative', 'smoother', ''),
    (2, 'revolute', 'natural', 'factor graph', ''), (2, 'distance', 'natural', 'C', '')])
def test_filters_smoothers_graphs_and_code_take_what_the_language_has(dimension, joint, kind, tool, options, tmp_path):
    """All combinations: ``benchmarks/mechanism_fuzz.py --kind grammar``."""
    model = model_of(dimension, joint, kind, tool)
    assert np.isfinite(run(model, tool, tmp_path / 'c', options)).all()


def test_a_filter_refuses_sensors_that_do_not_serve_it_in_words(tmp_path):
    with pytest.raises(SettingError, match='sensors'):
        run(model_of(2, 'slot', 'relative'), 'kinematic', tmp_path)
