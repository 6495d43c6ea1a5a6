# SPDX-License-Identifier: Apache-2.0
"""The machine as polylines over time, estimated and measured, for the pictures of a report."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...description.basics import GROUND
from ...errors import PositionProblemError, SingularConfigurationError
from ...machine import Machine
from ...offline.bag import Estimate
from ...report.data import Animation, Turn
from ...streams.records import ObserverStatus

FRAMES_PER_SECOND = 12.5
MOST = 7_500           # frames: those of ten minutes; a longer log has fewer a second
UPRIGHT = 0.999        # share of an axis along z from which on a joint is a swing


def animation_of(estimate: Estimate, t: np.ndarray) -> Animation:
    """Estimated and measured machine at the frames; turned with the swing, where the machine has one."""
    machine, states, names = estimate.machine, estimate.states, estimate.last.state.channels
    step = max(1, round(1.0 / FRAMES_PER_SECOND / max(np.median(np.diff(t)), 1e-6))) if len(t) > 1 else 1
    step = max(step, -(-len(t) // MOST))
    rows, count = slice(0, None, step), len(machine.coordinates)
    channels = [f'position/{name}' for name in machine.coordinates]
    estimated = _poses(machine, states.mean[rows, :count])
    measured = None
    if set(channels) <= set(names):
        columns = [names.index(channel) for channel in channels]
        measured = _lines(machine, _poses(machine, states.measured[rows][:, columns]))
    captions = [_caption(mass, ObserverStatus(status)) for mass, status in zip(
        states.mass[rows].tolist(), estimate.track.observer_status[rows].tolist())]
    return Animation(t[rows], _lines(machine, estimated), measured, captions, _turn(machine, estimated))


def _caption(mass: float, status: ObserverStatus) -> str:
    """The mass, and the observer's status where it cannot be trusted."""
    text = f'{mass:.1f} kg' if np.isfinite(mass) else 'mass not known yet'
    return text if status is ObserverStatus.OK else f'{text} (observer {status.name.lower()})'


def _poses(machine: Machine, coordinates: Iterable[np.ndarray]) -> list[np.ndarray | None]:
    """All coordinates (n,) at independent ones, each from the pose before; None where missing or out of reach."""
    q, poses = None, []
    for z in coordinates:
        pose = None
        if np.isfinite(z).all():
            try:
                pose = q = machine.position(z, q)
            except (PositionProblemError, SingularConfigurationError):
                pass
        poses.append(pose)
    return poses


def _lines(machine: Machine, poses: list[np.ndarray | None]) -> dict[str, np.ndarray]:
    """Polylines (frames, k, 3) of poses; NaN where there is none."""
    hidden = {name: np.full_like(points, np.nan) for name, points in machine.outline_at(machine.model.start.q).items()}
    frames = [hidden if q is None else machine.outline_at(q) for q in poses]
    return {name: np.array([frame[name] for frame in frames]) for name in hidden}


def _turn(machine: Machine, poses: list[np.ndarray | None]) -> Turn | None:
    """Angle of the joint about z that carries the machine on the ground; None where there is none."""
    for name, joint in machine.description.joints.items():
        upright = joint.axis and abs(joint.axis[-1]) > UPRIGHT and machine.description.dimension == 3
        if joint.type == 'revolute' and upright and joint.parent.body == GROUND and name in machine.system.names:
            place = machine.system.names.index(name)
            angle = [np.nan if q is None else np.sign(joint.axis[-1]) * q[place] for q in poses]
            x, y, _ = (item.value for item in machine.description.ground[joint.parent.point])
            return Turn(np.array(angle), (x, y))
    return None
