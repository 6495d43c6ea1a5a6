# SPDX-License-Identifier: Apache-2.0
"""Bags of versions whose records had no field ``faults``: read with those that their reasons name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bags_samples import PERIOD_NS, payload, state
from spoilt_runs import SPOILT, usual, values

from mbse_ros.bags.bag import Bag, decode
from mbse_ros.bags.messages import before_faults, record_message, record_of, typestore
from mbse_ros.bags.series import read_payload, records
from mbse_ros.bags.writer import BagWriter
from mbse_ros.errors import BagError
from mbse_ros.monitor.faults import NONE, Fault
from mbse_ros.streams.records import PayloadEstimate, StateEstimate


def write_old(folder, monkeypatch, *found, cut=0):
    """A bag of records as a version before ``faults`` wrote them; ``cut``: bytes that their ends lack."""
    store = before_faults()
    monkeypatch.setattr('mbse_ros.bags.storage.storage_writer.definition',
                        lambda msgtype: store.generate_msgdef(msgtype, ros_version=2)[0])
    with BagWriter(folder, 'mcap', '/crane', 'patu655') as writer:
        for record in found:
            msgtype, message = record_message(record, 'patu655')
            kinds = dict(store.fielddefs[msgtype][1])
            data = store.serialize_cdr(
                store.types[msgtype](**{name: getattr(message, name) for name in kinds}), msgtype)
            topic = 'state' if isinstance(record, StateEstimate) else 'payload'
            writer.write_cdr(topic, msgtype, record.stamp_ns, bytes(data)[:len(data) - cut])
    monkeypatch.undo()
    return folder


@pytest.mark.parametrize('kind', (*SPOILT, 'rare'))
def test_faults_of_an_old_bag_are_those_that_were_meant(kind, tmp_path, monkeypatch):
    run = usual(kind)[::7]
    bag = Bag(write_old(tmp_path / 'old', monkeypatch, *(record for o in run for record in (o.state, o.payload))))
    for kind_of, written in ((StateEstimate, [o.state for o in run]), (PayloadEstimate, [o.payload for o in run])):
        found = list(records(bag, kind_of))
        assert len(found) == len(written)
        for one, other in zip(written, found):
            np.testing.assert_equal(values(other), values(one))
            assert other.reason == one.reason


@pytest.mark.parametrize('reason, faults', [
    ('', NONE), ('piston too slow: friction is not known near standstill', NONE),
    ('observer coasting: missing: a/b; rejected: c/d 5 standard deviations off (gate 3)',
     Fault.MISSING | Fault.REJECTED),
    ('observer lost: lift at 3.000 m, far outside its range; jumped: position/lift', Fault.OUT_OF_RANGE | Fault.JUMPED),
    ('observer coasting: far outside its range: position/lift', Fault.FAR),
    ('not trusted yet: the masses must agree for 2 s of motion after an implausible one, a sensor whose samples were '
     'all rejected, or loads that changed for longer or more often than loads do', Fault.NOT_TRUSTED),
    ('singular position: lift do not determine the motion (condition 1e9)', Fault.SINGULAR),
    ('the file has no section `hydraulics`: motion alone', Fault.UNWEIGHED)])
def test_a_reason_of_then(reason, faults, tmp_path, monkeypatch):
    bag = write_old(tmp_path / 'old', monkeypatch, replace(payload(1), reason=reason))
    assert read_payload(bag).faults.tolist() == [int(faults)]


def test_a_damaged_old_record_is_refused(tmp_path, monkeypatch):
    with pytest.raises(BagError, match='PayloadEstimate'):
        read_payload(write_old(tmp_path / 'old', monkeypatch, payload(1), cut=12))


def test_messages_of_an_old_bag_are_those_of_now(tmp_path, monkeypatch):
    """As they are played: whole, and with the bytes of a record that is written today."""
    bag = Bag(write_old(tmp_path / 'old', monkeypatch, state(1)))
    bag.check_type('mbse_ros/msg/HydraulicState')
    raw, = bag.messages()
    assert raw.stamp_ns == PERIOD_NS and decode(raw).faults == Fault.MISSING
    msgtype, message = record_message(replace(state(1), faults=Fault.MISSING), 'patu655')
    assert raw.data == bytes(typestore().serialize_cdr(message, msgtype))
    assert record_of(StateEstimate, decode(raw)).faults is Fault.MISSING
