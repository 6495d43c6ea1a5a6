# SPDX-License-Identifier: Apache-2.0
"""``check_data``: what is wrong with the data of a bag, and how to fix it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingError, refuse_options
from ..machine import Machine
from .checked import checked
from .load import Loadable, loaded, loaded_sources, model_of, recorded_name

if TYPE_CHECKING:
    from ..offline.checks.check_bag import Checked


@checked
def check_data(bag: str | Path, machine: Loadable | None = None, *, mechanism: Loadable | None = None,
               sensors: Sequence[str] | None = None, valve: str | None = None, sources: str | Path | None = None,
               namespace: str | None = None) -> Checked:
    """Judge the samples of a bag as those of a machine, default the one that the bag names: units, signs, swapped
    chambers, reversed positions, stamps, sensors that repeat a value; or as those of a ``mechanism``, with some of its
    ``sensors`` (default all): stamps, rates, limits of joints, units and signs, sensors that repeat a value.

    The result: ``findings`` (``kind``, ``channels``, ``seen``, ``remedy``), what was ``unchecked``, ``notes``,
    ``summary()``, ``to_json()``. Raises BagError, DescriptionError, SettingError.

    >>> check_data('lift').findings
    ()
    """
    from ..offline.checks.check_bag import check_bag, check_mechanism  # here, as it takes its time to import
    maps = loaded_sources(sources)
    if mechanism is not None:
        refuse_options('a machine', {'machine': machine, 'valve': valve})
        model = model_of(mechanism)
        found = check_mechanism(Path(bag), model, tuple(sensors or ()), namespace, maps)
        return replace(found, bag=str(bag), mechanism=model.description.name)
    refuse_options('a mechanism', {'sensors': sensors})
    name, assumed = recorded_name([bag], namespace) if machine is None else (machine, ())
    item = loaded(name, valve)
    if not isinstance(item, Machine):
        raise SettingError('machine', item.description.name, 'a machine: this file has no cylinders; a mechanism is '
                           'given as `mechanism`')
    named = str(name) if isinstance(name, (str, Path)) else item.name
    found = check_bag(Path(bag), item, namespace, maps)
    return replace(found, bag=str(bag), machine=named, notes=(*assumed, *found.notes))
