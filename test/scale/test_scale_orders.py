# SPDX-License-Identifier: Apache-2.0
"""Orders of operators: once each, however often they are sent, and by one of two who press at once."""

from __future__ import annotations

from contextlib import closing
from math import inf, nan

import pytest
from scale_support import scale, weighed

from mbse_ros.errors import RecordsError, ScaleError
from mbse_ros.scale.orders import LONGEST_KEY, Order, carry_out
from mbse_ros.scale.record import LOAD, TRUCK, UNDO
from mbse_ros.scale.stage import MemoryJournal
from mbse_ros.scale.store import RecordStore
from studies.shifts import Bucket, Shift

EXACT = {'stddev': (0.0, 0.0), 'rate': 5.0}


@pytest.fixture(scope='module')
def weighed_loads():
    """Records of three loads."""
    journal = MemoryJournal()
    weighed(scale(journal), Shift([Bucket(1000.0), Bucket(800.0), Bucket(600.0)], **EXACT))
    return journal.read()


@pytest.fixture
def stage(weighed_loads):
    journal = MemoryJournal()
    journal._records += weighed_loads
    return scale(journal)


def refuse(record, after):
    raise RecordsError('loads.db', 'database or disk is full')


def test_an_order_that_is_sent_again_is_done_once(stage, tmp_path) -> None:
    """Also after the scale was stopped: the key is in the record."""
    for order, kind in ((Order('undo', 'a'), UNDO), (Order('new_truck', 'b', truck='T7', target=500.0), TRUCK)):
        (first,), before = carry_out(stage, order)
        assert first.kind == kind and not before
        count = len(stage._journal.read())
        assert carry_out(stage, order) == ([first], True) and len(stage._journal.read()) == count
    assert stage.book.all.count == 2 and (stage.book.filling.name, stage.book.filling.target) == ('T7', 500.0)
    with closing(RecordStore(tmp_path / 'x.db', 'excavator')) as store:
        carry_out(scale(store), Order('new_truck', 'b', truck='T7'))
    with closing(RecordStore(tmp_path / 'x.db', 'excavator')) as store:
        assert carry_out(again := scale(store), Order('new_truck', 'b', truck='T7'))[1] and again.book.fillings == 2


@pytest.mark.parametrize('first, other', [
    (Order('set_target', 'k'), Order('new_truck', 'k')), (Order('undo', 'k'), Order('load_done', 'k')),
    (Order('new_truck', 'k', truck='T7'), Order('new_truck', 'k', truck='T8')),
    (Order('new_truck', 'k', truck='T7'), Order('new_truck', 'k', truck='T7', target=5.0)),
    (Order('set_target', 'k', target=5.0), Order('set_target', 'k', target=6.0)),
    (Order('set_target', 'k', target=5.0), Order('attach', 'k'))])
@pytest.mark.parametrize('waits', [False, True])
def test_a_key_of_another_order_passes_for_none_that_was_done(stage, monkeypatch, first, other, waits) -> None:
    """Nor where that other order still waits to be written."""
    with monkeypatch.context() as patch:
        if waits:
            patch.setattr(stage._journal, 'append', refuse)
        carry_out(stage, first)
        before = len(stage._journal.read()), len(stage.pending)
        with pytest.raises(ScaleError, match="key: got 'k'"):
            carry_out(stage, other)
        assert before == (len(stage._journal.read()), len(stage.pending))


def test_two_who_press_at_once(stage) -> None:
    """Both have seen truck 1 and the third load: the second is told what has become of it, and nothing is lost."""
    carry_out(stage, Order('new_truck', 'a', 1, 'T7'))
    with pytest.raises(ScaleError, match='truck number 1, it is number 2 by now, T7'):
        carry_out(stage, Order('new_truck', 'b', 1, 'T8'))
    last = stage.book.last.number
    carry_out(stage, Order('undo', 'c', last))
    with pytest.raises(ScaleError, match=f'record {last}, the last one that counts is that of record '
                                         f'{stage.book.last.number} by now'):
        carry_out(stage, Order('undo', 'd', last))
    assert stage.book.all.count == 2 and stage.book.filling.name == 'T7'
    carry_out(stage, Order('new_truck', 'e', 0, 'T8'))       # of who does not say what he has seen
    assert [record.data['truck'] for record in stage._journal.read() if record.kind == TRUCK] == ['T7', 'T8']


def test_an_order_that_waits_is_not_made_twice(stage, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(stage._journal, 'append', refuse)
        assert carry_out(stage, Order('new_truck', 'a', truck='T7')) == ([], False)
        with pytest.raises(ScaleError, match='waits to be written.*disk is full'):
            carry_out(stage, Order('new_truck', 'a', truck='T7'))
    assert [record.data['truck'] for record in stage.flush()] == ['T7']
    assert carry_out(stage, Order('new_truck', 'a', truck='T7'))[1]


@pytest.mark.parametrize('order', [
    Order('stop'), Order('undo', 'x' * (LONGEST_KEY + 1)), Order('set_target', target=nan),
    Order('new_truck', target=-1.0), Order('set_target', target=inf), Order('attach', attachment='none such'),
    Order('new_truck', truck='x' * 81)])
def test_wrong_orders(stage, order) -> None:
    before = len(stage._journal.read())
    with pytest.raises(ScaleError, match='expected'):
        carry_out(stage, order)
    assert len(stage._journal.read()) == before and not stage.pending


def test_what_the_operator_sees_says_what_to_expect(stage) -> None:
    weighed(stage, Shift([Bucket(500.0)], **EXACT).readings())
    assert (stage.live.truck_number, stage.live.last_load) == (1, stage.book.last.number)
    assert stage.book.last.kind == LOAD
