# SPDX-License-Identifier: Apache-2.0
"""``calibrate``: the numbers of a machine's file by its own bags."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingError
from .checked import checked
from .load import loaded_sources, recorded_name

if TYPE_CHECKING:
    from ..offline.calibration.calibration_motions import CalibrationMotions
    from ..offline.calibration.calibration_plan import CalibrationPlan
    from ..offline.calibration.calibration_result import Calibration
    from ..sources.map import SourceMap


@checked
def calibrate(bags: str | Path | Sequence[str | Path], machine: str | Path | None = None, *,
              payloads: Mapping[str, float | str] | Sequence[str] = (), free: Sequence[str] = (),
              output: str | Path | None = None, force: bool = False, cross_validate: bool = False, jobs: int = 1,
              cluster: str | None = None, sources: SourceMap | str | Path | None = None, namespace: str | None = None,
              attachment: str | None = None, scale: str | Path | None = None,
              limits: tuple[float, float] | None = None) -> Calibration:
    """Find friction, masses, offsets, ... of a machine by the balance of forces in bags; its file's deviations are the
    prior.

    ``machine``: default the one that the bags name. ``payloads``: by the names of bags the load in kg, or as text with
    its deviation, '500 +- 2', or 'unknown' (or words ``bag=500+-2``); the others are empty. ``free``: further numbers
    of the file, such as 'bodies.boom.mass=5 %'. ``output``: where to write the calibrated file; numbers that do not
    explain the bags (``unexplained``) are written with ``force`` alone, else there is a warning. ``cross_validate``:
    each bag by the numbers that all others give, too (``crossed``). ``jobs``, ``cluster``: who reads the bags.
    ``attachment``, the tool on the machine in all bags, and the file of its ``scale``, as of ``load``: the new file has
    the old numbers of the body that carries it. ``limits``: half-widths of a mass, per cent of full scale, up to which
    the ``grade`` is green, and amber; default 1 and 3.

    The result: ``parameters`` (``key``, ``before``, ``stddev_before``, ``after``, ``stddev_after``, SI),
    ``residual_rms_before`` and ``_after``, N, ``good``, ``missing_numbers`` (``key``, ``value``, ``left``, ``free``:
    what would take the rest away), ``taken_for_loads`` (numbers that take a wrong load), ``cannot_tell``, ``advice``,
    ``grade`` (``color``, ``reasons``, ``half_width``, kg), ``mass_map`` (half-widths over the work area), ``held_out``,
    ``cross_validation()``, ``text`` of the new file, ``friction`` (force over speed by cylinder), ``tables()``,
    ``summary()``, ``to_json()``, ``report(folder)``, ``write(path)``. Raises SettingError, BagError, DescriptionError,
    ScaleError.

    >>> found = calibrate('lift', payloads={'lift': 200.0}, free=['bodies.boom.mass=5 %'])
    >>> found.residual_rms_after < found.residual_rms_before
    True
    >>> found.write('calibrated.yaml')
    True
    """
    from ..calibration.grade import LIMITS, check_limits
    from ..offline.calibration.calibration_bags import calibrate_bags  # here, as they take their time to import
    from ..studies.many import many
    own_limits = LIMITS if limits is None else check_limits(limits)
    some = [bags] if isinstance(bags, (str, Path)) else list(bags)
    if cross_validate and len(some) < 2:
        raise SettingError('cross_validate', len(some), 'two bags or more')
    loads = payloads if not isinstance(payloads, Mapping) else {
        name: _load_words(name, load) for name, load in payloads.items()}
    maps = loaded_sources(sources) if isinstance(sources, (str, Path)) else sources
    workers = None if jobs == 1 and cluster is None else partial(many, jobs=jobs, cluster=cluster, what='bags',
                                                                 apart=True)
    name, assumed = recorded_name(some, namespace) if machine is None else (machine, ())
    found = calibrate_bags(name, some, loads, [free] if isinstance(free, str) else free, namespace, maps, workers,
                           attachment or '', scale or '')
    found = replace(found, warnings=(*assumed, *found.warnings), limits=own_limits)
    if cross_validate:
        found = replace(found, crossed=found.cross_validation())
    if output is not None and not found.write(Path(output), force):
        warnings.warn(f'{output} is not written: {found.trouble or found.unexplained}', stacklevel=3)
    return found


@checked
def plan_calibration(machine: str | Path, free: Sequence[str] = ()) -> CalibrationPlan | CalibrationMotions:
    """The motions of a machine that determine most of its numbers, and what they determine; ``free`` as above. Raises
    DescriptionError, SettingError."""
    from ..calibration.balance import CalibrationBalance  # here, as they take their time to import
    from ..calibration.excitation import motion_plan
    from ..calibration.plan import plan
    from ..offline.calibration.calibrated_file import prior_machine
    from ..offline.calibration.calibration_motions import CalibrationMotions
    from ..offline.calibration.calibration_plan import CalibrationPlan
    _, item = prior_machine(machine, free)
    if item.description.drives and not item.cylinders:
        return CalibrationMotions(item, str(machine), motion_plan(CalibrationBalance(item)))
    return CalibrationPlan(item, str(machine), plan(CalibrationBalance(item)))


def _load_words(bag: str, load: float | str) -> str:
    """A bag's load in words; a truth value is none."""
    if isinstance(load, str):
        return load
    if not isinstance(load, Real) or isinstance(load, bool):
        raise SettingError('payloads', {bag: load}, "a number of kg, or a text as '200 kg' or '200 +- 5'")
    return f'{float(load):g}'
