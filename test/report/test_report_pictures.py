# SPDX-License-Identifier: Apache-2.0
"""Pictures that can be read: legends beside the data, no bars on logarithmic axes, small multiples, times of day."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from mbse_ros.report import plots
from mbse_ros.report.data import Band, Chart, Clock, Curve, Panel, Run, Series, Signal
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
    assert '; 0 is 20' in figure(chart, (0.0, 40.0), clock)['layout']['xaxis']['title']['text']
    assert 'UTC' not in figure(chart, (0.0, 40.0))['layout']['xaxis']['title']['text']


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
