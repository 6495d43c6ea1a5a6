# SPDX-License-Identifier: Apache-2.0
"""Pictures that can be read: legends beside the data, no bars on logarithmic axes, small multiples, times of day."""

import re
from importlib.resources import files

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from mbse_ros.report import crane, plots
from mbse_ros.report.crane import scene_of
from mbse_ros.report.data import Animation, Band, Chart, Clock, Curve, Panel, Run, Series, Signal
from mbse_ros.report.plots import Bars, draw_plots, write_bars, write_png
from mbse_ros.report.text import clock_of, time_of_day, time_unit
from mbse_ros.report.writer import figure, page, write_report

MORNING = 1_796_083_200 * 10 ** 9       # ns, a full hour


@pytest.fixture
def kept(monkeypatch):
    """Figures that were made, the last one last."""
    made = []

    def new(*size, **more):
        made.append(new_figure(*size, **more))
        return made[-1]
    new_figure = plots.new_figure
    monkeypatch.setattr(plots, 'new_figure', new)
    return made


def panels(count, **more):
    t = np.linspace(0.0, 40.0, 200)
    return tuple(Panel(f'quantity {k}', 'mm', (Curve('estimated - true', t, np.sin(t + k)),),
                       (Band('95 % band', t, np.sin(t) - 1.0, np.sin(t) + 1.0, '#2a7de1'),), note='RMSE 1 mm', **more)
                 for k in range(count))


@pytest.mark.parametrize('seconds, unit', [(8.0, 's'), (300.0, 's'), (301.0, 'min'), (10800.0, 'min'), (10801.0, 'h'),
                                           (1e6, 'h')])
def test_a_time_axis_has_the_unit_that_fits(seconds, unit):
    assert time_unit(seconds)[0] == unit and 0.0 < seconds / time_unit(seconds)[1] <= 300.0 or unit == 'h'


def test_the_time_of_day_stands_below_the_seconds_where_the_clock_was_set(kept, tmp_path):
    clock = clock_of(MORNING)
    assert clock == Clock(MORNING) and clock_of(5 * 10 ** 9) is None
    assert time_of_day(clock, 65.0, 100.0)[2:] == ':01:05' and time_of_day(clock, 65.0, 1e5)[2:] == ':01'
    assert time_of_day(Clock(MORNING, 3600.0), 2.0, 4.0).count(':') == 1
    chart = Chart('Error', 'error', panels(1))
    for one, lines in ((clock, 2), (None, 1)):
        write_png(chart, (0.0, 40.0), tmp_path / 'a.png', one)
        labels = [label.get_text() for label in kept[-1].axes[-1].get_xticklabels() if label.get_text()]
        assert labels and all(len(text.split('\n')) == lines for text in labels)
    assert '<br>0 is 20' in figure(chart, (0.0, 40.0), clock)['layout']['xaxis']['title']['text']
    assert 'UTC' not in figure(chart, (0.0, 40.0))['layout']['xaxis']['title']['text']


@pytest.mark.parametrize('span, step, zero', [(0.2, 0.025, MORNING), (3.0, 0.5, MORNING + 999_900_000), (
    20.0, 2.5, MORNING + 137_000_000), (90.0, 20.0, MORNING), (9000.0, 2000.0, MORNING)])
def test_no_two_labels_have_the_same_time_of_day(span, step, zero):
    """One load had an axis of 0.2 s, with 22:13:39 below four numbers; 2.5 s had that of 2 s."""
    values = np.arange(0.0, span, step)
    labels = [time_of_day(Clock(zero), value, span) for value in values]
    assert len(set(labels)) == len(labels)
    for value, label in zip(values, labels):
        hours, minutes, seconds = label.split(':')
        said, truth = 60.0 * int(minutes) + float(seconds), value + 1e-9 * (zero - MORNING)
        assert abs(said - truth % 3600.0) <= (0.5 if span >= 60.0 else 0.05 if span >= 6.0 else 0.005) + 1e-6


@pytest.mark.parametrize('count, columns', [(6, 1), (7, 2), (19, 2)])
def test_many_panels_are_small_ones_in_two_columns(kept, tmp_path, count, columns):
    """On a page: not more than one and a half times as high as wide."""
    write_png(Chart('Error', 'error', panels(count)), (0.0, 40.0), tmp_path / 'a.png', clock_of(MORNING))
    shown = [ax for ax in kept[-1].axes if ax.get_visible()]
    assert len(shown) == count and len({round(ax.get_position().x0, 3) for ax in shown}) == columns
    width, height = kept[-1].get_size_inches()
    assert height < 2.0 * width


def test_no_legend_lies_over_data():
    """Of panels with curves of other names."""
    t = np.linspace(0.0, 1.0, 50)
    drawn = draw_plots([Panel('a', 'm', (Curve('one of two', t, t), Curve('the other one', t, -t))),
                        Panel('b', 'm', (Curve('something else', t, t),))])
    drawn.canvas.draw()
    for ax in drawn.axes:
        legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.x0 >= frame.x1 and legend.x1 <= drawn.bbox.x1


@pytest.mark.parametrize('log', (False, True))
def test_bars_on_a_logarithmic_axis_are_dots(kept, tmp_path, log):
    write_bars([Bars('t', 'us', ['a', 'b'], {'one': [1.0, None], 'two': [30.0, 4.0]}, log)], tmp_path / 'c.png')
    ax = kept[-1].axes[0]
    assert isinstance(kept[-1], Figure) and bool(ax.patches) is not log and len(ax.lines) == (2 if log else 0)


def luminance(color):
    """Relative, of sRGB, as WCAG 2.2 has it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_rods_are_seen_on_the_measured_machine():
    """In pictures and, in daylight, on the page: a contrast of 3 (WCAG 2.2, 1.4.11)."""
    style = files('mbse_ros.report').joinpath('page.css').read_text()
    ink, measured = (re.search(rf'--{name}: (#\w+);', style).group(1) for name in ('ink', 'grey'))
    share = float(re.search(r'\.ghost polygon {.*fill-opacity: ([.\d]+)', style).group(1))
    assert 'stroke: var(--ink)' in style
    for front, back, part in (crane.INK, crane._GHOST, crane._GHOST_SHARE), (ink, measured, share):
        mixed = 1.0 - part * (1.0 - np.array(to_rgb(back)))
        assert (luminance(mixed) + 0.05) / (luminance(front) + 0.05) >= 3.0


def test_words_beside_a_pose_are_inside_the_picture(tmp_path, monkeypatch):
    """Also of one at its right edge, with a long reason."""
    made = []

    def new(*size, **more):
        made.append(new_figure(*size, **more))
        return made[-1]
    new_figure = crane.new_figure
    monkeypatch.setattr(crane, 'new_figure', new)
    t, reach = np.arange(3.0), np.array([1.0, 9.0, 5.0])
    boom = np.stack([np.zeros((3, 3)), np.column_stack([reach, 0 * t, t])], axis=1)
    captions = ('12 kg', 'mass not known yet (observer starting up after a gap)', 'x')
    scene = scene_of(Animation(t, {'boom': boom}, captions=captions), 30.0)
    crane.write_still(scene, tmp_path / 'crane.png')
    (figure,) = made
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 3 and all(0.0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_a_report_begins_with_its_summary_and_needs_no_pictures(tmp_path):
    t = np.linspace(0.0, 4.0, 50)
    run = Run('A sine', 'crane', signals=[Signal('position', 'mm', 1e3, estimated=Series(t, np.sin(t)))],
              headline=('Total', '12 kg', ['2 loads']), summary={'What to do': 'nothing <b>'})
    write_report(run, tmp_path / 'with')
    index = write_report(run, tmp_path / 'without', pictures=False)
    assert [path.name for path in (tmp_path / 'without').iterdir()] == ['index.html']
    assert {path.name for path in (tmp_path / 'with').iterdir()} == {'index.html', 'motion.png'}
    text = index.read_text()
    places = [text.index(part) for part in (
        '12 kg', '<b>What to do:</b> nothing &lt;b&gt;', 'id="chart-motion"')]
    assert places == sorted(places)
    assert page(run, [], None, (0.0, 1.0)).count('12 kg') == 1
