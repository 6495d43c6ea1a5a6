# SPDX-License-Identifier: Apache-2.0
"""Whether the samples of a log can be those of a mechanism: stamps and rates, each sensor by itself, the limits of its
joints, and what the sensors say of each other.

Encoders of all independent coordinates give the pose and, by their slopes, the speeds. From these follow, by the
mechanism's own equations, what sensors of speeds, and other sensors of the pose, read: a gain that is that of another
unit, or negative, is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...compiled import Kernel
from ...description.coordinate_units import DEGREES, measured_unit, unit_of
from ...dynamics.model import Model
from ...errors import MbseError
from ...filters.linkage_settings import LinkageSettings
from ...filters.parts.problem import Problem, problem
from ...machine.channels import Channel, sensor_channels
from ...monitor.clocks import Ages
from ...monitor.mechanism import PLACES, RATES
from ...monitor.steps import SIDE
from ...streams.start import moved_to
from ..log_samples import STEP, LogSamples, Means, Series, means_of, series_of
from .plausibility import OWN, Verdict
from .remedies import DEGREE, LENGTH_UNITS, Finding
from .sensor_rules import SELDOM, SPIKE_S, huge_values, sensor_findings, sudden_changes, white_noise
from .time_rules import age_findings, joined, leaps, time_findings

BEYOND, NOISES = 0.02, 6.0      # of the range, and deviations of the noise, by which a joint is beyond its limits
LASTING = 0.3       # s for which it is
MOSTLY = 0.5        # share of the samples beyond, from which on it may be in another unit
POSES = 200         # instants at which the pose is looked for
NOWHERE = 0.5       # share of them without a pose, from which on something is wrong with the encoders
FEWEST = 20         # instants from which on a gain is looked at
ALIKE = 1.25        # times a gain, up or down, that is the same
EXPLAINED = 0.9     # share of the motion of a sensor that the gain explains
TURN = 2.0 * np.pi
SIMILAR = 2.0       # times the stated noise, more or less: white noise is judged where there is the least
HALF_TURN = 3.0     # rad, from which on an angle may have been at +-pi, where it wraps
STEPS = 20          # largest sudden changes of an encoder that are held against the sensors of rates
CLEARLY = 3.0       # times nearer to one of two readings than to the other
MOVES = 10.0        # deviations of a sensor's noise: less motion says nothing of its gain, a smaller change is no step
UNITS = {'rad': {'degrees': DEGREE}, 'm': LENGTH_UNITS}


def mechanism_verdict(samples: LogSamples, model: Model, names: Sequence[str], ages: Ages | None = None,
                      settings: LinkageSettings = LinkageSettings()) -> Verdict:
    """Findings on samples of the channels ``names`` of a mechanism's sensors, as its stage calls them, and of its
    inputs, SI; ``ages`` on arrival, if they are known."""
    series, description = series_of(samples), model.description
    channels = {c.output: c for c in sensor_channels(description) if c.output in names and c.output in series}
    findings = time_findings(samples, settings)
    findings += _seldom(series, channels, settings)
    findings += leaps(series, {name: c.sensor.noise for name, c in channels.items() if c.sensor.kind in PLACES})
    told = {name for finding in findings for name in finding.channels}
    findings += [item for item in joined(age_findings(ages.apart if ages else {})) if not told & set(item.channels)]
    findings += huge_values(samples)
    for name, channel in channels.items():
        rare = series[name].t.size < 2 or float(np.median(np.diff(series[name].t))) > SPIKE_S
        own = [item for item in sensor_findings(replace(channel, name=name), series[name], *_unit(model, channel))
               if item.kind != 'noise' or not rare]     # of a mechanism a fast motion looks so, sampled rarely
        findings += _in_degrees(model, name, channel, series[name]) if any(item.kind == 'noise' for item in own) else []
        findings += own
        findings += _beyond_limits(model, name, channel, series[name])
    if any(item.kind in ('clock', 'stamp', 'unstamped') for item in findings):
        return Verdict(tuple(findings), ('speeds against positions, whose stamps are not of one clock',))
    wrong = {name for item in findings if item.kind in ('unit', 'range', 'stuck') for name in item.channels}
    more, unchecked = _against_each_other(model, names, {n: c for n, c in channels.items() if n not in wrong}, series)
    others = {name for item in (*findings, *more) if item.kind == 'unit' for name in item.channels}
    findings = [item for item in findings if item.kind not in OWN or not others & set(item.channels)]
    return Verdict((*findings, *more), (unchecked,) if unchecked else ())


def _unit(model: Model, channel: Channel) -> tuple[str, float]:
    """Unit in which numbers of a channel are shown, and the factor from SI to it."""
    unit = measured_unit(model.description, channel.sensor.name)
    for si, shown, scale in ('rad', 'deg', DEGREES), ('m', 'mm', 1e3):
        if unit in (si, f'{si}/s'):
            return shown + unit[len(si):], scale
    return unit, 1.0


def _seldom(series: Mapping[str, Series], channels: Mapping[str, Channel], settings: LinkageSettings) -> list[Finding]:
    """Sensors of which even the fastest comes so rarely that the filter has nothing to go by in between."""
    usual = {name: float(np.median(np.diff(series[name].t))) for name in channels if series[name].t.size > 1}
    shortest = min(usual.values(), default=0.0)
    if shortest <= settings.coast_after:
        return []
    return [Finding('rate', tuple(usual), f'the fastest comes at {1.0 / shortest:.3g} Hz: between samples that are '
                    f'{shortest:.3g} s apart an estimate coasts (linkage.coast_after, {settings.coast_after:g} s)',
                    f'record them at {1.0 / settings.coast_after:.3g} Hz or more')]


def _beyond_limits(model: Model, name: str, channel: Channel, series: Series) -> list[Finding]:
    """An encoder that stays where its joint cannot be; in another unit, if all of it is within the limits there."""
    limits = _limits(model, channel.sensor.coordinate)
    if channel.sensor.kind != 'encoder' or channel.sensor.wraps or limits is None:
        return []
    low, high = limits
    room = BEYOND * (high - low if np.isfinite(high - low) else 0.0) + NOISES * channel.sensor.noise
    unit = unit_of(model.description, channel.sensor.coordinate)

    def outside(values: np.ndarray) -> np.ndarray:
        return (values < low - room) | (values > high + room)
    marks = np.concatenate([[False], outside(series.values), [False]]).astype(np.int8)
    starts, ends = (np.flatnonzero(np.diff(marks) == sign) for sign in (1, -1))
    spells = series.t[ends - 1] - series.t[starts]
    if not spells.size or spells.max() < LASTING:
        return []
    seen = (f'{series.values.min():.4g} to {series.values.max():.4g} {unit}, for {spells.sum():.1f} s outside the '
            f'limits of {low:.4g} to {high:.4g} {unit}')
    for words, factor in UNITS.get(unit, {}).items() if outside(series.values).mean() > MOSTLY else ():
        if not outside(factor * series.values).any() and factor * np.ptp(series.values) > 2.0 * channel.sensor.noise:
            return [Finding('unit', (name,), seen, f'multiply by {factor:.6g}: the values look like {words}')]
    return [Finding('range', (name,), seen, "look at the sensor's zero, sign and scaling; or correct the limits in the "
                                            "mechanism's file")]


def _in_degrees(model: Model, name: str, channel: Channel, series: Series) -> list[Finding]:
    """An angle that is turns away, with noise that is the stated one in degrees."""
    farthest, noise, stated = float(np.abs(series.values).max()), white_noise(series), channel.sensor.noise
    if measured_unit(model.description, channel.sensor.name) != 'rad' or channel.sensor.kind not in PLACES or (
            farthest <= TURN or not 1.0 / SIMILAR < DEGREE * noise / stated < SIMILAR):
        return []
    seen = (f'{series.values.min():.4g} to {series.values.max():.4g} rad, up to {farthest / TURN:.3g} turns, with '
            f'noise of {noise:.3g} rad, in the file {stated:.3g} rad')
    return [Finding('unit', (name,), seen, f'multiply by {DEGREE:.6g}: the values look like degrees')]


def _limits(model: Model, name: str) -> tuple[float, float] | None:
    """Stroke of a cylinder, or limits of the joint of a coordinate; None without."""
    description = model.description
    if name in description.cylinders:
        return 0.0, description.cylinders[name].stroke.value
    coordinate = description.coordinates.get(name)
    joint = description.joints.get((coordinate.joint if coordinate else '') or name)
    return None if joint is None else joint.limits


def _against_each_other(model: Model, names: Sequence[str], channels: Mapping[str, Channel],
                        series: Mapping[str, Series]) -> tuple[list[Finding], str]:
    """Findings on units and signs, and why they could not be looked at, or ''."""
    encoders = _encoders(model, channels)
    missing = [name for place, name in zip(model.z, model.independent) if place not in encoders]
    if missing or not encoders:
        return [], ('speeds against positions, as no sound encoder measures ' + ', '.join(missing) if missing else
                    'speeds against positions, as all coordinates are driven')
    of = problem(model, tuple(dict.fromkeys(name.partition('.')[0] for name in names)))
    means = means_of({f'position/{name}' if channels[name].sensor.kind in PLACES else name: series[name]
                      for name in channels})
    z = np.column_stack([_continued(means.values[f'position/{name}'], channels[name]) for name in encoders.values()])
    steps = _steps(of, encoders, channels, series)
    rates = _slopes(means, z)
    rows = np.flatnonzero(np.isfinite(z).all(axis=1) & np.isfinite(rates).all(axis=1))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), POSES)).astype(int))] if len(rows) else rows
    if len(rows) < FEWEST:
        return steps, 'speeds against positions: too few samples of one time'
    own = {name: means.values[channel][rows] for name in channels if name not in encoders.values()
           for channel in (f'position/{name}', name) if channel in means.values}
    gains, nowhere = _gains(of, channels, own, z[rows], rates[rows])
    if nowhere > NOWHERE:
        return [*steps, Finding('range', tuple(encoders.values()), f'at {100 * nowhere:.0f} % of the instants the '
                                'mechanism has no pose with what they read', 'look at unit, sign and zero of these '
                                "encoders, and at the mechanism's lengths")], ''

    def corrected(encoder: str, factor: float) -> dict[str, float]:
        scale = np.where(np.array([*encoders.values()]) == encoder, factor, 1.0)
        return _gains(of, channels, own, scale * z[rows], scale * rates[rows])[0]

    def loud(name: str, factor: float) -> bool:
        return 1.0 / SIMILAR < abs(factor) * white_noise(series[name]) / channels[name].sensor.noise < SIMILAR
    return steps + _judged_gains(model, gains, channels, tuple(encoders.values()), corrected, loud), ''


def _gains(of: Problem, channels: Mapping[str, Channel], own: Mapping[str, np.ndarray], z: np.ndarray, zd: np.ndarray
           ) -> tuple[dict[str, float], float]:
    """By how much more sensors change, ``own`` (k,) by their names, than with independent coordinates and rates (k, g);
    and the share of the instants at which these have no pose."""
    read, gains = _read_by(of, z, zd), dict[str, float]()
    there = np.isfinite(read).any(axis=1)
    for k, name in enumerate(of.channels) if there.any() else ():
        if name not in own or (kind := channels[name].sensor.kind) not in (*RATES, *PLACES):
            continue
        wraps = of.angular[k] and kind in PLACES and np.nanmax(read[:, k]) - np.nanmin(read[:, k]) > HALF_TURN
        gain = None if wraps else _gain(own[name], read[:, k], channels[name].sensor.noise, kind in PLACES)
        gains |= {} if gain is None else {name: gain}
    return gains, float(np.mean(~there))


def _encoders(model: Model, channels: Mapping[str, Channel]) -> dict[int, str]:
    """By its place in q, each independent coordinate that an encoder measures, in the model's order; the first one."""
    found: dict[int, str] = {}
    for name, channel in channels.items():
        if channel.sensor.kind == 'encoder' and channel.sensor.coordinate in model.independent:
            found.setdefault(model.names.index(channel.sensor.coordinate), name)
    return {place: found[place] for place in model.z if place in found}


def _steps(of: Problem, encoders: Mapping[int, str], channels: Mapping[str, Channel], series: Mapping[str, Series]
           ) -> list[Finding]:
    """Encoders that are elsewhere from one sample to the next, where a sensor of rates reads what it would without
    that, and none what it would in such a motion."""
    found, gyros = [], [k for k, name in enumerate(of.channels) if name in channels and
                        channels[name].sensor.kind in RATES]
    for g, name in enumerate(encoders.values()):
        own, noise = series[name], max(channels[name].sensor.noise, white_noise(series[name]))
        factors = np.zeros(0) if channels[name].sensor.wraps else sudden_changes(own, noise, SELDOM)
        largest = np.argsort(-factors)[:STEPS]
        steps = [(k, size, seen) for k in sorted(largest[factors[largest] > 1.0].tolist())
                 for size, seen in [_refuted(of, gyros, encoders, channels, series, g, k)]
                 if seen and abs(size) > MOVES * noise]
        if steps:
            k, size, seen = steps[0]
            more = f', and {len(steps) - 1} times more' if len(steps) > 1 else ''
            unit = unit_of(of.model.description, channels[name].sensor.coordinate)
            found.append(Finding('step', (name,), f'steps by {size:.3g} {unit} from one sample to the next at '
                                 f't = {own.t[k]:.2f} s{more}, and {", ".join(seen)} saw no such motion',
                                 'its zero has moved: look at its mounting, its plug and its driver'))
    return found


def _refuted(of: Problem, gyros: Sequence[int], encoders: Mapping[int, str], channels: Mapping[str, Channel],
             series: Mapping[str, Series], g: int, k: int) -> tuple[float, list[str]]:
    """How far the g-th encoder steps after its sample k, and the sensors of rates that do not see it; none if one
    does."""
    t = series[list(encoders.values())[g]].t
    places = np.array([[np.interp(t[i], series[name].t, _continued(series[name].values, channels[name]))
                        for name in encoders.values()] for i in range(k - SIDE, k + SIDE + 2)])
    changes = np.diff(places, axis=0)
    usual = np.median(changes, axis=0)
    size, dt = float(changes[SIDE, g] - usual[g]), t[k + 1] - t[k]
    rates = np.array([usual, usual + size * (np.arange(len(usual)) == g)]) / dt
    calm, moved = _read_by(of, np.repeat(places[SIDE:SIDE + 1], 2, axis=0), rates)
    unseen = []
    for i in gyros:
        name = of.channels[i]
        near = np.abs(series[name].t - 0.5 * (t[k] + t[k + 1])) < 1.5 * dt
        if not near.any() or not abs(moved[i] - calm[i]) > MOVES * channels[name].sensor.noise:
            continue
        nearest = min(series[name].values[near].tolist(), key=lambda value: abs(value - moved[i]))
        without, within = abs(nearest - calm[i]), abs(nearest - moved[i])
        if within < without:
            return size, []
        unseen += [name] if CLEARLY * without < within else []
    return size, unseen


def _continued(values: np.ndarray, channel: Channel) -> np.ndarray:
    """An angle without the steps of one that wraps."""
    if not channel.sensor.wraps:
        return values
    found, there = values.copy(), np.isfinite(values)
    found[there] = np.unwrap(values[there])
    return found


def _slopes(means: Means, values: np.ndarray) -> np.ndarray:
    """Rates (k, g) of values (k, g) at the instants of the means; NaN at the ends of a window."""
    found = np.full_like(values, np.nan)
    t, even = means.t, (means.window[2:] == means.window[:-2])
    steps = t[2:] - t[:-2]
    even &= steps < 2.5 * STEP
    found[1:-1][even] = (values[2:] - values[:-2])[even] / steps[even, None]
    return found


def _read_by(of: Problem, z: np.ndarray, zd: np.ndarray) -> np.ndarray:
    """What the channels (s,) read at independent coordinates and rates (k, g), at rest otherwise; NaN without a
    pose."""
    model, kernel = of.model, Kernel(of.sensors, 'vm')
    q, found = None, np.full((len(z), len(of.channels)), np.nan)
    for k, (place, rate) in enumerate(zip(z, zd)):
        places = dict(zip(model.z, place.tolist()))
        q = moved_to(model, places, q) if q is not None else None
        q = moved_to(model, places) if q is None else q
        if q is not None:
            try:
                found[k] = np.ravel(kernel(q, rate, np.zeros(of.g), np.zeros(of.system.u.numel()), [0.0],
                                           np.asarray(model.parameters))[0])
            except MbseError:
                q = None
    return found


def _gain(own: np.ndarray, read: np.ndarray, noise: float, of_place: bool) -> float | None:
    """By how much more a sensor changes (k,) than it should (k,); None where too little moves, or another motion."""
    there = np.isfinite(own) & np.isfinite(read)
    if there.sum() < FEWEST:
        return None
    x, y = read[there], own[there]
    if of_place:
        x, y = x - x.mean(), y - y.mean()
    power, shared = float(x @ x), float(x @ y)
    if not power or not y.any() or shared ** 2 < EXPLAINED * power * float(y @ y):
        return None
    gain = shared / power
    return gain if np.sqrt(np.mean(y ** 2)) > MOVES * noise and np.sqrt(power / x.size) * max(1.0, abs(gain)) > (
        MOVES * noise) else None


def _judged_gains(model: Model, gains: Mapping[str, float], channels: Mapping[str, Channel], encoders: tuple[str, ...],
                  corrected: Callable[[str, float], Mapping[str, float]], loud: Callable[[str, float], bool]
                  ) -> list[Finding]:
    """Signs and units by the gains of sensors against the encoders; ``corrected``: the gains where one of these is
    multiplied by a factor, ``loud``: whether it makes the noise of a channel the stated one. Wrong is what more of the
    others contradict, of as many what has another noise."""
    found, against, agree = [], ', '.join(encoders), _agreeing(gains)
    for name, gain in gains.items():
        seen = f'changes {abs(gain):.3g} times as much as {against} say' + ', and the other way' * (gain < 0.0)
        for words, factor in _units(model, channels[name]).items():
            for size in dict.fromkeys((1.0 / factor, factor)):
                if not (words or gain < 0.0) or not 1.0 / ALIKE < abs(gain) / size < ALIKE:
                    continue
                of_encoder, of_sensor = math.copysign(size, gain), math.copysign(1.0 / size, gain)
                kind, own = 'unit' if words else 'negated', (agree + 1, words != '' and loud(name, of_sensor))
                others = {item: (_agreeing(corrected(item, of_encoder)), words != '' and loud(item, of_encoder))
                          for item in encoders if words in _units(model, channels[item])}
                best = max(others, key=others.__getitem__, default='')
                if best and others[best] > own:
                    more = f', {others[best][0]} sensors agree with the remedy' * (others[best][0] > 1)
                    return [Finding(kind, (best,), f'{name} {seen}{more}', _remedy(of_encoder, words))]
                if size == factor and own == (1, False) and not all(loud(encoder, 1.0) for encoder in encoders):
                    found.append(Finding(kind, encoders, f'{name} {seen}', _remedy(of_encoder, words)))
                else:
                    found.append(Finding(kind, (name,), seen, _remedy(of_sensor, words) + (
                        '' if words or agree else f', or those of {against} are')))
    return joined(found)


def _units(model: Model, channel: Channel) -> dict[str, float]:
    """Units, with their factors, that samples of a channel may be in; '' is the right one."""
    return {'': 1.0, **UNITS.get(measured_unit(model.description, channel.sensor.name).partition('/')[0], {})}


def _agreeing(gains: Mapping[str, float]) -> int:
    """How many are about 1."""
    return sum(1.0 / ALIKE < gain < ALIKE for gain in gains.values())


def _remedy(factor: float, words: str) -> str:
    """What to multiply by, and why."""
    like = f'like {words}' + ' that were converted twice' * (abs(factor) > 1.0) if words else 'negated'
    return f'multiply by {factor:.6g}: the values look {like}' + ', negated' * (bool(words) and factor < 0.0)
