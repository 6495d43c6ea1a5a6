# SPDX-License-Identifier: Apache-2.0
"""``load``: a machine or a mechanism by its name or its file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiled.compiler import BACKENDS
from ..description.load import describe
from ..description.model import MechanismDescription
from ..dynamics.model import Model, load_model
from ..errors import SettingError, check_choice, refuse_options
from ..machine import Machine
from ..machine.find_machine import with_valves
from ..scale.scale_file import equipped
from .checked import checked

if TYPE_CHECKING:
    from ..sources.map import SourceMap

Loadable = str | Path | Model | Machine


@checked
def load(name: str | Path, *, coordinates: str | None = None, independent: Sequence[str] | None = None,
         free: Collection[str] = (), backend: str = 'auto', valve: str | None = None, attachment: str | None = None,
         scale: str | Path | None = None) -> Model | Machine:
    """A ``Machine`` (a file with cylinders or drives) or the ``Model`` of a mechanism.

    ``name``: of a file in config/machines or config/mechanisms, 'n_four_bar:N', or a path to a .yaml file. Of a
    mechanism: ``coordinates`` ('natural', 'reference_point', 'relative') and ``independent`` ones (their names; empty:
    to be chosen) instead of the file's, ``free``: numbers that stay parameters, ``backend`` ('auto', 'c' or 'vm') of
    its compiled functions. Of a machine: ``valve``, the kind of all its valves ('orifice', 'compensated', 'unknown');
    ``attachment``, the tool that it carries, by its name in the file of the ``scale`` (default: the machine's section
    `scale`): its equations have it. Raises DescriptionError (file, key, value, what was expected), SettingError,
    ScaleError, PositionProblemError.

    >>> load('four_bar').independent
    ('theta',)
    >>> load('zx200').commands
    ('command/boom_valve', 'command/arm_valve', 'command/bucket_valve')
    """
    check_choice('backend', backend, BACKENDS)
    description = describe(str(name))
    of_mechanism = {'coordinates': coordinates, 'independent': independent, 'free': free or None,
                    'backend': None if backend == 'auto' else backend}
    if description.is_machine:
        refuse_options('a mechanism', of_mechanism)
        return Machine(_changed(description, valve, attachment, scale))
    refuse_options('a machine', {'valve': valve, 'attachment': attachment, 'scale': scale})
    return Model(description, coordinates, None if independent is None else tuple(independent), free, backend)


def _changed(description: MechanismDescription, valve: str | None, attachment: str | None, scale: str | Path | None
             ) -> MechanismDescription:
    """What was asked for instead of what the file says."""
    described = description if valve is None else with_valves(description, valve)
    return equipped(described, attachment or '', scale or '')


def loaded(item: Loadable, valve: str | None = None, attachment: str | None = None, scale: str | Path | None = None
           ) -> Model | Machine:
    """What ``load`` gave, or gives for a name or a path; raises SettingError for anything else."""
    if isinstance(item, (str, Path)):
        return load(item, valve=valve, attachment=attachment, scale=scale)
    if isinstance(item, Machine) and (valve is not None or attachment):
        return Machine(_changed(item.description, valve, attachment, scale))
    if not isinstance(item, Machine):
        refuse_options('a machine', {'valve': valve, 'attachment': attachment, 'scale': scale})
    if isinstance(item, (Model, Machine)):
        return item
    raise SettingError('model', type(item).__name__, 'a name, a path, or what mbse_ros.load gives')


def model_of(item: Loadable, backend: str = 'auto') -> Model:
    """Its mechanism: of a machine, without hydraulics; ``backend``: of one that is a name or a path."""
    if isinstance(item, (str, Path)):
        return load_model(item, backend=backend)
    found = loaded(item)
    return found.model if isinstance(found, Machine) else found


def named(item: Loadable) -> str:
    """Name or path of a file that is to be read in another way; raises SettingError for what was read already."""
    if isinstance(item, (str, Path)):
        return str(item)
    raise SettingError('model', type(item).__name__, 'a name or a path: the file is read in another way for this')


def recorded(bags: Sequence[object], machine: Loadable | None, mechanism: Loadable | None = None,
             valve: str | None = None, namespace: str | None = None, backend: str = 'auto',
             attachment: str | None = None, scale: str | Path | None = None) -> tuple[Model | Machine, tuple[str, ...]]:
    """What logs are of: the ``mechanism``, if one is given, else the ``machine``, else the one that the bags name; and
    warnings where they name none.

    Raises BagError, see ``recorded_machine``, DescriptionError, SettingError.
    """
    if mechanism is not None:
        if machine is not None:
            raise SettingError('machine', machine, 'a machine or a mechanism, not both')
        refuse_options('a machine', {'valve': valve, 'attachment': attachment, 'scale': scale})
        return model_of(mechanism, backend), ()
    if machine is not None:
        return loaded(machine, valve, attachment, scale), ()
    name, assumed = recorded_name(bags, namespace)
    return loaded(name, valve, attachment, scale), assumed


def recorded_name(bags: Sequence[object], namespace: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Name of the machine that the bags name, and warnings, see ``recorded_machine``; raises BagError, SettingError for
    arrays."""
    from ..offline.bag import recorded_machine  # here, as it takes its time to import
    paths = [item for item in bags if isinstance(item, (str, Path))]
    if len(paths) < len(bags):
        raise SettingError('machine', None, 'the machine or mechanism that the samples are of')
    return recorded_machine(paths, namespace)


def loaded_sources(name: str | Path | None) -> SourceMap | None:
    """The map of a name or a path; raises DescriptionError."""
    from ..sources.map import load_sources  # here, as it takes its time to import
    return None if name is None else load_sources(name)
