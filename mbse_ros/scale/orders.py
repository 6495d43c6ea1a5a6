# SPDX-License-Identifier: Apache-2.0
"""What an operator orders: each once, however often it is sent, and not if somebody else was quicker. Those
of a viewer of the operator's page are read strictly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any

from ..errors import ScaleError
from .record import ATTACHMENT, LOAD, TARGET, TRUCK, Record
from .record import UNDO as UNDONE
from .record import ZERO as ZEROED
from .stage import LONGEST_NAME, ScaleStage

ZERO, LOAD_DONE, UNDO, ATTACH, NEW_TRUCK, SET_TARGET = 'zero', 'load_done', 'undo', 'attach', 'new_truck', 'set_target'
ORDERS = ZERO, LOAD_DONE, UNDO, ATTACH, NEW_TRUCK, SET_TARGET
LONGEST_KEY = 64        # of a page: of a name, too
RECORDS = {ZERO: ZEROED, LOAD_DONE: LOAD, UNDO: UNDONE, ATTACH: ATTACHMENT, NEW_TRUCK: TRUCK, SET_TARGET: TARGET}
"""Kinds of the records, by order."""
BUTTONS = ('zero', 'load_done', 'undo', 'new_truck')        # services of scale_node
TARE = 'tare'
KEYS = ('key', 'expected')      # of any order
LARGEST = 1e7       # kg


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


@dataclass(frozen=True)
class DisplayOrder:
    """One press of a button: ``number`` of the viewer's own, ``action``, the ``values`` that it takes, its ``key``, and
    which truck or load the viewer has ``expected``; see ScaleOrder."""

    number: int
    action: str
    values: dict[str, str | float]
    key: str = ''
    expected: int = 0


def read_order(text: str | None) -> DisplayOrder | None:
    """The order of a text, None where it is none."""
    found = read_press(text, (*BUTTONS, TARE), _READERS)
    return None if found is None or found.action == TARE and not found.values else found


def read_press(text: str | None, actions: Collection[str],
               all_readers: Mapping[str, Mapping[str, Callable[[Any], str | float | None]]] = MappingProxyType({})
               ) -> DisplayOrder | None:
    """The same of other ``actions``; ``all_readers``: by action, what reads its values, None for a bad one."""
    try:
        said = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not _is_number(said.get('number')) or not isinstance(said.get('do'), str):
        return None
    action, given = said['do'], {key: value for key, value in said.items() if key not in ('number', 'do', *KEYS)}
    key, expected = _name(said.get('key', '')), said.get('expected', 0)
    readers = all_readers.get(action, {})
    if action not in actions or set(given) - set(readers) or key is None or not _is_number(expected):
        return None
    values = {key: read for key, value in given.items() if (read := readers[key](value)) is not None}
    return DisplayOrder(said['number'], action, values, key, expected) if len(values) == len(given) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2 ** 31


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= LONGEST_KEY and value.isprintable() else None


def _mass(value: Any) -> float | None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and 0 <= value <= LARGEST
    return float(value) if good else None


_READERS: dict[str, dict[str, Callable[[Any], str | float | None]]] = {
    TARE: {'attachment': _name}, 'new_truck': {'truck': _name, 'target': _mass}}
