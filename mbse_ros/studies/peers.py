# SPDX-License-Identifier: Apache-2.0
"""Plane chains of uniform bars between two pins of the ground in Exudyn and MuJoCo, beside our own simulation.

Both programs are optional (extra ``peers``); they share no code with the package. They get the points and
masses of the bars, nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import numpy as np

GRAVITY = 9.81
SOLREF = 0.002          # s, of MuJoCo's loop closure: the stiffest that is stable with steps of 1 ms


@dataclass(frozen=True)
class Chain:
    """``points`` (b + 1, 2), m, the first and last fixed to the ground; ``masses`` (b,), kg, of the bars between."""

    points: np.ndarray
    masses: tuple[float, ...]


Run = Callable[[Chain, float, int], tuple[float, float]]    # dt, steps -> s of the processor, angle of the first bar


def installed() -> dict[str, Run]:
    """The peers that are there and can be imported, by name."""
    return {name: run for name, run in (('exudyn', exudyn), ('mujoco', mujoco)) if _imports(name)}


def _imports(name: str) -> bool:
    """Whether a program is there whole: a wheel of MuJoCo without its second one is found, and cannot be imported."""
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def exudyn(chain: Chain, dt: float, steps: int) -> tuple[float, float]:
    """Three coordinates for each body, joints as constraints of velocity (index 2), implicit trapezoidal rule."""
    import exudyn as exu
    from exudyn import itemInterface as item
    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(item.ObjectGround())
    before = mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=ground, localPosition=[*chain.points[0], 0.0]))
    first = None
    for start, end, mass in zip(chain.points, chain.points[1:], chain.masses):
        middle, (dx, dy) = (start + end) / 2, end - start
        length = float(np.hypot(dx, dy))
        node = mbs.AddNode(item.NodeRigidBody2D(referenceCoordinates=[*middle, float(np.arctan2(dy, dx))]))
        first = node if first is None else first
        body = mbs.AddObject(item.ObjectRigidBody2D(physicsMass=mass, physicsInertia=mass * length ** 2 / 12,
                                                    nodeNumber=node))
        near, far = (mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=body, localPosition=[s * length / 2, 0.0, 0.0]))
                     for s in (-1.0, 1.0))
        mbs.AddLoad(item.LoadMassProportional(markerNumber=mbs.AddMarker(item.MarkerBodyMass(bodyNumber=body)),
                                              loadVector=[0.0, -GRAVITY, 0.0]))
        mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=[before, near]))
        before = far
    last = mbs.AddMarker(item.MarkerBodyPosition(bodyNumber=ground, localPosition=[*chain.points[-1], 0.0]))
    mbs.AddObject(item.ObjectJointRevolute2D(markerNumbers=[before, last]))
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, steps * dt
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = steps * dt
    begin = time.process_time()
    mbs.SolveDynamic(settings, solverType=exu.DynamicSolverType.TrapezoidalIndex2)
    seconds = time.process_time() - begin
    turned = mbs.GetNodeOutput(first, exu.OutputVariableType.Coordinates)[2]
    return seconds, _angle(chain) + float(turned)


def mujoco(chain: Chain, dt: float, steps: int) -> tuple[float, float]:
    """A tree of hinges, the loop closed by a soft ``connect``; Runge-Kutta of order four."""
    import mujoco as mj
    model = mj.MjModel.from_xml_string(_mjcf(chain, dt))
    data = mj.MjData(model)
    begin = time.process_time()
    for _ in range(steps):
        mj.mj_step(model, data)
    return time.process_time() - begin, _angle(chain) + float(data.qpos[0])


def _angle(chain: Chain) -> float:
    dx, dy = chain.points[1] - chain.points[0]
    return float(np.arctan2(dy, dx))


def _mjcf(chain: Chain, dt: float) -> str:
    opening, origin = '', np.zeros(2)
    for k, (start, end, mass) in enumerate(zip(chain.points, chain.points[1:], chain.masses)):
        (x, y), (mx, my) = (start - origin).tolist(), ((end - start) / 2).tolist()
        moment = mass * (mx ** 2 + my ** 2) / 3
        opening += (f'<body name="bar{k}" pos="{x!r} {y!r} 0"><joint type="hinge" axis="0 0 1"/>'
                    f'<inertial pos="{mx!r} {my!r} 0" mass="{mass!r}" diaginertia="{moment} {moment} {moment}"/>')
        origin = start
    end_x, end_y = (float(v) for v in chain.points[-1] - origin)
    return (f'<mujoco><option timestep="{dt}" gravity="0 {-GRAVITY} 0" integrator="RK4" tolerance="1e-12"/>'
            f'<worldbody>{opening}{"</body>" * len(chain.masses)}</worldbody><equality>'
            f'<connect body1="bar{len(chain.masses) - 1}" anchor="{end_x} {end_y} 0" solref="{SOLREF} 1"/>'
            '</equality></mujoco>')
