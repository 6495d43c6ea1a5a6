# SPDX-License-Identifier: Apache-2.0
"""Motions of four mechanisms by every way to write their equations, against one reference: the errors, their order with
the step, and what is left where constraints give way. ``mbse benchmark formulations --motions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from mbse_ros.dynamics.formulations.redundancy import MASSLESS, SLIGHT, mass_roots
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.report.text import number, print_table

MECHANISMS = 'four_bar', 'five_bar', 'excavator_arm', 'spatial_crane'
LENGTH, STEP = 0.3, 0.015       # s
GIVES = 1e-4, 1e-6              # 1 / alpha of a penalty, or clearances, (m/s2)/N
EXACT = {'partitioned': 'matrix_r', 'semi-recursive': 'semi_recursive', 'KKT': 'kkt',
         'Udwadia-Kalaba': 'udwadia_kalaba', 'U-K recursive': 'udwadia_kalaba_recursive',
         'projected, complement': 'projection_complement', 'projected, inverse': 'projection_inverse'}
SOFT = {'penalty': 'penalty', 'U-K with clearance': 'udwadia_kalaba_recursive'}
WAYS = *EXACT, *SOFT


def reference(mechanism: str) -> tuple[Model, np.ndarray]:
    """A mechanism in relative coordinates, and all of them at the end: matrix-R by DOP853."""
    model = load_model(mechanism, 'relative', backend='vm')
    return model, simulate(model, LENGTH, LENGTH, 'dop853').q[-1]


def clearances(model: Model, size: float) -> list[float | None]:
    """One for each row, None where a row holds coordinates without mass: else nothing would determine them."""
    terms = model.terms(model.start.q, model.start.qd, None, model.start.t)
    scale = mass_roots(terms.M, SLIGHT)
    values, vectors = np.linalg.eigh(terms.M / np.outer(scale, scale))
    holds = np.abs(terms.J @ (vectors[:, values < MASSLESS] / scale[:, None])).max(axis=1, initial=0.0) > MASSLESS
    return [None if held else size for held in holds]


def motion_row(model: Model, exact: np.ndarray, way: str) -> dict[str, Any]:
    """Of Runge and Kutta's method with steps of 15 and 7.5 ms: largest ``errors`` of a coordinate at the end, and their
    ``order``. Of constraints that give way the errors are those against their own limit, a quarter of the step;
    ``off`` is what this is off for both ``GIVES``; else None."""
    def end(dt: float, **options: Any) -> np.ndarray:
        return simulate(model, LENGTH, dt, 'rk4', formulation=EXACT.get(way) or SOFT[way], **options).q[-1]
    if way in EXACT:
        errors, off = [float(np.abs(end(dt) - exact).max()) for dt in (STEP, STEP / 2)], None
    else:
        given = [{'alpha': 1 / give} if way == 'penalty' else {'clearance': clearances(model, give)} for give in GIVES]
        finest = [end(STEP / 4, **options) for options in given]
        coarse = [end(dt, **given[1]) for dt in (STEP, STEP / 2)]
        errors = [float(np.abs(q - finest[1]).max()) for q in coarse]
        off = [float(np.abs(q - exact).max()) for q in finest]
    return {'way': way, 'errors': errors, 'order': float(np.log2(errors[0] / errors[1])), 'off': off}


def motion_rows(mechanisms: Sequence[str], console: Console) -> list[dict[str, Any]]:
    """Of some mechanisms, by every way."""
    rows = []
    for name in track(mechanisms, 'moving', transient=True, disable=not console.is_terminal):
        model, exact = reference(name)
        rows += [{'mechanism': name, **motion_row(model, exact, way)} for way in WAYS]
    return rows


def show_motions(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Table on the console."""
    print_table(console, f'motions of {LENGTH} s by rk4 against DOP853: largest error of a coordinate at the end', (
        'mechanism', 'equations', f'{1e3 * STEP:g} ms', f'{500 * STEP:g} ms', 'order',
        *(f'off, gives {give:g}' for give in GIVES)), [
            (row['mechanism'], row['way'], *(number(error, 2) for error in row['errors']), number(row['order'], 3),
             *(['-', '-'] if row['off'] is None else [number(off, 2) for off in row['off']])) for row in rows])
