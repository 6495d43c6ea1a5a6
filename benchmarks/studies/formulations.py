# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark formulations``: whether all formulations and coordinates agree, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from mbse_ros.description.load import known_mechanisms
from mbse_ros.dynamics.formulations.by_name import accelerations
from mbse_ros.dynamics.formulations.semi_recursive import semi_recursive_partition
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import default_scheme, simulate
from mbse_ros.errors import DescriptionError, MbseError, check_choice
from mbse_ros.mechanism.assembly import COORDINATES
from mbse_ros.mechanism.levels import level_rows
from mbse_ros.report.files import check_file, check_folder, write_json
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.studies.many import machine_name

from .motions import MECHANISMS, motion_rows, show_motions
from .timing import bound_state, interleaved

MOTION = 0.5        # s of the motion from which the states are taken
DT = 2e-3
STATES = 6
ANGLE_POINTS = 25   # steps of the motion between two states, in which other coordinates follow
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    **{name: (name, {}) for name in ('kkt', 'kkt_sparse', 'matrix_r')},
    **{f'penalty 1e{k}': ('penalty', {'alpha': 10.0 ** k}) for k in (5, 7, 9)},
    **{name: (name, {}) for name in ('udwadia_kalaba', 'udwadia_kalaba_recursive', 'projection_complement',
                                     'projection_inverse', 'projection_orthonormal')}}
COMPILED = {'compiled': 'matrix_r compiled, with A', 'semi_recursive': 'semi_recursive compiled, with A'}
SHOWN = ('kkt', 'matrix_r', 'penalty 1e7', 'udwadia_kalaba', 'udwadia_kalaba_recursive', 'projection_complement',
         COMPILED['compiled'])


@dataclass(frozen=True)
class States:
    """States along a motion: ``t`` (k,), ``q``, ``qd`` (k, n) of a model."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray


def run_formulations(json_file: Path | None, output: Path | None, mechanisms: Sequence[str], rounds: int,
                     motions: bool = False) -> None:
    """Measure, print and write; ``motions``: instead of accelerations."""
    check_file(json_file)
    check_folder(output)
    console = wide_console()
    if motions:
        for name in mechanisms:
            check_choice('--mechanism', name, MECHANISMS)
        moved = motion_rows(list(mechanisms) or MECHANISMS, console)
        write_json(json_file, {'machine': machine_name(), 'motions': moved})
        show_motions(console, moved)
        return
    names = list(mechanisms) or list(known_mechanisms())
    rows = [row for name in track(names, 'measuring', transient=True, disable=not console.is_terminal)
            for row in mechanism_rows(name, rounds)]
    result = {'machine': machine_name(), 'rows': rows}
    write_json(json_file, result)
    if output is not None:
        write_formulation_plots(rows, output)
    _show(console, result)


def mechanism_rows(name: str, rounds: int) -> list[dict[str, Any]]:
    """Rows of one mechanism in all its coordinates; the first coordinates are those of its file."""
    first = load_model(name)
    motion = _motion(first)
    own = first.description.coordinate_type
    reference = _accelerations(first, motion, first)
    rows: list[dict[str, Any]] = []
    for kind in (own, *(kind for kind in COORDINATES if kind != own)):
        try:
            model = first if kind == own else load_model(name, kind)
        except DescriptionError:
            continue                 # no natural coordinates in space
        states = motion if kind == own else _same_states(model, first, motion)
        if states is None:
            continue                 # no named independent coordinates: the states cannot be carried over
        found = model_rows(model, states, rounds)
        types = _difference(_accelerations(model, states, first), reference) if first.degrees_of_freedom else None
        rows += [{'mechanism': name, 'coordinates': kind, 'n': len(model.names), 'm': len(model.moving),
                  'degrees_of_freedom': model.degrees_of_freedom, 'difference_of_coordinates': types, **row}
                 for row in found]
    return rows


def model_rows(model: Model, states: States, rounds: int) -> list[dict[str, Any]]:
    """By formulation: largest relative difference of the accelerations from KKT's, and the cost of one evaluation."""
    terms = [model.terms(q, qd, None, t).take(model.moving) for t, q, qd in zip(states.t, states.q, states.qd)]
    reference = np.array([accelerations('kkt', item).qdd for item in terms])
    calls: dict[str, tuple[Callable[[], object], int]] = {}
    found: dict[str, np.ndarray] = {}
    failures: dict[str, str] = {}
    for label, (formulation, options) in _variants(model).items():
        try:
            found[label] = np.array([accelerations(formulation, item, **options).qdd for item in terms])
            calls[label] = (partial(accelerations, formulation, terms[0], **options), 2)
        except MbseError as error:
            failures[label] = str(error)
    holonomic = not model.system.rate_rows
    partitions = {COMPILED['compiled']: model.partition()} if holonomic else {}
    if model.degrees_of_freedom and holonomic:
        with suppress(MbseError):           # only for coordinates of the joints
            partitions[COMPILED['semi_recursive']] = semi_recursive_partition(model)
    for label, partition in partitions.items():
        zds = states.qd[:, partition.independent]
        found[label] = np.array([partition.rates(q, zd, None, t).qdd for q, zd, t in zip(states.q, zds, states.t)])
        calls[label] = (bound_state(partition, states.q[0], zds[0], float(states.t[0])), 100)
    best = interleaved(calls, rounds)
    rows = [{'formulation': label, 'difference': _difference(value, reference), 'evaluation_us': 1e6 * best[label],
             'failure': None} for label, value in found.items()]
    return rows + [{'formulation': label, 'difference': None, 'evaluation_us': None, 'failure': text}
                   for label, text in failures.items()]


def _variants(model: Model) -> dict[str, tuple[str, dict[str, object]]]:
    """All formulations; projections also level by level where the file has levels."""
    variants = {label: (name, {**options, 'independent': model.z} if name == 'matrix_r' and not model.system.rate_rows
                        else options)
                for label, (name, options) in VARIANTS.items()}
    if model.description.levels:
        places = {row: place for place, row in enumerate(model.moving)}
        levels = [[places[row] for row in level if row in places] for level in level_rows(model.system)]
        variants |= {f'{label}, {len(levels)} levels': (name, {'levels': levels})
                     for label, (name, _) in VARIANTS.items() if name.startswith('projection')}
    return variants


def _motion(model: Model) -> States:
    """States along the free motion from the start (or the driven one), so far as it goes."""
    motion = simulate(model, MOTION, DT, default_scheme(model, 'matrix_r'), stop=False)
    rows = np.linspace(0, len(motion.t) - 1, STATES).round().astype(int)
    return States(motion.t[rows], motion.q[rows], motion.qd[rows])


def _same_states(model: Model, first: Model, states: States) -> States | None:
    """The states in other coordinates, by the independent ones, which have names in both; None where they have not, or
    do not give the velocities."""
    if not set(first.independent) <= set(model.names) or model.system.rate_rows:
        return None
    partition = model.partition(model.system.indices(first.independent))
    q = model.start.q
    found: list[tuple[np.ndarray, np.ndarray]] = []
    z, zd = states.q[:, first.z], states.qd[:, first.z]
    for k in range(len(states.t)):
        q = _follow(partition, q, z[k], float(states.t[k]), found[-1][0] if found else None)
        found.append((q, partition.velocity(q, zd[k], float(states.t[k]))))
    return States(states.t, *(np.array(part) for part in zip(*found)))


def _follow(partition: Any, q: np.ndarray, z: np.ndarray, t: float, last: np.ndarray | None) -> np.ndarray:
    """Coordinates at z, in small steps from q, so that the branch is kept; drivers move from 0 to t in one step."""
    begin = q[partition.independent]
    steps = 1 if last is None else ANGLE_POINTS
    for share in np.arange(1, steps + 1) / steps:
        q = partition.position(begin + share * (z - begin), q, t)
    return q


def _accelerations(model: Model, states: States, first: Model) -> np.ndarray:
    """Accelerations (k, g) of the first model's independent coordinates, of all coordinates where there are none."""
    places = model.system.indices(first.independent)
    return np.array([model.accelerations(q, qd, None, float(t), 'kkt')[places]
                     for t, q, qd in zip(states.t, states.q, states.qd)])


def _difference(found: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference as a share of the largest acceleration of all states."""
    scale = float(np.max(np.abs(reference), initial=0.0)) or 1.0
    return float(np.max(np.abs(found - reference), initial=0.0)) / scale


def write_formulation_plots(rows: list[dict[str, Any]], folder: Path) -> None:
    """Cost and agreement of the formulations as bars, one picture a kind of coordinates."""
    from mbse_ros.report.plots import Bars, write_bars  # here, because plots take their time to import
    folder.mkdir(parents=True, exist_ok=True)
    labels = list(dict.fromkeys(row['formulation'] for row in rows))
    for kind in dict.fromkeys(row['coordinates'] for row in rows):
        chosen = [row for row in rows if row['coordinates'] == kind]
        names = list(dict.fromkeys(row['mechanism'] for row in chosen))
        cost, gap = ({label: [_value(chosen, name, label, key) for name in names] for label in labels}
                     for key in ('evaluation_us', 'difference'))
        write_bars([Bars(f'Cost of an evaluation, {kind} coordinates', 'microseconds', names,
                         {label: cost[label] for label in SHOWN if label in cost}, log=True)],
                   folder / f'cost_{kind}.png')
        write_bars([Bars(f'Largest relative difference from KKT, {kind} coordinates', '', names,
                         {label: [None if value is None else max(value, 1e-17) for value in gap[label]]
                          for label in SHOWN[1:] if label in gap}, log=True)], folder / f'agreement_{kind}.png')


def _value(rows: list[dict[str, Any]], mechanism: str, label: str, key: str) -> float | None:
    return next((row[key] for row in rows if (row['mechanism'], row['formulation']) == (mechanism, label)), None)


def _show(console: Console, result: dict[str, Any]) -> None:
    """One line for each mechanism and kind of coordinates; the JSON has all."""
    agreement, cost = [], []
    for name, kind in dict.fromkeys((row['mechanism'], row['coordinates']) for row in result['rows']):
        rows = [row for row in result['rows'] if (row['mechanism'], row['coordinates']) == (name, kind)]
        by_label = {row['formulation']: row for row in rows}
        exact = [row['difference'] or 0.0 for row in rows if not row['formulation'].startswith('penalty')]
        agreement.append((name, kind, str(rows[0]['n']), str(rows[0]['m']), number(max(exact), 1),
                          *(_cell(by_label[f'penalty 1e{k}']['difference'], 1) for k in (5, 7, 9)),
                          _cell(rows[0]['difference_of_coordinates'], 1)))
        cost.append((name, kind, *(_cell(by_label.get(label, {}).get('evaluation_us')) for label in SHOWN)))
    print_table(console, 'largest relative difference of the accelerations from KKT', (
        'mechanism', 'coordinates', 'n', 'm', 'exact ones', 'penalty 1e5', '1e7', '1e9', 'coordinates'), agreement)
    print_table(console, f'microseconds an evaluation; {result["machine"]}', (
        'mechanism', 'coordinates', 'KKT', 'matrix-R', 'penalty', 'U-K', 'U-K rec.', 'project', 'compiled'), cost)
    for row in result['rows']:
        if row['failure']:
            typer.echo(f'warning: {row["mechanism"]}, {row["coordinates"]} coordinates, {row["formulation"]}: '
                       f'{row["failure"]}', err=True)
    typer.echo('exact ones: all but the penalty formulation; last column: KKT, from the coordinates of the file\n'
               'in NumPy from given M, Q, J, c; U-K: Udwadia-Kalaba; compiled: matrix-R from the state, with its exact '
               'Jacobian')


def _cell(value: float | None, digits: int = 3) -> str:
    return '-' if value is None else number(value, digits)
