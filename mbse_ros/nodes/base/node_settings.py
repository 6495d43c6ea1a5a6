# SPDX-License-Identifier: Apache-2.0
"""Parameters of the nodes beside the tuning of their stages; no ROS is needed to read them."""

from __future__ import annotations

from dataclasses import dataclass

from ...description.model import MechanismDescription, content
from ...dynamics.model import Model, load_model
from ...machine import VALVE_KINDS, Machine, load_machine
from ...payload.mass import PayloadSettings
from ...scale.scale_file import BARE, ScaleSettings, equipped
from ...settings import Settings, names_in, same_as, setting
from ...simulation.cycle import CYCLES
from ...streams.interpolation import InterpolationSettings

RELIABILITY = ('best_effort', 'reliable')
VALVES = ('described', *VALVE_KINDS)
CYCLE_CHOICES = (*CYCLES, 'topic')
TF_CHOICES = ('all', 'payload', 'none')


@dataclass(frozen=True)
class LifecycleSettings(Settings):
    """What every lifecycle node takes."""

    autostart: bool = setting(True, 'Configure and activate without being asked to')
    wait_subscribers: int = setting(0, 'Subscribers of the main output to wait for before any input is taken', '',
                                    0, 100)
    wait_time: float = setting(10.0, 'Longest wait for subscribers; then the node continues with a warning',
                               's', 0.0, 600.0)
    thread_priority: int = setting(0, 'Real-time priority (SCHED_FIFO) while the process serves; 0: none. One value '
                                      'for all nodes of a process', '', 0, 98)
    cpu_affinity: str = setting('', 'Processors to use, as 1 or 0,2-3. Empty: all')
    lock_memory: bool = setting(False, 'Keep the memory from being swapped out')


@dataclass(frozen=True)
class SensorSettings(Settings):
    """What every node that reads sensors takes."""

    sensor_reliability: str = setting('best_effort', 'QoS of the sensors: best_effort matches every publisher, '
                                                     'reliable only reliable ones', choices=RELIABILITY)


@dataclass(frozen=True)
class BackendSettings(Settings):
    """What every node with compiled functions takes."""

    backend: str = setting('auto', 'Compiled C, the virtual machine, or C where there is a compiler',
                           choices=('auto', 'c', 'vm'))


@dataclass(frozen=True)
class LatencySettings(Settings):
    """What every node takes whose results go to a controller."""

    latency_budget: float = setting(0.0, 'Age of the results, from the newest sample, beyond which the diagnostics '
                                         'warn (99 % of a second); 0: none', 's', 0.0, 10.0)


@dataclass(frozen=True)
class SimulationSettings(Settings):
    """What every simulated machine or mechanism takes."""

    seed: int = setting(1, 'Seed of the noise, and of a random cycle', '', 0, 2 ** 31 - 1)
    publish_clock: bool = setting(False, 'Publish /clock, for nodes with use_sim_time')
    duration: float = setting(0.0, 'Length of the motion; 0: that of the work cycles, of a mechanism without end', 's',
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

    attachment: str = setting(BARE, 'Attachment in the equations, by its name in the file of the scale; the same in '
                                    'all nodes. Empty: none')

    def load(self, attachment: str = BARE) -> Machine:
        """What the node works on, with its attachment; raises MbseError."""
        return super().load(attachment or self.attachment)


@dataclass(frozen=True)
class SourcesSettings(SensorSettings):
    """Nodes that read sensors by a map."""

    sources: str = setting('', 'Map of topics: a .yaml file, or a name of config/sources. Empty: the section '
                               '`sources` of the file, else our own topics; none: our own')


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

    predict_rate: float = setting(0.0, 'States per second on state/predicted, each of the instant when it is sent; '
                                       '0: none', 'Hz', 0.0, 1000.0)
    predict_for: float = setting(0.2, 'Age of the newest sample up to which a state is predicted', 's', 0.0, 2.0)


@dataclass(frozen=True)
class EstimatorNodeSettings(LatencySettings, SensorNodeSettings):
    """The compiled estimator's node, fixed at the start, as its tuning is."""

    rate: float = setting(100.0, 'Rate of the sensors, which send at the same instants; others are refused', 'Hz',
                          100.0, 1000.0)
    step: float = same_as(InterpolationSettings, 'step', text='Step of the observer, a whole number of times in a '
                                                              'period of the sensors')
    command_wait: float = same_as(InterpolationSettings, 'command_wait')
    give_up_after: float = same_as(InterpolationSettings, 'lost_after')


@dataclass(frozen=True)
class CompiledPayloadSettings(Settings):
    """Tuning of the mass that the compiled estimator has."""

    low_pass_gain: float = same_as(PayloadSettings, 'low_pass_gain')
    window: int = same_as(PayloadSettings, 'window')
    min_speed: float = same_as(PayloadSettings, 'min_speed')
    significance: float = same_as(PayloadSettings, 'significance')
    guard_time: float = same_as(PayloadSettings, 'guard_time')
    max_acceleration_share: float = same_as(PayloadSettings, 'max_acceleration_share')
    max_sample_share: float = same_as(PayloadSettings, 'max_sample_share')
    max_interval_share: float = same_as(PayloadSettings, 'max_interval_share')
    stroke_margin: float = same_as(PayloadSettings, 'stroke_margin')
    batch_time: float = same_as(PayloadSettings, 'batch_time')

    def of_payload(self) -> PayloadSettings:
        """The same with the defaults of what it does not have."""
        return PayloadSettings(**vars(self))


@dataclass(frozen=True)
class PlantSettings(SimulationSettings, CompiledNodeSettings):
    """The simulated machine's node."""

    payload: float = setting(50.0, 'True payload; if there are several, each', 'kg', 0.0, 1e6)
    cycle: str = setting('lift_hold_lower', 'A work cycle (lift_hold_lower and boom: first valve; random: all; dig: '
                                            'excavator), or the topic valve_command',
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
    magnification: float = setting(1.0, 'Factor on the distance between measured and estimated machine as drawn', '',
                                   0.0, 1000.0)
    text_height: float = setting(0.0, "Height of the letters; 0: by the machine's size", 'm', 0.0, 2.0)


@dataclass(frozen=True)
class OutputsNodeSettings(ManagedSettings):
    """The node of the standard outputs, fixed at the start."""

    publish_tf: str = setting('all', 'TF of all bodies and the load, of the load alone (in frame_id), or none',
                              choices=TF_CHOICES)
    frame_id: str = setting('machine', "The machine's frame: root of its bodies")
    payload_frame: str = setting('payload', "The load's frame: TF, and that of payload/wrench")
    frame_prefix: str = setting('', 'Prefix of all frames, as of robot_state_publisher, where several machines '
                                    'share /tf')


@dataclass(frozen=True)
class OutputsSettings(Settings):
    """The standard outputs, changeable at run time."""

    rate: float = setting(50.0, 'Messages per second on each topic, at most those of state and payload',
                          'Hz', 0.1, 1000.0)
    dynamic: bool = setting(False, 'feed_forward and stability/... include velocities and accelerations')
    tipping_share: float = setting(0.75, 'Share of the tipping load above which the diagnostics warn (ISO 10567: 75 '
                                         '%)', '', 0.01, 1.0)


@dataclass(frozen=True)
class ScaleNodeSettings(MachineSettings):
    """The scale, fixed at the start."""

    records: str = setting('', 'SQLite file of the records. Empty: loads_<machine>.db in the present folder; none: '
                               'in memory alone')
    day_starts: float = setting(0.0, 'When a day of the totals begins, after 00:00 UTC', 'h', -24.0, 24.0)


@dataclass(frozen=True)
class ScaleTuning(ScaleSettings):
    """The scale, changeable at run time."""

    rate: float = setting(10.0, 'Messages per second of the stamps on scale/live and scale/mass', 'Hz', 0.1, 100.0)
    attachment: str = setting(BARE, 'Attachment, by its name in the file of the scale. At the start: in the '
                                    'equations; empty: that of the records. Later: subtracted from the mass')
    truck: str = setting('', 'Name of the next truck, for ~/new_truck; empty: they are numbered')
    target: float = setting(0.0, 'Mass that a truck shall get; 0: none, at the start that of the records', 'kg',
                            0.0, 1e7)


@dataclass(frozen=True)
class DisplayNodeSettings(ManagedSettings):
    """The operator's page, fixed at the start."""

    host: str = setting('127.0.0.1', 'Address to listen on; other than this computer alone needs token_file. '
                                     '0.0.0.0: all networks')
    port: int = setting(8642, 'Port of the page; 0: a free one, named in the log', '', 0, 65535)
    token_file: str = setting('', 'Text file with the token of the page, 16 characters or more. Empty: none, on '
                                  'this computer alone')
    viewers: int = setting(8, 'Pages at the same time, at most', '', 1, 32)


@dataclass(frozen=True)
class DisplayTuning(Settings):
    """The operator's page, changeable at run time."""

    rate: float = setting(10.0, 'Updates of a page per second, at most those of scale/live', 'Hz', 1.0, 30.0)
    widest: float = setting(0.1, 'A mass whose interval reaches farther to either side, as share of the range of '
                                 'payload.limits, is shown as a dash', '',
                            0.0, 1.0)


@dataclass(frozen=True)
class TrajectoryNodeSettings(ManagedSettings):
    """The controller of trajectories, fixed at the start."""

    state: str = setting('state', 'Topic of the states: state, or state/predicted (observer_node with predict_rate)',
                         choices=('state', 'state/predicted'))
    feedback_rate: float = setting(20.0, 'Feedback per second, at most that of the states',
                                   'Hz', 0.1, 1000.0)


@dataclass(frozen=True)
class RecorderSettings(SensorSettings):
    """The recorder."""

    bag: str = setting('crane_bag', 'Folder of the bag to write; it must not exist yet')
    beside: bool = setting(False, 'If that folder exists, write into bag_2, bag_3, ...; for a recorder that is '
                                  'started again')
    storage: str = setting('mcap', 'Storage of the bag', choices=('mcap', 'sqlite3'))
    topics: str = setting('', "Topics to record, separated by blanks, also as topic:package/msg/Type. Empty: all of "
                              "the machine's graph")
    also: str = setting('', 'Topics to record besides, as topic:package/msg/Type, separated by blanks')
    without: str = setting('', 'Topics of these that are left out, separated by blanks')
    machine: str = setting('patu655_lift', 'Machine whose sensor topics are recorded')
    sources: str = setting('', 'As of interpolation_node: the topics of the map are recorded instead of ours')
    least_free: int = setting(50, 'Free space below which no bag is started, and an open one closed', 'MB',
                              1, 1_000_000_000)
    low_free: int = setting(1000, 'Warn below this much; 1000 MB last about an hour', 'MB', 0, 1_000_000_000)
    low_minutes: float = setting(10.0, 'Warn if the disk lasts for less at the present rate', 'min',
                                 0.0, 1e4)


@dataclass(frozen=True)
class ReplaySettings(Settings):
    """The player, fixed at the start."""

    bag: str = setting('', 'Folder of the bag to play')
    topics: str = setting('', 'Topics to play, by their names in the bag, separated by blanks. Empty: all')
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

    step: float = setting(0.005, 'Step of the filter; a sample counts at the nearest instant. Best: the period of '
                                 'the fastest sensor', 's', 1e-4, 1.0)
    unstamped: str = setting('', 'Sensors that come as std_msgs/Float64, separated by blanks; their time of arrival '
                                 'counts')
    health_period: float = setting(1.0, 'Between two messages of diagnostics', 's', 0.1, 60.0)


@dataclass(frozen=True)
class LinkageNodeSettings(MechanismSensorSettings):
    """The observer of a mechanism, fixed at the start."""

    prepared: str = setting('', 'Filters to compile at the start, separated by blanks, so that a change to them is '
                                'immediate')
    free: str = setting('', 'Numbers that a filter may estimate (joint, dual), by their keys in the file, separated '
                            'by blanks')
    frame_id: str = setting('mechanism', 'Frame of the markers: the fixed frame in RViz')
    marker_rate: float = setting(20.0, 'Markers per second of the stamps', 'Hz', 0.1, 200.0)

    def load(self, *free: str) -> Model:
        """With the numbers that a filter may estimate, too."""
        return super().load(*names_in(self.free), *free)


@dataclass(frozen=True)
class SmootherNodeSettings(MechanismSensorSettings):
    """The smoother of a mechanism; all of it is fixed at the start."""

    lag: float = setting(0.2, 'Each instant uses the samples of so long after it', 's', 1e-3, 60.0)
    delay: float = setting(0.02, 'How late a sample may come', 's', 1e-4, 4.0)
    period: float = setting(0.02, 'Time between two solutions; each serves all instants since the last one', 's',
                            1e-3, 1.0)
    silence: float = setting(0.5, 'After so long without a message, by the wall clock, the rest of the window is '
                                  'published', 's', 0.05, 3600.0)


@dataclass(frozen=True)
class LinkagePlantNodeSettings(SimulationSettings, MechanismSettings):
    """The simulated mechanism's node."""

