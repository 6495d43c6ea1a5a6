# SPDX-License-Identifier: Apache-2.0
"""Integrators of a mechanism's motion by name; each fills a record of a task."""

from __future__ import annotations

from collections.abc import Callable

from .ali3p import ali3p
from .fixed_step import (
    Scheme,
    augmented_euler,
    augmented_euler_scheme,
    exponential,
    exponential_scheme,
    forward_euler,
    forward_euler_scheme,
    rk4,
    trapezoid,
    trapezoid_scheme,
)
from .reference import dop853, radau
from .sundials import cvodes

INTEGRATORS: dict[str, Callable[..., None]] = {
    'forward_euler': forward_euler, 'augmented_euler': augmented_euler, 'exponential': exponential,
    'trapezoid': trapezoid, 'rk4': rk4, 'ali3p': ali3p, 'dop853': dop853, 'radau': radau,
    'cvodes': cvodes}
# those whose steps are compiled, by their options
COMPILED: dict[str, Callable[..., Scheme]] = {
    'forward_euler': forward_euler_scheme, 'augmented_euler': augmented_euler_scheme, 'exponential': exponential_scheme,
    'trapezoid': trapezoid_scheme}
