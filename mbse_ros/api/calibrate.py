# SPDX-License-Identifier: Apache-2.0
"""``calibrate``: the numbers of a machine's file by its own bags."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..resources import write_whole

if TYPE_CHECKING:
    from ..offline.calibration.calibrate_machine import Calibration
    from ..sources.map import SourceMap


def calibrate(bags: str | Path | Sequence[str | Path], machine: str | Path, *,
              payloads: Mapping[str, float | str] | None = None, free: Sequence[str] = (),
              output: str | Path | None = None, namespace: str | None = None, sources: SourceMap | None = None,
              force: bool = False) -> Calibration:
    """Find friction, masses, offsets, ... of a machine by the balance of forces in bags; its file's deviations are the
    prior.

    ``payloads``: by the names of bags the load in kg, or as text with its deviation, '500 +- 2', or 'unknown'; the
    others are empty. ``free``: further numbers of the file, such as 'bodies.boom.mass=5 %'. ``output``: where to write
    the calibrated file; numbers that do not explain the bags (``unexplained``) are written with ``force`` alone, else
    there is a warning. The result: ``parameters`` (``key``, ``before``, ``stddev_before``, ``after``,
    ``stddev_after``, SI), ``residual_rms_before`` and ``_after``, N, ``cannot_tell``, ``advice``,
    ``cross_validation()``, ``text`` of the new file. Raises SettingError, BagError, DescriptionError.
    """
    from ..offline.calibration.calibrate_machine import calibrate_bags  # here, as it takes its time to import
    some = [bags] if isinstance(bags, (str, Path)) else list(bags)
    loads = {name: f'{load:g}' if isinstance(load, (int, float)) else load for name, load in (payloads or {}).items()}
    found = calibrate_bags(machine, some, loads, [free] if isinstance(free, str) else free, namespace, sources)
    if output is not None and (found.trouble or found.unexplained and not force):
        warnings.warn(f'{output} is not written: {found.trouble or found.unexplained}', stacklevel=2)
    elif output is not None:
        from ..description.edit import for_folder  # here, as above
        write_whole(output, for_folder(found.text, found.machine.description.file, output))
    return found
