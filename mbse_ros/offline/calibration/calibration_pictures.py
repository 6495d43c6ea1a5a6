# SPDX-License-Identifier: Apache-2.0
"""Pictures of a calibration: what the forces lack, friction, motion that was left out, accuracy over the work area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...calibration.fit import CalibrationProblem, forces
from ...calibration.friction import NORMAL, FrictionFit
from ...calibration.held_out import HeldOut
from ...calibration.residual_form import load_pressures
from ...filters.observability.mass_map import MassMap
from ...machine import Machine
from ...report.data import COLORS, Band, Chart, Curve, Panel
from ...report.plots import INK, name_axes, new_figure, set_margins, style_axes, write_plots, write_png
from ...report.text import number
from ...resources import write_whole

CELLS = 12          # of the map, along the longer side
TOP = 0.95          # quantile of the half-widths at which the colours end: a few poses are far worse


@dataclass(frozen=True)
class Drawn:
    """What is drawn of a calibration: a ``problem`` at errors ``before`` and ``after`` (k + l,), friction by cylinder,
    blocks that were left out, accuracy over the work area, ``full`` scale, kg, and ``limits`` of the grade, per cent of
    it."""

    problem: CalibrationProblem
    before: np.ndarray
    after: np.ndarray
    friction: Mapping[str, FrictionFit]
    held_out: tuple[HeldOut, ...]
    mass_map: MassMap | None
    full: float
    limits: tuple[float, float]


def write_pictures(found: Drawn, place: Path) -> Path:
    """All pictures into a folder; gives it. Raises OSError."""
    machine = found.problem.balance.machine
    place.mkdir(parents=True, exist_ok=True)
    charts = (('pose', 'piston position [mm]', 1e3), ('speed', 'piston speed [mm/s]', 1e3),
              ('pressure', 'load pressure [MPa]', 1e-6)) if machine.cylinders else (
        ('pose', 'position of the joint [rad]', 1.0), ('speed', 'speed of the joint [rad/s]', 1.0),
        ('effort', f'effort [{machine.actuators.force_unit}]', 1.0))
    for kind, title, scale in charts:
        panels = [panel for k in range(len(found.problem.balance.equations))
                  if (panel := _panel(found, k, kind, title, scale)) is not None]
        if not panels:
            continue
        x = np.concatenate([curve.t for panel in panels for curve in panel.curves])
        room = 0.05 * max(float(np.ptp(x)), 1e-3)
        chart = Chart(f'Missing forces by {kind}', f'residuals_by_{kind}', tuple(panels))
        write_png(chart, (float(x.min()) - room, float(x.max()) + room), place / f'{chart.name}.png')
    if found.friction:
        write_plots([_friction_panel(name, item, machine) for name, item in found.friction.items()],
                    place / 'friction.png')
    if any(item.mass_stddev > 0.0 for item in found.held_out):
        _write_held_out(found.held_out, found.full, found.limits, place / 'held_out.png')
    if found.mass_map is not None:
        _write_map(found.mass_map, machine, place / 'accuracy.png')
    return place


def _write_held_out(blocks: tuple[HeldOut, ...], full: float, limits: tuple[float, float], path: Path) -> None:
    """Errors of the masses of all blocks with their 95 % intervals."""
    figure = new_figure(9.6, 4.2)
    ax = figure.subplots()
    set_margins(figure, 0.95, 1.1, 0.9, 0.45)
    style_axes(ax)
    x = np.arange(len(blocks))
    for limit, color, word in zip(limits, ('#37a56b', '#e0a100'), ('green', 'amber')):
        for sign in (-1, 1):
            ax.axhline(sign * limit / 100 * full, color=color, linewidth=1.0, linestyle=(0, (4, 4)))
        ax.annotate(f'{word}: {limit:g} %', (1.0, limit / 100 * full), (4, 0), xycoords=ax.get_yaxis_transform(),
                    textcoords='offset points', va='center', fontsize=8, color=INK, annotation_clip=True)
    error, spread = (np.array([getattr(item, name) for item in blocks]) for name in ('mass_error', 'mass_stddev'))
    ax.errorbar(x, error, NORMAL * spread, fmt='o', color=COLORS['estimated'], capsize=4, linewidth=1.4)
    largest = float(np.nanmax(np.abs(error) + NORMAL * spread))
    ax.set_ylim(-1.1 * largest, 1.1 * largest)
    names = [item.log for item in blocks]
    ax.set_xticks(x, [f'{name}\n{names[:k].count(name) + 1}' for k, name in enumerate(names)])
    name_axes(ax, 'Each block of poses by the numbers of all other motion', 'bag and block',
              'error of the mass [kg], 95 %', f'lines: of full scale, {number(full)} kg')
    write_whole(path, figure.savefig)


def _write_map(found: MassMap, machine: Machine, path: Path) -> None:
    """Half-widths over reach and height of the load; of a machine with one cylinder over its stroke."""
    several = len(machine.actuated) > 1
    figure = new_figure(9.6, 6.4 if several else 4.2)
    ax = figure.subplots()
    set_margins(figure, 0.95, 0.6, 0.65, 0.75)
    style_axes(ax)
    shown = np.isfinite(found.half_width)
    x, y, label = found.reach, found.height, 'half-width of the mass [kg], 95 %'
    if several:
        cells, edges = _cells(x, y, np.where(shown, found.half_width, np.nan))
        colors = ax.pcolormesh(*edges, cells, cmap='viridis_r', vmax=float(np.quantile(cells[np.isfinite(cells)], TOP)),
                               edgecolors='white', linewidth=0.5)
        bar = figure.colorbar(colors, cax=ax.inset_axes((1.06, 0.0, 0.05, 1.0)), extend='max', label=label)
        bar.ax.tick_params(labelsize=9, colors=INK)
        ax.set_aspect('equal', anchor='W')
    else:
        x, y = 1e3 * found.pistons[:, 0], found.half_width
        ax.plot(x, y, color=COLORS['estimated'])
        ax.set_ylim(0.0, 1.1 * float(y[shown].max()))
    for k, word in ((found.best, 'best'), (found.worst, 'worst')):
        ax.plot(x[k], y[k], 'o', markersize=9, markerfacecolor='white', markeredgecolor=INK, markeredgewidth=1.6)
        ax.annotate(word, (x[k], y[k]), (0, 9), textcoords='offset points', ha='center', fontsize=9, color=INK,
                    bbox={'boxstyle': 'round,pad=0.15', 'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.85})
    name_axes(ax, '', 'reach of the load [m]' if several else f'piston {machine.cylinders[0]} [mm]',
              'height of the load [m]' if several else label)
    middle = f'a load of {number(sum(machine.payload_data.limits) / 2)} kg: median +- {number(found.middle, 2)} kg' + (
        '; the widest of all poses in a cell' if several else '')
    left, top = 0.95 / 9.6, 1.0 / figure.get_size_inches()[1]
    figure.text(left, 1 - 0.62 * top, middle, fontsize=9, color=INK)
    figure.text(left, 1 - 0.38 * top, 'Accuracy to expect over the work area', fontsize=10, fontweight='bold',
                color=INK)
    write_whole(path, lambda part: figure.savefig(part, bbox_inches='tight' if several else None))


def _cells(x: np.ndarray, y: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The largest of the values in each square cell (rows, columns), NaN without any, and edges of columns and rows."""
    size = max(np.ptp(x), np.ptp(y)) / CELLS
    edges = tuple(np.arange(item.min(), item.max() + 1.001 * size, size) for item in (x, y))
    cells = np.full((len(edges[1]) - 1, len(edges[0]) - 1), np.nan)
    for a, b, value in zip(*(np.floor((item - item.min()) / size).astype(int) for item in (x, y)), values):
        cells[b, a] = np.fmax(cells[b, a], value)
    return cells, (edges[0], edges[1])


def _panel(found: Drawn, k: int, kind: str, label: str, scale: float) -> Panel | None:
    """Of equation ``k``, over the first cylinder whose friction is in it."""
    problem = found.problem
    cylinder = int(np.argmax(problem.balance.found.concerns[k]))
    columns = []
    for log in problem.logs:
        own, effort = log.moments.counts[:, k], load_pressures(problem.balance, log.moments)
        x = {'pose': log.moments.pistons, 'speed': log.moments.speeds,
             'pressure': effort, 'effort': effort}[kind]
        columns.append((scale * x[own, cylinder],
                        forces(problem, log, found.before)[own, k], forces(problem, log, found.after)[own, k]))
    x, before, after = (np.concatenate(item) for item in zip(*columns))
    if not len(x):
        return None
    order = np.argsort(x)
    unit = problem.balance.machine.actuators.force_unit
    curves = (Curve('before', x[order], before[order], COLORS['measured'], 'points'),
              Curve('after', x[order], after[order], COLORS['estimated'], 'dots'))
    return Panel(problem.balance.equations[k], f'missing force [{unit}]', curves, x_label=label)


def _friction_panel(name: str, item: FrictionFit, machine: Machine) -> Panel:
    """Of a cylinder: force over speed, as Pyrhönen et al., mass estimation, Fig. 6."""
    turns = name not in machine.cylinders       # a drive
    scale = 1.0 if turns else 1e3
    x, used = scale * item.grid, item.counts
    near = np.abs(item.speed) <= item.grid[-1]
    curves = [Curve(label, scale * item.speed[own], item.reduced[own], COLORS[color], 'points')
              for label, own, color in (('not steady, not used', near & ~used, 'measured'),
                                        ('used', used, 'estimated')) if own.any()]
    curves += [Curve('file', x, item.before, COLORS['true'], 'dashes'),
               Curve('calibrated', x, item.fitted, COLORS['low_passed'])]
    band = Band('95 %', x, item.lower, item.upper, COLORS['low_passed'])
    if turns:
        k = machine.actuators.entries.index(f'effort/{name}')
        return Panel(name, 'friction [N m]', curves, (band,), note=f'at an effort of {number(item.pressures[k])} N m',
                     x_label='speed of the joint [rad/s]')
    k = 2 * machine.cylinders.index(name)
    piston, rod = 1e-6 * machine.circuit.T_Vcyl.T[k:k + 2] @ item.pressures[:len(machine.volumes)]
    return Panel(name, 'friction [N]', curves, (band,),
                 note=f'at {number(piston)} MPa (piston side), {number(rod)} MPa (rod side)',
                 x_label='piston speed [mm/s]')
