# SPDX-License-Identifier: Apache-2.0
"""Frames of a simulated machine into a bag."""

from __future__ import annotations

from ..machine import Machine
from ..simulation.crane import SensorFrame
from .writer import BagWriter


def write_frame(writer: BagWriter, machine: Machine, frame: SensorFrame) -> None:
    """Samples, commands and truth of one instant; the truth is in the independent coordinates."""
    writer.write_samples(frame.stamp_ns, frame.samples, frame.commands)
    writer.write_truth(frame.stamp_ns, machine.coordinates, frame.position, frame.velocity, frame.acceleration,
                       machine.volumes, frame.pressure, frame.payload)
