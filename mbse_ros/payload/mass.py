# SPDX-License-Identifier: Apache-2.0
"""The mass of the payload, what makes it uncertain and where it is; what every estimator of it has, and its tuning.

There are two, by what the observer gives. ``paper.PaperEstimator`` solves the equations of motion for the mass, where
the observer estimates the motion alone; ``joint.JointEstimator`` collects what an observer that weighs reports. Both
send samples through the same filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan, sqrt
from typing import NamedTuple, Protocol

import numpy as np

from ..description.assumptions import is_assumed
from ..description.basics import uncertain
from ..filters.force_error import stated_keys
from ..filters.weighing import LEAST
from ..machine import Machine
from ..settings import Settings, setting

NORMAL = 1.959964       # 95 % quantile, two sides
BEYOND = 1.5        # half-widths of a mass's interval: three standard deviations
NOISE = 'noise of the sensors and of what no model knows'
UNBALANCED = 'error of force balance or valves that was found, and '      # before its words: it makes nearly all of it


@dataclass(frozen=True)
class PayloadSettings(Settings):
    """Tuning of the payload estimator (Pyrhönen et al., mass estimation, section 3.3)."""

    low_pass_gain: float = setting(2e-4, 'Gain Kf of the low-pass filter for a sample of 1 ms; scaled to other steps',
                                   '', 1e-6, 1.0)
    low_pass: str = setting('information', 'information: samples count by it; plain: all alike, as in the paper '
                                           '(weighing apart)',
                            choices=('information', 'plain'))
    window: int = setting(401, 'Samples of 1 ms in the triangular window (made odd); scaled to other steps', '',
                          1, 20001)
    min_speed: float = setting(0.0, "Slowest piston whose friction is trusted; 0: 1.2 times each cylinder's "
                                    "transition velocity", 'm/s', 0.0, 1.0)
    significance: float = setting(3.0, 'Standard deviations by which a piston must move, or an acceleration exceed '
                                       'its limit; 0: by the estimate alone', '', 0.0, 100.0)
    guard_time: float = setting(0.1, 'A sample counts if all gates are open for so long before and after it', 's', 0.0,
                                10.0)
    max_acceleration_share: float = setting(0.15, "Largest share of acceleration in the mass's lever", '', 0.0, 100.0)
    max_sample_share: float = setting(1.0, "Largest standard deviation of one sample of the mass, in ranges of the "
                                           "payload's limits", '', 1e-6, 1e6)
    max_interval_share: float = setting(1.0, "Widest 95 % interval of a mass that counts as weighed, in ranges of the "
                                             "payload's limits", '', 1e-6, 1e6)
    stroke_margin: float = setting(0.005, "Distance from the stroke's ends in which forces are not trusted; at "
                                          "least the end stop's length", 'm', 0.0, 1.0)
    batch_time: float = setting(0.1, 'Length of the batches whose scatter gives the interval', 's', 0.001, 10.0)
    force_window: float = setting(0.5, 'Time over which the force at the tool is a mean', 's', 0.05, 5.0)
    force_psd: float = setting(2e-6, 'As observer.force_psd, for the force at the tool', 'MPa^2 s', 0.0, 1e6)


@dataclass(frozen=True)
class Mass:
    """Result after a segment, kg; ``gate`` is the gate that rejected the segment's last sample, 'open' if none.

    ``stddev`` is that of ``noise`` and of all uncertain numbers of the machine's file together; ``taken``: samples of
    this segment that went into the mass; ``weighed``: the mass before what is known of the errors that all masses have
    in common is taken off, and ``slopes`` (k,) its derivatives by these errors, for a standard deviation of each; (0,)
    where nothing is taken off; ``contradiction``: what would have to be incredibly wrong, most of all, for the masses
    of all poses to agree, '' where they do; ``surprise``: those of these poses have just contradicted those before;
    ``lean``: by how much the masses of the last second may be others, while it is not certain that the load changes;
    ``settling``: it has changed for a while, and may still; ``zeros``: position sensors whose zeros are not those of
    the file, by how much, in words; the interval includes them; ``errors``: the errors behind ``slopes`` that were
    found, (k,), and their covariance (k, k), in these deviations.
    """

    mass: float
    stddev: float
    half_width: float
    raw: float
    low_passed: float
    samples: int
    gate: str
    noise: float
    taken: int = 0
    weighed: float = nan
    slopes: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    contradiction: str = ''
    surprise: bool = False
    lean: float = 0.0
    settling: bool = False
    zeros: tuple[str, ...] = ()
    errors: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval, kg, with the masses of the last second."""
        return (self.mass - self.half_width + min(self.lean, 0.0), self.mass + self.half_width + max(self.lean, 0.0))

    def beyond(self, limits: tuple[float, float]) -> bool:
        """Whether no mass within the limits, kg, explains it, except with a chance of one in a thousand."""
        low, high = limits
        room, before = BEYOND * self.half_width, BEYOND * self._half_before
        return (self.mass < low - room or self.mass > high + room
                or self.weighed < low - before or self.weighed > high + before)

    @property
    def _half_before(self) -> float:
        """Half-width of the interval before anything was taken off: errors have their deviations then."""
        return NORMAL * sqrt(self.noise ** 2 + float(self.slopes @ self.slopes))


@dataclass(frozen=True)
class Cause:
    """What one cause adds to the uncertainty of a mass: a standard deviation, kg; their squares add up.

    ``assumed``: the machine's file does not state the deviation of this number; ``aged``: share of the square that is
    due to the age of the calibration, see ``description.age``; ``noise``: not a number of the file.
    """

    cause: str
    kg: float
    assumed: bool = False
    aged: float = 0.0
    noise: bool = False

    def __str__(self) -> str:
        notes = ['assumed'] * self.assumed + [f'{self.aged:.0%} of its square by age'] * (self.aged > 0.0)
        return self.cause + (f' ({", ".join(notes)})' if notes else '')


class Doubt(NamedTuple):
    """Of an uncertain number: see ``Cause``."""

    assumed: bool
    aged: float


class PayloadEstimator(Protocol):
    """Mass of the payload of one machine from states of the observer, segment by segment."""

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""

    @property
    def kept(self) -> float:
        """Logarithm of the share of the first information on the mass that still counts."""

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on.

        The mass so far stays; with another gain, window or batch the filters continue from it, and its scatter is
        collected again.
        """

    def reset(self) -> None:
        """Forget the mass, and the errors that all masses have in common."""

    def restart(self, pause: float = 0.0) -> None:
        """The state starts again after a ``pause``, s, of all sensors: joint angles are solved again, the mass stays.

        The longer the pause, the less of what the observer had found counts. 0: the state was wrong, or the clock has
        jumped; what the observer then finds of the mass is all that counts.
        """

    def process(self, mean: np.ndarray, covariance: np.ndarray, dt: float, reported: np.ndarray,
                share: float = 1.0) -> Mass:
        """Take the states (n, nx), SI, of a segment with the covariance (nx, nx) of its last; step ``dt``, s.

        ``reported`` (n, 4 + k), or (0, 3): what an observer that weighs measures of the mass, see MassInformation.
        ``share`` of that information that counts where masses are compared: 1, or less where their errors are alike.
        Raises PositionProblemError where the cylinders cannot reach.
        """

    def hold(self, reported: np.ndarray | None = None) -> Mass:
        """The mass so far, when there is no state to use; of ``reported`` only a change of the load is used."""

    def doubt(self) -> None:
        """Discard what the last half second, or up to a second, has added, of an observer that weighs."""

    def difference(self, new: Mass, old: Mass) -> tuple[float, float]:
        """By how much two masses differ, kg, and the standard deviation of what the uncertain numbers make of it: they
        are as wrong in both, but another pose makes another error of it."""

    def budget(self, noise: float) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first: ``noise``, kg, and the uncertain numbers by their keys."""


def other_filters(new: PayloadSettings, old: PayloadSettings) -> bool:
    """Whether the filters of the mass are others."""
    return any(getattr(new, name) != getattr(old, name) for name in ('low_pass_gain', 'window', 'batch_time'))


def uncertain_numbers(machine: Machine) -> dict[str, Doubt]:
    """Keys of the machine's numbers that have a deviation, and what a budget says of it."""
    places = np.flatnonzero(machine.parameters.stddev)
    names, own = [machine.parameters.names[k] for k in places], np.diag(machine.parameters.factor(places.tolist()))
    known, ages = uncertain(machine.description), {
        number.key: sensor.drift.stddev for sensor in machine.description.sensors.values()
        if sensor.drift is not None for number in sensor.bias}
    return {name: Doubt(name in known and is_assumed(known[name]), float(ages.get(name, 0.0) / stddev) ** 2)
            for name, stddev in zip(names, own)}


def noise_of(machine: Machine) -> str:
    """What a budget calls noise: with the errors of the force balance that a machine's file states."""
    stated = stated_keys(machine)
    return f'noise of the sensors, {", ".join(stated)}' if stated else NOISE


def causes(numbers: Mapping[str, Doubt], noise: float, kg: np.ndarray, word: str = NOISE) -> tuple[Cause, ...]:
    """``noise`` by its ``word``, and ``kg`` (k,) of the ``uncertain_numbers`` of a machine, the largest first."""
    found = [Cause(word, noise, noise=True),
             *(Cause(name, float(item), *doubt) for (name, doubt), item in zip(numbers.items(), kg))]
    return tuple(sorted(found, key=lambda cause: -cause.kg))


def center_of(machine: Machine, names: Sequence[str], mean: np.ndarray, covariance: np.ndarray
              ) -> dict[str, tuple[float, float]]:
    """Place of the load in the frame of its body and its standard deviation, m, by the axis, from the entries
    ``names`` of a state ``mean`` (nx,), SI, and its ``covariance`` (nx, nx).

    The observer's where the file gives the centre a deviation and there is a load, else that of the file.
    """
    payload = machine.payload_data
    found = {axis: (item.value, item.stddev) for axis, item in zip('xyz', payload.center)}
    mass, least = float(mean[-1]), LEAST * (payload.limits[1] - payload.limits[0])
    for i, name in enumerate(names):
        kind, axis = name.split('/')
        if kind == 'moment' and mass > least:
            slope = np.array([1.0, -mean[i] / mass]) / mass
            P = covariance[np.ix_([i, -1], [i, -1])]
            found[axis] = float(found[axis][0] + mean[i] / mass), float(np.sqrt(slope @ P @ slope))
    return found
