# SPDX-License-Identifier: Apache-2.0
"""Parts of the flat vectors of the hydraulic observer's step: state, what is given, tuning, outputs."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine import Machine
from .filters.parts.layout import SYMMETRIC, Layout
from .hydraulic_model import NOISES, HydraulicModel
from .mass_information import columns
from .weighing import frictions, mass_numbers


@dataclass(frozen=True)
class HydraulicLayout:
    """Of an observer with nx entries of the state, m channels, a equations of the force balance (0 where it does not
    weigh) and k uncertain numbers and frictions near standstill that it follows.

    ``state``: ``x`` (nx,), SI; ``P`` (nx, nx), its covariance in the model's units; ``commands`` in force, V (a valve
    sees a command from its stamp on, so those of one step act during the next); ``activity`` of each coordinate;
    ``trend`` (m + a,) of each channel and of each equation; ``mass``: its activity, then its trend, see
    MassStep; ``moved`` (a,): in which equations the pistons move; ``empty``: for how long each pressure is below
    its tank's, s; ``T`` (k, nx): derivatives of the state by what is uncertain, for one deviation of each, in the
    model's units; ``near``: dependent coordinates near which Newton's method starts, where the model needs them.
    ``given``: ``o`` (m,), measurements, NaN where missing, and ``u``, commands. ``tuning``: ``dt``, s, the spectral
    densities by their names, the largest ``activity_range``, ``force_psd`` (a,) or (1,), density of the error of each
    equation, MPa^2 s, ``variance`` (m,) of the measurements, ``p``, the machine's parameters. ``outputs``: ``x``,
    ``innovation`` (m,), ``innovation_variance`` (m,), and ``weighing``, what the step measures of the mass, see
    MassInformation.
    """

    state: Layout
    given: Layout
    tuning: Layout
    outputs: Layout


def hydraulic_layout(machine: Machine, model: HydraulicModel) -> HydraulicLayout:
    """Layouts of a model's step."""
    n, m, uncertain = len(model.names), len(model.measured), len(model.consider(machine))
    equations = len(machine.weighing) * model.weighs
    state = {'x': (n, 1), 'P': (n, SYMMETRIC), 'commands': (model.U.numel(), 1),
             'activity': (len(machine.coordinates), 1), 'trend': (m + equations, 1),
             'mass': (mass_numbers(machine, model), 1), 'moved': (equations, 1), 'empty': (len(machine.volumes), 1),
             'T': (uncertain + frictions(machine, model), n), 'near': (model.dependent.numel(), 1)}
    tuning = {'dt': (1, 1), **{name: (1, 1) for name in NOISES}, 'activity_range': (1, 1),
              'force_psd': (max(1, equations), 1), 'variance': (m, 1), 'p': (machine.parameters.symbol.numel(), 1)}
    return HydraulicLayout(Layout(state), Layout({'o': (m, 1), 'u': (model.U.numel(), 1)}), Layout(tuning),
                           Layout({'x': (n, 1), 'innovation': (m, 1), 'innovation_variance': (m, 1),
                                   'weighing': (columns(uncertain) * model.weighs, 1)}))
