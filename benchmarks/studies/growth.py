# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark growth``: cost of accelerations, derivatives and steps with the number of links, beside pinocchio
and MuJoCo where they are installed.

Each size is measured in a process of its own with an empty cache, so that building, compiling and memory count.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import typer
import yaml

from mbse_ros.compiled import Scan
from mbse_ros.description.generate import CHAIN
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.integrators.compiled_steps import step_inputs, steps_function
from mbse_ros.dynamics.integrators.fixed_step import rk4_scheme
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.dynamics.motion import simulate
from mbse_ros.errors import MbseError, SettingError
from mbse_ros.report.files import check_file, parts_of, write_between, write_json
from mbse_ros.report.text import number, print_table, wide_console
from mbse_ros.studies.many import machine_name

from .timing import bound

MARK = 'mbse benchmark growth'
LINK = 0.5                                  # m, of 1 kg
INERTIA = {'xx': 0.001, 'yy': 0.02, 'zz': 0.021}
CENTRE = 0.25, 0.01                         # m along the link and across it
AXES = {'chain': ['0 -1 0'], 'chain_3d': ['0 -1 0', '0 0 1'],
        'arm_6r': ['0 0 1', '0 -1 0', '0 -1 0', '1 0 0', '0 -1 0', '1 0 0']}
MECHANISMS = *AXES, CHAIN
FIXED = {'arm_6r': 6}                       # sizes that are not to be chosen
DT, STEPS = 1e-3, 20                        # s; steps of a burst
BURST_S, BURSTS = 5e-5, 300                 # short ones: another process on the computer then spoils few of them
SHORT_S = 0.1                               # s of the motion that is compared
HALF_TURN = np.array([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])      # about z


def run_growth(json_file: Path | None, mechanisms: Sequence[str], sizes: Sequence[int], page: Path | None) -> None:
    """Measure, print and write."""
    for name in mechanisms:
        if name not in MECHANISMS:
            raise SettingError('mechanism', name, 'one of ' + ', '.join(MECHANISMS))
    for size in sizes:
        if not 1 <= size <= 64:
            raise SettingError('sizes', size, 'numbers of links or loops from 1 to 64')
    check_file(json_file)
    if page is not None:
        parts_of(page, MARK)
    rows: list[dict[str, Any]] = []
    for name in mechanisms or MECHANISMS:
        for n in [FIXED[name]] if name in FIXED else sizes:
            try:
                found = apart(name, n)
            except MbseError as error:      # a size that is not to be compiled spoils no other
                typer.echo(f'{name} {n}: {error}')
                continue
            rows += found
            for row in found:
                _show_row(row)
    result = {'machine': machine_name(), 'date': time.strftime('%Y-%m-%d'), 'rows': rows}
    write_json(json_file, result)
    if page is not None:
        write_between(page, MARK, table(result))
    console = wide_console()
    print_table(console, f'microseconds; {result["machine"]}, {result["date"]}', (
        'mechanism', 'N', 'what', 'us', 'peer', 'peer us', 'difference', 'build s', 'compile s', 'peak MB'),
        [tuple(_cell(row[key]) for key in ('mechanism', 'n', 'what', 'us', 'peer', 'peer_us', 'error', 'build_s',
                                           'compile_s', 'peak_mb')) for row in rows])


def table(result: dict[str, Any]) -> str:
    """For a page: a line for each size, with what its peer takes."""
    lines = [f'{result["machine"]}, {result["date"]}; microseconds, ours / peer; building and compiling A, and memory '
             'of the process with its peers.', '',
             '| | N | f | f and A | rk4 | build, compile, s | peak, MB |', '|---' * 7 + '|']
    for name, n in dict.fromkeys((row['mechanism'], row['n']) for row in result['rows']):
        own = {row['what']: row for row in result['rows'] if (row['mechanism'], row['n']) == (name, n)}
        cells = [' / '.join(filter(None, (_cell(own[what]['us']), _cell(own[what]['peer_us'])))) if what in own else ''
                 for what in ('f', 'f_and_A', 'rk4')]
        made = own.get('f_and_A', {})
        lines.append(f'| `{name}` | {n} | {" | ".join(cells)} | {_cell(made.get("build_s"))}, '
                     f'{_cell(made.get("compile_s"))} | {max(row["peak_mb"] for row in own.values()):.0f} |')
    return '\n'.join(lines)


def _cell(value: Any) -> str:
    return '' if value is None else number(value) if isinstance(value, float) else str(value)


def _show_row(row: dict[str, Any]) -> None:
    typer.echo(' '.join(_cell(row[key]) or '-' for key in ('mechanism', 'n', 'what', 'us', 'peer', 'peer_us')))


def apart(name: str, n: int) -> list[dict[str, Any]]:
    """Rows of one mechanism, measured in a process of its own."""
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        return pool.apply(measure, (name, n))


def measure(name: str, n: int) -> list[dict[str, Any]]:
    """Rows ``f``, ``f_and_A`` and, of chains and arms, ``rk4``."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ['MBSE_CACHE_DIR'] = folder
        return [*_functions(name, n), *([_motion(name, n)] if name in AXES else [])]


def _row(name: str, n: int, what: str, us: float, peer: tuple[str, float, float] | None, build_s: float,
         compile_s: float) -> dict[str, Any]:
    who, peer_us, error = peer or (None, None, None)
    return {'mechanism': name, 'n': n, 'what': what, 'us': us, 'peer': who, 'peer_us': peer_us, 'error': error,
            'build_s': build_s, 'compile_s': compile_s,
            'peak_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _functions(name: str, n: int) -> list[dict[str, Any]]:
    """Accelerations alone and with A."""
    rows, peers = [], _pinocchio(name, n)
    rng = np.random.default_rng(n)
    for what in ('f', 'f_and_A'):
        begin = time.perf_counter()
        model = model_of(name, n)
        partition = model.partition()
        function = partition.rates_function if what == 'f' else partition.function
        build = time.perf_counter() - begin
        g = len(partition.independent)
        q = rng.normal(size=g) if name in AXES else partition.position(np.array([1.0]), model.start.q)
        zd = rng.normal(size=g)
        arguments = [q, zd, np.zeros(len(model.inputs)), np.zeros(1), np.asarray(model.parameters, dtype=float)]
        begin = time.perf_counter()
        run, outputs = bound(function, arguments, 'c')
        compiled = time.perf_counter() - begin
        run()
        rows.append(_row(name, n, what, least_us(run), None if peers is None else peers(what, q, zd, outputs), build,
                         compiled))
    return rows


def least_us(run: Callable[[], object]) -> float:
    """Least time of a call over many short bursts, us."""
    run()
    begin = time.perf_counter()
    run()
    count = max(1, int(BURST_S / max(time.perf_counter() - begin, 1e-7)))
    best = np.inf
    for _ in range(BURSTS):
        begin = time.perf_counter()
        for _ in range(count):
            run()
        best = min(best, (time.perf_counter() - begin) / count)
    return 1e6 * best


def _motion(name: str, n: int) -> dict[str, Any]:
    """A compiled step of Runge and Kutta, as ``simulate`` takes it."""
    begin = time.perf_counter()
    model = model_of(name, n)
    partition, start = model.partition(), model.start
    step = steps_function(partition, rk4_scheme().rule(np.zeros((2 * n, 2 * n)), DT))
    build, begin = time.perf_counter() - begin, time.perf_counter()
    scan = Scan(step, 'c', in_lanes=False)
    compiled = time.perf_counter() - begin
    x = np.concatenate([start.q, start.qd, np.zeros(n + 2 * n * n + 1)])
    series, p = step_inputs(DT * np.arange(STEPS + 1), 0.0)[1:], np.asarray(model.parameters, dtype=float)
    x, _ = scan(x, np.array([[0.0, 0.0, 0.0]]), p)       # finds the accelerations of the start
    rows, after = np.empty((STEPS, step.numel_out(1))), x.copy()
    us = least_us(lambda: scan.run(x, series, p, after, rows)) / STEPS
    end = simulate(model, SHORT_S, DT, 'rk4').q[-1]
    return _row(name, n, 'rk4', us, _mujoco(name, n, end), build, compiled)


def model_of(name: str, n: int) -> Model:
    """A chain of links on pins, all in one plane (a mechanism in the plane) or in space; an arm; four-bars."""
    if name == CHAIN:
        return load_model(f'{CHAIN}:{n}')
    plane = name == 'chain'

    def place(x: float, y: float = 0.0) -> list[float]:
        return [x, y] if plane else [x, y, 0.0]

    zero, axes = place(0.0), AXES[name]
    inertia: Any = INERTIA['yy'] if plane else INERTIA
    content = {'format': 'mbse/mechanism/1', 'name': name, 'dimension': len(zero), 'gravity': '9.81 m/s^2',
               'coordinates': 'relative', 'points': {'foot': {'fixed': zero}},
               'bodies': {f'link{k}': {'points': {'in': zero, 'out': place(LINK)}, 'mass': 1, 'inertia': inertia,
                                       'center_of_mass': place(CENTRE[0], 0.0 if plane else CENTRE[1])}
                          for k in range(n)},
               'joints': {f'joint{k}': {'type': 'revolute', 'parent': f'link{k - 1}.out' if k else 'ground.foot',
                                        'child': f'link{k}.in', 'start': 0.0, **({} if plane else {
                                            'axis': [float(v) for v in axes[k % len(axes)].split()]})}
                          for k in range(n)}}
    return Model(parse_mechanism(yaml.safe_dump(content)))


def urdf(name: str, n: int) -> str:
    """The same chain or arm for others."""
    axes, across = AXES[name], 0.0 if name == 'chain' else CENTRE[1]
    inertia = ' '.join(f'i{key}="{INERTIA.get(key, 0.0)}"' for key in ('xx', 'yy', 'zz', 'xy', 'xz', 'yz'))
    links = [f'<link name="link{k}"><inertial><origin xyz="{CENTRE[0]} {across} 0"/><mass value="1"/>'
             f'<inertia {inertia}/></inertial></link>' for k in range(n)]
    joints = [f'<joint name="joint{k}" type="continuous"><parent link="{f"link{k - 1}" if k else "base"}"/>'
              f'<child link="link{k}"/><origin xyz="{LINK if k else 0.0} 0 0"/><axis xyz="{axes[k % len(axes)]}"/>'
              '</joint>' for k in range(n)]
    return f'<robot name="{name}"><link name="base"/>{"".join(links)}{"".join(joints)}</robot>'


def _pinocchio(name: str, n: int) -> Callable[..., tuple[str, float, float]] | None:
    """Function ``(what, q, zd, our outputs) -> (its name, us, relative difference)``."""
    if name not in AXES or find_spec('pinocchio') is None:
        return None
    pin: Any = import_module('pinocchio')
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    joint, axes, across = 0, AXES[name], 0.0 if name == 'chain' else CENTRE[1]
    for k in range(n):
        axis = np.array([float(v) for v in axes[k % len(axes)].split()])
        place = pin.SE3(np.eye(3), np.array([LINK if k else 0.0, 0.0, 0.0]))
        # its joints along an axis are faster than those about any; a negative one is turned by its placement
        kind = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[int(np.argmax(np.abs(axis)))]
        flip = HALF_TURN if axis.min() < 0 else np.eye(3)
        before = HALF_TURN if k and axes[(k - 1) % len(axes)].count('-') else np.eye(3)
        joint = model.addJoint(joint, kind(), pin.SE3(before @ flip, before @ place.translation), f'joint{k}')
        body = pin.Inertia(1.0, np.array([CENTRE[0], across, 0.0]), np.array(list(INERTIA.values())) * np.eye(3))
        model.appendBodyToJoint(joint, body, pin.SE3(flip.T, np.zeros(3)))
    data, none = model.createData(), np.zeros(n)

    def measured(what: str, q: np.ndarray, zd: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple[str, float, float]:
        call = pin.aba if what == 'f' else pin.computeABADerivatives
        us = least_us(lambda: call(model, data, q, zd, none))
        right = np.array(data.ddq) if what == 'f' else np.hstack([data.ddq_dq, data.ddq_dv])
        ours = outputs[0] if what == 'f' else outputs[1][n:]
        return 'pinocchio', us, float(np.abs(ours - right).max() / np.abs(right).max())
    return measured


def _mujoco(name: str, n: int, end: np.ndarray) -> tuple[str, float, float] | None:
    """Its name, us of a step, and the largest difference of the coordinates (n,) after ``SHORT_S``, rad."""
    if find_spec('mujoco') is None:
        return None
    mj: Any = import_module('mujoco')
    model = mj.MjModel.from_xml_string(urdf(name, n))
    model.opt.timestep, model.opt.integrator = DT, mj.mjtIntegrator.mjINT_RK4
    data = mj.MjData(model)
    mj.mj_step(model, data, nstep=round(SHORT_S / DT))
    error = float(np.abs(data.qpos - end).max())
    best = np.inf
    for _ in range(BURSTS):
        begin = time.perf_counter()
        mj.mj_step(model, data, nstep=STEPS)
        best = min(best, (time.perf_counter() - begin) / STEPS)
    return 'mujoco', 1e6 * best, error
