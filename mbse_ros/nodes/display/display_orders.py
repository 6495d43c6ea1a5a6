# SPDX-License-Identifier: Apache-2.0
"""What a viewer of the operator's page may ask for, read strictly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

BUTTONS = ('zero', 'load_done', 'undo', 'new_truck')        # services of scale_node
TARE = 'tare'
KEYS = ('key', 'expected')      # of any order
LONGEST_NAME = 64
LARGEST = 1e7       # kg


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
    try:
        said = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not _is_number(said.get('number')) or not isinstance(said.get('do'), str):
        return None
    action, given = said['do'], {key: value for key, value in said.items() if key not in ('number', 'do', *KEYS)}
    key, expected = _name(said.get('key', '')), said.get('expected', 0)
    all_readers: dict[str, dict[str, Callable[[Any], str | float | None]]] = {
        TARE: {'attachment': _name}, 'new_truck': {'truck': _name, 'target': _mass}}
    readers = all_readers.get(action, {})
    if action not in (*BUTTONS, TARE) or set(given) - set(readers) or action == TARE and not given or key is None \
            or not _is_number(expected):
        return None
    values = {key: read for key, value in given.items() if (read := readers[key](value)) is not None}
    return DisplayOrder(said['number'], action, values, key, expected) if len(values) == len(given) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2 ** 31


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= LONGEST_NAME and value.isprintable() else None


def _mass(value: Any) -> float | None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and 0 <= value <= LARGEST
    return float(value) if good else None
