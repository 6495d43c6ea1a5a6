# SPDX-License-Identifier: Apache-2.0
"""Names of a machine's frames in TF, and the transforms under these names."""

from __future__ import annotations

import numpy as np

from ...description.basics import GROUND
from ...errors import SettingError
from ...machine import Machine
from ...machine.frames import LOAD, LoadPose, MachineFrames, Transform
from ..base.node_settings import OutputsNodeSettings


class FrameNames:
    """Names by what they are of; ``machine`` and ``load`` are two of them.

    Raises SettingError for a name that a frame of the machine has already, or that TF does not take.
    """

    def __init__(self, machine: Machine, settings: OutputsNodeSettings) -> None:
        self._prefix, self.all = settings.frame_prefix, settings.publish_tf == 'all'
        bodies, given = list(machine.description.bodies), settings
        for key, taken in (('frame_id', bodies), ('payload_frame', [*bodies, given.frame_id])):
            name = getattr(given, key)
            if not name or name in taken or name != name.strip() or name.startswith('/'):
                raise SettingError(key, name, 'a name without a leading / that no other frame has, not '
                                   + ', '.join(taken))
        if self._prefix.startswith('/'):
            raise SettingError('frame_prefix', self._prefix, 'no leading /, as TF wants it')
        self._names = {GROUND: given.frame_id, LOAD: given.payload_frame}
        self.machine, self.load = self(GROUND), self(LOAD)

    def __call__(self, name: str) -> str:
        """Full name of the frame of a body, of 'ground', or of the load, ''."""
        return self._prefix + self._names.get(name, name)


def tree_of(frames: MachineFrames, names: FrameNames, q: np.ndarray, load: LoadPose | None) -> list[Transform]:
    """Transforms of all bodies and the load, or, where others publish the bodies, of the load alone, in the machine's
    frame."""
    found = [*frames.transforms(q)] if names.all else []
    if load is not None:
        found.append(frames.load_transform(load, q, None if names.all else GROUND))
    return [item._replace(parent=names(item.parent), child=names(item.child)) for item in found]
