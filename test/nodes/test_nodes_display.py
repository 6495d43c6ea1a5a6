# SPDX-License-Identifier: Apache-2.0
"""display_node: a real server on the loopback, real WebSockets and a real browser, fed over DDS."""

import json
import socket
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
pytest.importorskip('starlette')
pytest.importorskip('uvicorn')
pytest.importorskip('websockets')
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from display_support import opened, upgrade
from nodes_in_process import making
from nodes_support import Peer, ros, sent
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future
from report_browser import PROGRAM, Browser
from scale_support import excavator, scale, state, weighed
from source_tree import ROOT
from std_msgs.msg import String
from std_srvs.srv import Trigger
from websockets.exceptions import ConnectionClosed, InvalidStatus

from mbse_ros.machine import load_machine
from mbse_ros.msg import HydraulicState, ToolForce
from mbse_ros.nodes import display_node
from mbse_ros.nodes.base.diagnostics import Warnings
from mbse_ros.nodes.base.middleware import LASTING
from mbse_ros.nodes.display.display_server import CONNECTIONS
from mbse_ros.nodes.display.side_view import channel_values
from mbse_ros.nodes.display_node import DisplayNode
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.scale.live import record_values, text_of, totals_values
from studies.shifts import Bucket, Shift

LIVE = {'stamp_ns': 1, 'mass': 912.4, 'lower': 880.0, 'upper': 945.0, 'gross': 912.4, 'gross_upper': 945.0,
        'status': 'too_slow', 'reason': 'piston too slow', 'carrying': True, 'since_ns': 1, 'counted': False,
        'radius': 6.0, 'limit': 1800.0, 'overload': 'ok', 'truck': 'T7', 'loads': 2, 'total': 1800.0,
        'total_interval': [1750.0, 1850.0], 'untrusted': 0, 'untrusted_total': 0.0, 'target': 3000.0,
        'remaining': 1200.0, 'reached': False, 'tip_off': 0.0,
        'trouble': ''}


@pytest.fixture(scope='module')
def graph(tmp_path_factory):
    """The node, and a peer that stands for scale_node and the observer: real messages and services."""
    file = tmp_path_factory.mktemp('scale') / 'scale.yaml'
    file.write_text('format: mbse/scale/1\nattachments: {hook: 100 kg}\nload_chart: {limits: [[9 m, 1800 kg]]}\n')
    with ros(), making() as make:
        node, peer, executor = make(DisplayNode, machine='zx200', port=0, scale_file=str(file)), Peer(), \
            SingleThreadedExecutor()
        executor.add_node(node)
        peer.near = node,

        def also():
            executor.spin_once(timeout_sec=0)
            node.tick()
        peer.also = also
        peer.pressed = []

        def undo(request, response):
            peer.pressed.append('undo')
            response.success, response.message = False, 'there is no load'
            return response
        peer.node.create_service(Trigger, 'scale_node/undo', undo)
        peer.of = {'machine': 'zx200', 'machine_file': node.fingerprint}
        yield node, peer
        executor.shutdown()
        peer.close()


def feed(peer, **more):
    """One instant of the scale and the machine."""
    machine = excavator()
    z = machine.model.start.q[machine.model.z]
    one = replace(state(machine, 10 ** 9, z), channels=('position/boom',), measured=np.array([1.7]),
                  innovation=np.array([0.001]), innovation_stddev=np.array([0.002]))
    peer.outputs.get('state') or peer.publish(HydraulicState, 'state', sent(one, 'zx200'))
    peer.publish(HydraulicState, 'state', sent(one, 'zx200'))
    peer.publish(String, 'scale/live', String(data=json.dumps({**LIVE, **peer.of, **more})))


def heard(peer, ws, kind, **more):
    """The next text of a kind, while the graph goes on."""
    found = []

    def step():
        feed(peer, **more)
        try:
            text = json.loads(ws.recv(timeout=0.05))
        except TimeoutError:
            return False
        found.append(text)
        return text['kind'] == kind
    peer.until(step)
    return found[-1]


def one_load(peer):
    """Texts of the totals and of the record of a load, as the scale writes them."""
    stage = scale()
    one, = weighed(stage, Shift([Bucket(1000.0)]))
    return [text_of({**values, **peer.of}) for values in (
        totals_values(stage.book, one.stamp_ns), {**record_values(one), 'load': 1})]


def heard_any(ws):
    """The next text that waits."""
    return json.loads(ws.recv(timeout=10))


def test_a_page_hears_the_graph_and_nothing_is_heard_for_nobody(graph):
    node, peer = graph
    assert peer.node.count_subscribers('state') == 0
    with opened(node.server) as ws:
        fixed = json.loads(ws.recv(timeout=10))
        assert fixed['attachments'] == ['hook']
        peer.until(lambda: peer.node.count_subscribers('state') == 1)
        frame = heard(peer, ws, 'frame')
        assert frame['live'] == {**LIVE, **peer.of}
        while not frame['parts']:
            frame = heard(peer, ws, 'frame')
        parts = frame['parts']['estimated']
        kinds = [solid['kind'] for solid in fixed['solids']]
        assert len(parts) == len(kinds) and parts[kinds.index('load')][0][0] > 2.0         # from the axis of the swing
        assert heard(peer, ws, 'engineer')['channels'] == [['position/boom', 1.7, 0.001, 0.002, 'm']]
    peer.until(lambda: peer.node.count_subscribers('state') == 0)


def test_the_force_at_the_tool_reaches_the_engineers_page(graph):
    """With size and direction; that of another machine is not shown, nor one twice."""
    node, peer = graph
    message = ToolForce(body='bucket', force=[-8e3, np.nan, 6e3], direction=[0.6, 0.0, 0.8], component=5e3,
                        covariance=np.diag([9e4, np.nan, 9e4]).ravel(), component_stddev=300.0, reason='no y')
    with opened(node.server) as ws:
        peer.until(lambda: peer.node.count_subscribers('tool_force/estimate') == 1)

        def found(machine):
            message.machine = machine
            peer.publish(ToolForce, 'tool_force/estimate', message)
            return heard(peer, ws, 'engineer')['force']
        assert found('0' * 12) is None and found('0' * 12) is None
        values = []
        peer.until(lambda: (values.append(found(node.fingerprint)), values[-1])[1])
        peer.until(lambda: heard(peer, ws, 'engineer')['force'] is None)
    assert values[-1] == {
        'point': 'bucket.teeth', 'size': 1e4, 'size_stddev': pytest.approx(300.0), 'direction': [-0.8, None, 0.6],
        'direction_stddev': pytest.approx(0.03), 'along': [0.6, 0.0, 0.8], 'component': 5e3, 'component_stddev': 300.0,
        'reason': 'no y'}


def test_buttons_reach_the_scale_and_its_words_come_back(graph):
    node, peer = graph
    with opened(node.server) as ws:
        ws.send('{"do": "undo", "number": 7}')
        assert heard(peer, ws, 'answer') == {'kind': 'answer', 'number': 7, 'success': False,
                                             'text': 'there is no load'}
        assert peer.pressed[-1:] == ['undo']
        ws.send('{"do": "zero", "number": 8}')
        answer = heard(peer, ws, 'answer')
        assert answer['number'] == 8 and not answer['success'] and 'not there' in answer['text']


def test_what_another_machines_scale_says_is_not_shown(graph, monkeypatch):
    """Two machines whose nodes came into one namespace: the page shows its own."""
    node, peer = graph
    warned = []
    monkeypatch.setattr(node, 'warnings', Warnings(warned.append))
    for other in ({'machine': 'zx120'}, {'machine_file': '0' * 12}, {'machine': None}):
        with opened(node.server) as ws:
            peer.until(lambda: peer.node.count_subscribers('state') == 1)
            peer.until(lambda: (feed(peer, **other, truck='T8'), warned)[1])
            assert heard(peer, ws, 'frame')['live']['truck'] == 'T7'
        assert len(warned) == 1 and 'expected zx200' in warned.pop()       # one line in five seconds
        node.warnings = Warnings(warned.append)


def test_totals_the_last_load_and_what_is_not_well_reach_the_page(graph):
    """As the scale writes them, of a real load. Who looks later gets the last ones, too; what is well again leaves the
    list."""
    node, peer = graph
    totals, load = (json.loads(text) for text in one_load(peer))

    def status(level):
        return DiagnosticArray(status=[DiagnosticStatus(level=level, name='zx200: payload', message='held')])
    with opened(node.server) as ws:
        peer.until(lambda: peer.node.count_subscribers('/diagnostics') == 1)
        peer.publish(String, 'scale/totals', String(data=json.dumps(totals)), qos=LASTING)
        assert heard(peer, ws, 'totals') == {'kind': 'totals', 'totals': totals}
        for record in ({'kind': 'zero', **peer.of}, load, {'kind': 'undo', **peer.of}):
            peer.publish(String, 'scale/record', String(data=json.dumps(record)))
        assert heard(peer, ws, 'budget') == {'kind': 'budget', 'load': load}
        for level, faults in ((DiagnosticStatus.ERROR, [{'name': 'zx200: payload', 'level': 2, 'text': 'held'}]),
                              (DiagnosticStatus.OK, [])):
            peer.publish(DiagnosticArray, '/diagnostics', status(level))
            peer.until(lambda: heard(peer, ws, 'engineer')['faults'] == faults)
    with opened(node.server) as ws:
        later = {text['kind']: text for text in (heard_any(ws) for _ in range(3))}
    assert later['totals']['totals'] == totals and later['budget']['load'] == load and 'machine' in later


@pytest.mark.parametrize('text, why', [('{"kind": "load', 'Unterminated string'), ('[1]', 'no object'),
                                       ('[' * 100_000, 'recursion'), ('{"kind": "load"}', 'expected zx200')])
def test_a_text_that_is_none_of_the_scale_is_dropped_with_a_warning(graph, monkeypatch, text, why):
    node, _ = graph
    warned, sent_on = [], []
    monkeypatch.setattr(node, 'warnings', Warnings(warned.append))
    monkeypatch.setattr(node.server, 'say', lambda *words, keep=False: sent_on.append(words))
    for take in (node.on_totals, node.on_record):
        take(String(data=text))
    assert not sent_on and all(why in line for line in warned) and len(warned) == 2, warned


@pytest.mark.parametrize('every, uneven, shown', [(0.1, 0.04, 100), (0.01, 0.0, 101), (0.1, 0.0, 100)])
def test_updates_keep_their_rate(graph, monkeypatch, every, uneven, shown):
    """Ten a second for ten seconds, though they come unevenly; no more where they come more often."""
    node, peer = graph
    now, frames = [0.0], []
    monkeypatch.setattr(display_node, 'time', SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(node, '_due', 0.0)
    monkeypatch.setattr(node, '_looking', [None])
    monkeypatch.setattr(node.server, 'say', lambda kind, text, keep=False: frames.append(kind))
    live = String(data=json.dumps({**LIVE, **peer.of}))
    for k in range(round(10.0 / every)):
        now[0] = 100.0 + k * every + uneven * (-1) ** k
        node.on_live(live)
    assert frames.count('frame') == shown


def test_an_answer_that_comes_too_late_is_not_a_second_one(graph, monkeypatch):
    """The page was told that the scale did not answer; what the scale answers after that is of no press of a button."""
    node, peer = graph
    futures = []

    class Slow:
        def service_is_ready(self):
            return True

        def call_async(self, request):
            futures.append(Future(executor=None))
            return futures[-1]
    monkeypatch.setitem(node._buttons, 'undo', Slow())
    monkeypatch.setattr(display_node, 'ANSWER', 0.0)
    with opened(node.server) as ws:
        ws.send('{"do": "undo", "number": 7}')
        assert 'did not answer' in heard(peer, ws, 'answer')['text']
        futures[-1].set_result(Trigger.Response(success=True, message='undone'))
        ws.send('{"do": "undo", "number": 8}')
        assert heard(peer, ws, 'answer')['number'] == 8


@pytest.mark.parametrize('text', ['', '[]', '{"do": "reset", "number": 1}', '{"do": "undo"}', 'x' * 5000, '[' * 2000,
                                  '{"do": "undo", "number": 1, "more": 2}', b'\0\1'])
def test_what_is_no_order_ends_the_connection_alone(graph, text):
    node, peer = graph
    before = list(peer.pressed)
    with opened(node.server) as ws, opened(node.server) as other:
        ws.send(text)
        with pytest.raises(ConnectionClosed):
            while True:
                ws.recv(timeout=10)
        assert heard(peer, other, 'frame')['live']['truck'] == 'T7'
    assert peer.pressed == before


def test_another_site_is_refused(graph):
    node, _ = graph
    for more in ({'origin': 'http://evil.example'}, {'additional_headers': {'Host': 'evil.example'}}):
        with pytest.raises(InvalidStatus):
            opened(node.server, **more)
    with opened(node.server, origin=f'http://127.0.0.1:{node.server.port}') as ws:
        assert ws.recv(timeout=10)


def test_a_thousand_connections_and_one_that_stalls_leave_the_others_alone(graph):
    node, peer = graph
    with opened(node.server) as ws:
        stalled = socket.create_connection(('127.0.0.1', node.server.port))
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        stalled.sendall(upgrade(node.server.port))
        peer.until(lambda: node.server.count == 2)
        crowd = [socket.create_connection(('127.0.0.1', node.server.port)) for _ in range(1000)]
        assert heard(peer, ws, 'frame')['live']['mass'] == LIVE['mass']
        peer.until(lambda: node.server.closed >= len(crowd) + 2 - CONNECTIONS)      # the last ones are let in first
        assert len(node.server._server.server_state.connections) <= CONNECTIONS
        for one in (*crowd, stalled):
            one.close()
        assert heard(peer, ws, 'frame')['live']['mass'] == LIVE['mass']
    assert not node.warned


def test_the_engineers_page_has_the_unit_of_each_sensor(tmp_path):
    """By what it measures: a laser between two points in m, an inclinometer on a body in rad."""
    text = (ROOT / 'config' / 'machines' / 'patu655_lift.yaml').read_text()
    (tmp_path / 'm.yaml').write_text(text.replace('sensors:\n', (
        'sensors:\n  laser: {kind: distance, points: [ground.cylinder_base, boom.tip], stddev: 2 mm}\n'
        '  slope: {kind: inclinometer, body: boom, stddev: 0.1 deg}\n')))
    machine = load_machine(tmp_path / 'm.yaml')
    values = np.arange(float(len(machine.channels)))
    one = replace(state(machine, 1, np.zeros(1)), channels=machine.channels, measured=values, innovation=values,
                  innovation_stddev=values)
    assert {name: unit for name, *_, unit in channel_values(one, machine)} == {
        'position/lift': 'm', 'position/laser': 'm', 'position/slope': 'rad', 'pressure/lift_piston': 'Pa',
        'pressure/lift_rod': 'Pa'}


def test_the_graph_starts_it_with_the_scale():
    processes = {p.name: p for p in machine_graph(MachineArguments(display=True, display_port=9000)).processes}
    assert processes['display_node'].parameters['port'] == 9000 and 'scale_node' in processes


@pytest.mark.skipif(PROGRAM is None, reason='no browser (tools/browser.sh)')
def test_the_page_in_a_browser(graph, tmp_path):
    node, peer = graph
    browser = Browser(tmp_path, '127.0.0.1')

    def until(expression):
        peer.until(lambda: (feed(peer), browser.value(expression))[1])
    try:
        browser.call('Emulation.setDeviceMetricsOverride', width=1280, height=800, deviceScaleFactor=1, mobile=False)
        browser.open(node.server.address)
        browser.wait_for("document.readyState === 'complete' && document.getElementById('mass') !== null")
        until("document.getElementById('mass').textContent === '910\\u00a0kg'")
        assert browser.value("document.getElementById('interval').textContent") == '880 to 950\xa0kg (95\xa0%)'
        totals, load = one_load(peer)
        peer.publish(String, 'scale/totals', String(data=totals), qos=LASTING)
        peer.publish(String, 'scale/record', String(data=load))
        until("document.getElementById('loads').rows.length === 1 && document.getElementById('budget').rows.length > 1")
        assert '1, ' in browser.value("[...document.getElementById('loads').rows[0].cells].map(c => c.textContent)"
                                      ".join(', ')")
        assert 'Move a little faster' in browser.value("document.getElementById('why').textContent")
        assert browser.value("parseFloat(getComputedStyle(document.getElementById('mass')).fontSize)") >= 0.12 * 800
        asks = 'the tool may be another: 148 kg (77 to 220) more than before a stop, as with attachment hook (+100 kg)'
        peer.until(lambda: (feed(peer, question=asks), browser.value("!document.getElementById('question').hidden"))[1])
        assert browser.value("document.getElementById('question').textContent") == f'Which tool hangs there? {asks}'
        assert browser.value("document.getElementById('question').getBoundingClientRect().bottom <= "
                             "document.getElementById('picture').getBoundingClientRect().top")
        browser.value("document.getElementById('question').click()")
        assert browser.value("document.getElementById('tare-box').open")
        browser.value("document.getElementById('tare-box').close()")
        assert browser.value("[...document.querySelectorAll('#operator button, nav button')].every(b => "
                             "{ const r = b.getBoundingClientRect(); return r.width >= 44 && r.height >= 44 "
                             "&& b.tabIndex === 0; })")
        assert browser.value('document.documentElement.scrollWidth <= 1280')
        until("document.getElementById('question').hidden")
        until("document.getElementById('machine').getContext('2d').getImageData(0, 0, 600, 250).data.some(v => v)")
        browser.value("document.querySelector('[data-do=undo]').click()")
        browser.value("document.getElementById('confirm-go').click()")
        until("document.getElementById('answer').textContent.includes('NOT DONE – Undo: there is no load')")
        browser.wait_for("document.body.classList.contains('stale') && /No data for/.test("
                         "document.getElementById('why').textContent)")          # nothing is fed any more
        until("!document.body.classList.contains('stale')")
        for one in list(node.server._server.server_state.connections):      # it comes back by itself
            node.server._call(one.transport.abort)
        until("document.getElementById('link').textContent !== 'live'")
        until("document.getElementById('link').textContent === 'live'")
        assert not browser.errors() and all(address.startswith(('http://127.0.0.1', 'ws://127.0.0.1'))
                                            for address in browser.requests())
    finally:
        browser.close()
