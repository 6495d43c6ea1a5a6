# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes beside the tuning of their stages; no ROS is needed to read them."""

from __future__ import annotations

from dataclasses import dataclass

from ...description.model import MechanismDescription, content
from ...dynamics.model import Model, load_model
from ...machine import VALVE_KINDS, Machine, load_machine
from ...scale.scale_file import BARE, ScaleSettings, equipped
from ...settings import Settings, names_in, same_as, setting
from ...simulation.cycle import CYCLES

RELIABILITY = ('best_effort', 'reliable')
VALVES = ('described', *VALVE_KINDS)
CYCLE_CHOICES = (*CYCLES, 'topic')
TF_CHOICES = ('all', 'payload', 'none')


@dataclass(frozen=True)
class LifecycleSettings(Settings):
    """What every lifecycle node takes."""

    autostart: bool = setting(True, 'Configure and activate without being asked to')
    wait_subscribers: int = setting(0, 'Subscribers to wait for on the main output before any input is taken, so that '
                                       'nothing is lost at the start', '', 0, 100)
    wait_time: float = setting(10.0, 'Longest time to wait for them; then the node continues with a warning',
                               's', 0.0, 600.0)
    thread_priority: int = setting(0, 'Real-time priority (SCHED_FIFO) of the process while it serves; 0: none. Nodes '
                                      'of one process need one value', '', 0, 98)
    cpu_affinity: str = setting('', 'Processors that the process may use, as 1 or 0,2-3. Empty: all')
    lock_memory: bool = setting(False, 'Keep the memory of the process from being swapped out')


@dataclass(frozen=True)
class SensorSettings(Settings):
    """What every node that reads sensors takes."""

    sensor_reliability: str = setting('best_effort', 'QoS of the sensor subscriptions: best_effort matches every '
                                                     'publisher, reliable only reliable ones', choices=RELIABILITY)


@dataclass(frozen=True)
class BackendSettings(Settings):
    """What every node with compiled functions takes."""

    backend: str = setting('auto', 'Compiled C, the virtual machine, or C where there is a compiler',
                           choices=('auto', 'c', 'vm'))


@dataclass(frozen=True)
class LatencySettings(Settings):
    """What every node takes whose results go to a controller."""

    latency_budget: float = setting(0.0, 'Age of the results, from the stamp of the newest sample on, beyond which the '
                                         'diagnostics warn, 99 % of a second; 0: none', 's', 0.0, 10.0)


@dataclass(frozen=True)
class SimulationSettings(Settings):
    """What every simulated machine or mechanism takes."""

    seed: int = setting(1, 'Seed of the noise, and of a random cycle', '', 0, 2 ** 31 - 1)
    publish_clock: bool = setting(False, 'Publish /clock, for nodes with use_sim_time')
    duration: float = setting(0.0, 'Length of the motion; 0: that of its work cycles, of a mechanism without end', 's',
                              0.0, 1e6)
    exit_at_end: bool = setting(False, 'End the process when the motion is over')


_MADE: dict[str, Machine] = {}      # the last one


def _shared(description: MechanismDescription) -> Machine:
    """The machine of a description; the nodes of one process, which only read it, have one."""
    sources = description.sources and description.sources.value       # no part of what the machine is
    tool = description.attachment and description.attachment.name
    key = f'{description.file} {content(description)} {sources} {tool}'
    if key not in _MADE:
        _MADE.clear()
        _MADE[key] = Machine(description)
    return _MADE[key]


@dataclass(frozen=True)
class MachineSettings(LifecycleSettings):
    """Which machine it is, of every node of a hydraulic machine."""

    machine: str = setting('patu655_lift', 'Machine: name of a file in config/machines, or a path')
    valve: str = setting('described', "Model of all valves: the one described in the machine's file, or another",
                         choices=VALVES)
    scale_file: str = setting('', "File of attachments and load chart; empty: the section `scale` of the machine's "
                                  'file')

    def load(self, attachment: str = BARE) -> Machine:
        """What the node works on, with an attachment; raises MbseError."""
        return load_machine(self.machine, None if self.valve == 'described' else self.valve,
                            lambda described: _shared(equipped(described, attachment, self.scale_file)))


@dataclass(frozen=True)
class ManagedSettings(MachineSettings):
    """What every node of a hydraulic machine takes, but for the scale, whose attachment may change while it runs."""

    attachment: str = setting(BARE, 'Attachment on the machine, by its name in the file of the scale: the equations '
                                    'have its mass; the same in all nodes. Empty: none')

    def load(self, attachment: str = BARE) -> Machine:
        """What the node works on, with its attachment; raises MbseError."""
        return super().load(attachment or self.attachment)


@dataclass(frozen=True)
class SourcesSettings(SensorSettings):
    """Nodes that read sensors by a map."""

    sources: str = setting('', "Which topics and fields the channels are: a .yaml file, or a name of config/sources. "
                               "Empty: the section `sources` of the machine's file, without one the topics of this "
                               "package; none: these in any case")


@dataclass(frozen=True)
class SensorNodeSettings(SourcesSettings, ManagedSettings):
    """Nodes of a hydraulic machine that read sensors."""


@dataclass(frozen=True)
class CompiledNodeSettings(BackendSettings, ManagedSettings):
    """Nodes of a hydraulic machine whose stage is compiled."""


@dataclass(frozen=True)
class StageNodeSettings(LatencySettings, CompiledNodeSettings):
    """Nodes that run a stage over the records of another."""


@dataclass(frozen=True)
class ObserverNodeSettings(StageNodeSettings):
    """The observer's node."""

    predict_rate: float = setting(0.0, 'States per second on state/predicted, each at the instant when it is sent: by '
                                       'the model, the last command and no sample. 0: none', 'Hz', 0.0, 1000.0)
    predict_for: float = setting(0.2, 'Age of the newest sample up to which a state is predicted', 's', 0.0, 2.0)


@dataclass(frozen=True)
class PlantSettings(SimulationSettings, CompiledNodeSettings):
    """The simulated machine's node."""

    payload: float = setting(50.0, 'True payload; if there are several, each', 'kg', 0.0, 1e6)
    cycle: str = setting('lift_hold_lower', 'What moves valves and drives: a work cycle (lift_hold_lower and boom: the '
                         'first valve; random: all; dig: an excavator), or the topic valve_command',
                         choices=CYCLE_CHOICES)
    ramp: float = setting(0.2, 'Ramps of the cycles lift_hold_lower and boom', 's', 0.001, 2.0)
    cycles: int = setting(1, 'How often the cycle is run; 0: for a day', '', 0, 3600)
    speed: float = setting(1.0, 'Speed of the simulation, 1: real time', '', 0.01, 100.0)


@dataclass(frozen=True)
class VisualizationSettings(Settings):
    """Look of the markers."""

    rate: float = setting(20.0, 'Markers per second of the stamps', 'Hz', 0.1, 200.0)
    frame_id: str = setting('machine', 'Frame of the markers: the fixed frame in RViz')
    ghost_opacity: float = setting(0.35, 'Opacity of the measured machine', '', 0.0, 1.0)
    magnification: float = setting(1.0, 'How many times as far from the estimate the measured machine is drawn as it '
                                        'is, to see small differences', '', 0.0, 1000.0)
    text_height: float = setting(0.0, "Height of the letters; 0: by the machine's size", 'm', 0.0, 2.0)


@dataclass(frozen=True)
class OutputsNodeSettings(ManagedSettings):
    """The node of the standard outputs, fixed at the start."""

    publish_tf: str = setting('all', 'TF of all bodies and the load; payload: of the load alone, in the frame '
                                     'frame_id, where robot_state_publisher has the bodies; none', choices=TF_CHOICES)
    frame_id: str = setting('machine', "The machine's frame: root of its bodies")
    payload_frame: str = setting('payload', "The load's frame: TF, and that of payload/wrench")
    frame_prefix: str = setting('', 'Before the names of all frames, those of the bodies too, as '
                                    'robot_state_publisher has it: a namespace and /, where several machines share /tf')


@dataclass(frozen=True)
class OutputsSettings(Settings):
    """The standard outputs, changeable at run time."""

    rate: float = setting(50.0, 'Messages per second of the stamps on each topic, at most those of state and payload',
                          'Hz', 0.1, 1000.0)
    dynamic: bool = setting(False, 'feed_forward and stability/... with the velocities and accelerations of the state; '
                                   'false: what holds the machine where it is')
    tipping_share: float = setting(0.75, 'Share of the load that tips the machine over above which the diagnostics '
                                         'warn; ISO 10567 rates excavators by 75 %', '', 0.01, 1.0)


@dataclass(frozen=True)
class ScaleNodeSettings(MachineSettings):
    """The scale, fixed at the start."""

    records: str = setting('', 'SQLite file of the records, made where it is not there. Empty: loads_<machine>.db in '
                               'the folder where the node is started; none: in memory alone, lost with the process')
    day_starts: float = setting(0.0, 'When a day of the totals begins, after 00:00 UTC', 'h', -24.0, 24.0)


@dataclass(frozen=True)
class ScaleTuning(ScaleSettings):
    """The scale, changeable at run time."""

    rate: float = setting(10.0, 'Messages per second of the stamps on scale/live and scale/mass', 'Hz', 0.1, 100.0)
    attachment: str = setting(BARE, 'Attachment on the machine, by its name in the file of the scale. At the start as '
                                    'of all nodes: the equations have its mass; empty: that of the records. One that '
                                    'is chosen later is taken off the mass. Empty: none')
    truck: str = setting('', 'Name of the next truck, for ~/new_truck; empty: they are numbered')
    target: float = setting(0.0, 'How much a truck shall get, this one and the next ones; 0: no target, and at the '
                                 'start that of the records', 'kg', 0.0, 1e7)


@dataclass(frozen=True)
class DisplayNodeSettings(ManagedSettings):
    """The operator's page, fixed at the start."""

    host: str = setting('127.0.0.1', 'Address to listen on. Any but that of this computer alone needs token_file; '
                                     '0.0.0.0: on all networks')
    port: int = setting(8642, 'Port that the page is served on; 0: any that is free, which the log names', '', 0, 65535)
    token_file: str = setting('', 'Text file with the token that a page must know, 16 characters or more. Empty: none '
                                  'is asked for, on this computer alone')
    viewers: int = setting(8, 'Pages at the same time, at most', '', 1, 32)


@dataclass(frozen=True)
class DisplayTuning(Settings):
    """The operator's page, changeable at run time."""

    rate: float = setting(10.0, 'Updates of a page per second, at most those of scale/live', 'Hz', 1.0, 30.0)
    widest: float = setting(0.1, 'Share of the range of payload.limits. A mass whose interval reaches farther than '
                                 'this to either side is not shown as a number, but as a dash with its interval', '',
                            0.0, 1.0)


@dataclass(frozen=True)
class TrajectoryNodeSettings(ManagedSettings):
    """The controller of trajectories, fixed at the start."""

    state: str = setting('state', 'Topic of the states that it follows by: state, at the rate of the sensors, or '
                                  'state/predicted, where observer_node has a predict_rate',
                         choices=('state', 'state/predicted'))
    feedback_rate: float = setting(20.0, 'Messages of feedback per second of the stamps, at most those of the states',
                                   'Hz', 0.1, 1000.0)


@dataclass(frozen=True)
class RecorderSettings(SensorSettings):
    """The recorder."""

    bag: str = setting('crane_bag', 'Folder of the bag to write; it must not exist yet')
    beside: bool = setting(False, 'Where that folder exists, write into the next one beside it: bag_2, bag_3, ...; so '
                                  'a recorder that died continues when it is started again')
    storage: str = setting('mcap', 'Storage of the bag', choices=('mcap', 'sqlite3'))
    topics: str = setting('', "Topics to record, separated by blanks; a topic unknown to the machine's graph as "
                              "topic:package/msg/Type. Empty: all of the machine's graph")
    also: str = setting('', 'Topics to record besides, as topic:package/msg/Type, separated by blanks')
    without: str = setting('', 'Topics of these that are left out, separated by blanks')
    machine: str = setting('patu655_lift', 'Machine whose sensor topics are recorded')
    sources: str = setting('', 'Which topics the sensors are on, as the parameter of interpolation_node: these are '
                               'recorded instead of those of this package, of whatever type their publishers are')
    least_free: int = setting(50, 'Of the disk, this much must stay free: the recorder does not start below it, and '
                                  'closes the bag where it is reached', 'MB', 1, 1_000_000_000)
    low_free: int = setting(1000, 'Warn below this much; 1000 MB last about an hour', 'MB', 0, 1_000_000_000)
    low_minutes: float = setting(10.0, 'Warn where the disk lasts for less than this at the rate so far', 'min',
                                 0.0, 1e4)


@dataclass(frozen=True)
class ReplaySettings(Settings):
    """The player, fixed at the start."""

    bag: str = setting('', 'Folder of the bag to play')
    topics: str = setting('', 'Topics to play, as they are named in the bag, separated by blanks. Empty: all')
    loop: bool = setting(False, 'Start again at the end')
    paused: bool = setting(False, 'Wait at the start for ~/pause with false')
    publish_clock: bool = same_as(SimulationSettings, 'publish_clock', default=True)
    wait_subscribers: int = setting(0, 'Subscribers to wait for on each sensor topic before the start', '', 0, 100)
    wait_time: float = same_as(LifecycleSettings, 'wait_time')
    exit_at_end: bool = setting(True, 'End the process after the last message')


@dataclass(frozen=True)
class ReplayTuning(Settings):
    """The player, changeable while it plays."""

    rate: float = setting(1.0, 'Speed of the replay, 1: as recorded', '', 0.01, 100.0)


@dataclass(frozen=True)
class MechanismSettings(BackendSettings, LifecycleSettings):
    """Nodes of a described mechanism."""

    mechanism: str = setting('five_bar', 'Mechanism: name of a file in config/mechanisms, n_four_bar:N, or a path')
    coordinates: str = setting('described', "Coordinates of the model: those of the mechanism's file, or others",
                               choices=('described', 'natural', 'reference_point', 'relative'))
    sensors: str = setting('', "Sensors of the mechanism's file that are there, separated by blanks. Empty: all")

    def load(self, *free: str) -> Model:
        """What the node works on, with numbers ``free`` to be estimated; raises MbseError."""
        coordinates = None if self.coordinates == 'described' else self.coordinates
        return load_model(self.mechanism, coordinates, free=free, backend=self.backend)


@dataclass(frozen=True)
class MechanismSensorSettings(LatencySettings, SourcesSettings, MechanismSettings):
    """Nodes that read the sensors of a mechanism."""

    step: float = setting(0.005, 'Step of the filter: a sample counts at the nearest instant, so best the period of '
                                 'the fastest sensor', 's', 1e-4, 1.0)
    unstamped: str = setting('', 'Sensors that come as std_msgs/Float64, separated by blanks. They have no stamp: the '
                                 'time of their arrival counts, delays and jitter of the transport included')
    health_period: float = setting(1.0, 'Between two messages of diagnostics', 's', 0.1, 60.0)


@dataclass(frozen=True)
class LinkageNodeSettings(MechanismSensorSettings):
    """The observer of a mechanism, fixed at the start."""

    prepared: str = setting('', 'Filters to compile at the start, separated by blanks, so that a change to them is '
                                'immediate; another one is compiled in the background, up to some seconds, while '
                                'the previous one continues')
    free: str = setting('', 'Numbers of the mechanism that a filter may estimate (joint, dual), by their keys in its '
                            'file, as bodies.coupler.mass, separated by blanks')
    frame_id: str = setting('mechanism', 'Frame of the markers: the fixed frame in RViz')
    marker_rate: float = setting(20.0, 'Markers per second of the stamps', 'Hz', 0.1, 200.0)

    def load(self, *free: str) -> Model:
        """With the numbers that a filter may estimate, too."""
        return super().load(*names_in(self.free), *free)


@dataclass(frozen=True)
class SmootherNodeSettings(MechanismSensorSettings):
    """The smoother of a mechanism; all of it is fixed at the start."""

    lag: float = setting(0.2, 'Each instant is published with the samples of so long after it; the window is as '
                              'long', 's', 1e-3, 60.0)
    delay: float = setting(0.02, 'A sample that comes so late still counts: the window takes an instant so long after '
                                 'it', 's', 1e-4, 4.0)
    period: float = setting(0.02, 'Between two solutions; each serves all instants since the last one. Where a '
                                  'solution takes longer, or messages wait, they come less often', 's', 1e-3, 1.0)
    silence: float = setting(0.5, 'After so long without a message, by the wall clock, the rest of the window '
                                  'is published; what comes next starts again', 's', 0.05, 3600.0)


@dataclass(frozen=True)
class LinkagePlantNodeSettings(SimulationSettings, MechanismSettings):
    """The simulated mechanism's node."""

