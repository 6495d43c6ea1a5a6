# SPDX-License-Identifier: Apache-2.0
"""A machine, its feed-forward, and its energies as functions of all numbers."""

from __future__ import annotations

import casadi as ca
from machine_frames import LEVEL_SENSORS, frames_of
from machine_variants import changed

from mbse_ros.machine.feed_forward import FeedForward

MODELS = {}


def model_of(name):
    """Machine, its feed-forward, and a function of coordinates, velocities (g,) and all numbers: kinetic and potential
    energy, J, Mbar, Qbar, R."""
    if name not in MODELS:
        machine = changed('zx200', LEVEL_SENSORS) if name == 'inclined' else frames_of(name).machine
        system, reduced = machine.system, machine.reduced
        height = sum(-mass * ca.dot(system.gravity, place) for mass, place in system.masses)
        kinetic = ca.substitute(system.kinetic, system.qd, reduced.qd)
        found = ca.Function('energy', [system.q, reduced.zd, system.values.symbol], [
            kinetic, height, reduced.Mbar, reduced.Qbar, reduced.R])
        MODELS[name] = machine, FeedForward(machine), found
    return MODELS[name]
