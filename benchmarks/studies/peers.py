# SPDX-License-Identifier: Apache-2.0
"""Exudyn and MuJoCo beside our own simulation, each with the setting that is best for the mechanism.

Both programs are optional (extra ``peers``); they share no code with the package. They get bodies, joints, springs and
torques as numbers, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from . import peer_exudyn, peer_mujoco
from .peer_model import NoPeerError, PeerModel, deviation

NEARLY = 1.1        # errors that differ by less count as the same
FINER = 4           # part of the step at which a peer must come nearer to our motion
Run = Callable[[PeerModel, float, int, Any], tuple[float, float]]
PEERS: dict[str, tuple[Run, tuple[Any, ...]]] = {
    'exudyn': (peer_exudyn.exudyn_run, peer_exudyn.SETTINGS),
    'mujoco': (peer_mujoco.mujoco_run, peer_mujoco.SETTINGS)}


@dataclass(frozen=True)
class Result:
    """A peer at its best: its setting, microseconds of the processor a step, error, and that with a quarter of the
    step."""

    setting: str
    us_per_step: float
    error: float
    finer_error: float


def installed() -> list[str]:
    """The peers that are there and can be imported."""
    return [name for name in PEERS if _imports(name)]


def _imports(name: str) -> bool:
    """Whether a program is there whole: a wheel of MuJoCo without its second one is found, and cannot be imported."""
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def best_of(name: str, peer: PeerModel, dt: float, steps: int, repeats: int, true: float) -> Result:
    """The most accurate setting of a program, the fastest of those that are as accurate; NoPeerError if it has none."""
    run, settings = PEERS[name]
    found: list[tuple[float, float, Any]] = []
    failed = 'no setting gives a motion'
    for setting in settings:
        try:
            seconds, value = run(peer, dt, steps, setting)
        except NoPeerError as problem:
            raise NoPeerError(f'{name}: {problem}') from None
        except Exception as problem:      # whatever kind the program raises where it diverges
            failed = type(problem).__name__
            continue
        found += [(error, seconds, setting)] if np.isfinite(error := deviation(peer, value, true)) else []
    if not found:
        raise NoPeerError(f'{name}: {failed}')
    least = min(item[0] for item in found)
    error, seconds, setting = min((item for item in found if item[0] <= NEARLY * least), key=lambda item: item[1])
    seconds = min([seconds, *(run(peer, dt, steps, setting)[0] for _ in range(repeats - 1))])
    finer = deviation(peer, run(peer, dt / FINER, FINER * steps, setting)[1], true)
    return Result(' '.join(str(value) for value in setting), 1e6 * seconds / steps, error, finer)
