# SPDX-License-Identifier: Apache-2.0
"""Results that a paper can be written from: consistency, files, figures."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mbse_ros as mbse
from mbse_ros.errors import MissingModuleError, SettingError
from mbse_ros.filters.linkage_settings import LinkageSettings
from mbse_ros.offline.consistency import bounds

DRAWS = 20_000


@pytest.fixture(scope='module')
def truth():
    return mbse.simulate('four_bar', 2.0, sensors=['encoder'])


@pytest.fixture(scope='module')
def found(truth):
    return mbse.Observer('four_bar', 'UKF', ['encoder'], backend='vm').run(truth.samples)


def drawn(found, truth, scale):
    """An estimate whose errors are drawn from ``scale`` squared times its covariance, and whose innovations are too."""
    draw, (k, count) = np.random.default_rng(1), found.mean.shape
    P = np.array([[0.04, 0.03], [0.03, 0.09]])
    true = np.column_stack([np.interp(found.t, truth.t, truth[name]) for name in ('theta', 'theta_dot')])
    mean = true + scale * draw.standard_normal((k, count)) @ np.linalg.cholesky(P).T
    return replace(found, mean=mean, covariances=np.tile(P, (k, 1, 1)), stddev=np.tile(np.sqrt(np.diag(P)), (k, 1)),
                   innovation=scale * 0.3 * draw.standard_normal((k, 1)), innovation_stddev=np.full((k, 1), 0.3))


def long(found, truth):
    """The same instants many times, for numbers that do not hang on the draw."""
    t = np.linspace(found.t[0], found.t[-1], DRAWS)
    wide = {name: np.resize(getattr(found, name), (DRAWS, *getattr(found, name).shape[1:])) for name in (
        'mean', 'q', 'qd', 'qdd', 'force', 'innovation', 'innovation_stddev', 'used', 'stddev')}
    return drawn(replace(found, t=t, **wide), truth, 1.0), drawn(replace(found, t=t, **wide), truth, 2.0)


def test_a_filter_whose_errors_are_as_its_covariance_says_is_consistent_and_no_other(found, truth):
    right, wrong = (item.consistency(truth) for item in long(found, truth))
    assert right.of == ('position/theta', 'velocity/theta')
    assert right.nees_mean == pytest.approx(2.0, rel=0.03) and wrong.nees_mean == pytest.approx(8.0, rel=0.03)
    for share in (right.nees_inside, right.nis_inside, *right.coverage.values()):
        assert share == pytest.approx(0.95, abs=0.01)
    low, high = right.nis_bounds
    assert low < right.nis_mean < high and 0.97 < low < high < 1.03 and wrong.nis_mean == pytest.approx(4.0, rel=0.05)
    assert wrong.nees_inside < 0.7 and max(wrong.coverage.values()) < 0.7 and right.whiteness['encoder'] > 1e-3
    assert right.rmse['velocity/theta'] == pytest.approx(0.3, rel=0.03)


def test_bounds_are_those_of_the_tables():
    """Percentage points of the chi-squared distribution, 2.5 and 97.5 %."""
    np.testing.assert_allclose([bounds(2), bounds(10)], [[0.0506, 7.378], [3.247, 20.483]], rtol=1e-3)


def test_turns_and_a_correlation_count_as_they_should(found, truth):
    one = drawn(found, truth, 1.0)
    turned = replace(one, mean=one.mean + [2 * np.pi, 0.0])
    np.testing.assert_allclose(turned.consistency(truth).nees, one.consistency(truth).nees, rtol=1e-6)
    P = one.covariances[0]
    e = one.mean - np.column_stack([np.interp(one.t, truth.t, truth[name]) for name in ('theta', 'theta_dot')])
    np.testing.assert_allclose(one.consistency(truth).nees, np.einsum('ki,ij,kj->k', e, np.linalg.inv(P), e), rtol=1e-6)
    assert len(one.consistency(truth, skip=1.0).t) == 200 and one.consistency().of == ()
    assert [ax.get_title(loc='left') for ax in one.consistency(truth).plot().axes] == ['NEES of 2 entries', 'NIS']
    assert one.consistency(truth).to_json()['of'] == ['position/theta', 'velocity/theta'] and one.consistency(
        truth).tables()[0].rows[0][0] == 'NEES of 2'
    with pytest.raises(SettingError, match='skip: got 5'):
        one.consistency(truth, skip=5.0)


def test_covariances_are_those_of_the_deviations_by_every_way(truth, found):
    started = mbse.Observer('four_bar', 'UKF', ['encoder'], backend='vm').start().run(truth.samples)
    for item in (found, started):
        assert item.covariances.shape == (400, 2, 2)
        np.testing.assert_allclose(np.sqrt(np.diagonal(item.covariances, axis1=1, axis2=2)), item.stddev, rtol=1e-12)
    assert LinkageSettings().gate == 0.9999     # what the tables of the docs are with


@pytest.mark.parametrize('covariance', ['none', 'bands', 'full'])
def test_a_saved_result_is_the_same_again(found, tmp_path, covariance):
    again = mbse.read_result(found.save(tmp_path / 'a.npz', covariance))
    for one, other in zip(found.series(), again.series()):
        assert (one.name, one.unit) == (other.name, other.unit)
        np.testing.assert_array_equal(one.values, other.values)
        assert (other.stddev is None) == (covariance == 'none' or one.stddev is None)
    assert ('covariances' in again.arrays) is (covariance == 'full') and again.warnings == found.warnings
    np.testing.assert_array_equal(again.arrays['innovation'], found.innovation)
    assert again.units.items() <= found.units.items() and again.names == found.names
    assert len(again.plot().axes) == len(found.plot().axes)


def test_what_is_refused(found, truth, tmp_path):
    (tmp_path / 'b.npz').write_text('no archive')
    np.savez(tmp_path / 'c.npz', t=np.zeros(3))
    for make, said in ((lambda: mbse.read_result(tmp_path / 'b.npz'), 'that save'),
                       (lambda: mbse.read_result(tmp_path / 'c.npz'), 'mbse/result/1'),
                       (lambda: found.save(tmp_path / 'a.csv'), 'ends with .npz'),
                       (lambda: truth.save(tmp_path / 'a.npz', 'full'), 'none or bands'),
                       (lambda: mbse.compare({}), 'results by name'),
                       (lambda: mbse.compare({'UKF': found}, 'phi'), "got 'phi'")):
        with pytest.raises(SettingError, match=said):
            make()


def test_a_figure_of_several_names_all_and_embeds_its_fonts(found, truth, tmp_path):
    figure = mbse.compare({'UKF': found, 'again': found}, 'theta', 'theta_dot', truth=truth)
    assert [ax.get_ylabel() for ax in figure.axes] == ['rad', 'rad/s']
    words = {text.get_text() for legend in (*figure.legends, *(ax.get_legend() for ax in figure.axes)) if legend
             for text in legend.get_texts()}
    assert words >= {'UKF', 'again', 'truth'}
    figure.savefig(tmp_path / 'a.pdf')
    assert b'/CIDFontType2' in (tmp_path / 'a.pdf').read_bytes() and b'/Type3' not in (tmp_path / 'a.pdf').read_bytes()


def test_a_notebook_shows_the_end_and_escapes(found):
    shown = replace(found, warnings=('<b> & more',))._repr_html_()
    assert '&lt;b&gt; &amp; more' in shown and f'{found["theta"][-1]:.6g}' in shown and len(shown) < 3000


def test_xarray_has_units_or_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, 'xarray', None)
    with pytest.raises(MissingModuleError, match='pip install xarray'):
        found.to_xarray()
    monkeypatch.setitem(sys.modules, 'xarray', SimpleNamespace(Dataset=lambda *parts: parts))
    variables, coordinates, attributes = found.to_xarray()
    assert variables['theta_dot'][2] == {'units': 'rad/s'} and coordinates['t'][1] is found.t
    np.testing.assert_array_equal(variables['theta_stddev'][1], found.stddev[:, 0])
    assert attributes == {'warnings': list(found.warnings)}
