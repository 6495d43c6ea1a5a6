# SPDX-License-Identifier: Apache-2.0
"""Directional valve: flow over its edges with a laminar part, switched between pump and tank by the spool's sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca


def flow_coefficient(nominal_flow: Any, nominal_command: Any, nominal_pressure: Any) -> Any:
    """Flow coefficient Cv, m3/(s V Pa^0.5) (Pyrhönen et al., mass estimation, Eq. 14)."""
    return nominal_flow / (nominal_command * ca.sqrt(nominal_pressure))


def turbulent_root(drop: Any, limit: Any) -> Any:
    """Signed square root of a pressure drop, linear below ``limit`` (Pyrhönen et al., mass estimation, Eq. 15 without
    its factor).

    Both branches are ``drop / sqrt(max(|drop|, limit))``, whose derivative is finite everywhere.
    """
    return drop / ca.sqrt(ca.fmax(ca.fabs(drop), limit))


def port_flows(spool: Any, pump: Any, tank: Any, a: Any, b: Any, coefficient: Any, limit: Any) -> tuple[Any, Any]:
    """Flows into ports a and b, m3/s; spool > 0 joins pump to a and b to tank (Pyrhönen et al., mass estimation,
    Eqs. 12, 13, 15)."""
    source_a = ca.if_else(spool > 0, pump, tank)
    source_b = ca.if_else(spool > 0, tank, pump)
    opening = ca.fabs(spool) * coefficient
    return opening * turbulent_root(source_a - a, limit), opening * turbulent_root(source_b - b, limit)


def edge_flows(opening: Any, pump: Any, tank: Any, a: Any, b: Any, limit: Any, gains: Mapping[str, Any],
               held: Any = None) -> tuple[Any, Any]:
    """As ``port_flows`` with a gain of each of the four edges, by name (1 where it is missing).

    ``opening``, m3/s per Pa^0.5, signed as the spool. ``held``, Pa: the largest drop from the pump that a pressure
    compensator leaves over the spool; None: an orifice.
    """
    size = ca.fabs(opening)
    supplied = [pump - port for port in (a, b)]
    if held is not None:
        supplied = [ca.fmin(drop, held) for drop in supplied]
    forward = (gains.get('pump_a', 1) * turbulent_root(supplied[0], limit),
               gains.get('b_tank', 1) * turbulent_root(tank - b, limit))
    backward = (gains.get('a_tank', 1) * turbulent_root(tank - a, limit),
                gains.get('pump_b', 1) * turbulent_root(supplied[1], limit))
    return tuple(size * ca.if_else(opening > 0, one, other) for one, other in zip(forward, backward))


def beyond(spool: Any, band: Any) -> Any:
    """The spool, V, beyond its dead band; 0 inside."""
    return ca.sign(spool) * ca.fmax(ca.fabs(spool) - band, 0)
