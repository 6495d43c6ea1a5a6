# SPDX-License-Identifier: Apache-2.0
"""``estimate``: the motion and the payload of a machine, or the motion of a mechanism, from a bag or from arrays;
``smooth``: the most likely ones of the whole log, by the factor graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..description.presets import preset_words
from ..dynamics.model import Model
from ..errors import SettingError, check_positive, refuse_options
from ..machine import Machine
from ..progress import lengthy
from .checked import checked
from .load import Loadable, loaded_sources, recorded
from .samples import Columns, Samples, as_samples, stage_rows

if TYPE_CHECKING:
    from ..offline.estimate import MachineEstimate
    from ..offline.filtered_motion import FilteredMotion
    from ..offline.motion_estimate import MotionEstimate
    from ..offline.smooth_machine import SmoothedMachine
    from ..offline.smoothed_motion import SmoothedMotion

Log = str | Path | Samples | Columns
Tuning = Mapping[str, object] | Sequence[str]      # a text is one word


@checked
def estimate(log: Log, machine: Loadable | None = None, *, mechanism: Loadable | None = None,
             estimator: str | None = None, sensors: Sequence[str] | None = None, step: float | None = None,
             valve: str | None = None, output: str | Path | None = None, preset: str | Path | None = None,
             tuning: Tuning | None = None, every: float = 0.0, sources: str | Path | None = None,
             namespace: str | None = None, backend: str = 'auto', full: bool = True, attachment: str | None = None,
             scale: str | Path | None = None) -> MachineEstimate | MotionEstimate:
    """Estimate what a machine or a mechanism did, by the objects of the nodes and of ``mbse estimate``.

    ``log``: path of a bag, of a mechanism also of a CSV table (as of ``tune``), ``Samples``, or a mapping from channels
    to (t, values), each (k,), s and SI, at times of
    their own. ``machine``: name, path, or what ``load`` gave, default the one that the bag names; with cylinders the
    result is a ``MachineEstimate``, else a ``MotionEstimate``. ``mechanism``: the same instead, of a machine its motion
    by a filter of mechanisms. ``tuning``: as ``--set`` of the command line, by name or as words:
    ``{'observer.weighing': 'apart'}``, of a mechanism ``['linkage.gate=0.999']``; before it, and ``estimator``,
    the settings of a ``preset``, 'paper' or a file of ROS parameters, see ``description.presets``. ``namespace`` of the
    topics, where a bag has several; ``sources``: the map of a bag of messages of other packages (docs/sources.md), a
    path or a name; ``output``: a new bag for the estimates.

    ``estimator``: a filter by its name in ``filters.filters``, default ``hydraulic`` of a machine and ``errorEKF_FE``
    of a mechanism. Of a mechanism: ``sensors`` (default all), ``step``, s (default the fastest sensor's period). Of a
    machine: ``valve``, the kind of all its valves; ``attachment``, the tool on it, and the file of its ``scale``, as of
    ``load``; ``every``: a result each so many s, see ``offline.bag.estimate_bag``; without ``full`` the state over time
    is not kept, and only the words and the JSON of the result are there.

    Times of the result are those of the arrays; of a bag seconds from its first sample, of a machine from where all its
    sensors have begun. Raises DescriptionError, SettingError, BagError (bag), SampleError (arrays) where nothing can be
    estimated.

    >>> lift = estimate('lift')         # a bag that write_bag, a recorder or another package wrote
    >>> bool(lift.lower[-1] < 200.0 < lift.upper[-1])
    True
    """
    item, assumed = recorded([log], machine, mechanism, valve, namespace, backend, attachment, scale)
    before, found = _of_preset(preset, isinstance(item, Machine)), words(tuning or {})
    if step is not None:
        check_positive(step=step)
    if isinstance(item, Machine):
        refuse_options('a mechanism', {'sensors': sensors, 'step': step})
        if estimator is not None:
            from ..filters.filters import check_filter  # here, as those of mechanisms take their time to import
            check_filter(estimator, hydraulics=True)
            found = [f'observer.estimator={estimator}', *found]
        return of_machine(log, item, [*before, *found], namespace, backend, sources, every, output, full, assumed,
                          scale or '')
    refuse_options('a machine', {'every': every or None})
    if estimator is not None:
        from ..filters.filters import check_filter
        check_filter(estimator)
    named = [f'linkage.estimator={estimator}'] if estimator else []
    return of_mechanism(log, item, [*before, *named, *found], sensors or (), step, namespace, backend, output, sources)


def _of_preset(preset: str | Path | None, machine: bool) -> list[str]:
    """Settings of a preset as words; raises SettingError, by its name, for one that is not for this kind."""
    if preset is None:
        return []
    from ..filters.linkage_settings import LinkageSettings  # here, as they take their time to import
    from ..offline.bag import KINDS, parse_tuning
    found, kinds = preset_words(preset), KINDS if machine else {'linkage': LinkageSettings}
    others = sorted({word.partition('.')[0] for word in found} - kinds.keys())
    if others and not machine and KINDS.keys() >= set(others):
        raise SettingError('preset', str(preset), 'settings of a mechanism: this preset is of machines, with settings '
                           f'of {" and ".join(others)}')
    try:
        parse_tuning(found, kinds)
    except SettingError as error:
        raise SettingError('preset', str(preset), f'settings of a {"machine" if machine else "mechanism"}: {error}'
                           ) from error
    return found


@lengthy('estimating')
def of_machine(log: Log, machine: Machine, tuning: Sequence[str], namespace: str | None, backend: str,
               sources: str | Path | None = None, every: float = 0.0, output: str | Path | None = None,
               full: bool = True, assumed: tuple[str, ...] = (), scale: str | Path = '') -> MachineEstimate:
    """Of a machine; ``assumed``: that it is this one, a warning; ``scale``: file of the scale."""
    from ..bags.writer import written_outputs
    from ..offline.bag import (  # here, as they take their time to import
        KINDS,
        estimate_bag,
        estimate_samples,
        parse_tuning,
    )
    settings, facts = parse_tuning(tuning, KINDS), {'Tuning': ', '.join(tuning)} if tuning else {}
    if machine.description.attachment is not None:
        facts['Attachment'] = machine.description.attachment.name
    if isinstance(log, (str, Path)):
        maps = loaded_sources(sources)
        with written_outputs(machine, None if output is None else Path(output)) as take:
            found = estimate_bag(Path(log), machine, settings, namespace, backend, maps, full, take, every, scale)
        return replace(found, facts={'Bag': str(log), **facts}, warnings=(*assumed, *found.warnings))
    refuse_options('a bag', {'sources': sources, 'output': output})
    samples = as_samples(log)
    samples.columns([*machine.channels, *machine.commands])
    found = estimate_samples(samples.listed(), machine, settings, backend, every, scale)
    first = (found.track.stamp_ns[0] - samples.stamps_ns[0]) * 1e-9
    t = found.track.with_pauses
    return replace(found, facts=facts, times=samples.t[0] + first + t - t[0])


@lengthy('estimating')
def of_mechanism(log: Log, model: Model, tuning: Sequence[str], sensors: Sequence[str], step: float | None,
                 namespace: str | None, backend: str, output: str | Path | None = None,
                 sources: str | Path | None = None) -> FilteredMotion:
    """Of a mechanism."""
    from ..offline.filtered_motion import (  # here, as they take their time to import
        estimate_linkage_bag,
        estimate_linkage_samples,
        linkage_settings,
    )
    settings = linkage_settings(tuning)
    try:
        if isinstance(log, (str, Path)) and Path(log).suffix.lower() == '.csv':
            from .bags import table_samples  # here, as it takes its time to import
            refuse_options('a bag', {'sources': sources, 'namespace': namespace})
            log = table_samples(Path(log), model, sensors)
        if isinstance(log, (str, Path)):
            found = estimate_linkage_bag(Path(log), model, settings, sensors, step, namespace, backend,
                                         loaded_sources(sources))
        else:
            refuse_options('a bag', {'sources': sources})
            samples = as_samples(log)
            axis = samples.t[0], int(samples.stamps_ns[0])
            found = estimate_linkage_samples(stage_rows(samples), axis, model, settings,
                                             sensors or _owners(samples, model), step, backend)
    except SettingError as error:
        raise error.renamed({name: f'linkage.{name}' for name in ('options', 'noises', 'stddev')}) from None
    if output is not None:
        found.write_bag(Path(output))
    return found


def _owners(samples: Samples, model: Model) -> tuple[str, ...]:
    """Sensors of which the samples have channels; raises SettingError where there is none."""
    known = model.description.mechanical_sensors
    owners = [name.partition('.')[0] for name in samples.names]
    found = tuple(dict.fromkeys(name for name in owners if name in known))
    if not found:
        raise SettingError('samples', list(samples.names), 'channels of ' + ', '.join(known))
    return found


def words(tuning: Tuning) -> list[str]:
    """``name=value`` of each, as the command line has them."""
    if isinstance(tuning, str):
        return [tuning]
    return [f'{name}={value}' for name, value in tuning.items()] if isinstance(tuning, Mapping) else list(tuning)


@checked
def smooth(log: Log, machine: Loadable | None = None, *, mechanism: Loadable | None = None, lag: float | None = None,
           sensors: Sequence[str] | None = None, step: float | None = None, valve: str | None = None,
           tuning: Tuning | None = None, sources: str | Path | None = None, namespace: str | None = None,
           backend: str = 'auto', attachment: str | None = None, scale: str | Path | None = None
           ) -> SmoothedMachine | SmoothedMotion:
    """Filter a log, then smooth it: all at once, or each instant as known ``lag``, s, after it.

    Arguments as of ``estimate``; ``tuning`` of a machine takes ``graph.`` too. A mechanism gives a ``MotionEstimate``
    whose ``estimator`` is 'smoother'; positions that no sensor saw have the deviation of the start. Whole logs of
    machines need GTSAM: MissingModuleError says how to get it. Raises also GraphError (nothing moved, or what the
    forces need is not measured) and DivergenceError.

    >>> smooth(simulate('four_bar', 2.0, sensors=['encoder']).samples, mechanism='four_bar').estimator
    'smoother'
    """
    for name, value in (('lag', lag), ('step', step)):
        if value is not None:
            check_positive(**{name: value})
    item, assumed = recorded([log], machine, mechanism, valve, namespace, backend, attachment, scale)
    found = words(tuning or {})
    if isinstance(item, Machine):
        refuse_options('a mechanism', {'sensors': sensors, 'step': step})
        from ..graph.machines.machine_graph import MachineGraphSettings
        from ..machine.equations import check_single
        from ..offline.bag import TUNING, parse_tuning
        from ..offline.smooth_machine import smooth_estimate
        check_single(item)
        settings = parse_tuning(found, {**TUNING, 'graph': MachineGraphSettings})['graph']
        of_filter = of_machine(log, item, [word for word in found if not word.startswith('graph.')], namespace, backend,
                               sources, assumed=assumed, scale=scale or '')
        return smooth_estimate(of_filter, lag, settings)
    from ..offline.filtered_motion import linkage_settings
    from ..offline.smoothed_motion import check_filter, smooth_motion
    chosen = linkage_settings(found)
    check_filter(chosen)
    filtered = of_mechanism(log, item, found, sensors or (), step, namespace, backend, sources=sources)
    return smooth_motion(filtered, chosen, lag, backend, str(log) if isinstance(log, (str, Path)) else 'samples')
