# SPDX-License-Identifier: Apache-2.0
"""How the pages look in a real browser: nothing is cut off, nothing lies over something else, every text has contrast,
at six sizes of screens, both ways round, in every language, at the worst of what they may say."""

import json
from pathlib import Path

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('starlette')
pytest.importorskip('uvicorn')
pytest.importorskip('websockets')
from display_pages import BOTH, FORCE, UNKNOWN_FORCE, WORK, WORST, Shown
from report_browser import PROGRAM

from mbse_ros.monitor.faults import Fault, PayloadStatus
from mbse_ros.nodes.display.display_server import languages

pytestmark = pytest.mark.skipif(PROGRAM is None, reason='no browser (tools/browser.sh)')
AUDIT = (Path(__file__).parents[1] / 'support' / 'page_audit.js').read_text()
DIALOGS = 'zero', 'undo', 'tare', 'new-truck', 'to-ticket', 'to-settings'


@pytest.fixture(scope='module', params=(False, True), ids=('no chart', 'chart'))
def shown(request, tmp_path_factory):
    """The page of a machine without a load chart, and with one."""
    page = Shown(tmp_path_factory.mktemp('browser'), request.param)
    page.size(1280, 800)
    yield page
    page.close()


def found(shown, script, root, *least):
    """What a function of page_audit.js finds wrong within a part; at least so many texts were looked at."""
    bad, count = shown.browser.value(f'{AUDIT}\n{script}({json.dumps(root)})')
    assert count >= least[0] if least else True, f'{count} texts in {root}'
    return bad


@pytest.mark.parametrize('language', sorted(languages()))
@pytest.mark.parametrize('known', ({}, WORST), ids=('work', 'worst'))
def test_nothing_is_cut_off_and_nothing_lies_over_another(shown, language, known):
    """Both pages and the dialogs, at six sizes and both ways round."""
    shown.open(known, language)
    bad = []
    for width, height in BOTH:
        shown.size(width, height)
        for page in ('engineer', 'operator'):
            shown.page(page)
            shown.see(known)
            for part, least in (('header', 4), (f'#{page}', 20)):
                bad += [f'{width} x {height} {page}: {one}' for one in found(shown, 'page_layout', part, least)]
        if known:
            continue
        for button in DIALOGS:
            shown.browser.value(f"document.querySelector('#{button}, [data-do={button}]').click()")
            bad += [f'{width} x {height} {button}: {one}' for one in found(shown, 'page_layout', 'dialog[open]', 2)]
            shown.browser.value("document.querySelector('dialog[open]').close()")
    assert not bad, '\n'.join([f'{len(bad)} things', *bad[:40]])
    assert not shown.browser.errors()


@pytest.mark.parametrize('dark', (False, True), ids=('day', 'night'))
def test_every_text_has_contrast(shown, dark):
    """Whatever the mass is worth, and when there is no data."""
    shown.open({}, 'en', dark)
    shown.size(1280, 800)
    for known in ({}, WORST, {'status': 'too_slow'}, {'reason': 'x', 'faults': ['force_balance']}, {'mass': None}):
        for page in ('engineer', 'operator'):
            shown.page(page)
            shown.see(known)
            bad = found(shown, 'page_contrast', 'body', 20)
            assert not bad, (known, bad)
    shown.browser.wait_for("document.body.classList.contains('stale')")
    assert not found(shown, 'page_contrast', 'body', 20)


@pytest.mark.parametrize('force, text', [
    (FORCE, 'Force at bucket.teeth: 12.4 ± 1.2 kN (95 %); direction x -0.91, z 0.41, ± 3°'),
    ({**FORCE, 'direction': [None] * 3}, 'Force at bucket.teeth: 12.4 ± 1.2 kN (95 %); direction not known'),
    ({**FORCE, 'size': None}, 'Force at bucket.teeth along (x -0.91, y 0.00, z 0.41): 12.1 ± 0.9 kN (95 %)'),
    (UNKNOWN_FORCE, f'Force at bucket.teeth: not known: {UNKNOWN_FORCE["reason"]}')])
def test_the_force_at_the_tool_is_said_with_what_is_known_of_it(shown, force, text):
    shown.open({}, 'en')
    said = shown.browser.value(f'force_text({json.dumps(force)})')
    assert said.replace('\u00a0', ' ').replace('\u2212', '-') == text
    assert 'Force at bucket.teeth' in shown.browser.value("document.getElementById('force').textContent")


def shows(shown, known):
    """Word, mass, interval, reason on the operator's page at an instant."""
    shown.see(known)
    return [shown.browser.value(f"document.getElementById('{name}').textContent").replace('\xa0', ' ')
            for name in ('quality', 'mass', 'interval', 'why')]


@pytest.mark.parametrize('known, expected', [
    ({}, ['Weighing', '1,210 kg', '1,170 to 1,240 kg (95 %)', 'A load is on the machine']),
    ({'lower': 1207.1, 'upper': 1209.7}, ['Weighing', '1,208.5 kg', '1,207.0 to 1,210.0 kg (95 %)',
                                          'A load is on the machine']),
    ({'mass': 374.0, 'lower': 110.0, 'upper': 638.0}, ['Not known', '–', 'Too uncertain: 100 to 700 kg',
                                                       'A load is on the machine']),
    ({'mass': None, 'lower': None, 'upper': None, 'status': 'no_data', 'carrying': False},
     ['Not known', '–', '', 'The estimate starts, or data is missing']),
    ({'status': 'changing', 'reason': 'the load changes', 'faults': ['load_changes'], 'carrying': False},
     ['Held', '1,210 kg', '1,170 to 1,240 kg (95 %)', 'The load changes']),
    ({'overload': 'over'}, ['Overload', '1,210 kg', '1,170 to 1,240 kg (95 %)', 'A load is on the machine'])])
def test_a_mass_has_the_digits_that_its_interval_supports(shown, known, expected):
    """A dash where it is not known, or known too badly; a word for its quality; each reason once."""
    if shown.browser.value('typeof language') != 'string' or shown.browser.value('language') != 'en':
        shown.open({}, 'en')
    assert shows(shown, known) == expected


def test_masses_in_tonnes_and_the_ticket_on_paper(shown):
    """As chosen; the ticket's print has its loads and nothing of the page around it."""
    shown.open({}, 'en', more='&unit=t')
    assert shows(shown, {})[1:3] == ['1.21 t', '1.17 to 1.24 t (95 %)']
    shown.browser.value("localStorage.removeItem('unit')")
    shown.browser.value("document.getElementById('to-ticket').click()")
    text = shown.browser.value("document.getElementById('ticket').innerText").replace('\xa0', ' ')
    assert '1.24 t ± 0.03' in text and text.count('±') == 5 and 'Total: 6.10 t' in text, text
    shown.browser.call('Emulation.setEmulatedMedia', media='print')
    assert shown.browser.value("!document.getElementById('operator').checkVisibility() && "
                               "!document.getElementById('print').checkVisibility() && "
                               "document.getElementById('ticket').checkVisibility()")
    shown.browser.call('Emulation.setEmulatedMedia', media='')


@pytest.mark.parametrize('button', ('zero', 'undo'))
def test_zero_and_undo_are_asked_again(shown, button):
    """Cancel sends nothing."""
    shown.open({}, 'en')
    shown.server.orders.clear()
    for answer, sent in (("querySelector('#confirm-box button[value=\"\"]')", []),
                         ("getElementById('confirm-go')", [(button, 24 if button == 'undo' else 0)])):
        shown.browser.value(f"document.querySelector('[data-do={button}]').click()")
        shown.browser.value(f'document.{answer}.click()')
        shown.see({})
        if sent:
            shown.until({}, 'asked.size > 0')
            shown.see({})
        assert [(order.action, order.expected) for _, order in list(shown.server.orders)] == sent


def test_every_status_and_fault_has_words_for_the_operator(shown):
    """Or is said by the status alone."""
    shown.open({}, 'en')
    texts, words = languages()['en'], shown.browser.value('FAULTS')
    assert set(words) == {name.lower() for name in Fault.__members__}
    assert {f'fault_{word}' for word in words.values() if word} == {key for key in texts if key.startswith('fault_')}
    assert {key for key in texts if key.startswith('status_')} == {
        f'status_{status.name.lower()}' for status in PayloadStatus if status is not PayloadStatus.UPDATING}


def test_all_languages_have_the_same_keys_with_the_same_places():
    """So a text that is added is added in all of them."""
    texts = languages()
    assert {'en', 'de', 'fi', 'ja'} <= set(texts)
    for code, known in texts.items():
        assert list(known) == list(texts['en']), (code, set(known) ^ set(texts['en']))
        for key, text in known.items():
            places = [place for place in ('{0}', '{1}', '{2}') if place in text]
            assert text.strip() and places == [p for p in ('{0}', '{1}', '{2}') if p in texts['en'][key]], (code, key)
    assert set(WORK) >= {'faults', 'status'}
