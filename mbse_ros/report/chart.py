# SPDX-License-Identifier: Apache-2.0
"""A chart as data: what is drawn, before anything decides whether it becomes a web page or a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Readable on white and on dark grey, and distinguishable for people who do not see red and green.
COLORS = {
    'measured': '#8b929c',
    'estimated': '#2a7de1',
    'true': '#e8590c',
    'raw': '#a5abb4',
    'low_passed': '#0ca678',
    'bound': '#8b929c',
    'updating': '#37a56b',
}
PALETTE = ('#2a7de1', '#e8590c', '#0ca678', '#9c36b5', '#e0a100', '#1098ad', '#d6336c', '#795548', '#495057', '#74b816')
HELD_COLORS = ('#c9ced6', '#e0a100', '#d6336c', '#9c36b5', '#1098ad', '#795548', '#5c7cfa', '#343a40')


@dataclass(frozen=True)
class Curve:
    """A curve (n,) in display units; ``kind`` is line, dashes, dotted, marks (on a line), points, dots, or samples (of
    a sensor, often many). Without a ``color`` it has the next one of PALETTE."""

    label: str
    t: np.ndarray
    y: np.ndarray
    color: str = ''
    kind: str = 'line'


@dataclass(frozen=True)
class Band:
    """The area between two curves (n,) in display units."""

    label: str
    t: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    color: str


@dataclass(frozen=True)
class Strip:
    """Stretches of time (k, 2) in which something holds, drawn as filled boxes."""

    label: str
    stretches: np.ndarray
    color: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes. ``note`` is the figure of merit beside its title; ``limits`` bound y where given; scales of
    matplotlib, ``threshold`` of a symlog axis, between whose signs it is linear."""

    title: str
    unit: str
    curves: Sequence[Curve] = ()
    bands: tuple[Band, ...] = ()
    strips: tuple[Strip, ...] = ()
    note: str = ''
    limits: tuple[float, float] | None = None
    height: float = 1.0
    x_label: str = 'time [s]'
    x_scale: str = 'linear'
    y_scale: str = 'linear'
    threshold: float = 1.0


@dataclass(frozen=True)
class Chart:
    """Panels one below the other over one time axis; ``name`` is the file name without its ending."""

    title: str
    name: str
    panels: tuple[Panel, ...]
    caption: str = ''
