# SPDX-License-Identifier: Apache-2.0
"""The operator's page with the real scale: display_node and scale_node over DDS, orders through a WebSocket."""

import json

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('mbse_ros.msg')
pytest.importorskip('starlette')
pytest.importorskip('uvicorn')
pytest.importorskip('websockets')
from nodes_in_process import making
from nodes_support import Peer, ros, sent
from rclpy.executors import SingleThreadedExecutor
from scale_support import excavator, state
from websockets.sync import client

from mbse_ros.nodes.display_node import DisplayNode
from mbse_ros.nodes.scale_node import ScaleNode
from studies.shifts import Bucket, Shift, payload_of


def start_pose(reading):
    """Coordinates of the start with the swing of a reading's place."""
    machine = excavator()
    return np.concatenate([[reading.place.swing], machine.model.start.q[machine.model.z][1:]])


def test_orders_are_done_by_the_real_scale(tmp_path):
    """Tare, zero, a truck with its target, load done, undo: from a page over both nodes into the records, and back."""
    file = tmp_path / 'scale.yaml'
    file.write_text('format: mbse/scale/1\nattachments: {hook: 100 kg}\n')
    with ros(), making() as make:
        node = make(DisplayNode, machine='zx200', port=0, scale_file=str(file))
        scale, peer, executor = make(ScaleNode, machine='zx200', records=str(tmp_path / 'loads.db'),
                                     scale_file=str(file)), Peer(), SingleThreadedExecutor()
        for one in (node, scale):
            executor.add_node(one)

        def also():
            executor.spin_once(timeout_sec=0)
            node.tick()
        peer.also, peer.near = also, (node, scale)
        instants = [(state(excavator(), reading.stamp_ns, start_pose(reading)), payload_of(reading))
                    for reading in Shift([Bucket(1000.0), Bucket(700.0)], stddev=(0.0, 0.0), rate=5.0).readings()]
        with client.connect(f'ws://127.0.0.1:{node.server.port}/live') as ws:
            def answer(**order):
                """What comes back of an order, and the totals after it."""
                ws.send(json.dumps(order))
                found = {}

                def step():
                    try:
                        text = json.loads(ws.recv(timeout=0.02))
                    except TimeoutError:
                        return False
                    found[text['kind']] = text
                    return text['kind'] == 'answer' and text['number'] == order['number']
                peer.until(step)
                return found['answer']['success'], found['answer']['text']

            def work(until):
                while instants and not until():
                    one, two = instants.pop(0)
                    scale.on_state(sent(one, 'zx200'))
                    scale.on_payload(sent(two, 'zx200'))
            assert answer(do='load_done', number=1)[0] is False
            assert answer(do='tare', number=2, attachment='hook') == (True, 'hook')
            assert answer(do='tare', number=3, attachment='grab')[0] is False
            assert answer(do='new_truck', number=4, truck='T9', target=2000.0)[0]
            work(lambda: scale.stage.book.all.count)
            assert scale.stage.book.filling.name == 'T9'
            assert scale.stage.book.all.mass.value == pytest.approx(900.0, rel=0.03)
            work(lambda: scale.stage._detector.carrying)
            done, text = answer(do='load_done', number=5)
            assert done and json.loads(text)['who'] == 'operator' and scale.stage.book.filling.tally.count == 2
            assert answer(do='undo', number=6)[0] and scale.stage.book.filling.tally.count == 1
            work(lambda: False)
            with client.connect(f'ws://127.0.0.1:{node.server.port}/live') as other:
                for page, truck in ((ws, 'T10'), (other, 'T11')):       # at once: neither takes the other's name
                    page.send(json.dumps({'do': 'new_truck', 'number': 20, 'key': truck, 'truck': truck}))
                peer.until(lambda: scale.stage.book.fillings == 4)
            assert {'T10', 'T11'} == {record.data['truck'] for record in scale._store.read() if record.kind == 'truck'
                                      } - {'T9'}
            assert not answer(do='new_truck', number=21, expected=2, truck='T12')[0] and scale.stage.book.fillings == 4
            assert answer(do='tare', number=7, attachment='')[0] and answer(do='zero', number=8)[0]
            assert scale.stage.book.zero is not None and scale.stage.book.all.count == 1
        executor.shutdown()
        peer.close()
