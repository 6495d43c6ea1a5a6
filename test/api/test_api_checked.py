# SPDX-License-Identifier: Apache-2.0
"""Arguments of the Python API that cannot be used: an error that names the argument, never a traceback."""

import inspect
import math
from pathlib import Path

import numpy as np
import pytest

import mbse_ros as mbse
from mbse_ros.api.checked import KINDS, _parts
from mbse_ros.errors import BagError, MbseError, SettingError, check_choice, check_count, check_positive

FUNCTIONS = [name for name in mbse.__all__ if name not in ('errors', 'Samples')]
CHECKED = [(name, argument) for name in FUNCTIONS for argument, text in (
    getattr(mbse, name).__init__ if inspect.isclass(getattr(mbse, name)) else getattr(mbse, name)
    ).__annotations__.items() if argument != 'return' and set(_parts(text)) <= KINDS.keys()
    and (name, argument) != ('compare', 'names')]      # as many as one likes: by no name
T = np.arange(3.0)
LIFT = 'position/lift', 'pressure/lift_piston', 'pressure/lift_rod', 'command/lift_valve'


def refused(name, function, /, *arguments, **options):
    """The error of a call, which names the argument."""
    with pytest.raises(SettingError, match='expected ') as found:
        function(*arguments, **options)
    assert found.value.name == name, found.value
    return str(found.value)


@pytest.mark.parametrize('function, argument', CHECKED)
def test_an_object_is_refused_by_the_name_of_the_argument(function, argument):
    assert refused(argument, getattr(mbse, function), **{argument: object()})


def test_almost_all_arguments_are_checked():
    every = [argument for name in FUNCTIONS for argument in inspect.signature(getattr(mbse, name)).parameters]
    assert len(CHECKED) > 0.85 * len(every)


@pytest.mark.parametrize('argument, values', {
    'duration': ['1', True, math.nan, math.inf, [1.0], 1e300, -1.0, 0, 10 ** 400],
    'dt': [None, 0.0, 10.0], 'rate': [0, 'fast'],
    'sensors': ['encoder', [1], 3], 'seed': [-1, 1.5, True], 'noise': [-1.0], 'scheme': [[], 'rk45'],
    'inputs': ['torque', {}], 'stop': [1, 'no'], 'model': [3, None, '', ' ']}.items())
def test_a_simulation_refuses(argument, values):
    for value in values:
        if (argument, value) == ('duration', 1e300):
            assert refused('dt', mbse.simulate, 'four_bar', value)
        else:
            assert refused(argument, mbse.simulate, **{'model': 'four_bar', argument: value})


@pytest.mark.parametrize('name, function, arguments, options', [
    ('duration', mbse.simulate, ('patu655_lift', 1e300), {}),
    ('dt', mbse.inverse_dynamics, ('four_bar_adams_driven',), {'dt': 1e300}),
    ('dt', mbse.simulate_batch, ('four_bar', 1e300), {'runs': 1}),
    ('seed', mbse.simulate_batch, ('four_bar', 0.1), {'runs': 1, 'seed': -1}),
    ('parameters', mbse.simulate_batch, ('four_bar', 0.1), {'parameters': {'x': [1.0, 2.0]}}),
    ('input_times', mbse.simulate_batch, ('four_bar', 0.1), {'starts': {'theta': [0.5]}, 'input_times': [0.0, 0.1]}),
    ('clearance', mbse.simulate, ('four_bar', 0.1), {'formulation': 'udwadia_kalaba_recursive', 'scheme': 'rk4',
                                                     'options': {'clearance': True}}),
    ('tolerance', mbse.Observer, ('four_bar', 'SCKF', ['encoder']), {'noise': 'printed', 'tolerance': 0.3}),
    ('passes', mbse.Observer, ('four_bar', 'SCKF', ['encoder']), {'passes': True}),
    ('estimator', mbse.Observer, ('four_bar', 3), {}),
    ('backend', mbse.load, ('four_bar',), {'backend': 'gpu'}),
    ('observer', mbse.tune, ([],), {'estimator': 'errorEKF', 'sensors': ['encoder']}),
    ('seeds', mbse.tune, ('four_bar',), {'estimator': 'errorEKF', 'sensors': ['encoder'], 'seeds': 0}),
    ('dt', mbse.tune, ('four_bar',), {'estimator': 'errorEKF', 'sensors': ['encoder'], 'dt': 0.01}),
    ('skip', mbse.tune, ('four_bar',), {'estimator': 'errorEKF', 'sensors': ['encoder'], 'skip': -1.0}),
    ('folder', mbse.export_c, ('four_bar', Path(__file__).parent), {}),
    ('estimator', mbse.estimate, ({'encoder': (T, T)},), {'mechanism': 'four_bar', 'estimator': 'nosuch'}),
    ('step', mbse.smooth, ({'encoder': (T, T)},), {'mechanism': 'four_bar', 'step': 0.0}),
    ('log', mbse.estimate, ({},), {'mechanism': 'four_bar'}),
    ('bags', mbse.fleet, ([], 'x.csv'), {'machine': 'patu655_lift'}),
    ('jobs', mbse.fleet, (['x'], 'x.csv'), {'machine': 'patu655_lift', 'jobs': -1}),
    ('every', mbse.estimate, ({name: (T, T) for name in LIFT},), {'machine': 'patu655_lift', 'every': 1e300}),
    ('jobs', mbse.calibrate, (['x', 'y'], 'patu655_lift'), {'jobs': 0}),
    ('truck', mbse.loads, ('x',), {'machine': 'patu655_lift', 'truck': {'x': 1}}),
    ('bag', mbse.check_data, ({},), {}),
    ('log', mbse.estimate, (3,), {}),
    ('step', mbse.estimate, (mbse.Samples(T, ('encoder',), T),), {'mechanism': 'four_bar', 'step': 1e-300}),
    ('step', mbse.estimate, (mbse.Samples(T, ('encoder',), T),), {'mechanism': 'four_bar', 'step': 1e300}),
    ('linkage.options', mbse.estimate, (mbse.Samples(T, ('encoder',), T),), {
        'mechanism': 'four_bar', 'tuning': {'linkage.options': 'passes=3,tolerance=1'}}),
    ('rate', mbse.export_c, ('patu655_lift', 'x'), {'estimator': True, 'rate': 0.0}),
    ('names', mbse.Samples, (T, 'abc', np.zeros((3, 3))), {}),
    ('names', mbse.Samples, (T, 3, T), {}),
    ('t', mbse.Samples, ('now', ('a',), T), {}),
    ('values', mbse.Samples, (T, ('a',), ['x']), {}),
    ('channel_units', mbse.Samples, (T, ('a',), T), {'channel_units': 'm'}),
    ('start_ns', mbse.Samples, (T, ('a',), T), {'start_ns': 0.5}),
    ('namespace', mbse.write_bag, ('x', {}), {'namespace': '1 2'})])
def test_what_cannot_be_used_is_refused_by_its_name(name, function, arguments, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(name, function, *arguments, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('stddev', [-1.0, math.nan, '1', {}, True, [1.0], [math.inf, 1.0, 1.0], object()])
def test_an_uncertainty_at_the_start_is_a_number_or_one_for_each_entry(stddev):
    assert refused('stddev', mbse.Observer('four_bar', 'errorEKF_FE', ['encoder'], backend='vm').start, stddev=stddev)


def test_one_text_for_a_list_is_answered_with_the_list():
    for name, options in (('biases', {'biases': 'encoder'}), ('sensors', {'sensors': 'encoder'})):
        said = refused(name, mbse.Observer, 'four_bar', 'errorEKF', **{'sensors': ['encoder'], **options})
        assert "a list of names, such as ['encoder']" in said


def test_what_would_be_without_effect_is_refused(tmp_path):
    motion = mbse.simulate('four_bar', 0.05, sensors=['encoder'])
    assert refused('machine', mbse.write_bag, tmp_path / 'bag', motion, 'four_bar')
    lift = mbse.write_bag(tmp_path / 'lift', mbse.simulate('patu655_lift', 0.1))
    assert refused('sensors', mbse.read_bag, lift, 'patu655_lift', sensors=['x'])


def test_the_map_of_topics_makes_its_folder_and_overwrites_nothing(tmp_path):
    lift, place = mbse.write_bag(tmp_path / 'lift', mbse.simulate('patu655_lift', 0.1)), tmp_path / 'new' / 'map.yaml'
    found = mbse.topics(lift, 'patu655_lift', output=place)
    assert place.read_text() == found.text
    with pytest.raises(BagError, match='exists already'):
        mbse.topics(lift, 'patu655_lift', output=place)
    assert refused('output', mbse.topics, lift, 'patu655_lift', output=lift / 'metadata.yaml' / 'x')


def test_errors_keep_their_value_and_take_other_names():
    error = SettingError('duration, dt', Path('x'), 'numbers').renamed({'dt': '--dt', 'duration': '--duration'})
    assert str(error) == "--duration, --dt: got 'x', expected numbers" and error.value == Path('x')
    assert SettingError('vary theta', '1', 'y').renamed({'vary': '--vary'}).name == '--vary theta'
    assert SettingError('rate.dt', 1, 'y').renamed({'rate': '--rate', 'dt': '--dt'}).name == 'rate.dt'


@pytest.mark.parametrize('check, value', [(check_positive, 'x'), (check_positive, True), (check_positive, math.nan),
                                          (check_count, 'x'), (check_count, True), (check_count, 1.5),
                                          (lambda a: check_choice('a', a, ('x',)), ['x'])])
def test_checks_of_numbers_and_words_take_anything(check, value):
    with pytest.raises(MbseError, match='^a: got '):
        check(a=value)
