# SPDX-License-Identifier: Apache-2.0
"""Samples and results of the Python API: shapes, names, units, figures, tables; what is wrong is said."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot

import mbse_ros as mbse
from mbse_ros.errors import MissingModuleError, SettingError

T = np.array([0.01, 0.02, 0.03])


@pytest.fixture(autouse=True)
def figures():
    yield
    pyplot.close('all')


@pytest.fixture(scope='module')
def truth():
    return mbse.simulate('four_bar', 1.0, 5e-3, 'trapezoid', sensors=['encoder'])


@pytest.fixture(scope='module')
def found(truth):
    return mbse.Observer('four_bar', 'errorEKF_FE', ['encoder']).start().run(truth.samples)


def test_samples_of_channels_with_times_of_their_own():
    samples = mbse.Samples.of({'a': (T, [1.0, 2.0, 3.0]), 'b': ([0.02, 0.05], [5.0, np.nan])}, {'a': 'm'})
    np.testing.assert_array_equal(samples.t, [0.01, 0.02, 0.03, 0.05])
    np.testing.assert_array_equal(samples.values, [[1, np.nan], [2, 5], [3, np.nan], [np.nan, np.nan]])
    assert samples.units == {'a': 'm', 'b': ''} and samples.names == ('a', 'b')
    assert [item[:3] for item in samples.listed()] == [
        ('a', 10_000_000, 1.0), ('a', 20_000_000, 2.0), ('b', 20_000_000, 5.0), ('a', 30_000_000, 3.0)]


def test_stamps_of_times_below_zero_are_not():
    np.testing.assert_array_equal(mbse.Samples(T - 0.02, ('a',), T).stamps_ns, [0, 10_000_000, 20_000_000])


@pytest.mark.parametrize('make, said', [
    (lambda: mbse.Samples(T[::-1], ('a',), T), 'later than the one before'),
    (lambda: mbse.Samples(T, ('a', 'b'), T[:, None]), r'\(3, 2\): 3 times of a, b'),
    (lambda: mbse.Samples(T, ('a',), [1.0, np.inf, 2.0]), 'NaN where'),
    (lambda: mbse.Samples(T, ('a', 'a'), np.zeros((3, 2))), 'each name once'),
    (lambda: mbse.Samples([], ('a',), []), 'one finite time'),
    (lambda: mbse.Samples.of({}), 'a channel or more'),
    (lambda: mbse.Samples.of({'a': (T, [1.0])}), 'of one length'),
    (lambda: mbse.Samples.of({'a': 3.0}), 'two arrays'),
    (lambda: mbse.Samples(T, ('a',), T)['b'], "name: got 'b', expected one of a")])
def test_what_samples_refuse(make, said):
    with pytest.raises(SettingError, match=said):
        make()


def test_columns_and_units(truth, found):
    np.testing.assert_array_equal(truth['theta'], truth.q[:, truth.names.index('theta')])
    np.testing.assert_array_equal(found['P1.y_dot'], found.qd[:, found.model.names.index('P1.y')])
    np.testing.assert_array_equal(found['theta'], found.mean[:, found.names.index('position/theta')])
    assert {name: found.units[name] for name in ('theta', 'theta_dot', 'theta_ddot', 'P1.x', 'force/theta')} == {
        'theta': 'rad', 'theta_dot': 'rad/s', 'theta_ddot': 'rad/s^2', 'P1.x': 'm', 'force/theta': 'N m'}
    assert truth.units['kinetic'] == 'J' and truth.samples.units == {'encoder': 'rad'}
    names = [item.name for item in found.series()]
    assert len(names) == len(set(names))


def test_json_of_a_result_is_json(truth, found):
    """With every instant."""
    for item in (truth, found, mbse.simulate('patu655_lift', 0.1)):
        text = json.dumps(item.to_json(True), allow_nan=False)
        written = json.loads(text)
        assert written == item.to_json(True) and written['t'] == list(item.t)
        name = item.series()[0].name
        assert written['state'][name] == list(item[name])
        assert written['end'][name]['position' if item is truth else 'value'] == item[name][-1]


def test_each_name_of_the_state_is_a_column(truth, found):
    """Of filters of a mechanism, too, whose columns are named as those of its motion."""
    machine = mbse.estimate(mbse.simulate('patu655_lift', 0.3).samples, 'patu655_lift')
    corrected = mbse.Observer('four_bar', 'errorEKF_EJ', ['encoder']).run(truth.samples)
    for item in (found, corrected, machine):
        for k, name in enumerate(item.names):
            np.testing.assert_array_equal(item[name], item.mean[:, k])
    assert {name: found.units[name] for name in found.names} == {
        'position/theta': 'rad', 'velocity/theta': 'rad/s', 'acceleration_error/theta': 'rad/s^2'}
    assert machine.units['payload/mass'] == 'kg' and 'position/theta' not in [item.name for item in found.series()]
    assert found.plot('position/theta').axes[0].get_ylabel() == 'rad'


def test_a_result_is_printed_in_a_line(truth, found):
    crane = mbse.simulate('patu655_lift', 0.3, payload=80.0)
    machine = mbse.estimate(crane.samples, 'patu655_lift')
    assert repr(crane) == '<MachineSimulation patu655_lift: 31 instants over 0.3 s, mass 80 kg>'
    assert repr(machine) == (f'<MachineEstimate patu655_lift: 30 instants over 0.29 s, mass {machine.mass[-1]:.6g} kg '
                             f'({machine.lower[-1]:.6g} to {machine.upper[-1]:.6g})>')
    assert repr(found).startswith('<MotionEstimate four_bar: 200 instants over 0.995 s, theta ')
    assert repr(crane.samples).startswith('<Samples: ')
    for item in (truth, truth.samples, found, machine, mbse.observability('four_bar', ['encoder'], duration=1.0),
                 mbse.inverse_dynamics('four_bar_adams_driven', duration=0.1)):
        assert '\n' not in repr(item) and 20 < len(repr(item)) < 150


def test_a_figure_shows_what_was_asked_for(truth, found):
    figure = found.plot('theta', 'theta_dot', truth=truth)
    assert [ax.get_title('left') for ax in figure.axes] == ['theta', 'theta_dot']
    assert [ax.get_ylabel() for ax in figure.axes] == ['rad', 'rad/s']
    estimate, true = figure.axes[0].get_lines()
    assert true.get_linewidth() > estimate.get_linewidth() and len(figure.axes[0].collections) == 1          # the band
    assert pyplot.fignum_exists(figure.number)          # pyplot.show() shows it
    with pytest.raises(SettingError, match='one of theta'):
        found.plot('phi')


def test_a_figure_without_names_shows_the_main_columns(truth, found):
    assert [ax.get_title('left') for ax in found.plot().axes] == ['theta', 'theta_dot', 'force/theta']
    assert [ax.get_title('left') for ax in truth.plot().axes] == ['theta', 'theta_dot', 'theta_ddot', 'energy']
    assert len(truth.samples.plot().axes) == 1


def test_wide_starts_do_not_stretch_the_axis(found):
    theta = found['theta']
    low, high = found.plot('theta').axes[0].get_ylim()
    assert high - low < 1.5 * np.ptp(theta) and low < theta.min() and high > theta.max()


def test_a_table_without_pandas(found, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pandas', None)
    with pytest.raises(MissingModuleError, match=r'pip install pandas, or pip install "mbse_ros\[table\]"'):
        found.to_dataframe()


def test_what_a_table_is_made_of(found, monkeypatch):
    """With something that stands for pandas, which need not be installed."""
    class Frame:
        def __init__(self, columns, index):
            self.columns, self.index, self.attrs = columns, index, {}
    monkeypatch.setitem(sys.modules, 'pandas', SimpleNamespace(
        DataFrame=Frame, Index=lambda values, name: (name, values)))
    table = found.to_dataframe()
    assert table.index[0] == 't' and table.attrs['units']['theta'] == 'rad'
    assert list(table.columns)[:4] == ['theta', 'theta stddev', 'theta_dot', 'theta_dot stddev']
    np.testing.assert_array_equal(table.columns['theta stddev'], found.stddev[:, 0])


def test_a_table_of_pandas(found):
    pandas = pytest.importorskip('pandas', reason='pandas is not installed (extra "table")')
    table = found.to_dataframe()
    assert isinstance(table, pandas.DataFrame) and len(table) == len(found.t) and table.index.name == 't'
