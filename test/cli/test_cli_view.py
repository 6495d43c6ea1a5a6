# SPDX-License-Identifier: Apache-2.0
"""`mbse view`: what is in the recording against the estimate; what is refused."""

import sys

import numpy as np
import pytest
from cli_support import mbse, recorded, refused

from mbse_ros.bags.bag import open_bag
from mbse_ros.bags.messages import record_message
from mbse_ros.bags.writer import BagWriter
from mbse_ros.cli import view as module
from mbse_ros.machine import load_machine
from mbse_ros.offline.bag import estimate_bag
from mbse_ros.sources.survey import MOST, survey_bag


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp('view') / 'lift')


def test_refusals(bag, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rerun', None)
    assert "pip install 'mbse_ros[view]'" in refused('view', bag, '-o', tmp_path / 'x.rrd')
    assert 'ends with .rrd' in refused('view', bag, '-o', tmp_path / 'x.bag')
    (tmp_path / 'old.rrd').touch()
    assert 'exists already' in refused('view', bag, '-o', tmp_path / 'old.rrd')
    monkeypatch.setattr(sys, 'platform', 'linux')
    for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
        monkeypatch.delenv(name, raising=False)
    assert 'no screen' in refused('view', bag)


def test_the_page_of_any_bag_asks_for_no_machine(bag, tmp_path):
    done = mbse('view', bag, '-o', tmp_path / 'x.html')
    assert done.status == 0 and '/sensors/position' in (tmp_path / 'x.html').read_text(), done
    assert 'no such option here' in refused('view', bag, '-o', tmp_path / 'y.html', '--machine', 'zx200')


def test_of_many_messages_some_are_kept_with_their_times(tmp_path):
    """As many as fit, each at its own arrival."""
    with BagWriter(tmp_path / 'bag') as writer:
        for k in range(MOST + 10):
            writer.write('/x', 'std_msgs/msg/Float64', k * 1000, {'data': float(k)})
    topic = survey_bag(open_bag(tmp_path / 'bag')).topics['/x']
    (values,) = topic.values.values()
    assert 0 < len(values) < MOST and [1000 * value for value in values] == topic.arrivals


def test_the_recorded_mass_is_shown_where_it_has_a_place(bag, tmp_path):
    outputs = []
    estimate = estimate_bag(bag, load_machine('patu655_lift'), {}, take=outputs.append)
    for order, count in (1, 1), (-1, 0):
        with BagWriter(tmp_path / f'{count}') as writer:
            for time, output in enumerate(outputs[::order]):      # a clock that was set back, or not
                msgtype, message = record_message(output.payload, '')
                writer.write('payload', msgtype, time, message)
        shown = module._recorded(open_bag(tmp_path / f'{count}'), None, int(estimate.track.start_ns[0]))
        assert len(shown) == count
    assert module._recorded(open_bag(bag), None, int(estimate.track.start_ns[0])) == []


def test_the_machine_is_the_one_of_the_bag(tmp_path, monkeypatch):
    assert mbse('simulate', 'lut_simple_crane', '-o', tmp_path / 'bag', '--payload', 7, '--duration', 1).status == 0
    shown = []
    monkeypatch.setattr('mbse_ros.report.rerun_file.viewer', lambda: None)
    monkeypatch.setattr('mbse_ros.report.rerun_file.show_run', lambda run, *_: shown.append(run.machine))
    done = mbse('view', tmp_path / 'bag', '-o', tmp_path / 'x.rrd')
    assert done.status == 0 and shown == ['lut_simple_crane'], done


def test_the_recording_is_the_estimate(bag, tmp_path):
    pytest.importorskip('rerun', reason='rerun-sdk is not installed')
    chunks = pytest.importorskip('rerun.chunk', reason='this rerun-sdk reads no recordings')
    done = mbse('view', bag, '-o', tmp_path / 'x.rrd')
    assert done.status == 0 and str(tmp_path / 'x.rrd') in done.out
    found = {}
    for chunk in chunks.RrdReader(tmp_path / 'x.rrd').stream():
        if not chunk.is_static and chunk.timeline_names:
            found.setdefault(str(chunk.entity_path), []).append(chunk.to_record_batch())

    def column(entity, name):
        """Rows of all chunks in the order of the time."""
        rows = [(t, value) for batch in found[entity] for t, value in zip(
            batch.column('time').cast('int64').to_pylist(), batch.column(name).to_pylist())]
        return zip(*sorted(rows, key=lambda row: row[0]))
    machine = load_machine('patu655_lift')
    outputs = []
    estimate_bag(bag, machine, {}, take=outputs.append)
    start = outputs[0].segment.start_ns
    t, mass = column('/charts/payload/payload_mass/mass', 'Scalars:scalars')
    expected = [output.payload for output in outputs]
    assert list(t) == pytest.approx([payload.stamp_ns - start for payload in expected], abs=2)
    assert [value[0] if value else np.nan for value in mass] == pytest.approx(
        [payload.mass for payload in expected], nan_ok=True)
    stamps = [stamp for batch in found['/machine/estimated/boom']
              for stamp in batch.column('stamp').cast('int64').to_pylist()]
    places = {output.state.stamp_ns: output.state.mean[-1, :1] for output in outputs}
    _, origins = column('/machine/estimated/boom', 'Transform3D:translation')
    (_, barrels), (_, rods), (_, sizes) = (column(f'/machine/estimated/cylinder/lift/{part}', f'Transform3D:{what}')
                                           for part, what in (('barrel', 'translation'), ('rod', 'translation'),
                                                              ('rod', 'scale')))
    for stamp, boom, barrel, rod, size in list(zip(sorted(stamps), origins, barrels, rods, sizes))[::20]:
        own = min(places, key=lambda one: abs(one - stamp))
        assert abs(own - stamp) < 2
        lines = machine.outline_at(machine.position(places[own]))
        base, gland, eye = lines['cylinder/lift']
        for found, expected in ((boom, lines['boom'][0]), (barrel, base), (rod, gland)):
            assert np.allclose(found[0], expected, atol=1e-5)
        assert np.isclose(size[0][0], np.linalg.norm(eye - gland), atol=1e-5)
