# SPDX-License-Identifier: Apache-2.0
"""A 6-axis arm that MuJoCo moves, under a controller, with what no file describes: an independent plant.

MuJoCo (E. Todorov, T. Erez, Y. Tassa, MuJoCo: a physics engine for model-based control, IROS 2012) has the equations of
motion and solves Coulomb friction as a constraint, so joints stick. Bodies are those of a table of Denavit-Hartenberg
parameters (``arm_plant.Arm``). Nothing of the package is used. The package ``mujoco`` is not among its requirements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from arm_plant import GRAVITY, Arm

STEP, EVERY = 5e-4, 2       # s, of the physics; steps from one order of the controller to the next
STIFF, DAMPED = 900.0, 60.0     # 1/s2, 1/s: the controller's response, 30 rad/s
# of elastic gears the controller feels the rotor alone: 1/s, the damping of its speed, which at 1 kHz is stable, and
# the stiffness over that damping. With the response of a rigid arm the effort jumps between its limits at each order.
ROTOR_DAMPED, PLACED = 300.0, 10.0
TEETH = 2.0         # waves of a strain wave gear a turn of its motor
BASE, GEAR_DAMPING = 0.05, 0.02     # s: damping of base and gears over their stiffness is this share of the period


def _numbers(values: Any) -> str:
    return ' '.join(f'{value:.12g}' for value in np.ravel(values))


@dataclass(frozen=True)
class Beyond:
    """What the arm does that its file does not know.

    ``ripple``: size of the gears' waves, as a share of their largest effort; ``load``: friction, as a share of the
    effort; ``stiffness`` (6,) of the gears, N m/rad, None: rigid; ``base``: stiffness of what the arm stands on against
    tilting, N m/rad, 0: rigid; ``current`` and ``angle``: resolution of the sensors, A and rad.
    """

    ripple: float = 0.0
    load: float = 0.0
    stiffness: np.ndarray | None = None
    base: float = 0.0
    current: float = 0.0
    angle: float = 0.0


@dataclass
class MovedArm:
    """An arm with its load; ``largest`` (6,), N m; ``ratio``: turns of the motors for one of the joint."""

    arm: Arm
    largest: np.ndarray
    ratio: float
    beyond: Beyond = field(default_factory=Beyond)

    def mjcf(self) -> str:
        """The arm as MuJoCo reads it: a body per joint, in the frame before the joint; the load is part of the last."""
        arm, beyond, text, place = self.arm, self.beyond, '', '0 0 0'
        turn = '1 0 0 0'
        if beyond.base:
            tilt = ''.join(f'<joint name="base_{axis[0]}" axis="{axis[1]}" stiffness="{beyond.base:g}" '
                           f'damping="{BASE * beyond.base:g}"/>' for axis in (('x', '1 0 0'), ('y', '0 1 0')))
            text += f'<body>{tilt}<inertial pos="0 0 0" mass="20" diaginertia="0.5 0.5 0.5"/>'
        for i in range(6):
            c, s = np.cos(arm.alpha[i]), np.sin(arm.alpha[i])
            R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
            out = np.array([arm.a[i], 0.0, arm.d[i]])
            tensor = R @ arm.inertia[i] @ R.T
            six = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            gear = ''
            if beyond.stiffness is not None:
                gear = (f'<joint name="gear_{i}" axis="0 0 1" stiffness="{beyond.stiffness[i]:g}" '
                        f'damping="{GEAR_DAMPING * beyond.stiffness[i] / 30:g}"/>')
            text += (f'<body pos="{place}" quat="{turn}"><joint name="drive_{i}" axis="0 0 1" '
                     f'frictionloss="{arm.coulomb[i]:g}" damping="{arm.viscous[i]:g}" armature="{arm.rotor[i]:g}"/>'
                     f'{gear}<inertial pos="{_numbers(out + R @ arm.centre[i])}" mass="{arm.mass[i]:.12g}" '
                     f'fullinertia="{_numbers(six)}"/>')
            place, turn = _numbers(out), _numbers([np.cos(arm.alpha[i] / 2), np.sin(arm.alpha[i] / 2), 0, 0])
        text += '</body>' * (6 + bool(beyond.base))
        return (f'<mujoco><compiler angle="radian" autolimits="false" boundmass="0" balanceinertia="false"/>'
                f'<option timestep="{STEP}" gravity="0 0 {-GRAVITY}" integrator="implicitfast"/>'
                f'<default><joint type="hinge"/></default><worldbody>{text}</worldbody></mujoco>')

    def moved(self, t: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, ...]:
        """Angles, speeds at the motors' side of the gears, and efforts of the motors (n, 6), rad, rad/s, N m, at times
        (n,) of a constant rate, while the controller follows a motion (n, 6): the torque of the equations for the
        wanted acceleration, with what place and speed lack; it knows no friction. Elastic gears: it moves rotors."""
        import mujoco
        model = mujoco.MjModel.from_xml_string(self.mjcf())
        data = mujoco.MjData(model)
        names = [model.joint(i).name for i in range(model.njnt)]
        own = np.array([names.index(f'drive_{i}') for i in range(6)])
        data.qpos[own] = q[0]
        steps = round((t[1] - t[0]) / STEP)
        orders = np.arange(0, steps * len(t), EVERY) * STEP + t[0]
        q_w, qd_w, qdd_w = (np.array([np.interp(orders, t, column) for column in wanted.T]).T
                            for wanted in (q, qd, qdd))
        found, effort = np.zeros((3, len(t), 6)), np.zeros(6)
        whole, product, rigid = np.zeros(model.nv), np.zeros(model.nv), self.beyond.stiffness is None
        for k in range(steps * len(t)):
            if k % EVERY == 0:
                j = k // EVERY
                lacks, slow = q_w[j] - data.qpos[own], qd_w[j] - data.qvel[own]
                whole[own] = qdd_w[j] + rigid * (STIFF * lacks + DAMPED * slow)
                mujoco.mj_mulM(model, data, product, whole)
                held = (1 - rigid) * ROTOR_DAMPED * self.arm.rotor * (PLACED * lacks + slow)
                effort = np.clip(product[own] + data.qfrc_bias[own] + held, -self.largest, self.largest)
            if k % steps == 0:
                found[:, k // steps] = data.qpos[own], data.qvel[own], effort
            teeth = TEETH * self.ratio * data.qpos[own]
            resisting = self.beyond.load * np.abs(effort) * np.tanh(200.0 * data.qvel[own])
            data.qfrc_applied[own] = effort - resisting + self.beyond.ripple * self.largest * np.sin(teeth)
            mujoco.mj_step(model, data)
        return tuple(found)
