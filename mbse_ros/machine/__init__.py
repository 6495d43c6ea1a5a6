# SPDX-License-Identifier: Apache-2.0
"""One machine: the model of its mechanism, its hydraulics and its sensors, from one file."""

from ..description.sections.load_hydraulics import VALVE_KINDS
from .find_machine import load_machine, with_valves
from .machine import Machine

__all__ = ['Machine', 'VALVE_KINDS', 'load_machine', 'with_valves']
