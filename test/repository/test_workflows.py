# SPDX-License-Identifier: Apache-2.0
"""``.github/workflows``: steps are what one runs, actions are pinned, each supported ROS 2 has its container."""

import os
import re
import shutil
import subprocess

import pytest
import yaml
from source_tree import ROOT

WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / '.github' / 'workflows').iterdir()}
JOBS = {f'{name}: {job}': what for name, workflow in WORKFLOWS.items() for job, what in workflow['jobs'].items()}
TARGETS = set(re.findall(r'(?m)^([a-z]+):', (ROOT / 'Makefile').read_text()))


def steps(key):
    return [step[key] for job in JOBS.values() for step in job['steps'] if key in step]


def unknown(command):
    """What of a step's command is neither a target of the Makefile nor a script of tools/; '' where all is."""
    words = command.split()
    while words and words[0] in ('sudo', 'tools/in_ros.sh'):
        words = words[1:]
    if words[0] == 'make':
        return '' if words[1] in TARGETS else command
    if words[:3] == ['gh', 'release', 'create']:
        return ''
    return '' if words[0].startswith('tools/') and os.access(ROOT / words[0], os.X_OK) else command


def test_every_step_is_a_target_of_the_makefile_or_a_script_of_tools():
    assert len(steps('run')) > 10 and not [command for command in steps('run') if unknown(command)]
    assert unknown('make nothing') and unknown('tools/nothing.sh') and unknown('pip install x')


def test_what_a_contributor_runs_is_what_is_checked():
    run = ' '.join(steps('run'))
    assert all(f'make {target}' in run for target in ('lint', 'docs', 'test', 'wheel', 'colcon', 'screenshot'))


def test_actions_are_pinned_to_a_version():
    pinned = r'[\w-]+/[\w-]+@(v\d+(\.\d+)*|[0-9a-f]{40})'
    assert steps('uses') and all(re.fullmatch(pinned, use) for use in steps('uses'))


def test_no_job_runs_for_ever_or_may_write_more_than_it_needs():
    assert all(job['timeout-minutes'] <= 90 for job in JOBS.values())
    assert all(workflow['permissions'] == {'contents': 'read'} for workflow in WORKFLOWS.values())
    assert [name for name, job in JOBS.items() if 'permissions' in job] == ['release.yml: release']


def test_each_supported_ros_is_tested_and_built_in_its_official_container():
    table = yaml.safe_load((ROOT / 'test' / 'repository' / 'rosdep_keys.yaml').read_text())
    supported = sorted({distro for key in table['keys'].values() for distro in key})
    for job in ('ci.yml: ros', 'ci.yml: colcon'):
        assert JOBS[job]['strategy']['matrix']['ros'] == supported == ['humble', 'jazzy', 'kilted']
        assert JOBS[job]['container'] == 'ros:${{ matrix.ros }}-ros-base'


@pytest.mark.skipif(not shutil.which('actionlint'), reason='make lint installs it')
def test_actionlint_is_content():
    done = subprocess.run(['actionlint', '-no-color'], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, '')


def test_hooks_of_dependabot_name_tools_of_the_list_of_the_linters():
    updates = yaml.safe_load((ROOT / '.github' / 'dependabot.yml').read_text())['updates']
    allowed = {item['dependency-name'] for update in updates for item in update.get('allow', ())}
    pinned = set(re.findall(r'(?m)^([\w-]+)==', (ROOT / 'tools' / 'requirements' / 'lint.in').read_text()))
    assert allowed and allowed <= pinned
