# SPDX-License-Identifier: Apache-2.0
"""Mistakes in a first machine file, its map and its logs: what says each, and is the mass wrong where nothing does?

    tools/environment.sh python benchmarks/mistakes.py [--kind pins] [--json F] [--jobs 2]

The file of zx200, the map, or a simulated log of 500 kg has one mistake at a time (valves unknown, virtual machine). In
this order it may be *refused* (an error with the file and key), *warned* of by `mbse check`, *found* by
`mbse check-data`, *warned* of by `mbse estimate`, or *held* (no mass). Else *harmless*: the 95 % interval has the true
mass; *silent*: it has not, and nothing is said.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

import mbse_ros as mbse
from mbse_ros.api.samples import Samples
from mbse_ros.description.load import known_machines
from mbse_ros.errors import MbseError
from mbse_ros.studies.many import add_workers, many

START_NS = 1_700_000_000_000_000_000
MACHINE, PAYLOAD, SECONDS = 'zx200', 500.0, 24.0
GONE = object()
BODY, CYLINDER = 'bodies.boom', 'cylinders.boom'
# kind, what was done, key in the file, its value, or what makes the value
FILE: list[tuple[str, str, str, Any]] = [
    ('units', 'bore in mm without a unit', f'{CYLINDER}.bore', 120),
    ('units', 'bore in cm for mm', f'{CYLINDER}.bore', '120 cm'),
    ('units', 'stroke in mm without a unit', f'{CYLINDER}.stroke', 625),
    ('units', 'stroke ten times too short', f'{CYLINDER}.stroke', '62.5 mm'),
    ('units', 'mass in t as kg', f'{BODY}.mass', '2.31 kg'),
    ('units', 'centre of mass in mm without a unit', f'{BODY}.center_of_mass', [2465, 0, 1066]),
    ('units', 'limits in degrees without a unit', 'joints.boom_joint.limits', [-65, -6]),
    ('units', 'limits in radians as degrees', 'joints.boom_joint.limits', ['-1.137 deg', '-0.1 deg']),
    ('units', 'noise of a pressure in kPa as MPa', 'sensors.boom_piston.stddev', '60 MPa'),
    ('units', 'noise of a stroke in mm without a unit', 'sensors.boom_stroke.stddev', 1),
    ('units', 'largest load in t as kg', 'payload.limits', ['0 kg', '2.5 kg']),
    ('units', 'gravity in cm/s^2 without a unit', 'gravity', 981),
    ('units', 'Coulomb friction in N as kN', f'{CYLINDER}.friction.coulomb', '400 kN'),
    ('pins', 'base and rod eye exchanged', f'{CYLINDER}', lambda item: {**item, 'base': item['rod_eye'],
                                                                       'rod_eye': item['base']}),
    ('pins', 'eye of the boom cylinder on the other side', f'{BODY}.points.boom_cylinder_eye',
     ['2.01865 m', '0 m', '-1.34817 m']),
    ('pins', 'pin of the arm cylinder mirrored', 'bodies.arm.points.arm_cylinder_eye', ['0.47062 m', '0 m',
                                                                                       '0.73579 m']),
    ('pins', 'boom foot and cylinder base exchanged', 'bodies.upper.points', lambda item: {
        **item, 'boom_foot': item['boom_cylinder_base'], 'boom_cylinder_base': item['boom_foot']}),
    ('pins', 'link 10 cm too short', 'bodies.link.points.bucket_pin', ['0.3145 m', '0 m', '-0.3393 m']),
    ('pins', 'boom 20 cm too long', f'{BODY}.points.arm_pin', ['5.7465 m', '0 m', '1.0843 m']),
    ('pins', 'closed length 10 cm too short', f'{CYLINDER}.closed_length', '2.330 m'),
    ('pins', 'stroke of the bucket 20 cm too long', 'cylinders.bucket.stroke', '1.204 m'),
    ('pins', 'pin of another body', f'{CYLINDER}.rod_eye', 'arm.arm_cylinder_eye'),
    ('pins', 'one cylinder instead of two', f'{CYLINDER}.count', 1),
    ('pins', 'rod thicker than the bore', f'{CYLINDER}.rod', '125 mm'),
    ('pins', 'rod ten times too thin', f'{CYLINDER}.rod', '8.5 mm'),
    ('pins', 'rod of the data sheet of another cylinder', f'{CYLINDER}.rod', '75 mm'),
    ('signs', 'axis of the boom the other way', 'joints.boom_joint.axis', [0, -1, 0]),
    ('signs', 'zero of the boom the other way', 'joints.boom_joint.rpy', ['0 deg', '-10.685736 deg', '0 deg']),
    ('signs', 'gravity upwards', 'gravity', ['0 m/s^2', '0 m/s^2', '9.81 m/s^2']),
    ('signs', 'centre of mass below for above', f'{BODY}.center_of_mass', ['2.46539 m', '0 m', '-1.0659 m']),
    ('signs', 'start beyond the limits', 'joints.boom_joint.start', '20 deg'),
    ('names', 'misspelt key', f'{CYLINDER}.bohr', '120 mm'),
    ('names', 'misspelt point', f'{CYLINDER}.rod_eye', 'boom.boom_cylinder_ey'),
    ('names', 'misspelt section', 'sensor', {}),
    ('names', 'misspelt kind of sensor', 'sensors.boom_stroke.kind', 'stork'),
    ('names', 'misspelt kind of valve', 'hydraulics.valves.boom_valve.kind', 'unknwon'),
    ('names', 'chamber of no cylinder', 'hydraulics.volumes.boom_rod.chambers', ['bom.rod']),
    ('names', 'two sensors at one place', 'sensors.second', {'kind': 'stroke', 'cylinder': 'boom', 'stddev': '1 mm'}),
    ('names', 'sensor of a volume that is not there', 'sensors.boom_rod.volume', 'boom_ring'),
    ('names', 'piston and rod chambers exchanged', 'hydraulics.volumes', lambda item: {
        **item, 'boom_piston': {**item['boom_piston'], 'chambers': ['boom.rod']},
        'boom_rod': {**item['boom_rod'], 'chambers': ['boom.piston']}}),
    ('names', 'no sensor of the boom', 'sensors.boom_stroke', GONE),
    ('names', 'no mass of the arm', 'bodies.arm.mass', GONE)]
Log = dict[str, tuple[np.ndarray, np.ndarray]]
# as FILE, of a map of the package's own topics; the key is the channel's
MAP: list[tuple[str, str, str, Any]] = [
    ('maps', 'topic that is not there', 'position/boom', {'topic': '/sensors/positions'}),
    ('maps', 'field that is not there', 'pressure/boom_rod', {'path': 'pressure'}),
    ('maps', 'name that is not in the message', 'position/boom', {'path': 'position[name=bom]'}),
    ('maps', 'unit of another kind', 'position/boom', {'unit': 'bar'}),
    ('maps', 'bar for Pa', 'pressure/boom_piston', {'unit': 'bar'}),
    ('maps', 'mm for m', 'position/boom', {'unit': 'mm'}),
    ('maps', 'deg for rad', 'position/swing_joint', {'unit': 'deg'}),
    ('maps', 'pressure of the other chamber', 'pressure/boom_piston', {'topic': '/sensors/pressure/boom_rod'}),
    ('maps', 'channel that the machine has not', 'position/bom', {'topic': '/sensors/position',
                                                                'path': 'position[name=boom]', 'unit': 'm'}),
    ('maps', 'channel left out', 'position/boom', GONE)]


def scaled(channel: str, gain: float = 1.0, offset: float = 0.0) -> Callable[[Log], Log]:
    """A channel as another unit or zero gives it."""
    return lambda log: {**log, channel: (log[channel][0], gain * log[channel][1] + offset)}


def exchanged(*names: str) -> Callable[[Log], Log]:
    """Channels in turn at each other's place."""
    return lambda log: {**log, **{name: log[other] for name, other in zip(names, (*names[1:], names[0]))}}


def delayed(channel: str, seconds: float) -> Callable[[Log], Log]:
    """A channel late by so much."""
    return lambda log: {**log, channel: (log[channel][0] + seconds, log[channel][1])}


PISTON, ROD, STROKE = 'pressure/boom_piston', 'pressure/boom_rod', 'position/boom'
LOG: list[tuple[str, str, Callable[[Log], Log]]] = [
    ('gauges', 'piston and rod sensors exchanged', exchanged(PISTON, ROD)),
    ('gauges', 'sensors of boom and arm exchanged', exchanged(PISTON, 'pressure/arm_piston')),
    ('gauges', 'pressure in bar', scaled(PISTON, 1e-5)),
    ('gauges', 'pressure in kPa', scaled(PISTON, 1e-3)),
    ('gauges', 'pressure in psi', scaled(PISTON, 1.0 / 6894.76)),
    ('gauges', 'gauge of 250 bar set as one of 400', scaled(PISTON, 1.6)),
    ('gauges', 'all pressures as gauges, one at -1 bar', scaled(ROD, 1.0, -101325.0)),
    ('gauges', 'stroke in mm', scaled(STROKE, 1e3)),
    ('gauges', 'stroke in per cent', scaled(STROKE, 1.6)),
    ('gauges', 'stroke from the open end', scaled(STROKE, -1.0, 0.625)),
    ('gauges', 'length from pin to pin', scaled(STROKE, 1.0, 2.43)),
    ('gauges', 'strokes of arm and bucket exchanged', exchanged('position/arm', 'position/bucket')),
    ('gauges', 'swing in degrees', scaled('position/swing_joint', 180.0 / np.pi)),
    ('gauges', 'sensor that is stuck', scaled(PISTON, 0.0, 1e7)),
    ('rates', 'a position at 2 Hz', lambda log: {**log, STROKE: tuple(part[::50] for part in log[STROKE])}),
    ('rates', 'pressures 0.2 s late', delayed(PISTON, 0.2)),
    ('rates', 'positions 0.2 s late', delayed(STROKE, 0.2)),
    ('rates', 'a pressure that is missing', lambda log: {name: item for name, item in log.items() if name != PISTON}),
    ('rates', 'a position that ends after 5 s', lambda log: {**log, STROKE: tuple(part[:500] for part in log[STROKE])}),
    ('rates', 'half of the samples lost', lambda log: {name: tuple(part[::2] for part in item)
                                                      for name, item in log.items()})]


@cache
def log_of() -> Log:
    """A log of the machine as its file says."""
    samples = mbse.simulate(MACHINE, payload=PAYLOAD, duration=SECONDS, cycle='random', seed=3).samples
    return {name: (samples.t, samples.values[:, k]) for k, name in enumerate(samples.names)}


def changed(key: str, value: Any) -> str:
    """The file with one mistake."""
    tree = yaml.load(known_machines()[MACHINE].read_text(encoding='utf-8'), Loader=yaml.BaseLoader)
    *way, last = key.split('.')
    place = tree
    for word in way:
        place = place[word]
    if value is GONE:
        del place[last]
    else:
        place[last] = value(place[last]) if callable(value) else value
    return yaml.safe_dump(tree, sort_keys=False)


def told(place: int) -> dict[str, Any]:
    """What is said of one mistake."""
    kind, what, *change = [*FILE, *MAP, *LOG][place]
    file, log, sources = known_machines()[MACHINE], log_of(), None
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter('ignore')
        if place < len(FILE):
            file = Path(folder, f'{MACHINE}.yaml')
            file.write_text(changed(*change))
        elif place < len(FILE) + len(MAP):
            sources = Path(folder, 'map.yaml')
            sources.write_text(mapped(Path(folder, 'sound'), *change))
        else:
            log = change[0](log)
        found, text = judged(file, log, sources, Path(folder, 'bag'))
    return {'kind': kind, 'mistake': what, 'said': found, 'text': text.replace(f'{folder}/', '')}


def mapped(bag: Path, channel: str, change: Any) -> str:
    """The map that `mbse topics` proposes, with one mistake."""
    mbse.write_bag(bag, Samples.of(log_of(), start_ns=START_NS), MACHINE)
    tree = yaml.load(mbse.topics(bag, MACHINE).text, Loader=yaml.BaseLoader)
    if change is GONE:
        del tree['channels'][channel]
    else:
        tree['channels'][channel] = {**tree['channels'].get(channel, {}), **change}
    return yaml.safe_dump(tree, sort_keys=False)


def judged(file: Path, log: Log, sources: Path | None, bag: Path) -> tuple[str, str]:
    """How a mistake is met, and the words."""
    try:
        checked = mbse.check(file)
        if checked.trouble is not None:
            return 'refused', str(checked.trouble)
        if checked.warnings:
            return 'warned', checked.warnings[0]
        item = mbse.load(file, valve='unknown')
        mbse.write_bag(bag, Samples.of(log, start_ns=START_NS), MACHINE)
        findings = mbse.check_data(bag, item, sources=sources).findings
        if findings:
            return 'found', f'{findings[0].kind}: {findings[0].seen}'
        estimate = mbse.estimate(bag, item, every=0.1, full=False, sources=sources, backend='vm')
    except MbseError as error:
        return 'refused', str(error)
    values = estimate.to_json()['payload']
    if estimate.warnings:
        return 'warned', estimate.warnings[0]
    low, high = values['interval']
    if not np.isfinite(values['mass'] if values['mass'] is not None else np.nan):
        return 'held', values['status']
    words = f'{values["mass"]:.0f} ({low:.0f} to {high:.0f}) kg'
    return ('harmless' if low <= PAYLOAD <= high else 'silent'), words


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = ['| kind | mistake | | what is said |', '|---|---|---|---|']
    for row in rows:
        words = row['text'].splitlines()[0].replace('|', '/')
        words = words if len(words) <= 150 else words[:147] + '...'
        lines.append(f"| {row['kind']} | {row['mistake']} | {row['said']} | {words} |")
    return '\n'.join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--kind', help='only these mistakes')
    parser.add_argument('--json', type=Path)
    add_workers(parser)
    options = parser.parse_args()
    places = [k for k, item in enumerate([*FILE, *MAP, *LOG]) if options.kind in (None, item[0])]
    rows = many(told, places, jobs=options.jobs, cluster=options.cluster, what='mistakes')
    print(table(rows))
    print(', '.join(f'{count} {word}' for word, count in Counter(row['said'] for row in rows).most_common()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
