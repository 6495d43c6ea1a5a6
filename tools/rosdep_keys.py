# SPDX-License-Identifier: Apache-2.0
"""Write test/repository/rosdep_keys.yaml: what the dependencies of package.xml are on the platforms of a release.

    python tools/rosdep_keys.py ROSDISTRO      a clone of https://github.com/ros/rosdistro, bare or not
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
RELEASES = {'humble': 'jammy', 'jazzy': 'noble', 'kilted': 'noble'}


def git(repository: str, *arguments: str) -> str:
    """Output of a git command."""
    return subprocess.run(['git', '-C', repository, *arguments], check=True, capture_output=True, text=True).stdout


def native(rule, release: str) -> list:
    """apt packages of one rule of an OS; empty where pip, or nothing, installs it."""
    if isinstance(rule, dict):
        rule = rule.get(release, rule.get('*', rule))
    if isinstance(rule, dict):
        rule = rule.get('apt', {}).get('packages', [])
    return list(rule or [])


def released(distribution: dict) -> set:
    """Packages that a ROS distribution has released."""
    return {package for name, entry in distribution['repositories'].items() if entry.get('release', {}).get('version')
            for package in entry['release'].get('packages', [name])}


def table(repository: str) -> dict:
    """The content of the file."""
    def read(path: str) -> dict:
        return yaml.load(git(repository, 'show', f'HEAD:{path}'), getattr(yaml, 'CSafeLoader', yaml.SafeLoader))

    wanted = sorted({item.text for item in ElementTree.parse(ROOT / 'package.xml').getroot()
                     if item.tag.endswith('depend')})
    rules = {**read('rosdep/base.yaml'), **read('rosdep/python.yaml')}
    packages = {name: released(read(f'{name}/distribution.yaml')) for name in RELEASES}
    found = {}
    for name in wanted:
        found[name] = {distro: ['ros'] if name in packages[distro] else
                       native(rules.get(name, {}).get('ubuntu'), release) for distro, release in RELEASES.items()}
    commit, date = git(repository, 'log', '-1', '--format=%H %cs').split()
    return {'source': 'https://github.com/ros/rosdistro', 'commit': commit, 'date': date, 'keys': found}


if __name__ == '__main__':
    head = ('# SPDX-License-Identifier: Apache-2.0\n'
            '# Of each dependency of package.xml, on the Ubuntu of each ROS 2: packages; [ros]: released with that\n'
            '# ROS 2; []: none.  Written by tools/rosdep_keys.py.\n')
    text = yaml.safe_dump(table(sys.argv[1]), sort_keys=False, default_flow_style=None, width=120)
    (ROOT / 'test' / 'repository' / 'rosdep_keys.yaml').write_text(head + text)
