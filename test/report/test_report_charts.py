# SPDX-License-Identifier: Apache-2.0
"""From a run to charts: the numbers beside the plots are right, and what is missing is left out."""

import base64
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from report_demo import STATUS_NAMES, demo_run

from mbse_ros.errors import MbseError
from mbse_ros.report.charts import charts_of
from mbse_ros.report.crane import scene_of
from mbse_ros.report.data import (
    Animation,
    Chart,
    Curve,
    Innovation,
    Nis,
    Panel,
    PayloadTrack,
    ReportError,
    Run,
    Series,
    Signal,
)
from mbse_ros.report.text import mass_answer, number, slug
from mbse_ros.report.writer import figure, time_span


@pytest.fixture(scope='module')
def run() -> Run:
    return demo_run()


def track(mass, lower, upper, status=0, true=None) -> PayloadTrack:
    """Of three instants; the first two were other ones."""
    columns = [np.array([value + 7.0, value + 5.0, value]) for value in (mass, mass, mass, lower, upper)]
    statuses = np.array([(status + 1) % 3, (status + 2) % 3, status], dtype=float)
    return PayloadTrack(np.array([0.0, 1.0, 2.0]), *columns, statuses, STATUS_NAMES, true=true)


def panels_of(chart) -> dict:
    return {panel.title: panel for panel in chart.panels}


def test_charts_in_order_with_their_panels(run):
    charts = {chart.name: chart for chart in charts_of(run)}
    assert list(charts) == ['payload', 'motion', 'pressures', 'errors', 'innovations', 'nis']
    position = panels_of(charts['motion'])['Position, lift']
    assert [curve.label for curve in position.curves] == ['measured', 'estimated', 'true']
    np.testing.assert_allclose(position.curves[2].y, 1e3 * run.signals[0].true.value)
    assert [strip.label for strip in charts['payload'].panels[2].strips] == [
        'updating', 'held: too slow', 'held: no data', 'held: accelerating']


def test_without_truth_there_is_no_true_curve_and_no_error_chart():
    charts = charts_of(demo_run(truth=False))
    assert 'errors' not in [chart.name for chart in charts]
    assert 'true' not in [curve.label for chart in charts for panel in chart.panels for curve in panel.curves]


def test_error_panel_gives_rmse_and_share_inside_its_own_band():
    t = np.arange(5.0)
    true = Series(t, np.zeros(5))
    estimated = Series(t, np.array([1.5, -1.5, 1.5, -1.5, 3]) * 1e-3, np.full(5, 1e-3))
    signal = Signal('x', 'mm', 1e3, true=true, estimated=estimated)
    chart, = [chart for chart in charts_of(Run('r', 'm', signals=[signal])) if chart.name == 'errors']
    assert chart.panels[0].note == 'RMSE 1.90 mm, 80.0 % inside the band'


def test_innovation_panel_gives_share_and_mean_in_its_unit():
    value = np.array([1, -1, 1, -1, 2.5, np.nan]) * 1e3
    innovation = Innovation('pressure/a', 'kPa', np.arange(6.0), value, np.full(6, 1e3), 1e-3)
    chart, = charts_of(Run('r', 'm', innovations=[innovation]))
    assert chart.panels[0].note == '80.0 % inside ±1.96 σ, mean 0.50 kPa'
    np.testing.assert_allclose(chart.panels[0].bands[0].upper, 1.96, atol=1e-3)


def test_nis_counts_a_changing_number_of_measurements():
    nis = Nis(np.arange(4.0), np.array([2.0, 4, 30, np.nan]), np.array([3, 3, 1, 3]), 0.2, np.array([9.3, 9.3, 5, 9.3]))
    chart, = charts_of(Run('r', 'm', nis=nis))
    assert chart.panels[0].note == 'mean 12.0, expected 2.33; 66.7 % inside'


def test_an_outlier_of_the_raw_mass_does_not_set_the_axis_but_is_reported(run):
    mass, samples, _ = charts_of(run)[0].panels
    raw = run.payload.raw
    assert mass.limits[1] < samples.limits[1] < 150 < np.nanmax(raw)
    hidden = np.sum((raw < samples.limits[0]) | (raw > samples.limits[1]))
    assert 0 < hidden < 0.04 * raw.size
    assert samples.note == f'{hidden} of {np.isfinite(raw).sum()} raw samples lie outside the axis'


def test_names_of_charts_are_unique_and_never_that_of_the_machines_picture():
    series = Series(np.arange(3.0), np.ones(3))
    groups = ('Crane', 'crane!', 'Lift', 'lift', 'LIFT')
    charts = charts_of(Run('r', 'm', signals=[Signal('s', 'm', group=group, measured=series) for group in groups]))
    assert [chart.name for chart in charts] == ['crane_2', 'crane_3', 'lift', 'lift_2', 'lift_3']


def test_points_at_nearly_one_time_are_on_an_axis_from_the_start_of_the_run():
    """They were on its edge, half of them cut off, or, of one load after 19 s, on an axis of 0.2 s."""
    for times in ([0.25], [0.25, 0.25], [0.25, 0.25 + 1e-6], [0.0], [18.78], [-3.0], [-3.0, 5.0]):
        curve = Curve('loads', np.array(times), np.zeros(len(times)), 'black', 'points')
        chart = Chart('Loads', 'loads', (Panel('mass', 'kg', (curve,)),))
        start, end = time_span(Run('r', 'm', charts=(chart,)))
        room, first, last = 0.015 * (end - start), min(0.0, *times), max(0.0, *times)
        assert start + room < first and last < end - room
        assert end - start == pytest.approx(1.04 * max(1.0, last - first))


def test_an_empty_run_and_empty_arrays_have_no_charts():
    none = np.array([])
    assert charts_of(Run('r', 'm')) == []
    assert time_span(Run('r', 'm')) == (0.0, 1.0)
    empty = Run('r', 'm', signals=[Signal('s', 'm', measured=Series(none, none), estimated=Series(none, none, none))],
                innovations=[Innovation('c', 'm', none, none, none)], nis=Nis(none, none, 3, 0.2, 9.3),
                payload=PayloadTrack(none, none, none, none, none, none, none, {}))
    assert charts_of(empty) == []
    assert mass_answer(empty.payload)[0] == 'no mass'


def test_plotly_knows_every_property_of_the_figures(run):
    for chart in charts_of(run):
        drawn = figure(chart, (0.0, 24.0))
        go.Figure(drawn)      # raises on a property that plotly does not have
        legend = [trace['name'] for trace in drawn['data'] if trace['showlegend']]
        assert len(legend) == len(set(legend)) > 0


def test_a_figure_holds_few_points_and_keeps_the_gap_of_a_dead_sensor(run):
    pressures = next(chart for chart in charts_of(run) if chart.name == 'pressures')
    traces = figure(pressures, (0.0, 24.0))['data']
    curves = {trace['name']: np.frombuffer(base64.b64decode(trace['y']['bdata']), '<f4') for trace in traces}
    assert np.isnan(curves['measured']).any()
    assert np.isnan(curves['95 % band'][-1]), 'each outline of an area ends with a gap'
    assert 3000 < curves['estimated'].size <= 6000 < pressures.panels[0].curves[1].y.size


def test_samples_between_gaps_are_drawn_as_dots_because_a_line_would_lose_them():
    y = np.tile([1.0, np.nan], 50)
    run = Run('r', 'm', signals=[Signal('s', 'm', measured=Series(np.arange(100.0), y))])
    assert figure(charts_of(run)[0], (0, 99))['data'][0]['mode'] == 'markers'


@pytest.mark.parametrize(('arguments', 'headline', 'line'), [
    ((49.874, 48.62, 51.13), '49.9 ± 1.3 kg', '95 % interval 48.6 to 51.1 kg'),
    ((211.3, 180.0, 242.0), '211 ± 31 kg', '95 % interval 180 to 242 kg'),
    ((50.1, 49.0, 51.0, 0, 50.0), '50.1 ± 1.0 kg', 'True mass 50 kg: inside the interval, error +0.1 kg'),
    ((50.1, 49.0, 51.0, 0, 55.0), '50.1 ± 1.0 kg', 'True mass 55 kg: outside the interval, error -4.9 kg'),
    ((50.1, 49.0, 51.0, 1), '50.1 ± 1.0 kg', 'At the end of the run: held, too slow'),
    ((50.1, np.nan, np.nan), '50.1 kg', 'Its interval is not known.'),
    ((np.nan, np.nan, np.nan, 2), 'no mass', 'No sample went into the mass.')])
def test_the_answer_has_no_more_digits_than_its_interval(arguments, headline, line):
    mass, lines = mass_answer(track(*arguments))
    assert mass == headline
    assert line in lines


@pytest.mark.parametrize(('value', 'text'), [(0.031456, '0.0315'), (9.996, '10.0'), (1234.5, '1234'), (0.0, '0'),
                                             (-2.5, '-2.50'), (1.5e-7, '1.50e-07'), (np.nan, '–'), (np.inf, '–')])
def test_numbers(value, text):
    assert number(value) == text


def test_a_slug_is_a_file_name():
    assert slug('Pressures: lift/../<b>') == 'pressures_lift_b'
    assert slug('压力') == 'chart'


@pytest.mark.parametrize('make', [
    lambda: Series(np.arange(3.0), np.arange(4.0)),
    lambda: Series(np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2)),
    lambda: Series(np.array([0.0, 2.0, 1.0]), np.zeros(3)),
    lambda: Series(np.array([0.0, np.nan]), np.zeros(2)),
    lambda: Innovation('c', 'm', np.arange(2.0), np.zeros(2), np.zeros(3)),
    lambda: Nis(np.arange(2.0), np.zeros(2), 3, 0.2, np.ones(3)),
    lambda: replace(track(1, 0, 2), raw=np.zeros(5)),
    lambda: Animation(np.arange(2.0), {'boom': np.zeros((3, 4, 3))}),
    lambda: Animation(np.arange(2.0), {'boom': np.zeros((2, 4, 2))})])
def test_arrays_that_do_not_fit_are_refused(make):
    with pytest.raises(ReportError, match='report: .*: got .*, expected ') as caught:
        make()
    assert isinstance(caught.value, MbseError)


def test_the_scene_is_thinned_and_frames_all_that_is_drawn():
    run = demo_run()
    scene = scene_of(run.animation, 10.0)
    assert scene.t.size == pytest.approx(241, abs=1)
    assert np.diff(scene.t)[:-1].min() > 0.0999
    assert [one.kind for one in scene.solids if not one.ghost] == ['body', 'rod', 'barrel', 'load']
    assert [one.kind for one in scene.solids if one.ghost] == ['body', 'rod', 'barrel', 'load']
    x_min, x_max, z_min, z_max = scene.extent
    assert x_min < 0 < 2.9 < x_max and z_min < -1.04 and z_max > scene.estimated['payload'][:, 0, 1].max()
    assert scene_of(Animation(np.arange(2.0), {'boom': np.full((2, 3, 3), np.nan)}), 10.0) is None
    assert scene_of(Animation(np.array([]), {'boom': np.zeros((0, 3, 3))}), 10.0) is None


def test_long_curves_become_envelopes() -> None:
    """A spike stays, gaps stay, bands hold all that they held; the figures beside the titles are of all points."""
    t = np.arange(10_000) * 0.01
    y = np.sin(t)
    y[1234], y[5000:5600] = 9.0, np.nan
    stddev = 0.1 + 0.05 * np.cos(7 * t)
    run = Run('r', 'm', signals=[Signal('s', 'm', estimated=Series(t, y, stddev))],
              innovations=[Innovation('c', 'm', t, y, stddev)])
    whole, thin = charts_of(run), charts_of(run, 1000)
    assert [chart.name for chart in whole] == [chart.name for chart in thin] and charts_of(run, 10_000)[0] is not None
    for one, other in zip(whole, thin):
        (before,), (after,) = one.panels, other.panels
        assert (before.note, before.limits) == (after.note, after.limits)
        curve, band = after.curves[0], after.bands[0]
        assert curve.t.size == 1000 and band.t.size == 500 and np.all(np.diff(curve.t) > 0)
        assert np.nanmax(curve.y) == 9.0 and np.isnan(curve.y[(curve.t > 50.3) & (curve.t < 55.7)]).all()
        assert np.isfinite(curve.y[(curve.t < 49.7) | (curve.t > 56.3)]).all()
        rows = np.searchsorted(band.t, t, 'right') - 1
        there = np.isfinite(before.bands[0].lower)
        assert np.all(band.lower[rows][there] <= before.bands[0].lower[there])
        assert np.all(band.upper[rows][there] >= before.bands[0].upper[there])
