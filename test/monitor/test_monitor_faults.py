# SPDX-License-Identifier: Apache-2.0
"""Kinds of faults as values: what decides looks at them, and never at the words of a reason."""

from __future__ import annotations

import random
import re
import string
from dataclasses import replace

import numpy as np
import pytest
from source_tree import ROOT
from spoilt_runs import SPOILT, chain, usual, values

from mbse_ros.monitor import faults
from mbse_ros.monitor.faults import DOUBTS, KINDS, NONE, Fault, Kind, joined, reason_of
from mbse_ros.scale.reading import reading
from mbse_ros.streams.records import ObserverStatus, PayloadStatus


def same(one, other):
    for a, b in zip(values(one), values(other), strict=True):
        assert np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else repr(a) == repr(b)


@pytest.mark.parametrize('kind, found', [
    ('none', NONE), ('nan', Fault.MISSING), ('stuck', Fault.STUCK), ('vacuum', Fault.VACUUM), ('jump', Fault.JUMPED),
    ('far', Fault.FAR), ('unit', Fault.UNIT), ('spikes', Fault.REJECTED)])
def test_a_fault_is_reported_as_its_kind(kind, found):
    run = usual(kind)
    said = joined(o.state.faults for o in run[50:] if o.state.status is not ObserverStatus.OK)
    assert found in said and (found or not said)
    if found:
        assert any(found in o.payload.faults for o in run if o.payload.status is PayloadStatus.NO_DATA)


@pytest.mark.parametrize('kind', (*SPOILT, 'rare'))
def test_words_decide_nothing(kind, monkeypatch):
    """Reasons of other words, in the table and between the stages: the same masses, statuses and readings."""
    rng = random.Random(kind)

    def words():
        old = ' '.join(rng.sample([*(item.reason for item in KINDS.values()), 'rejected', 'not trusted yet'], 2))
        return rng.choice([old, ''.join(rng.choices(string.ascii_letters + ' :;,', k=30))])
    before, pipeline = usual(kind), chain()
    for fault, item in KINDS.items():
        monkeypatch.setitem(KINDS, fault, item._replace(reason=words()))
    for one in before:
        state = pipeline.observer.process(one.segment)
        payload = pipeline.payload.process(replace(state, reason=words()))
        same(one.state, state)
        same(one.payload, payload)
        assert reading(state, replace(payload, reason=words())) == reading(one.state, one.payload)


def test_faults_and_reasons_come_together():
    for kind in (*SPOILT, 'rare'):
        for record in (record for o in usual(kind) for record in (o.state, o.payload)):
            gate = getattr(record, 'status', None) in (PayloadStatus.TOO_SLOW, PayloadStatus.OUTSIDE_STROKE,
                                                       PayloadStatus.NOT_OBSERVABLE, PayloadStatus.ACCELERATING)
            assert bool(record.faults) == bool(record.reason) or gate and not record.faults
            for fault in KINDS:
                assert (fault in record.faults) <= (reason_of(fault) in record.reason or fault in (
                    Fault.OUT_OF_RANGE, Fault.RESTARTED))


def test_the_table_is_whole():
    assert list(KINDS) == list(Fault) and int(joined(Fault)) < 1 << 32
    assert len({item.reason for item in KINDS.values()}) == len(KINDS)
    assert Fault.REJECTED in DOUBTS and Fault.MISSING not in DOUBTS and Fault.RARE not in DOUBTS
    assert (Fault.RARE | Fault.MISSING).words == ('missing', 'rare') and NONE.words == ()
    assert Fault(1 << 32 | 1).words == ('missing',)        # of a newer version
    assert isinstance(KINDS[Fault.MISSING], Kind) and faults.__doc__


def test_the_message_has_the_same_constants():
    text = (ROOT / 'msg' / 'Fault.msg').read_text()
    assert {name: (int(value), means) for name, value, means in re.findall(
        r'^uint32 (\w+)=(\d+) +# (.*)$', text, re.MULTILINE)} == {
            fault.name: (int(fault), item.means) for fault, item in KINDS.items()}
    for name in ('HydraulicState', 'LinkageState', 'PayloadEstimate'):
        assert (ROOT / 'msg' / f'{name}.msg').read_text().splitlines()[-1].startswith('uint32 faults ')
