# SPDX-License-Identifier: Apache-2.0
"""Whether a bag is of the machine that it is read as: by the name that its headers have, by its channels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ...description.load import every_machine, load_mechanism
from ...machine import Machine
from ...machine.find_machine import with_valves
from .remedies import Finding

MOST = 12       # strange names in one message


def doubted_machine(machine: str, channels: Sequence[str], silent: Sequence[str], strangers: Sequence[str] = ()) -> str:
    """The question whether a bag is of a machine, in words, where most of its ``channels`` are ``silent``; ''
    where they are not. ``strangers``: names in the bag that are none of the channels."""
    there = [name for name in channels if name not in silent]
    if len(there) > len(silent):
        return ''
    some = f'only {", ".join(there)}' if there else (
        f'none of the {len(channels)} channels ({", ".join(channels[:2])}, ...)')
    more = f', ... ({len(strangers)} in all)' if len(strangers) > MOST else ''
    besides = f', but {", ".join(strangers[:MOST])}{more}' if strangers else ''
    return f'is it a bag of {machine}? It has {some}{besides}'


def machine_findings(frame: str, machine: Machine, payloads: Collection[str] = ()) -> list[Finding]:
    """A bag whose headers name another of the known machines, or which has masses of ``payloads`` that the file does
    not have, and how to go on; none where only the names differ."""
    path, own = every_machine().get(frame), machine.description
    if not own.payloads.keys() >= set(payloads):
        return [Finding('machine', tuple(f'payloads/{name}' for name in payloads), 'the bag has masses of these '
                        f'payloads, and {machine.name} ({own.file}) has '
                        f'{" and ".join(own.payloads) or "no section `payloads`"}', 'name the file that the bag was '
                        'recorded with as the machine')]
    if frame == machine.name or path is None:
        return []
    known, same = (with_valves(replace(item, name='', file=''), 'unknown') for item in (load_mechanism(path), own))
    return [] if known == same else [Finding(
        'machine', ('frame_id',), f'the bag was recorded on {frame} (config/machines/{frame}.yaml) and is read as '
        f'{machine.name} ({own.file}), which has other numbers', f'name {frame} as the machine if that is right; if '
        f'{machine.name} is right, ignore this: bags that are recorded with its file name it')]
