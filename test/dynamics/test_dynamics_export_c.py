# SPDX-License-Identifier: Apache-2.0
"""Exported C: compiles without a warning, reproduces the recorded outputs, says what fails; same model, same bytes."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from export_support import COMPILERS, Library, run_test
from sensor_mechanisms import description, model
from source_tree import ROOT

from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model, load_model
from mbse_ros.errors import SettingError
from mbse_ros.export.functions import shared
from mbse_ros.export.write import export_c

needs_compiler = pytest.mark.skipif('cc' not in COMPILERS, reason='no C compiler')
FREE = ('bodies.crank.mass', 'coupler')


@pytest.fixture(scope='module')
def four_bar(tmp_path_factory):
    """Export of the four-bar with two free parameters, and its model."""
    folder = tmp_path_factory.mktemp('export') / 'four_bar'
    made = load_model('four_bar', free=FREE, backend='vm')
    export_c(made, folder)
    return folder, made


@pytest.fixture(scope='module')
def library(four_bar):
    return Library(four_bar[0], 'four_bar')


def _driven():
    return model('driven_five_bar', 'natural')


def _sparse():
    return load_model('three_rrr', backend='vm')


CASES = {
    'O2': (lambda: load_model('four_bar', backend='vm'), 'exact', ['-O2']),
    'order 1': (lambda: load_model('four_bar_spring', backend='vm'), '1', ['-O0']),
    'order 4, spatial': (lambda: load_model('spatial_four_bar', 'relative', backend='vm'), '4', ['-O0']),
    'drivers, all sensors': (_driven, 'exact', ['-O0']),
    'sparse factorisation': (_sparse, 'exact', ['-O0']),
    'no constraints, no inputs': (lambda: load_model('pendulum', 'relative', backend='vm'), 'exact', ['-O0']),
    'no sensors': (lambda: load_model('n_four_bar:2', backend='vm'), '2', ['-O2']),
    'parameters': (lambda: load_model('slider_crank', free=['crank', 'bodies.rod.mass'], backend='vm'), '3', ['-O0'])}


@needs_compiler
@pytest.mark.parametrize('name', CASES)
@pytest.mark.parametrize('compiler', COMPILERS)
def test_recorded_outputs_are_reproduced(name, compiler, tmp_path):
    build, order, flags = CASES[name]
    export = export_c(build(), tmp_path / 'export', 1e-3, order)
    done = run_test(tmp_path / 'export', compiler, *flags)
    assert done.returncode == 0, done.stdout
    found = re.fullmatch(r'ok: largest relative difference (\S+) over 6 records\n', done.stdout)
    assert float(found[1]) <= 1e-12
    assert sorted(path.name for path in (tmp_path / 'export').iterdir()) == list(export.files)


@needs_compiler
@pytest.mark.parametrize('section, place', [('inputs', 1), ('outputs', 5)])
def test_the_test_program_can_fail(four_bar, tmp_path, section, place):
    """A recorded number that is off by 1e-9 is seen."""
    shutil.copytree(four_bar[0], tmp_path / 'export')
    path = tmp_path / 'export' / 'test_model.c'
    text = path.read_text()
    at = text.index('{\n', text.index(f'double {section}'))
    numbers = list(re.finditer(r'-?\d+\.\d+(e-?\d+)?', text[at:]))[place]
    changed = repr(float(numbers[0]) * (1 + 1e-9) + 1e-9)
    path.write_text(text[:at] + text[at:][:numbers.start()] + changed + text[at:][numbers.end():])
    done = run_test(tmp_path / 'export', 'cc', '-O0')
    assert done.returncode == 1 and done.stdout.splitlines()[-1].startswith('FAILED')


@needs_compiler
def test_functions_are_those_of_the_model(four_bar, library):
    """At a state of its own and other parameters, every output."""
    made = load_model('four_bar', free=FREE, backend='vm')
    assert made.system.values.names == four_bar[1].system.values.names == ['coupler', 'bodies.crank.mass']
    p, z, zd, u = np.array([7.9, 3.0]), np.array([0.8]), np.array([1.3]), np.array([20.0])
    made = made.with_parameters(p)
    q, residual = np.zeros(5), np.zeros(1)
    assert library.call('position', z, made.start.q, 0.0, p, q, residual) == 0
    assert residual[0] < 1e-12 and q == pytest.approx(made.position(z, made.start.q), abs=1e-12)
    rates, f, A, B, qdd, qd = made.partition().rates(q, zd, u), *map(np.zeros, (2, 4, 2, 5, 5))
    assert library.call('rates', q, zd, u, 0.0, p, f, A, B, qdd) == 0
    assert f == pytest.approx([1.3, rates.zdd[0]], rel=1e-13)
    assert A == pytest.approx(rates.A.ravel(), rel=1e-12) and B == pytest.approx(rates.B.ravel(), rel=1e-12)
    assert library.call('velocity', q, zd, 0.0, p, qd) == 0
    assert qd == pytest.approx(rates.qd) and qdd == pytest.approx(rates.qdd)
    energy, expected = np.zeros(3), made.energy(q, rates.qd, u)
    assert library.call('energy', q, zd, u, 0.0, p, energy) == 0
    assert energy == pytest.approx([expected.kinetic, expected.potential, expected.power], rel=1e-12)
    assert expected.power == pytest.approx(20.0 * 1.3)
    h = np.zeros(5)
    assert library.call('sensors', q, zd, u, 0.0, p, h, None) == 0
    assert h[[library.macro['H_ENCODER'], library.macro['H_CRANK_GYRO']]] == pytest.approx([0.8, 1.3])
    assert library.constant('start_X', 2) == pytest.approx([np.pi / 3, 0.0])


@needs_compiler
def test_steps_follow_the_reference(library):
    """Free four-bar from rest, 1 s in steps of 1 ms (published: -0.015424412145 rad), in place."""
    X, q, p, t = library.constant('start_X', 2), library.constant('start_q', 5), library.constant('parameters', 2), 0.0
    u = np.zeros(1)
    for _ in range(1000):
        assert library.call('step', X, q, u, t, p, 1e-3, X, q, None, None) == 0
        t += 1e-3
    assert X[0] == pytest.approx(-0.015424412145, abs=2e-5) and X[1] == pytest.approx(-2.7566184438, abs=2e-5)
    assert q[4] == X[0]


@needs_compiler
def test_transition_is_exact_at_any_step(four_bar, library):
    from scipy.linalg import expm

    made, X, q = four_bar[1], np.array([np.pi / 3, 2.0]), library.constant('start_q', 5)
    p, F, fresh, q_next, A = made.parameters, np.zeros(4), np.zeros(2), np.zeros(5), np.zeros(4)
    library.call('rates', q, X[1:], np.zeros(1), 0.0, p, None, A, None, None)
    for dt in (1e-6, 1e-2, 0.3, -0.3):
        assert library.call('step', X, q, np.zeros(1), 0.0, p, dt, fresh, q_next, F, None) in (0, 1)
        assert F == pytest.approx(expm(A.reshape(2, 2) * dt).ravel(), rel=1e-12)


@needs_compiler
def test_what_fails_is_reported(library):
    p, q, residual = library.constant('parameters', 2), library.constant('start_q', 5), np.zeros(1)
    nan, out = np.array([np.nan]), np.full(2, 7.0)
    assert library.call('rates', q, nan, np.zeros(1), 0.0, p, out, None, None, None) == library.macro['SINGULAR']
    assert (out == 7.0).all()
    status = library.call('position', np.array([1.0]), q, 0.0, np.array([1.0, 2.0]), None, residual)    # does not reach
    assert status in (library.macro['NOT_CLOSED'], library.macro['SINGULAR'])
    X = np.array([np.pi / 3, 40.0])
    status = library.call('step', X, q, np.zeros(1), 0.0, p, 0.5, None, None, None, residual)
    assert status == library.macro['NOT_CLOSED']
    assert residual[0] > 1e-9


@needs_compiler
def test_dead_point_is_singular(tmp_path):
    """The stroke does not determine a slider-crank at the end of its way."""
    made = load_model('slider_crank', independent=['stroke'], backend='vm')
    export_c(made, tmp_path / 'dead')
    library = Library(tmp_path / 'dead', 'slider_crank')
    q = load_model('slider_crank', backend='vm').position(np.array([0.0]), made.start.q)
    found = np.zeros(2)
    status = library.call('rates', q, np.ones(1), np.zeros(2), 0.0, None, found, None, None, None)
    assert status == library.macro['SINGULAR'] and not found.any()


@needs_compiler
def test_threads(library):
    """The same steps in four threads at once and one after the other."""
    p, u, start = library.constant('parameters', 2), np.zeros(1), library.constant('start_q', 5)

    def run(speed):
        X, q = np.array([np.pi / 3, speed]), start.copy()
        for k in range(300):
            assert library.call('step', X, q, u, k * 1e-3, p, 1e-3, X, q, None, None) == 0
        return X
    speeds = [0.1, 0.2, 0.3, 0.4] * 4
    with ThreadPoolExecutor(4) as pool:
        assert np.array_equal(list(pool.map(run, speeds)), [run(speed) for speed in speeds])


@needs_compiler
@pytest.mark.skipif(not shutil.which('g++'), reason='no C++ compiler')
def test_header_serves_cpp(four_bar, tmp_path):
    (tmp_path / 'user.cpp').write_text('#include "four_bar.h"\nint main() { return four_bar_independent[0] != 4; }\n')
    subprocess.run(['g++', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', f'-I{four_bar[0]}', 'user.cpp'],
                   cwd=tmp_path, check=True)


@needs_compiler
@pytest.mark.skipif(not shutil.which('cmake'), reason='no CMake')
def test_cmake(four_bar, tmp_path):
    for command in (['cmake', '-S', four_bar[0], '-B', tmp_path], ['cmake', '--build', tmp_path],
                    ['ctest', '--test-dir', tmp_path]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_same_model_same_bytes(four_bar, tmp_path):
    """In another process with another order of hashes; no path of this machine, no day."""
    script = ('import sys; from mbse_ros.export.write import export_c; '
              'from mbse_ros.dynamics.model import load_model; '
              f'export_c(load_model("four_bar", free={FREE!r}, backend="vm"), sys.argv[1])')
    subprocess.run([sys.executable, '-c', script, str(tmp_path / 'again')], check=True, cwd=ROOT,
                   env={**os.environ, 'PYTHONHASHSEED': '77'})
    for path in four_bar[0].iterdir():
        content = (tmp_path / 'again' / path.name).read_bytes()
        assert content == path.read_bytes(), path.name
        for word in (str(ROOT), str(tmp_path), str(Path.home()), 'tmp/'):
            assert word.encode() not in content
        assert not re.search(rb'\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b', content)


def test_another_export_replaces_the_first(tmp_path):
    folder = tmp_path / 'export'
    export_c(load_model('four_bar', backend='vm'), folder)
    (folder / 'notes.txt').write_text('mine')
    export_c(load_model('pendulum', backend='vm'), folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ['CMakeLists.txt', 'README.md', 'mbse_export.json', 'notes.txt', 'pendulum.c', 'pendulum.h',
         'pendulum_casadi.c', 'test_model.c'])
    (folder / 'four_bar.c').write_text('mine')
    with pytest.raises(SettingError, match='four_bar.c'):
        export_c(load_model('four_bar', backend='vm'), folder)
    assert (folder / 'four_bar.c').read_text() == 'mine' and (folder / 'pendulum.c').exists()


@pytest.mark.parametrize('files', [{'a.txt': ''}, {'mbse_export.json': '{}'}, {'mbse_export.json': '[1'},
                                   {'mbse_export.json': '{"format": "other", "files": []}'}])
def test_folder_of_others_is_left_alone(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(SettingError, match='folder'):
        export_c(model('four_bar', 'natural'), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_manifest_cannot_reach_outside(tmp_path):
    """A manifest that lists files elsewhere does not get them removed."""
    (tmp_path / 'precious.c').write_text('mine')
    folder = tmp_path / 'export'
    export_c(load_model('pendulum', backend='vm'), folder)
    manifest = json.loads((folder / 'mbse_export.json').read_text())
    manifest['files'].append('../precious.c')
    (folder / 'mbse_export.json').write_text(json.dumps(manifest))
    export_c(load_model('pendulum', backend='vm'), folder)
    assert (tmp_path / 'precious.c').exists()


@pytest.mark.parametrize('options, name', [({'order': '5'}, 'order'), ({'order': '0'}, 'order'), ({'dt': 0.0}, 'dt'),
                                           ({'dt': float('nan')}, 'dt'), ({'dt': 50.0}, 'dt')])
def test_wrong_options(options, name, tmp_path):
    with pytest.raises(SettingError) as caught:
        export_c(load_model('four_bar', backend='vm'), tmp_path / 'x', **options)
    assert caught.value.name == name and not (tmp_path / 'x').exists()


def test_nothing_to_export(tmp_path):
    with pytest.raises(SettingError, match='drivers'):
        export_c(load_model('four_bar_adams_driven', backend='vm'), tmp_path / 'x')
    (tmp_path / 'file').write_text('')
    with pytest.raises(SettingError, match='folder'):
        export_c(load_model('four_bar', backend='vm'), tmp_path / 'file')


@needs_compiler
def test_names_that_c_does_not_like(tmp_path):
    """A keyword, names that differ by case only, a source that would end the comment."""
    text = (ROOT / 'config' / 'mechanisms' / 'four_bar.yaml').read_text()
    text = re.sub(r'\bP2\b', 'p1', text).replace('name: four_bar', 'name: int')
    text = text.replace('source: Naya et al., review', 'source: a*/ b /* c ??/ Naya et al., review')
    made = Model(parse_mechanism(text), free=['points.A.fixed[0]', 'points.A.fixed[1]'], backend='vm')
    export = export_c(made, tmp_path / 'export')
    assert len({item.macro for item in export.names.q}) == 5
    done = run_test(tmp_path / 'export', 'cc', '-O0')
    assert done.returncode == 0, done.stdout


def test_units():
    from mbse_ros.dynamics.sensor_equations import state_sensors
    from mbse_ros.export.functions import export_names

    def units(made, vector):
        names = export_names(made, state_sensors(made.partition().system))
        return {item.name: item.unit for item in getattr(names, vector)}
    crank = load_model('slider_crank', free=['bodies.rod.mass', 'points.O.fixed[0]', 'crank'], backend='vm')
    assert units(crank, 'u') == {'torque': 'N m', 'force': 'N'}
    assert units(crank, 'p') == {'bodies.rod.mass': 'kg', 'points.O.fixed[0]': 'm', 'crank': 'SI'}
    crane = units(load_model('spatial_crane', 'relative', backend='vm'), 'q')
    assert {crane[name] for name in ('length', 'load_x')} == {'m'} and crane['boom_lift'] == 'rad'
    assert units(load_model('spatial_four_bar', 'reference_point', backend='vm'), 'q')['crank.e0'] == '1'
    shown = units(Model(description('driven_five_bar'), backend='vm'), 'h')
    assert (shown['torque'], shown['rate'], shown['imu.x'], shown['reach']) == ('N m', 'rad/s', 'm/s^2', 'm')


def test_functions_made_twice_are_written_once():
    """Text with two equal functions that each call one of two equal functions."""
    parts = [f'/* x */\nstatic int casadi_f{i}(a) {{\n  return {body};\n}}\n\n'
             for i, body in ((0, '1'), (1, 'casadi_f0(a)'), (2, '1'), (3, 'casadi_f2(a)'), (4, 'casadi_f3(a) + 1'))]
    found = shared(''.join(f'#define casadi_f{i} P(f{i})\n' for i in range(5))
                   + '/* Configuration this file */\n' + ''.join(parts) + 'int g() { return casadi_f4(a); }\n')
    assert re.findall(r'static int (casadi_f\d)', found) == ['casadi_f0', 'casadi_f1', 'casadi_f4']
    assert 'casadi_f1(a) + 1' in found and re.findall(r'define (casadi_f\d)', found) == [
        'casadi_f0', 'casadi_f1', 'casadi_f4']
