# SPDX-License-Identifier: Apache-2.0
"""Singular positions, where a loop can go on in more than one way, and coordinates that have no mass."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ..description.coordinate_units import unit_of
from ..description.tables import show
from ..errors import DescriptionError, SingularConfigurationError
from .formulations.matrix_r import s_and_r
from .formulations.redundancy import undetermined
from .integrators.choice import RANK_LOST
from .model import Model, State

CLOSE = 1e-3        # of the smallest singular value in the neighbourhood: what is below is a singular position
ROUNDING = 1e-9        # of a logarithm: what differs by less is constant
INVOLVED = 1e-3     # share of a row in the motion that is not determined, from which it is named


def check_start(model: Model) -> None:
    """Raise DescriptionError where a mechanism starts at a singular position: flat linkages and the like, whose loops
    can go on in more than one way; or where something that moves has no inertia, and no constraint leads it."""
    check_regular(model, model.assembled)
    terms = model.terms(model.start.q, model.start.qd)
    free = undetermined(terms.take(model.moving))
    if free:
        moved = _moved_by(model, free)
        raise DescriptionError(
            model.description.file, f'bodies.{moved[0]}.inertia' if moved else 'bodies',
            f'no inertia for the motion of {", ".join(free)}', 'masses and moments of inertia of what moves; without: '
            + (', '.join(moved) or 'all'))


def check_determined(model: Model) -> None:
    """Raise DescriptionError where a mechanism starts at a dead point of its independent coordinates."""
    try:
        s_and_r(model.residual(model.start.q)[1][model.active], model.z, model.names)
    except SingularConfigurationError as error:
        raise DescriptionError(model.description.file, 'independent', ', '.join(model.independent),
                               f'coordinates that determine the motion at the start; {error}') from None


def _moved_by(model: Model, names: list[str]) -> list[str]:
    """Bodies that some coordinates move; those without mass or moments of inertia alone, where there are some."""
    q, system = ca.vertcat(*(model.system.q[i] for i in model.system.indices(names))), model.system
    moved = [name for name, frame in system.frames.items() if name in model.description.bodies and ca.jacobian(
        ca.vertcat(frame.origin, ca.vec(frame.rotation)), q).nnz()]
    light = [name for name in moved for body in [model.description.bodies[name]]
             if not body.uniform and (not body.mass.value or not any(item.value for item in body.inertia))]
    return light or moved


def check_regular(model: Model, state: State) -> None:
    """Raise DescriptionError for a singular position; ``state`` is near the model's own start, or another."""
    J = model.residual(state.q, state.t)[1][model.active]
    if not J.size or not np.isfinite(J).all():
        return
    scale = model.row_scale[model.active]
    left, singular, _ = np.linalg.svd(J / scale[:, None], full_matrices=False)
    if singular[-1] > CLOSE * max(model.regularity, singular[-1]):
        return
    rows = [model.active[i] for i in np.flatnonzero(np.abs(left[:, -1]) > INVOLVED)]
    owners = dict.fromkeys(model.system.owners[i] for i in rows)
    bodies = dict.fromkeys(body for i in rows for body in model.system.row_bodies[i])
    raise DescriptionError(
        model.description.file, 'initial.position', f'a singular position of the loop of {", ".join(owners)}'
        + (f' (bodies {", ".join(bodies)})' if bodies else ''),
        'a start at which its motion is determined: here, as where bars are in line, the loop can go on in more than '
        f'one way; such as {_elsewhere(model, state)}')


def _elsewhere(model: Model, state: State) -> str:
    """A regular position nearby in words, by the coordinates that the file gives or the model has chosen."""
    q = model.neighbour
    given = [name for name in model.description.initial.position if name in model.names]
    moved = sorted(model.names, key=lambda name: -abs(q[model.names.index(name)] - state.q[model.names.index(name)]))
    names = given or [name for name in model.independent if name in moved] or moved[:1]
    return ', '.join(f'{name} at {show(float(q[i]), unit)} in place of {show(float(state.q[i]) + 0.0, unit)}'
                     for name in names for i, unit in [(model.names.index(name), unit_of(model.description, name))])


def passes(model: Model, t: np.ndarray, q: np.ndarray) -> list[float]:
    """Instants, s, at which a motion q (k, n) at times t (k,) goes through singular positions: where the rows of the
    constraints lose their rank, by the least of det(J J') between two steps."""
    if not model.active or len(t) < 3:
        return []
    size, scale = np.zeros(len(t)), np.zeros(len(model.active))
    for k, (q_k, t_k) in enumerate(zip(q, t)):
        J = model.residual(q_k, t_k)[1][model.active]
        size[k], scale = np.linalg.slogdet(J @ J.T)[1], np.maximum(scale, np.linalg.norm(J, axis=1))
    falls = size < size.max() - ROUNDING        # of what is constant each rounding is a minimum
    lowest = 1 + np.flatnonzero(falls[1:-1] & (size[1:-1] <= size[:-2]) & (size[1:-1] < size[2:]))
    found = (_lowest(model, t[k - 1:k + 2], q[k - 1:k + 2], scale) for k in lowest)
    return [instant for instant in found if instant is not None]


def _lowest(model: Model, t: np.ndarray, q: np.ndarray, scale: np.ndarray) -> float | None:
    """Instant of the lowest rank of the rows, each by its ``scale`` (m,), along three steps, taken as a parabola; None
    where no rank is lost."""
    from scipy.optimize import minimize_scalar  # here: slow to import
    curve = np.polyfit(t - t[1], q, 2)

    def rank(s: float) -> float:
        J = model.residual(np.array([s * s, s, 1.0]) @ curve, t[1] + s)[1][model.active]
        return float(np.linalg.svd(J / scale[:, None], compute_uv=False)[-1])
    found = minimize_scalar(rank, bounds=(t[0] - t[1], t[2] - t[1]), method='bounded',
                            options={'xatol': 1e-7 * (t[2] - t[0])})
    return float(t[1] + found.x) if found.fun < RANK_LOST else None
