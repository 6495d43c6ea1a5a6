# SPDX-License-Identifier: Apache-2.0
"""What every graph has, described once: processes, arguments, recorder and RViz. The launch files and `mbse up` read
it by ``machine_graph`` and ``linkage_graph``.

No ROS is needed to read it. An argument that is a parameter of a node has its default, text and range by the node's
settings, and is given to each node that has it by the catalogue. RViz gets the configuration of this package with
camera, grid and frames by the model's size.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from ...compiled.cache import cache_folder
from ...description.presets import preset_file, preset_parameters
from ...errors import SettingError, did_you_mean
from ...report.files import check_new
from ...resources import share_directory
from ...settings import Settings, same_as, setting
from ..base.node_settings import RELIABILITY, LatencySettings, LifecycleSettings, SimulationSettings
from ..messages.outline import Box
from .catalogue import NODES, parameter_names

DIAGNOSTICS = {'/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray'}
COMPOSED = 'machine_nodes'      # executable that has several nodes
OURS, AUTO = 'mbse_ros', 'auto'
SIMULATED_WAIT = 60.0       # s
SIMULATED = ". With simulate, empty is none: the simulation's topics"     # of ``sources``
# parameters that not each node that has one gets from the argument of this name
OF_SOME = {'thread_priority', 'cpu_affinity', 'lock_memory', 'latency_budget', 'sensor_reliability', 'sources',
           'sensors', 'estimator', 'options', 'noises'}
HALF_ANGLE = math.pi / 8        # of the camera: RViz's field of view is 45 degrees high
WIDE = 1.22                     # width over height of the picture beside the panel
VIEWS = {True: (4.85, 0.2), False: (5.0, 0.28)}       # yaw and pitch, rad, on what is flat and what is not
FILLED = 0.98                   # share of the picture that all the model reaches has
BEHIND = 0.1                    # of the model's size, the grid of what is flat
GRID, CELLS = 10.0, 2.0         # cells along the model, and how far the grid goes, in the model's sizes
A = TypeVar('A', bound=Settings)


@dataclass(frozen=True)
class Process:
    """One process: executable of a package, its node, parameters, remappings, plain arguments.

    ``respawn``: started again when it dies, with the parameters ``again`` in addition; ``final``: when it ends by
    itself the graph ends. ``parts``: of a process of several nodes, the parameters of each. ``files``: of parameters,
    which count more than ``parameters``.
    """

    executable: str
    name: str
    namespace: str = ''
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    package: str = 'mbse_ros'
    respawn: bool = False
    final: bool = False
    again: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def own_parameters(self) -> dict[str, Any]:
        """Parameters of its ``parts``, as ``node:parameter``."""
        return {f'{node}:{name}': value for node, values in self.parts.items() for name, value in values.items()}

    def once_more(self) -> Process:
        """The process as it is started again."""
        return replace(self, parameters={**self.parameters, **self.again})


@dataclass(frozen=True)
class Graph:
    """Processes that belong together."""

    processes: tuple[Process, ...]


@dataclass(frozen=True)
class GraphArguments(Settings):
    """Arguments that every graph has, and the processes that every graph may have."""

    simulate: bool = setting(True, 'Start the simulation; false: the sensors come from elsewhere')
    seed: int = same_as(SimulationSettings, 'seed')
    duration: float = same_as(SimulationSettings, 'duration', '. The graph ends with it')
    namespace: str = setting('', 'Namespace of all nodes and topics')
    use_sim_time: bool = setting(False, 'Time comes from /clock; with simulate the simulation publishes it')
    rviz: bool = setting(False, 'Start RViz')
    autostart: bool = same_as(LifecycleSettings, 'autostart', text='The nodes configure and activate themselves')
    record: str = setting('', 'Folder of a bag to write; empty: none')
    sensor_reliability: str = setting(AUTO, 'QoS of the sensors; auto: reliable with simulate, else best_effort',
                                      choices=(AUTO, *RELIABILITY))
    frame: str = setting('', 'Frame of the markers and root of the bodies, such as base_link; empty: machine or '
                             'mechanism')
    preset: str = setting('', 'Settings of a published method: paper, or a file of parameters; stronger than these '
                              'arguments')
    params_file: str = setting('', 'Files of parameters (YAML, as of ros2 run), separated by blanks; stronger than '
                                   'preset')
    thread_priority: int = same_as(LifecycleSettings, 'thread_priority', text='Real-time priority (SCHED_FIFO) of '
                                                                              'the estimating nodes; 0: none')
    cpu_affinity: str = same_as(LifecycleSettings, 'cpu_affinity', text='Processors of the estimating nodes, as 1 '
                                                                        'or 0,2-3; empty: all')
    lock_memory: bool = same_as(LifecycleSettings, 'lock_memory', text='Keep the memory of the estimating nodes '
                                                                       'from being swapped out')
    latency_budget: float = same_as(LatencySettings, 'latency_budget')
    remap: str = setting('', 'Other names of topics, as from:=to separated by blanks: '
                             'remap:="sensors/position:=joint_states"')

    @property
    def reliability(self) -> str:
        """How the sensors are read."""
        if self.sensor_reliability != AUTO:
            return self.sensor_reliability
        return 'reliable' if self.simulate else 'best_effort'

    def complete(self, processes: Iterable[Process]) -> Graph:
        """The graph of processes, the nodes of this package with the files and remappings; raises SettingError for a
        file that is not there, and for what is no remapping."""
        files, pairs = (*self._preset, *self.params_file.split()), [word.partition(':=') for word in self.remap.split()]
        for file in files:
            if not Path(file).is_file():
                raise SettingError('params_file', file, 'a file')
        processes = tuple(processes)
        if self.preset:
            self._check_preset({f'/{process.namespace}/{node}'.replace('//', '/') for process in processes
                                for node in (process.parts or (process.name,))})
        for source, _, target in pairs:
            if not source or not target:
                raise SettingError('remap', self.remap, 'from:=to, separated by blanks')
        remaps = {source: target for source, _, target in pairs}
        return Graph(tuple(replace(process, files=files, remappings={**process.remappings, **remaps})
                           if process.package == OURS else process for process in processes))

    def _check_preset(self, nodes: Collection[str]) -> None:
        """A preset of other nodes or namespaces would be without effect; what no node has would end one."""
        found = preset_parameters(self.preset)
        for item in found:
            known = NODES[item.executable].names() | {'use_sim_time'} if item.executable in NODES else parameter_names()
            if '*' not in item.executable and item.executable not in NODES or item.name not in known:
                raise SettingError('preset', self.preset, f'parameters of nodes of this package; {item.node} has no '
                                   f'{item.name}{did_you_mean(item.name, known)}')
            try:
                for group in NODES[item.executable].groups if item.executable in NODES else ():
                    if item.name in group.__dataclass_fields__:
                        parse_arguments({item.name: item.value}, group)
            except SettingError as error:
                raise SettingError('preset', self.preset, f'values that {item.node} takes: {error}') from error
        if not any(item.is_of(node) for item in found for node in nodes):
            raise SettingError('preset', self.preset, f'parameters of {", ".join(sorted(nodes))}; it has those of '
                               + ', '.join(sorted({item.node for item in found})))

    @property
    def _preset(self) -> tuple[str, ...]:
        """The preset's file; the user's own come after it."""
        return (str(preset_file(self.preset)),) if self.preset else ()

    @property
    def waiting(self) -> dict[str, float]:
        """How long the nodes wait for each other: a simulation loses nothing at the start, on a busy computer too."""
        return {'wait_time': SIMULATED_WAIT} if self.simulate else {}

    @property
    def real_time(self) -> dict[str, int | str | bool]:
        """Parameters of a process that estimates."""
        asked: dict[str, int | str | bool] = {
            'thread_priority': self.thread_priority, 'cpu_affinity': self.cpu_affinity, 'lock_memory': self.lock_memory}
        return {name: value for name, value in asked.items() if value}

    @property
    def estimating(self) -> dict[str, int | str | bool | float]:
        """The same with what is asked of its results."""
        return {**self.real_time, **({'latency_budget': self.latency_budget} if self.latency_budget else {})}

    def node(self, name: str, **parameters: Any) -> Process:
        """A node that is started again when it dies, with the arguments that are its parameters."""
        return Process(name, name, self.namespace, respawn=True, parameters={
            'use_sim_time': self.use_sim_time, **self._own(name), **self.waiting, **parameters})

    def plant(self, name: str, final: bool, **parameters: Any) -> Process:
        """The simulation; ``final``: the graph ends with it, else it begins again where it dies."""
        return Process(name, name, self.namespace, final=final, respawn=not final, parameters={
            'use_sim_time': False, **self._own(name), 'publish_clock': self.use_sim_time, 'exit_at_end': final,
            **self.waiting, **parameters})

    def _own(self, name: str) -> dict[str, Any]:
        """The arguments that are parameters of a node, by the catalogue, but for those that only some get."""
        known = NODES[name].names() - OF_SOME
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name in known}

    def watchers(self, config: str, name: str, box: Callable[[], Box], frame: str = '', **recorded: str
                 ) -> tuple[Process, ...]:
        """Recorder, with the parameters that say what is ``recorded``, and RViz, where they are asked for: its
        configuration for the model ``name`` that lies in a box; ``frame``: its fixed frame, where it is not that of the
        configuration."""
        found = []
        if self.record:
            check_new(Path(self.record), 'record')
            found.append(Process('recorder_node', 'recorder_node', self.namespace, respawn=True, parameters={
                'use_sim_time': False, 'bag': self.record, 'sensor_reliability': self.reliability, **recorded},
                                 again={'beside': True}))
        if self.rviz:
            topic = f'/{self.namespace.strip("/")}/markers'
            found.append(Process('rviz2', 'rviz2', parameters={'use_sim_time': self.use_sim_time}, package='rviz2',
                                 arguments=('-d', str(rviz_file(config, name, box())),
                                            *(('-f', frame) if frame else ())),
                                 remappings={'/markers': topic} if self.namespace else {}))
        return tuple(found)


def parse_arguments(given: Mapping[str, Any], kind: type[A]) -> A:
    """Arguments from words or values; raises SettingError for an unknown name, a wrong type or value."""
    known = {item.name: item for item in fields(kind)}
    values = {}
    for name, value in given.items():
        if name not in known:
            near = nearest(name, known)
            raise SettingError(name, value, f'one of the arguments {", ".join(known)}'
                               + (f'; did you mean {near}?' if near else ''))
        values[name] = _from_word(name, value, type(known[name].default)) if isinstance(value, str) else value
    return kind(**values)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name for which another is a slip of the pen."""
    return next(iter(get_close_matches(name, list(known), 1, 0.75)), None)


def refuse_misspelt(words: Iterable[str], kind: type[Settings]) -> None:
    """Raise SettingError for a word ``name:=value`` of a command line whose name is nearly that of an argument."""
    known = [item.name for item in fields(kind)]
    for word in words:
        name, sign, value = word.partition(':=')
        near = nearest(name, known) if sign and name not in known else None
        if near:
            raise SettingError(name, value, f'an argument of the launch file; did you mean {near}?')


def word(value: Any) -> str:
    """An argument's value as it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe(item: Field[Any]) -> str:
    """What an argument means, with its unit and the words it may be."""
    meta = item.metadata
    unit = f' [{meta["unit"]}]' if meta['unit'] else ''
    return meta['text'] + unit + (f' ({", ".join(meta["choices"])})' if meta['choices'] else '')


def rviz_file(config: str, name: str, box: Box) -> Path:
    """File of the model ``name`` out of ``config`` of the folder rviz/, in the folder of the compiled functions; where
    that cannot be written, the one of the package."""
    source = share_directory() / 'rviz' / config
    try:
        folder = cache_folder() / 'rviz'
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f'{Path(name).stem}_{config}'
        with tempfile.NamedTemporaryFile('w', dir=folder, delete=False) as file:
            yaml.safe_dump(fitted(yaml.safe_load(source.read_text()), box), file, sort_keys=False)
        os.replace(file.name, path)
    except OSError:
        return source
    return path


def fitted(config: dict[str, Any], box: Box) -> dict[str, Any]:
    """A configuration with the whole box in view, and a grid at its ground, or behind what is flat."""
    manager = config['Visualization Manager']
    view = manager['Views']['Current']
    ends = np.array([box.low, box.high])
    corners, focus = np.stack(np.meshgrid(*ends.T), axis=-1).reshape(-1, 3), ends.mean(axis=0)
    view['Yaw'], view['Pitch'] = yaw, pitch = VIEWS[box.flat]
    right = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
    back = np.array([math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)])
    away = (corners - focus) @ np.column_stack([right / WIDE, np.cross(back, right), back])
    view['Distance'] = round(float((away[:, 2] + np.abs(away[:, :2]).max(axis=1) / (
        FILLED * math.tan(HALF_ANGLE))).max()), 4)
    view['Focal Point'] = {axis: round(float(value), 4) for axis, value in zip('XYZ', focus)}
    view['Near Clip Distance'] = min(0.01, 1e-3 * box.size)
    cell = 10.0 ** math.floor(math.log10(box.size / GRID * 3.2))
    for display in manager['Displays']:
        if display['Class'].endswith('/Grid'):
            display['Cell Size'], display['Plane Cell Count'] = cell, round(CELLS * box.size / cell)
            display['Plane'] = 'XZ' if box.flat else 'XY'
            display['Offset'] = {'X': 0, 'Y': round(BEHIND * box.size, 4) if box.flat else 0,
                                 'Z': round(box.ground, 4)}
        elif display['Class'].endswith('/Axes'):
            display['Length'], display['Radius'] = round(0.05 * box.size, 5), round(0.0025 * box.size, 6)
        elif display['Class'].endswith('/TF'):
            display['Marker Scale'] = round(0.1 * box.size, 4)
    return config


def _from_word(name: str, word: str, kind: type) -> Any:
    """Value of a word in a type."""
    if kind is bool:
        if word.lower() not in ('true', 'false'):
            raise SettingError(name, word, 'true or false')
        return word.lower() == 'true'
    try:
        return kind(word)
    except ValueError:
        raise SettingError(name, word, f'a {kind.__name__}') from None
