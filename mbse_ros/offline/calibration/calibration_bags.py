# SPDX-License-Identifier: Apache-2.0
"""Bags to a calibrated machine: their samples and what each has on the machine; its numbers before and after, what the
bags do not tell, the file with all of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path

import numpy as np

from ...bags.bag import open_bag
from ...bags.topics import TopicMap
from ...calibration.balance import CalibrationBalance, Samples, window_length, windows_of
from ...calibration.balance_error import found_errors
from ...calibration.fit import CalibrationLog, CalibrationProblem, KnownLoad, fit, rms
from ...calibration.identifiability import CORRELATED, UNKNOWN, cannot_tell
from ...description.age import EARLIEST, aged, drifting
from ...description.load import every_machine
from ...description.model import MechanismDescription
from ...errors import BagError, DescriptionError, SettingError
from ...machine import Machine
from ...progress import lengthy
from ...scale.scale_file import BARE
from ...sources.map import SourceMap
from ...sources.reader import sample_reader
from ..bag import frame_of
from ..checks.another_machine import machine_findings
from ..log_samples import LogSamples, series_of
from .calibrated_file import Parameter, calibrated_text, check_written, prior_machine
from .calibration_result import Calibration, Residuals

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


@lengthy('reading bags')
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
        if frame != machine.name and frame in every_machine():
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
    topics = TopicMap(namespace=namespace)
    frame, payloads = frame_of(source, reader.namespace, topics), topics.payloads(source.topics, reader.namespace)
    first = datetime.fromtimestamp(samples.span_ns[0] * 1e-9, tz=timezone.utc)
    warnings = (*reader.warnings, *(item.line for item in machine_findings(frame, machine, payloads)))
    return frame, Recording(name, series_of(samples, machine.delays), first.date().isoformat() if samples.count else '',
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


def calibrate_bags(machine: str | Path, bags: Sequence[str | Path], payloads: Mapping[str, str] | Sequence[str] = (),
                   free: Sequence[str] = (), namespace: str | None = None, sources: SourceMap | None = None,
                   by: By | None = None, attachment: str = BARE, scale: str | Path = '') -> Calibration:
    """Calibrate the machine of a file by bags; ``payloads`` as ``parse_payloads`` has them, ``free`` as ``freed``;
    ``by``: see ``recorded``; ``attachment`` on the machine: see ``prior_machine``.

    Raises SettingError (options), BagError (bags without information, or of another machine), DescriptionError,
    ScaleError.
    """
    text, prior = prior_machine(machine, free, attachment, scale)
    if not bags:
        raise SettingError('bags', [], 'one bag or more')
    recordings = recorded(bags, prior, namespace, sources, by)
    if names := drifting(prior.description):
        day = date.fromisoformat(max(item.date for item in recordings))
        if day < EARLIEST:
            raise BagError(str(bags[0]), f'its stamps begin on {day}: a calibration needs its date, as '
                           f'sensors.{names[0]} has a `drift`')
        prior = Machine(aged(prior.description, day))
    return calibrated(prior, text, recordings, parse_payloads(payloads, recordings, prior))


@lengthy('calibrating')
def calibrated(machine: Machine, text: str, recordings: Sequence[Recording], loads: Mapping[str, KnownLoad],
               balance: CalibrationBalance | None = None) -> Calibration:
    """By recordings; ``text``: the file of the machine before; ``balance`` may be kept for the next call."""
    date, names = max(item.date for item in recordings), [item.name for item in recordings]
    check_written(machine, text, date, names)
    balance, logs = balance or CalibrationBalance(machine), []
    for item in recordings:
        load = loads.get(item.name, KnownLoad())
        logs.append(CalibrationLog(item.name, balance.moments(
            windows_of(machine, item.series), window_length(machine) / 2, load.mass), load))
    found, problem = fit(balance, logs), CalibrationProblem(balance, logs)
    problem.noise = found.noise
    p, F, size = machine.parameters, problem.factor, len(problem.prior)
    covariance = F @ found.covariance[:size, :size] @ F.T
    after = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(after, after)
    values = np.clip(problem.numbers(found.u), problem.low, problem.high)      # -1e-14 kg is none
    parameters = tuple(Parameter(key, float(p.mean[k]), float(p.stddev[k]), float(values[k]), float(after[k]),
                                 _tied(p.names, correlation, k)) for k, key in enumerate(p.names))
    start = np.zeros(problem.size)
    start[size:] = _loads_alone(problem, size)
    bags = tuple(Residuals(log.name, int(log.moments.counts.sum()), rms(one, _own(problem, one, start)),
                           rms(one, _own(problem, one,
                                         found.u))) for log in logs for one in [CalibrationProblem(balance, [log])])
    unnamed = tuple(name for name in names if name not in loads) if machine.description.payload else ()
    errors = found_errors(problem, found.u)
    new, trouble = '', ''
    try:
        new = calibrated_text(machine, text, parameters, correlation, date, names, errors)
    except DescriptionError as error:       # the numbers are not lost with the file
        trouble = str(error)
    return Calibration(machine, parameters, covariance, rms(problem, start), rms(problem, found.u), bags,
                       tuple(cannot_tell(balance, found, p.stddev, after, correlation)), found, problem, start, new,
                       tuple(line for item in recordings for line in item.warnings), noise_rms(problem), trouble,
                       unnamed=unnamed, errors=errors)


def _tied(names: Sequence[str], correlation: np.ndarray, k: int) -> tuple[str, ...]:
    """Numbers whose errors go with that of number k, the closest first."""
    return tuple(names[j] for j in np.argsort(-np.abs(correlation[k]))
                 if j != k and abs(correlation[k, j]) > CORRELATED)


def _loads_alone(problem: CalibrationProblem, size: int) -> np.ndarray:
    """Errors of the loads (l,) that fit best with the numbers as in the file."""
    r, J = problem.residuals(np.zeros(problem.size))
    J = J[:, size:]
    return -np.linalg.solve(np.eye(J.shape[1]) + J.T @ J, J.T @ r)


def _own(problem: CalibrationProblem, one: CalibrationProblem, u: np.ndarray) -> np.ndarray:
    """Of all numbers and loads those of a problem of one bag."""
    size = len(problem.prior)
    return np.concatenate([u[:size], [u[size + problem.loads.index(name)] for name in one.loads]])


def noise_rms(problem: CalibrationProblem) -> float:
    """What of it the noise of the samples makes, N."""
    together = np.concatenate([(np.sqrt(log.moments.variance) / np.maximum(log.moments.levers, 1e-12))[
        log.moments.counts] for log in problem.logs])
    return float(np.sqrt(np.mean(together ** 2))) if len(together) else math.nan
