# SPDX-License-Identifier: Apache-2.0
"""What a report shows, as plain arrays: one run of an estimator, and charts, before anything decides whether they
become a web page or PNGs.

Times are seconds from the start of the run and never decrease; values are SI (a ``scale`` turns them into the unit
shown). A value that is not finite is a gap: it is not drawn and not counted. Whatever is None or empty is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import MbseError
from .solids import Solids

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
FILLS = {'stand': '#c3c8d0', 'body': COLORS['estimated'], 'rod': '#d5dbe3', 'barrel': '#4a5361',
         'load': COLORS['true']}        # of solids
PALETTE = ('#2a7de1', '#e8590c', '#0ca678', '#9c36b5', '#e0a100', '#1098ad', '#d6336c', '#795548', '#495057', '#74b816')
HELD_COLORS = ('#c9ced6', '#e0a100', '#d6336c', '#9c36b5', '#1098ad', '#795548', '#5c7cfa', '#343a40')


class ReportError(MbseError):
    """The arrays of a report do not fit together; ``name`` says which, ``value`` and ``expected`` what is wrong."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        self.name, self.value, self.expected = name, value, expected
        super().__init__(f'report: {name}: got {value}, expected {expected}')


class Timed:
    """Base of values over times ``t`` (n,): its arrays become float columns, a single number is repeated.

    Raises ReportError for an array of another length, and for times that go back or are not finite.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]      # of the children
    t: np.ndarray

    def __post_init__(self) -> None:
        size, label = np.size(self.t), type(self).__name__.lower()
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type.startswith('np.ndarray') and value is not None:
                column = np.asarray(value, dtype=float)
                column = np.full(size, float(column)) if column.ndim == 0 else column
                if column.shape != (size,):
                    raise ReportError(f'{label}: {item.name}', f'shape {column.shape}',
                                      f'shape ({size},), one per time')
                object.__setattr__(self, item.name, column)
        if not np.all(np.isfinite(self.t)) or np.any(np.diff(self.t) < 0):
            raise ReportError(f'{label}: t', 'times that go back or are not finite', 'seconds that never decrease')


@dataclass(frozen=True)
class Series(Timed):
    """Values over time: ``t`` (n,) s, ``value`` (n,) SI, ``stddev`` (n,) SI or None when it is not known."""

    t: np.ndarray
    value: np.ndarray
    stddev: np.ndarray | None = None


@dataclass(frozen=True)
class Signal:
    """One quantity, as measured, estimated (with its stddev: a 95 % band) and, in simulation, as it truly was.

    ``unit`` is the unit shown, ``scale`` the factor from SI to it (1e3 for mm). Signals of one ``group`` share a chart.
    """

    name: str
    unit: str
    scale: float = 1.0
    group: str = 'Motion'
    measured: Series | None = None
    estimated: Series | None = None
    true: Series | None = None


@dataclass(frozen=True)
class Innovation(Timed):
    """Measured minus predicted value of a channel: ``t, value, stddev`` (n,); unit and scale as in Signal."""

    channel: str
    unit: str
    t: np.ndarray
    value: np.ndarray
    stddev: np.ndarray
    scale: float = 1.0


@dataclass(frozen=True)
class Nis(Timed):
    """Normalised innovation squared: ``t, value`` (n,), its degrees of freedom and its 95 % bounds.

    ``dof``, ``lower`` and ``upper`` are numbers, or (n,) where the number of measurements changes; the bounds are the
    2.5 % and 97.5 % points of the chi-squared distribution.
    """

    t: np.ndarray
    value: np.ndarray
    dof: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class PayloadTrack(Timed):
    """The payload mass over time, kg: ``t, raw, low_passed, mass, lower, upper`` (n,), the last two a 95 % interval.

    ``status`` (n,) says why the mass is or is not updated, ``status_names`` what each value means; ``updating`` is the
    value for "goes into the mass". ``true`` is the true mass, a number or (n,), where it is known. ``reference`` is
    a text on the answer, e.g. what an independent weighing gave. ``name``: of several payloads whose mass it is.
    """

    t: np.ndarray
    raw: np.ndarray
    low_passed: np.ndarray
    mass: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    status_names: Mapping[int, str]
    updating: int = 0
    true: np.ndarray | None = None
    reference: str = ''
    name: str = ''


@dataclass(frozen=True)
class Turn:
    """The swing of a machine: ``angle`` (frames,) rad about the vertical through ``axis`` (x, y), m; NaN: not known."""

    angle: np.ndarray
    axis: tuple[float, float]


@dataclass(frozen=True)
class Animation(Timed):
    """The machine as polylines over time, drawn from the side (x right, z up).

    ``t`` (frames,) s; ``estimated`` and ``measured`` map a name to (frames, k, 3) points, m, in the machine frame.
    Names: ``cylinder/<name>`` is base, gland, rod eye; ``payload`` is one point; any other is a body, filled where its
    outline closes. ``captions`` is one text per frame, e.g. ``'50.2 kg'``. A machine with a ``turn`` is drawn from its
    own side, as seen by who swings with it, and from above. ``solids``: its shapes, by default made from its lines;
    ``mass`` (frames,) kg, by which the load is drawn.
    """

    t: np.ndarray
    estimated: Mapping[str, np.ndarray]
    measured: Mapping[str, np.ndarray] | None = None
    captions: Sequence[str] = ()
    turn: Turn | None = None
    solids: Solids | None = None
    mass: np.ndarray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for which in ('estimated', 'measured'):
            lines = {name: np.asarray(points, dtype=float) for name, points in (getattr(self, which) or {}).items()}
            for name, points in lines.items():
                if points.ndim != 3 or points.shape[::2] != (self.t.size, 3):
                    raise ReportError(f'animation: {which} {name}', f'shape {points.shape}',
                                      f'shape ({self.t.size}, k, 3)')
            object.__setattr__(self, which, lines)

    @property
    def shapes(self) -> Solids | None:
        """Its solids; None where no frame is known to make them from."""
        whole = np.all([np.isfinite(line).all(axis=(1, 2)) for line in self.estimated.values()], axis=0)
        if self.solids is not None or not self.estimated or not whole.any():
            return self.solids if self.estimated else None
        return Solids({name: line[np.argmax(whole)] for name, line in self.estimated.items()})

    @property
    def radii(self) -> np.ndarray:
        """Of the load's ball (frames,), m."""
        solids, mass = self.shapes, np.full(self.t.size, np.nan) if self.mass is None else np.asarray(self.mass)
        return np.array([0.0 if solids is None else solids.load_radius(float(one)) for one in mass])


@dataclass(frozen=True)
class Table:
    """A table of texts: ``columns`` are the headings, each row has as many cells."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Clock:
    """Time of day on a time axis: the stamp of its zero, ns, and how many ``seconds`` its unit has."""

    zero_ns: int
    seconds: float = 1.0


@dataclass(frozen=True)
class Run:
    """All that one report shows.

    ``facts`` is the short table beside the answer; ``notes`` are remarks on what the result does and does not say;
    ``charts`` come after those that are made of the rest, all with the same axis. ``headline``: the answer where it is
    not that of a ``payload``, under its title; ``summary``: sentences by what they say, such as why, and what to do.
    ``clock``: None where the stamps are not of a clock that was set.
    """

    title: str
    machine: str
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    signals: Sequence[Signal] = ()
    innovations: Sequence[Innovation] = ()
    nis: Nis | None = None
    payload: PayloadTrack | None = None
    animation: Animation | None = None
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    headline: tuple[str, str, Sequence[str]] | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    clock: Clock | None = None


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
