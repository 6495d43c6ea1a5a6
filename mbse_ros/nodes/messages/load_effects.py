# SPDX-License-Identifier: Apache-2.0
"""What a load asks of the machine that carries it: feed-forward of controllers, and the margin to tipping over."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from ...errors import DescriptionError, MbseError
from ...machine import Machine
from ...machine.feed_forward import FeedForward
from ...machine.tip_over import TipOver, TipOverMargin
from ...streams.records import PayloadEstimate
from ..base.diagnostics import ERROR, OK, WARN, Diagnostics, Report, Values
from ..base.middleware import OUTPUT
from ..base.node_settings import OutputsSettings
from .wire import packed_joints, packed_number, packed_point


class Pose(NamedTuple):
    """Coordinates q (n,) that satisfy the constraints, velocities and accelerations (g,) of the independent ones, and
    measured angles of the base, rad."""

    q: np.ndarray
    zd: np.ndarray
    zdd: np.ndarray
    base: dict[str, float]


class LoadStatus(IntEnum):
    """Whether the load is known, and whether the machine stands."""

    OK = 0
    NOT_KNOWN = 1
    NEAR_TIPPING = 2
    TIPPING = 3


LEVELS: dict[IntEnum, bytes] = {LoadStatus.OK: OK, LoadStatus.NOT_KNOWN: WARN, LoadStatus.NEAR_TIPPING: WARN,
                                LoadStatus.TIPPING: ERROR}


class LoadEffects:
    """Publishes what has a reader, for loads that are known; of others the diagnostics say why nothing comes.

    ``output`` makes a publisher of a type and a topic; ``frame``: name of the machine's frame.
    """

    def __init__(self, machine: Machine, output: Callable[..., Publisher], node: str, frame: str) -> None:
        self._frame, self._forward = frame, FeedForward(machine)
        self._tip_over, self._without = None, ''
        try:
            self._tip_over = TipOverMargin(machine)
        except DescriptionError as error:
            self._without = f'not known: {error.key} is not in the file of the machine'
        twice = set(machine.cylinders)      # a coordinate that is a piston
        self._kept = [k for k, name in enumerate(self._forward.joints) if name not in twice]
        self.names = (*(self._forward.joints[k] for k in self._kept), *machine.cylinders)
        self._places = machine.system.indices(self.names)
        self._efforts = output(JointState, 'feed_forward')
        self._spread = output(JointState, 'feed_forward/stddev')
        if self._tip_over is not None:
            self._margin = output(Float64, 'stability/margin')
            self._point = output(PointStamped, 'stability/zero_moment_point')
        self._told = output(DiagnosticArray, '/diagnostics', OUTPUT)
        self._diagnostics = Diagnostics(self._told, f'{node} load', machine.name, 1)

    @property
    def publishers(self) -> list[Publisher]:
        """All but the diagnostics."""
        return [self._efforts, self._spread, *((self._margin, self._point) if self._tip_over is not None else ())]

    @property
    def watched(self) -> Publisher:
        """The diagnostics."""
        return self._told

    def unknown(self, stamp_ns: int, reason: str) -> None:
        """Say why nothing comes."""
        self._diagnostics(Report(stamp_ns, LoadStatus.NOT_KNOWN, reason), WARN, lambda: {
            'feed-forward': 'none', 'margin to tipping over, m': self._without or 'none'})

    def known(self, stamp_ns: int, pose: Pose, payload: PayloadEstimate | None, tuning: OutputsSettings) -> None:
        """Publish what a load does in a pose; None of a machine without one."""
        ends: tuple[float, ...]
        mass, stddev, ends = 0.0, 0.0, (0.0,)
        if payload is not None:
            mass, stddev, ends = max(payload.mass, 0.0), payload.stddev, (max(payload.lower, 0.0), payload.upper)
        motion = {'zd': pose.zd, 'zdd': pose.zdd} if tuning.dynamic else {}
        try:
            if self._has_reader(self._efforts, self._spread):
                self._push(stamp_ns, pose, mass, stddev, motion)
            tip = None if self._tip_over is None else self._tip_over(pose.q, ends, base=pose.base, **motion)
        except MbseError as error:      # a dead point, a deviation that is not known
            return self.unknown(stamp_ns, str(error))
        values: Values = {'feed-forward': f'for {mass:.1f} kg +- {stddev:.1f} kg',
                          'margin to tipping over, m': self._without}
        if tip is None:
            self._diagnostics(Report(stamp_ns, LoadStatus.OK, ''), OK, lambda: values)
            return None
        if self._has_reader(self._margin):
            self._margin.publish(packed_number(tip.margin))
        if self._has_reader(self._point) and np.isfinite(tip.zero_moment_point).all():
            self._point.publish(packed_point(stamp_ns, self._frame, tip.zero_moment_point))
        report = status_of(stamp_ns, tip, tuning.tipping_share)
        self._diagnostics(report, LEVELS[report.status], lambda: {**values, **_tip_values(tip)})
        return None

    def _push(self, stamp_ns: int, pose: Pose, mass: float, stddev: float, motion: dict[str, np.ndarray]) -> None:
        found, positions = self._forward(pose.q, mass, stddev, base=pose.base, **motion), pose.q[self._places]
        for publisher, torques, forces in ((self._efforts, found.torques, found.forces),
                                           (self._spread, found.torques_stddev, found.forces_stddev)):
            if self._has_reader(publisher):
                publisher.publish(packed_joints(stamp_ns, self._frame, self.names, positions, (),
                                                [*torques[self._kept], *forces]))

    @staticmethod
    def _has_reader(*publishers: Publisher) -> bool:
        return any(publisher.get_subscription_count() > 0 for publisher in publishers)


def status_of(stamp_ns: int, tip: TipOver, share: float) -> Report:
    """A machine tips where its margin is none, and is near it with more than a share of the load that tips it."""
    edge = ' to '.join(f'({x:.2f}, {y:.2f})' for x, y in tip.edge)
    if not tip.margin > 0.0:
        return Report(stamp_ns, LoadStatus.TIPPING, f'with {tip.mass:.0f} kg over the edge from {edge} m')
    if tip.mass > share * tip.tipping_mass:
        return Report(stamp_ns, LoadStatus.NEAR_TIPPING, f'{tip.mass:.0f} kg of {tip.tipping_mass:.0f} kg with which '
                                                          'it tips over')
    return Report(stamp_ns, LoadStatus.OK, '')


def _tip_values(tip: TipOver) -> dict[str, object]:
    return {'margin to tipping over, m': f'{tip.margin:.3f}',
            'stabilising over overturning moments': f'{tip.ratio:.3g}',
            'edge, m': np.round(tip.edge, 3).tolist(),
            'with a load of, kg': f'{tip.mass:.1f}',
            'load that tips it, kg': f'{tip.tipping_mass:.1f}',
            'centre of mass, m': np.round(tip.center_of_mass, 3).tolist()}
