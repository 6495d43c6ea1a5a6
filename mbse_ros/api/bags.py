# SPDX-License-Identifier: Apache-2.0
"""``read_bag`` and ``write_bag``: samples out of a rosbag2 and into one, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import SettingError
from ..machine import Machine
from .load import Loadable, loaded, loaded_sources
from .results.simulations import MachineSimulation, MotionSimulation
from .samples import Columns, Samples, as_samples

Written = Samples | Columns | MachineSimulation | MotionSimulation


def read_bag(path: str | Path, machine: Loadable, *, sensors: Sequence[str] | None = None,
             namespace: str | None = None, sources: str | Path | None = None) -> Samples:
    """Samples of a machine's channels and commands, or of a mechanism's ``sensors`` (default all) and inputs.

    ``machine``: name, path, or what ``load`` gave. Of a machine the times are those of the bag, as many as there are
    different ones; of a mechanism even ones. t = 0 is the first sample. Channels that the bag does not have are NaN, of
    a mechanism an error. ``sources``: of a machine, the map of a bag of other people's messages (docs/sources.md), a
    path or a name. Raises BagError, SampleError, DescriptionError.
    """
    from .bag_reading import read_machine, read_mechanism  # here, as they take their time to import
    item = loaded(machine)
    if isinstance(item, Machine):
        return read_machine(Path(path), item, namespace, loaded_sources(sources))
    if sources is not None:
        raise SettingError('sources', str(sources), 'no such option here: it is for a machine')
    chosen = tuple(item.description.mechanical_sensors if sensors is None else sensors)
    return read_mechanism(Path(path), item, chosen)


def write_bag(path: str | Path, samples: Written, machine: Loadable | None = None, *, storage: str = 'mcap',
              namespace: str = '') -> Path:
    """Write samples as a rosbag2 that the command line and the nodes read; gives its path.

    ``samples``: what ``simulate`` gave, with the truth in the bag, or ``Samples`` or a mapping from channels to
    (t, values), of the ``machine`` (name, path, or what ``load`` gave). ``storage``: 'mcap' or 'sqlite3'. Nothing is
    ever overwritten. Raises BagError, SettingError.
    """
    from .bag_writing import write_frames, write_machine, write_mechanism  # here, as above
    if isinstance(samples, MachineSimulation):
        return write_frames(path, samples, storage, namespace)
    if isinstance(samples, MotionSimulation):
        if samples.samples is None:
            raise SettingError('samples', None, 'a simulation with sensors')
        return write_mechanism(path, samples.samples, samples.model, storage, namespace, samples)
    if machine is None:
        raise SettingError('machine', None, 'the machine or mechanism that the samples are of')
    item, found = loaded(machine), as_samples(samples)
    if isinstance(item, Machine):
        return write_machine(path, found, item, storage, namespace)
    return write_mechanism(path, found, item, storage, namespace)
