# SPDX-License-Identifier: Apache-2.0
"""The files of a report, and its page in a real browser: no network, no errors, plots drawn, the machine moving."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
import report_browser
from PIL import Image
from report_demo import demo_run

from mbse_ros.report.charts import charts_of
from mbse_ros.report.data import Animation, Run, Series, Signal, Table
from mbse_ros.report.plots import write_png
from mbse_ros.report.writer import page, time_span, write_report

CHARTS = ['payload', 'motion', 'pressures', 'errors', 'innovations', 'nis']
STEP = 4e-3      # s: coarser than in life, a browser without a graphics card is slow
HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)> & $^2_$ "quoted"'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A report of the demo run, written once."""
    before = dict(matplotlib.rcParams)
    index = write_report(demo_run(step=STEP), tmp_path_factory.mktemp('report') / 'made' / 'by_the_writer')
    assert dict(matplotlib.rcParams) == before, 'the global settings of matplotlib were changed'
    return index.parent


def test_files_are_there_and_small_enough_to_mail(folder):
    expected = {'index.html', 'crane.png', 'crane.gif', *(f'{name}.png' for name in CHARTS)}
    assert {path.name for path in folder.iterdir()} == expected
    run = demo_run()
    assert 5e6 < len(page(run, charts_of(run), None, time_span(run))) < 6.5e6, 'a run of 24 s at 1 kHz'
    assert (folder / 'crane.gif').stat().st_size < 1e6


@pytest.mark.parametrize('name', [*CHARTS, 'crane'])
def test_pictures_show_curves_in_colour(folder, name):
    pixels = np.asarray(Image.open(folder / f'{name}.png').convert('RGB')).astype(int)
    assert min(pixels.shape[:2]) > 300
    blue = (pixels[:, :, 2] - pixels[:, :, 0]) > 60
    assert blue.sum() > 2000
    assert (pixels.min(axis=2) > 250).mean() > 0.4, 'a picture has a white ground'


def test_the_gif_moves(folder):
    with Image.open(folder / 'crane.gif') as gif:
        assert 30 <= gif.n_frames <= 100
        frames = []
        for k in (0, gif.n_frames // 3, gif.n_frames - 1):
            gif.seek(k)
            frames.append(np.asarray(gif.convert('RGB')).astype(int))
    assert (np.abs(frames[0] - frames[1]).max(axis=2) > 60).sum() > 500
    orange = [((frame[:, :, 0] - frame[:, :, 2]) > 150).sum() for frame in frames]
    assert orange[0] > 100
    assert max(orange) < 1.3 * min(orange), 'a frame shows one payload, not those of the frames before too'


def test_the_page_loads_nothing_from_elsewhere(folder):
    loads = []

    class Loads(HTMLParser):
        def handle_starttag(self, tag, attributes):
            loads.extend(value for key, value in attributes if key in ('src', 'href', 'action', 'data', 'poster'))

    text = (folder / 'index.html').read_text(encoding='utf-8')
    Loads().feed(text)
    assert loads == []
    assert "default-src 'none'" in text
    assert '@import' not in text.split('<body>')[0] and 'url(' not in text.split('<body>')[0]


def test_same_run_same_bytes(folder, tmp_path):
    again = demo_run(step=STEP)
    write_png(charts_of(again)[0], time_span(again), tmp_path / 'payload.png')
    assert (tmp_path / 'payload.png').read_bytes() == (folder / 'payload.png').read_bytes()


def test_texts_of_the_run_are_escaped(tmp_path):
    """Wherever a text stands, it is shown and never obeyed; formulas of matplotlib are not set off either."""
    series = Series(np.arange(3.0), np.ones(3))
    payload = replace(demo_run(step=STEP).payload, status_names={k: HOSTILE for k in range(6)}, reference=HOSTILE)
    run = Run(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, [HOSTILE],
              [Signal(HOSTILE, HOSTILE, group=HOSTILE, measured=series)], payload=payload,
              tables=[Table(HOSTILE, [HOSTILE], [[HOSTILE]])],
              animation=Animation(np.arange(2.0), {'payload': np.zeros((2, 1, 3))}, captions=[HOSTILE] * 2))
    text = write_report(run, tmp_path).read_text(encoding='utf-8')
    assert text.count('<script') == 4, 'plotly.js, charts, scene, our script'
    assert '<img src=x' not in text
    assert 'alert("x")</script>' not in text
    assert text.count('&lt;/script&gt;') >= 9


def test_a_run_with_nothing_in_it_is_a_page_all_the_same(tmp_path):
    index = write_report(Run('Nothing', 'none'), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ['index.html']
    assert '<h1>Nothing</h1>' in index.read_text(encoding='utf-8')


@pytest.fixture(scope='module')
def browser(folder, tmp_path_factory):
    if report_browser.PROGRAM is None:
        pytest.skip('no chromium found')
    browser = report_browser.Browser(tmp_path_factory.mktemp('profile'))
    try:
        browser.open((folder / 'index.html').as_uri())
        browser.wait_for('document.documentElement && document.documentElement.dataset.charts')
        yield browser
    finally:
        browser.close()


def test_the_browser_draws_every_chart_without_an_error_or_a_request(browser, folder):
    assert browser.value('document.documentElement.dataset.charts') == str(len(CHARTS))
    assert browser.value("[...document.querySelectorAll('.js-plotly-plot')].filter(p => p.querySelector("
                         "'.main-svg .scatterlayer path')).length") == len(CHARTS)
    assert browser.value("document.querySelectorAll('.cartesianlayer > .subplot').length") == 17
    assert browser.errors() == []
    assert browser.requests() == [(folder / 'index.html').as_uri()]


def test_the_answer_stands_at_the_top(browser):
    assert re.fullmatch(r'50\.\d ± \d\.\d kg', browser.value("document.querySelector('.answer .mass').textContent"))
    assert browser.value("document.querySelector('.answer').getBoundingClientRect().top + scrollY < 200")
    assert 'lift alone <here' in browser.value("document.querySelector('.notes').textContent")


def test_the_animation_plays_stops_and_follows_the_slider(browser):
    top = "document.querySelector('#machine .body').getBoundingClientRect().top"
    browser.wait_for('Number(slider.value) > 0.05')      # it plays by itself
    browser.value("play.textContent === 'Pause' && play.click()")
    stopped = browser.value('slider.value')
    browser.frames(10)
    assert browser.value('slider.value') == stopped
    browser.value("slider.value = 3; slider.dispatchEvent(new Event('input'))")
    low = browser.value(top)
    browser.value("slider.value = 7.5; slider.dispatchEvent(new Event('input'))")
    high = browser.value(top)
    assert browser.value('clock.textContent') == '7.50 s'
    assert browser.value('caption.textContent').endswith(' kg')
    assert high < low - 20, 'the tip has gone up on the screen'
    assert re.search(r'\d\.\d mm apart', browser.value('gap.textContent'))


def test_all_time_axes_follow_a_zoom_and_the_y_axes_fit(browser):
    browser.value("Plotly.relayout(plots[1].div, {'xaxis.range': [13, 15]}).then(() => 1)")
    browser.wait_for('plots.every(p => p.div.layout.xaxis.range[0] === 13 && p.div.layout.xaxis.range[1] === 15)')
    low, high = browser.wait_for('plots[1].div.layout.yaxis2.range[0] > -30 && plots[1].div.layout.yaxis2.range')
    assert -10 < low < 0 and 45 < high < 60
    browser.value("Plotly.relayout(plots[0].div, {'xaxis.range': plots[0].whole.xaxis}).then(() => 1)")
    browser.wait_for('plots.every(p => p.div.layout.xaxis.range[0] === 0)')
    assert browser.wait_for('plots[1].div.layout.yaxis2.range[0] < -30')
    assert browser.errors() == []


def test_a_moment_is_marked_in_every_chart(browser):
    browser.value("document.dispatchEvent(new CustomEvent('moment', {detail: 12}))")
    assert browser.value('clock.textContent') == '12.00 s'
    x = browser.value("[...document.querySelectorAll('.cursor')].map(c => parseFloat(c.style.transform.slice(11)))")
    left, right = browser.value('[plots[0].div._fullLayout.xaxis].map(a => [a._offset, a._offset + a._length])[0]')
    assert len(x) == len(CHARTS)
    assert np.allclose(x, (left + right) / 2, atol=2)


def test_a_hostile_run_stays_text_in_the_browser(browser, tmp_path):
    series = Series(np.arange(3.0), np.ones(3))
    run = Run(HOSTILE, 'm', signals=[Signal(HOSTILE, 'm', measured=series)])
    (tmp_path / 'hostile.html').write_text(page(run, charts_of(run), None, (0.0, 2.0)), encoding='utf-8')
    before = len(browser.errors())
    browser.open((tmp_path / 'hostile.html').as_uri())
    browser.wait_for("document.documentElement && document.documentElement.dataset.charts === '1'")
    assert browser.value("document.querySelector('h1').textContent") == HOSTILE
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert len(browser.errors()) == before
