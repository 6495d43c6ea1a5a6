# SPDX-License-Identifier: Apache-2.0
"""Samples of a machine or a mechanism out of a bag, as arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..bags.channels import UNITS
from ..bags.sensor_series import read_sensors
from ..dynamics.model import Model
from ..estimators.filters.parts.problem import problem
from ..machine import Machine
from ..sources.map import SourceMap
from ..sources.reader import sample_reader
from .results.machine_units import channel_unit
from .results.motion_series import channel_units
from .samples import Samples


def read_mechanism(path: Path, model: Model, sensors: tuple[str, ...]) -> Samples:
    """On an even grid; raises BagError, SampleError."""
    channels = problem(model, sensors).channels
    table = read_sensors(path, model.description, channels, model.inputs)
    inputs = np.vstack([table.inputs[:1], table.inputs[:-1]])       # over the step before each time
    names = (*channels, *(f'input/{name}' for name in model.inputs))
    return Samples(table.t, names, np.hstack([table.values, inputs]), channel_units(model, names))


def read_machine(path: Path, machine: Machine, namespace: str | None, sources: SourceMap | None) -> Samples:
    """At the stamps of the bag; raises BagError, DescriptionError."""
    reader = sample_reader(path, machine, namespace, sources)
    names = (*machine.channels, *machine.commands)
    found = list(reader)
    stamps = np.array([sample.stamp_ns for sample in found], dtype=np.int64)
    rows, places = np.unique(stamps, return_inverse=True)
    values, at = np.full((len(rows), len(names)), np.nan), {name: k for k, name in enumerate(names)}
    for sample, place in zip(found, places.tolist()):
        values[place, at[sample.channel]] = sample.value
    units = {c.name: channel_unit(machine, c) for c in machine.all_channels}
    start = int(rows[0])
    return Samples((rows - start) * 1e-9, names, values,
                   units | dict.fromkeys(machine.commands, UNITS['command'][0]), start)
