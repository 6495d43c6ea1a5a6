# SPDX-License-Identifier: Apache-2.0
"""Integrators of a mechanism's motion by name; each fills a record of a task."""

from __future__ import annotations

from collections.abc import Callable

from .ali3p import ali3p
from .euler import augmented_euler, forward_euler
from .exponential import exponential
from .reference import dop853, radau
from .trapezoid import trapezoid

INTEGRATORS: dict[str, Callable[..., None]] = {
    'forward_euler': forward_euler, 'augmented_euler': augmented_euler, 'exponential': exponential,
    'trapezoid': trapezoid, 'ali3p': ali3p, 'dop853': dop853, 'radau': radau}
