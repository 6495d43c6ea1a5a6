# SPDX-License-Identifier: Apache-2.0
"""Which node has which parameters; no ROS is needed to read it (the documents and the graph do)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...filters.linkage_settings import LinkageSettings
from ...filters.observer_settings import ObserverSettings
from ...payload.mass import PayloadSettings
from ...settings import Settings
from ...simulation.crane import CraneSettings
from ...simulation.linkage import LinkagePlantSettings
from ...streams.interpolation import InterpolationSettings
from ...streams.tracking import TrackingSettings
from ..base.node_settings import (
    CompiledPayloadSettings,
    DisplayNodeSettings,
    DisplayTuning,
    EstimatorNodeSettings,
    LinkageNodeSettings,
    LinkagePlantNodeSettings,
    ManagedSettings,
    ObserverNodeSettings,
    OutputsNodeSettings,
    OutputsSettings,
    PlantSettings,
    RecorderSettings,
    ReplaySettings,
    ReplayTuning,
    ScaleNodeSettings,
    ScaleTuning,
    SensorNodeSettings,
    SmootherNodeSettings,
    StageNodeSettings,
    TrajectoryNodeSettings,
    VisualizationSettings,
)


@dataclass(frozen=True)
class Executable:
    """One executable: what it does, settings read at the start only, settings that may change at run time; ``like``:
    another one that has the same parameters."""

    text: str
    fixed: tuple[type[Settings], ...]
    tuned: type[Settings] | None = None
    like: str = ''

    def names(self) -> set[str]:
        """Names of all its parameters."""
        return {item.name for group in self.groups for item in fields(group)}

    @property
    def groups(self) -> tuple[type[Settings], ...]:
        """The classes that have them."""
        return (*self.fixed, *((self.tuned,) if self.tuned else ()))


NODES: dict[str, Executable] = {
    'interpolation_node': Executable('Sensor samples to segments on the time grid of the observer.',
                                     (SensorNodeSettings,), InterpolationSettings),
    'observer_node': Executable('Segments to states of the hydraulic machine.', (ObserverNodeSettings,),
                                ObserverSettings),
    'payload_node': Executable('States to the payload mass.', (StageNodeSettings,), PayloadSettings),
    'estimator_node': Executable('Sensor samples to state and payload mass in compiled C, in place of the three nodes '
                                 'before it.', (EstimatorNodeSettings, ObserverSettings, CompiledPayloadSettings)),
    'plant_node': Executable('Simulated crane with its sensors, in real time.', (PlantSettings, CraneSettings)),
    'visualization_node': Executable('Measured and estimated machine and payload as markers for RViz.',
                                     (ManagedSettings,), VisualizationSettings),
    'outputs_node': Executable('Motion and payload as standard messages: TF, pose, mass and weight of the load, what '
                               'holds the machine, margin to tipping over.',
                               (OutputsNodeSettings,), OutputsSettings),
    'trajectory_node': Executable('Moves cylinders along trajectories by the estimated state and load.',
                                  (TrajectoryNodeSettings,), TrackingSettings),
    'scale_node': Executable('Loads out of states and payloads: counted, weighed together, recorded; what they are '
                             'against target and load chart.', (ScaleNodeSettings,), ScaleTuning),
    'display_node': Executable("Web page for the operator: mass, machine, loads, and the scale's buttons; one for the "
                               'engineer.',
                               (DisplayNodeSettings,), DisplayTuning),
    'linkage_node': Executable('Samples of a mechanism\'s sensors to its state, forces and health, by any filter.',
                               (LinkageNodeSettings,), LinkageSettings),
    'errorekf_node': Executable('linkage_node by the name of its default filter, the error-state EKF errorEKF_FE.',
                                (LinkageNodeSettings,), LinkageSettings, 'linkage_node'),
    'linkage_plant_node': Executable('Simulated mechanism with its sensors, in real time.',
                                     (LinkagePlantNodeSettings, LinkagePlantSettings)),
    'smoother_node': Executable('Samples of a mechanism\'s sensors to its state a lag ago, by the smoother.',
                                (SmootherNodeSettings, LinkageSettings)),
    'replay_node': Executable('Plays a bag.', (ReplaySettings,), ReplayTuning),
    'recorder_node': Executable('Writes topics into a bag.', (RecorderSettings,)),
}


def parameter_names() -> set[str]:
    """Names of the parameters of all nodes."""
    return {'use_sim_time'}.union(*(entry.names() for entry in NODES.values()))
