# SPDX-License-Identifier: Apache-2.0
"""What an operator orders: each once, however often it is sent, and not if somebody else was quicker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ScaleError
from .record import ATTACHMENT, LOAD, TARGET, TRUCK, Record
from .record import UNDO as UNDONE
from .record import ZERO as ZEROED
from .stage import LONGEST_NAME, ScaleStage

ZERO, LOAD_DONE, UNDO, ATTACH, NEW_TRUCK, SET_TARGET = 'zero', 'load_done', 'undo', 'attach', 'new_truck', 'set_target'
ORDERS = ZERO, LOAD_DONE, UNDO, ATTACH, NEW_TRUCK, SET_TARGET
LONGEST_KEY = 64
RECORDS = {ZERO: ZEROED, LOAD_DONE: LOAD, UNDO: UNDONE, ATTACH: ATTACHMENT, NEW_TRUCK: TRUCK, SET_TARGET: TARGET}
"""Kinds of the records, by order."""


@dataclass(frozen=True)
class Order:
    """``kind`` of ORDERS, and what it takes, kg; ``key``: of one press, '' for none; ``expected``: number of the last
    load's record (of an undo) or of the truck, as who orders has seen it, 0 for whatever it is."""

    kind: str
    key: str = ''
    expected: int = 0
    truck: str = ''
    target: float = 0.0
    attachment: str = ''


def carry_out(stage: ScaleStage, order: Order) -> tuple[list[Record], bool]:
    """Do an order: the records that are confirmed with it, and whether it had been done before, by its key.

    Raises ScaleError where it is not possible, waits to be written, or was made for another truck or load.
    """
    actions: dict[str, Callable[[], list[Record]]] = {
        ZERO: stage.zero, LOAD_DONE: stage.load_done, UNDO: stage.undo,
        NEW_TRUCK: lambda: stage.new_truck(order.truck, order.target),
        SET_TARGET: lambda: stage.set_target(order.target), ATTACH: lambda: stage.attach(order.attachment)}
    if order.kind not in actions:
        raise ScaleError(f'order: got {order.kind!r}, expected one of ' + ', '.join(ORDERS))
    if len(order.key) > LONGEST_KEY:
        raise ScaleError(f'key: got {len(order.key)} characters, expected {LONGEST_KEY} at most')
    if len(order.truck.strip()) > LONGEST_NAME:
        raise ScaleError(f'truck: got {len(order.truck.strip())} characters, expected {LONGEST_NAME} at most')
    if not 0.0 <= order.target < float('inf'):
        raise ScaleError(f'target: got {order.target!r}, expected a mass from 0 kg on')
    if order.key and (before := stage.book.orders.get(order.key)) is not None:
        _check_same(order, before)
        return [before], True
    if order.key and (waiting := [record for record in stage.pending if record.data.get('order') == order.key]):
        _check_same(order, waiting[-1])
        raise ScaleError(f'{order.kind}: it waits to be written, and is done then: {stage.trouble}')
    _check_expected(stage, order)
    with stage.ordered(order.key):
        return actions[order.kind](), False


def _check_same(order: Order, record: Record) -> None:
    """A key that another order had must not pass for an order that was done."""
    told: dict[str, str | float] = {'target': order.target} if order.kind in (NEW_TRUCK, SET_TARGET) else {}
    told |= {'truck': name} if order.kind == NEW_TRUCK and (name := order.truck.strip()) else {}
    told |= {'attachment': order.attachment} if order.kind == ATTACH else {}
    if record.kind != RECORDS[order.kind] or any(record.data[name] != value for name, value in told.items()):
        raise ScaleError(f'key: got {order.key!r}, expected another one for each press: it was that of another order, '
                         f'{record.kind}')


def _check_expected(stage: ScaleStage, order: Order) -> None:
    """Two operators may press at once: the second one's order was made for what is not there any more."""
    if not order.expected or order.kind in (ZERO, ATTACH):
        return
    book = stage.book
    if order.kind == UNDO:
        last = book.last.number if book.last is not None else 0
        if last != order.expected:
            raise ScaleError(f'undo: it was ordered for the load of record {order.expected}, the last one that counts '
                             f'is that of record {last} by now' if last else 'undo: there is no load to undo')
    elif order.expected != book.fillings:
        raise ScaleError(f'{order.kind}: it was ordered for truck number {order.expected}, it is number '
                         f'{book.fillings} by now, {book.filling.name}: look whether it is still wanted')
