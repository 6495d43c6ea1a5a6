# SPDX-License-Identifier: Apache-2.0
"""Every block of code of every page is run, loaded or looked at by a test: here, or by the test that is named."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections import Counter
from textwrap import dedent

import casadi as ca
import numpy as np
import pytest
import yaml
from core_support import kinematic
from source_tree import ROOT

from mbse_ros.compiled import Kernel, Scan
from mbse_ros.embedded.tables import EstimatorSetup
from mbse_ros.embedded.write import export_estimator
from mbse_ros.machine import load_machine
from mbse_ros.payload.mass import PayloadSettings
from mbse_ros.scale.scale_file import load_scale_file
from mbse_ros.simulation.work import physics_in
from mbse_ros.sources.map import parse_sources

PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]
TESTED = {      # by page: the test that runs its Python, loads its YAML, compares its output
    'README.md': 'test_examples.py', 'arm.md': 'test_offline_arm.py', 'bags.md': 'test_bags_channels.py',
    'estimators.md': 'test_docs_estimators.py',
    'factor_graphs.md': 'test_docs_estimators.py', 'first_steps.md': 'test_examples.py',
    'machine_yaml.md': 'test_docs_machines.py', 'mechanism_yaml.md': 'test_description_docs.py',
    'mechanisms.md': 'test_docs_mechanisms.py', 'own_machine.md': 'test_description_templates.py',
    'python_api.md': 'test_examples.py',
    'your_own_filter.md': 'test_examples.py', 'sources.md': 'test_docs_sources.py'}
SHELL = '', 'sh', 'text', 'csv'         # commands are test_docs_commands.py's; `{...}` belongs to `make docs`
HERE = {('command_line.md', 'json'): 3, ('integration.md', 'yaml'): 5, ('integration.md', 'python'): 2,
        ('integration.md', 'xml'): 1, ('integration.md', 'cmake'): 1, ('fleet.md', 'python'): 1,
        ('kernels.md', 'python'): 1, ('report.md', 'python'): 1, ('scale.md', 'yaml'): 1, ('export_c.md', 'c'): 1,
        ('reality.md', 'yaml'): 1}


def blocks(page):
    """(language, text) of each block."""
    found, inside = [], None
    for line in (ROOT / page if page == 'README.md' else ROOT / 'docs' / page).read_text().splitlines():
        if inside is None and (start := re.match(r'\s*```(\S*)\s*$', line)):
            inside = (start[1], [])
        elif inside is not None and line.strip() == '```':
            found.append((inside[0], dedent('\n'.join(inside[1]) + '\n')))
            inside = None
        elif inside is not None:
            inside[1].append(line)
    assert inside is None, f'{page}: a block does not end'
    return found


def of(page, language):
    return [text for name, text in blocks(page) if name == language]


def test_every_block_has_its_test():
    here = Counter()
    for page in PAGES:
        for language, _ in blocks(page.name):
            if language.startswith('{') or language in SHELL:
                continue
            if page.name in TESTED:
                assert page.name in next((ROOT / 'test').rglob(TESTED[page.name])).read_text(), page.name
            else:
                here[page.name, language] += 1
    assert here == HERE


def test_outputs_are_json():
    """One document after the other, in full."""
    decoder, count = json.JSONDecoder(), 0
    for text in of('command_line.md', 'json'):
        rest = text.strip()
        while rest:
            _, end = decoder.raw_decode(rest)
            rest, count = rest[end:].lstrip(), count + 1
    assert count == 3


def test_physics_of_a_plant(tmp_path):
    (tmp_path / 'worn.yaml').write_text(of('reality.md', 'yaml')[0])
    assert physics_in(str(tmp_path / 'worn.yaml')) == {'bending': 2.0, 'ripple': 3e5, 'holding': 1.5}


def test_feed_forward():
    script, moveit = of('integration.md', 'python')
    names = {}
    exec(compile(script, 'docs/integration.md', 'exec'), names)
    found = names['found']
    assert len(found.torques) == 4 and len(found.forces) == 3 and np.all(found.load_pressures_stddev > 0)
    compile(moveit, 'docs/integration.md', 'exec')      # its messages are not a dependency of this package


def test_files_of_the_page_of_integration():
    base, sources, *others = (yaml.safe_load(text) for text in of('integration.md', 'yaml'))
    assert base['base'] == {} and set(base['sensors']) == {'base_roll', 'base_pitch'}
    found = parse_sources(of('integration.md', 'yaml')[1])
    assert set(found.channels) == {'position/base_roll', 'position/base_pitch'} and sources['format']
    assert all(isinstance(item, dict) for item in others)
    (xml,), (cmake,) = of('integration.md', 'xml'), of('integration.md', 'cmake')
    assert ElementTree.fromstring(f'<all>{xml}</all>').findall('.//*') and cmake.count('(') == cmake.count(')')


def test_a_cluster_is_python():
    (script,) = of('fleet.md', 'python')        # the cluster's own package is not at hand
    assert '--cluster' in script and compile(script, 'docs/fleet.md', 'exec')


def test_kernels():
    """On a function of the page's shapes; a bound call and a scan into given arrays give the same."""
    x, p, u = ca.SX.sym('x', 2), ca.SX.sym('p'), ca.SX.sym('u')
    names = {'Kernel': Kernel, 'Scan': Scan, 'x': np.ones(2), 'p': np.array([3.0]), 'value': np.empty(2),
             'jac': np.empty((2, 2)), 'function': ca.Function('f', [x, p], [p * x ** 2, ca.jacobian(p * x ** 2, x)]),
             'step': ca.Function('s', [x, u, p], [x + p * u, x[0]]), 'x0': np.zeros(2), 'us': np.ones((5, 1)),
             'x_out': np.empty(2), 'ys': np.empty((5, 1))}
    (script,) = of('kernels.md', 'python')
    exec(compile(script, 'docs/kernels.md', 'exec'), names)
    np.testing.assert_array_equal(names['jacobian'], np.diag([6.0, 6.0]))
    names['call']()
    np.testing.assert_array_equal(names['jac'], names['jacobian'])
    np.testing.assert_array_equal(names['x_out'], [15.0, 15.0])
    np.testing.assert_array_equal(names['x_end'], names['x_out'])


def test_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (script,) = of('report.md', 'python')
    exec(compile(script, 'docs/report.md', 'exec'), {})
    assert any(path.stat().st_size > 10_000 for path in tmp_path.rglob('*.html'))


def test_a_file_of_the_scale(tmp_path):
    (text,) = of('scale.md', 'yaml')
    (tmp_path / 'scale.yaml').write_text(text)
    found = load_scale_file(tmp_path / 'scale.yaml')
    assert set(found.attachments) == {'ditching_bucket', 'hook'} and found.chart is not None


@pytest.mark.skipif(shutil.which('cc') is None, reason='no C compiler')
def test_the_loop_in_c(tmp_path):
    """It compiles, without a warning, against the header of an exported estimator."""
    machine = load_machine('patu655_lift')
    export_estimator(EstimatorSetup(machine, kinematic(), PayloadSettings()), tmp_path / 'c')
    (text,) = of('export_c.md', 'c')
    source = ('#include "zx200.h"\nvoid read_sensors(zx200_input *in);\n'
              f'void show(double mass, double lower, double upper);\nint main(void) {{\n{text}}}\n')
    (tmp_path / 'main.c').write_text(source.replace('zx200', 'patu655_lift').replace('ZX200', 'PATU655_LIFT'))
    command = ['cc', '-std=c99', '-Wall', '-fsyntax-only', f'-I{tmp_path / "c"}', str(tmp_path / 'main.c')]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
