# SPDX-License-Identifier: Apache-2.0
"""Bags to calibrate a machine by: their samples, and what each has on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from ...bags.bag import open_bag
from ...bags.topics import TopicMap
from ...calibration.balance import Samples
from ...calibration.fit import KnownLoad
from ...calibration.identifiability import UNKNOWN
from ...description.load import known_machines
from ...description.model import MechanismDescription
from ...errors import BagError, SettingError
from ...machine import Machine
from ...sources.map import SourceMap
from ...sources.reader import sample_reader
from ..bag import frame_of
from ..checks.channel_series import series_of
from ..checks.findings import machine_findings
from ..log_samples import LogSamples

OPTION = 'payloads'
FORMAT = 'BAG=KG, BAG=KG+-DEVIATION or BAG=unknown'
KNOWN_TO = 0.005        # of a load, as standard deviation, where nothing else is said


@dataclass(frozen=True)
class Recording:
    """One bag: ``name`` (that of its folder), samples by channel, ``date``, what was odd about it."""

    name: str
    series: Mapping[str, Samples]
    date: str
    warnings: tuple[str, ...] = ()


Read = tuple[str, Recording]        # with the frame_id of its samples
By = Callable[[Callable[[str | Path], Read], Sequence[str | Path]], Iterable[Read]]


def recorded(bags: Sequence[str | Path], machine: Machine, namespace: str | None = None,
             sources: SourceMap | None = None, by: By | None = None) -> list[Recording]:
    """Samples of all bags; ``by``: who reads them, as ``map`` does; default one after the other.

    Raises BagError for one of another machine, two that are of different machines, and two of one name.
    """
    found: list[Recording] = []
    frames: dict[str, str] = {}
    names = [Path(bag).resolve().name for bag in bags]
    for place, (bag, name) in enumerate(zip(bags, names)):
        if name in names[:place]:
            raise BagError(str(bag), f'another bag is named {name}, too, and loads are given by name: rename one')
    everything = (map(partial(_read, machine, namespace, sources), bags) if by is None else
                  by(partial(_read_there, machine.description, namespace, sources), bags))
    for bag, (frame, one) in zip(bags, everything):
        if frame != machine.name and frame in known_machines():
            raise BagError(str(bag), f'a bag of the machine {frame}, expected one of {machine.name}')
        if frame:
            frames[frame] = str(bag)
        if len(frames) > 1:
            raise BagError(str(bag), 'bags of one machine, these are of ' + ' and '.join(
                f'{item} ({path})' for item, path in frames.items()))
        if not one.date:
            raise BagError(str(bag), f'it has no sample of a channel of {machine.name}: see mbse topics')
        found.append(one)
    return found


def _read(machine: Machine, namespace: str | None, sources: SourceMap | None, bag: str | Path) -> Read:
    """One bag; without samples it has no date."""
    source, name = open_bag(bag), Path(bag).resolve().name
    reader = sample_reader(source, machine, namespace, sources)
    samples = LogSamples.read(reader)
    frame = frame_of(source, reader.namespace, TopicMap(namespace=namespace))
    first = datetime.fromtimestamp(samples.span_ns[0] * 1e-9, tz=timezone.utc)
    warnings = (*reader.warnings, *(item.line for item in machine_findings(frame, machine)))
    return frame, Recording(name, series_of(samples), first.date().isoformat() if samples.count else '',
                            tuple(f'{name}: {line}' for line in warnings))


def _read_there(description: MechanismDescription, namespace: str | None, sources: SourceMap | None,
                bag: str | Path) -> Read:
    """The same by another process."""
    return _read(Machine(description), namespace, sources, bag)


def parse_payloads(words: Mapping[str, str] | Sequence[str], recordings: Sequence[Recording], machine: Machine
                   ) -> dict[str, KnownLoad]:
    """Loads by the names of bags from words ``BAG=KG``, ``BAG=KG+-DEVIATION``, ``BAG=unknown``; raises SettingError."""
    pairs = list(words.items()) if isinstance(words, Mapping) else [_pair(word) for word in words]
    names, found = [item.name for item in recordings], {}
    for bag, text in pairs:
        name = Path(bag).resolve().name
        if name not in names:
            raise SettingError(OPTION, f'{bag}={text}', 'the name of one of the bags: ' + ', '.join(names))
        if name in found:
            raise SettingError(OPTION, f'{bag}={text}', 'each bag once')
        found[name] = _load(name, str(text).strip(), machine)
    return found


def _pair(word: str) -> tuple[str, str]:
    bag, sign, text = word.rpartition('=')
    if not sign or not bag:
        raise SettingError(OPTION, word, FORMAT)
    return bag, text


def _load(name: str, text: str, machine: Machine) -> KnownLoad:
    described = machine.description.payload
    if described is None:
        raise SettingError(OPTION, f'{name}={text}', f'no load: {machine.name} has no section `payload`')
    low, high = described.limits
    if text == UNKNOWN:
        return KnownLoad(f'{UNKNOWN} {name}', 0.5 * (low + high), high - low)
    mass, sign, deviation = text.replace('kg', '').partition('+-')
    try:
        kg = float(mass)
        stddev = float(deviation) if sign else KNOWN_TO * kg
    except ValueError:
        raise SettingError(OPTION, f'{name}={text}', FORMAT) from None
    if not 0.0 <= kg <= high or not 0.0 <= stddev <= high:
        raise SettingError(OPTION, f'{name}={text}', f'a mass from 0 to {high:g} kg (payload.limits), and its standard '
                           'deviation')
    return KnownLoad(f'{kg:g} +- {stddev:g} kg' if stddev else '', kg, stddev)
