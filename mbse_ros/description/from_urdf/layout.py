# SPDX-License-Identifier: Apache-2.0
"""Where the cylinders of a URDF have their pins: bodies, joints and cylinders in the plane, as ``templates.layout``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from ...errors import DescriptionError
from ..basics import GROUND
from ..templates.geometry import TAPE, NoTriangleError, Point, apex
from ..templates.kinds import ChainLink
from ..templates.layout import MARGIN, PinnedBody, PlacedCylinder, PlanarLayout, Turning, bar, spread_of
from .answers import RobotAnswers, cylinder_of, key_of
from .chain import ChainBody, RobotChain
from .closures import Closure, Lengths, closures, spans
from .forms import LETTERS, Pin
from .plane import SHORTEST, PlanarFrame, WorkPlane, outwards

FOOT, ROCKER, LINK = 'foot', 'rocker', 'link'
EXACT = 0.0, 0.0
SLID = '_slid'      # ends the name of the pin where a telescope is in the middle of its stroke, for drawings alone
PLAY = 0.01         # m: of a telescope's limits beyond its stroke
ALIKE = 0.6         # of a range and limits together, from which on what both share is near enough
UNLIKE = 0.05       # m between the stroke of a telescope and the range of its joint, or a tenth of it
Places = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]      # x and z of a pin in the plane, m, by angles, rad


class SeveralMachinesError(DescriptionError):
    """Lengths of a cylinder leave several machines: ``layouts`` as far as it, each with another closure; ``branch``:
    key of the answer that chooses one."""

    def __init__(self, error: DescriptionError, branch: str, layouts: list[RobotLayout]) -> None:
        super().__init__(error.file, error.key, error.value, error.expected)
        self.branch, self.layouts = branch, layouts


@dataclass
class RobotLayout(PlanarLayout):
    """``frames`` of the bodies in the plane by their names, '' of the one before the first, whose pins are ``ground``;
    ``ranges`` of joints that cylinders move, rad or m, and their ``starts`` in the middle of the stroke; ``notes``:
    what is odd."""

    frames: dict[str, PlanarFrame] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def copied(self) -> RobotLayout:
        """One that can grow in another way."""
        found = RobotLayout(**{name: type(value)(value) for name, value in vars(self).items()})
        found.bodies = [replace(body, points=dict(body.points)) for body in self.bodies]
        return found

    def put(self, owner: str, pin: str, place: Point, spread: Point) -> None:
        """A pin of a body, '' of the one before the first."""
        if not owner:
            self.ground[pin] = place
            return
        next(body for body in self.bodies if body.link.name == owner).points[pin] = place, spread


@dataclass(frozen=True)
class Way:
    """One choice of sides: pin of the base on the parent, pin on the body (eye of the rod, or that of the link), each
    with its deviations, m; ``lengths`` of the cylinder, and, of a linkage, places of the rod's ``eye``, by the angle of
    the joint."""

    base: tuple[Point, Point]
    pin: tuple[Point, Point]
    lengths: Lengths
    eye: Places | None = None


def measured_chain(answers: RobotAnswers) -> RobotChain:
    """The chain with the tool where the answers say, and with telescopes that go as far as their cylinders: about the
    middle of their limits. Raises DescriptionError."""
    chain = answers.chain
    if 'tip' in answers.values:
        chain = replace(chain, tip=(np.array(answers.values['tip']), chain.tip[1]))
    bodies = [_telescope(answers, chain, k) if body.slides and answers.moves[body.joint.name] == 'cylinder' else body
              for k, body in enumerate(chain.bodies)]
    return replace(chain, bodies=tuple(bodies))


def _telescope(answers: RobotAnswers, chain: RobotChain, count: int) -> ChainBody:
    body = chain.bodies[count]
    key = f'{key_of(body.joint.name)}_cylinder'
    reach = answers.values[key][3] - answers.values[key][2]
    low, high = body.joint.limits or ((0.0, reach) if outwards(chain, count) > 0 else (-reach, 0.0))
    if abs(high - low - reach) > max(UNLIKE, 0.1 * reach):
        raise answers.entries[key].error(f'a stroke as long as {body.joint.name} slides by the limits of the URDF, '
                                         f'{high - low:.3g} m, not {reach:.3g} m: extended less closed length')
    middle = 0.5 * (low + high)
    return replace(body, joint=replace(body.joint, limits=(middle - 0.5 * reach, middle + 0.5 * reach)))


def robot_layout(answers: RobotAnswers) -> RobotLayout:
    """All of it. Raises DescriptionError with the answer that does not fit, SeveralMachinesError."""
    found, error = begun_robot(answers)
    if error is not None:
        raise error
    return found


def begun_robot(answers: RobotAnswers) -> tuple[RobotLayout, DescriptionError | None]:
    """As much as some answers give, and why there is no more: None where answers are missing."""
    found = RobotLayout()
    moved = answers.joints('cylinder', 'linkage')
    if not moved:
        return found, None
    try:
        plane = WorkPlane(measured_chain(answers), moved, answers.file)
        for count in plane.counts:
            found = _Place(answers, plane, count).added(found)
    except KeyError:        # not answered yet
        return found, None
    except DescriptionError as error:
        return found, error
    return found, None


class _Place:
    """One body and its cylinder, while they are added."""

    def __init__(self, answers: RobotAnswers, plane: WorkPlane, count: int) -> None:
        self.answers, self.plane, self.count = answers, plane, count
        self.body: ChainBody = plane.chain.bodies[count]
        self.joint = self.body.joint.name
        self.cylinder, self.key = cylinder_of(self.joint, plane.chain.robot), key_of(self.joint)
        self.sizes: list[float] = list(answers.values[f'{self.key}_cylinder'])
        self.own, self.before = plane.frame(count), plane.before(count)
        self.parent = '' if count == plane.counts[0] else self.body.parent      # in the plane
        self.pivot = self.before.planar(self.body.place)
        self.angle, self.sense = plane.angle(count)
        last = count == len(plane.chain.bodies) - 1
        if self.own.length < SHORTEST and (last or not plane.chain.bodies[count + 1].slides):
            raise DescriptionError(answers.file, 'tip', f'{self.own.length:.3g} m from the pin of {self.body.name} to '
                                   'the next one, or to the tool, seen from the side', f'{SHORTEST:g} m at least')
        pins = {'pin': (EXACT, EXACT), 'tip' if last else 'end': ((self.own.length, 0.0), EXACT)}
        self.pinned = PinnedBody(ChainLink(self.body.name, self.cylinder, 0.0, (0.0, 0.0), 0.0, 1, 1), self.own.length,
                                 pins)

    def added(self, found: RobotLayout) -> RobotLayout:
        """A layout with one more body. Raises SeveralMachinesError."""
        if self.body.slides:
            return self._slid(found)
        ways = list(self._linkages() if self.answers.moves[self.joint] == 'linkage' else self._levers())
        limits, key = self.body.joint.limits, f'{self.key}_branch'
        fitting = closures([way.lengths for way in ways], (self.sizes[2], self.sizes[3]), limits)[:len(LETTERS)]
        if not fitting:
            raise self._open([way.lengths for way in ways], limits)
        layouts = [self._turned(found.copied(), ways[item.choice], item) for item in fitting]
        chosen = self.answers.values.get(key)
        if chosen is None and len(fitting) > 1:
            texts = [f'{LETTERS[k]} ({_degrees(way.range)})' for k, way in enumerate(fitting)]
            raise SeveralMachinesError(self.answers.entries[f'{self.key}_cylinder'].error(
                f'the answer {key} as well, {", or ".join(texts)}: the lengths leave {len(fitting)} machines, which '
                f"differ in the range of {self.joint}; or 'above' or 'below' as a third word of a pin"
                + ', or limits of this joint in the URDF' * (limits is None)), key, layouts)
        if chosen is not None and chosen >= len(fitting):
            raise self.answers.entries[key].error('auto, or one of ' + ', '.join(LETTERS[:len(fitting)]))
        return layouts[chosen or 0]

    def _turned(self, found: RobotLayout, way: Way, item: Closure) -> RobotLayout:
        """With the body and its cylinder in one way."""
        start, limits = item.middle, (item.range[0] - MARGIN, item.range[1] + MARGIN)
        self._begin(found, start, limits)
        if item.agreement < ALIKE:
            found.notes.append(f'{self.joint}: the stroke of {self.cylinder} turns it {_degrees(item.range)}, the '
                               f'limits of the URDF are {_degrees(self.body.joint.limits or (0.0, 0.0))}: the file has '
                               'the former; check the pins')
        found.joints.append(Turning(self.joint, f'{self.parent}.end' if self.parent else f'ground.{FOOT}',
                                    f'{self.body.name}.pin', self.angle + self.sense * start, limits))
        base, eye = f'{self.key}_base', f'{self.body.name}.{self.key}_eye'
        found.put(self.parent, base, *way.base)
        if way.eye is None:
            found.put(self.body.name, f'{self.key}_eye', *way.pin)
        else:
            eye = self._bars(found, way, start)
        found.cylinders.append(PlacedCylinder(self.cylinder, f'{self.parent or "ground"}.{base}', eye, self.sizes,
                                              int(self.answers.values[f'{self.key}_cylinders'])))
        return found

    def _begin(self, found: RobotLayout, start: float, limits: tuple[float, float]) -> None:
        if not self.parent:
            found.frames[''] = self.before
        found.frames[self.body.name] = self.own
        found.bodies.append(replace(self.pinned, points=dict(self.pinned.points)))
        found.ranges[self.joint], found.starts[self.joint] = limits, start

    def _bars(self, found: RobotLayout, way: Way, start: float) -> str:
        """Rocker and link of a linkage; the eye of the rod is the end of the rocker."""
        assert way.eye is not None
        taken = {name for body in self.plane.chain.bodies for name in (body.name, body.joint.name)}
        rocker, link, linkage = (f'{name}_bar' if {name, f'{name}_joint'} & taken else name
                                 for name in (ROCKER, LINK, 'linkage'))
        pivot, spread = next(self._pins('rocker_pin', self.before, self.parent))
        found.put(self.parent, 'rocker_pin', pivot, spread)
        found.put(self.body.name, 'link_pin', *way.pin)
        eye = tuple(float(item[0]) for item in way.eye(np.array([start])))
        end = tuple(float(item[0]) for item in _rotated(self.pivot, self.angle + self.sense * np.array([start]),
                                                        way.pin[0]))
        turned = math.atan2(eye[1] - pivot[1], eye[0] - pivot[0])
        tied = math.remainder(math.atan2(end[1] - eye[1], end[0] - eye[0]) - turned, 2.0 * math.pi)
        for name, key in ((rocker, 'rocker'), (link, 'link')):
            length = self.answers.values[key]
            found.bodies.append(PinnedBody(bar(name), length, {'pin': (EXACT, EXACT), 'end': (
                (length, 0.0), (TAPE, 0.0))}))
        found.joints += [Turning(f'{rocker}_joint', f'{self.parent}.rocker_pin', f'{rocker}.pin', turned),
                         Turning(f'{link}_joint', f'{rocker}.end', f'{link}.pin', tied),
                         Turning(f'{linkage}_joint', f'{link}.end', f'{self.body.name}.link_pin', math.nan)]
        return f'{rocker}.end'

    def _levers(self) -> Iterator[Way]:
        """Cylinders from the parent to the body."""
        name = self.key
        for (base, base_spread), (eye, eye_spread) in product(
                list(self._pins(f'{name}_base', self.before, self.body.parent)),
                list(self._pins(f'{name}_eye', self.own, self.body.name))):
            def lengths(angles: np.ndarray, base: Point = base, eye: Point = eye) -> np.ndarray:
                return _distance(_rotated(self.pivot, self.angle + self.sense * angles, eye), base)
            yield Way((base, base_spread), (eye, eye_spread), lengths)

    def _linkages(self) -> Iterator[Way]:
        """Cylinders that turn a rocker on the parent, whose end a link ties to the body."""
        rocker, size = self.answers.values['rocker'], self.answers.values['link']
        pivot, _ = next(self._pins('rocker_pin', self.before, self.body.parent))
        for (base, base_spread), (hung, hung_spread), side in product(
                list(self._pins(f'{self.key}_base', self.before, self.body.parent)),
                list(self._pins('link_pin', self.own, self.body.name)), (1, -1)):
            def eye(angles: np.ndarray, hung: Point = hung, side: int = side) -> tuple[np.ndarray, np.ndarray]:
                return _between(pivot, rocker, _rotated(self.pivot, self.angle + self.sense * angles, hung), size, side)

            def lengths(angles: np.ndarray, base: Point = base, eye: Places = eye) -> np.ndarray:
                return _distance(eye(angles), base)
            yield Way((base, base_spread), (hung, hung_spread), lengths, eye)

    def _pins(self, key: str, frame: PlanarFrame, owner: str) -> Iterator[tuple[Point, Point]]:
        """Places and deviations that an answer leaves, in the plane of its body, m."""
        pin: Pin = self.answers.values[key]
        entry, chain = self.answers.entries[key], self.plane.chain
        if pin.link:
            seat = chain.robot.seats[pin.link]
            if seat.owner != owner:
                raise entry.error(f'a link that is fixed to {owner}')
            yield frame.planar(chain.turned @ seat.pose[0] if owner == GROUND else seat.pose[0]), EXACT
            return
        first, second = pin.lengths
        if not frame.length or key == 'rocker_pin':
            yield (frame.length - first if frame.length else first, second), (TAPE, TAPE)
            return
        for side in (pin.side,) if pin.side else (1, -1):
            try:
                place = apex(frame.length, first, second, side)
            except NoTriangleError as error:
                raise entry.error(f'lengths that make a triangle with {owner}: {error}') from None
            yield place, spread_of(frame.length, first, second, side)

    def _open(self, choices: list[Lengths], limits: tuple[float, float] | None) -> DescriptionError:
        """Why no way is left, and which lengths would fit."""
        entry, sizes = self.answers.entries[f'{self.key}_cylinder'], self.sizes
        anywhere = closures(choices, (sizes[2], sizes[3]), None)
        over = limits or (-math.pi, math.pi)
        apart = [f'{low:.3f} to {high:.3f} m' for low, high in spans(choices, over)]
        fits = ', or '.join(dict.fromkeys(apart)) or 'a length that the linkage does not have everywhere'
        linkage = self.answers.moves[self.joint] == 'linkage'
        keys = 'rocker_pin, rocker, link, link_pin' if linkage else f'{self.key}_eye'
        where = f'{_degrees(over)} of {self.joint}' + ', the limits of the URDF,' * (limits is not None)
        fits += f' by {self.key}_base, {keys}'
        if limits is None or not anywhere:
            return entry.error(f'a cylinder that closes over its whole stroke; over {where} its ends are apart {fits}')
        ranges = ', or '.join(_degrees(way.range) for way in anywhere[:3])
        return entry.error(f'a stroke within the limits of the URDF; it moves {self.joint} from {ranges}; over {where} '
                           f'its ends are apart {fits}')

    def _slid(self, found: RobotLayout) -> RobotLayout:
        """With a telescope, whose cylinder is along it. Where beside it the cylinder is does not count."""
        ends = self.body.joint.limits or (0.0, 0.0)
        sense, closed, start = outwards(self.plane.chain, self.count), self.sizes[2], 0.5 * (ends[0] + ends[1])
        retracted = ends[0] if sense > 0 else ends[1]
        self._begin(found, start, (ends[0] - PLAY, ends[1] + PLAY))
        axis = self.body.turned.T @ self.body.axis
        found.put(self.parent, f'{self.key}_base', self.pivot, EXACT)
        found.put(self.parent, self.key + SLID, self.before.planar(self.body.place + start * self.body.axis),
                  EXACT)
        found.put(self.body.name, f'{self.key}_eye', self.own.planar(axis * (sense * closed - retracted)), EXACT)
        owner = self.parent or 'ground'
        found.joints.append(Turning(self.joint, f'{owner}.{self.key}{SLID}', f'{self.body.name}.pin', self.angle,
                                    found.ranges[self.joint]))
        found.cylinders.append(PlacedCylinder(self.cylinder, f'{owner}.{self.key}_base',
                                              f'{self.body.name}.{self.key}_eye', self.sizes))
        return found


def _rotated(pivot: Point, angles: np.ndarray, point: Point) -> tuple[np.ndarray, np.ndarray]:
    c, s = np.cos(angles), np.sin(angles)
    return pivot[0] + c * point[0] - s * point[1], pivot[1] + s * point[0] + c * point[1]


def _distance(places: tuple[np.ndarray, np.ndarray], point: Point) -> np.ndarray:
    return np.hypot(places[0] - point[0], places[1] - point[1])


def _between(first: Point, a: float, second: tuple[np.ndarray, np.ndarray], b: float, side: int
             ) -> tuple[np.ndarray, np.ndarray]:
    """As ``templates.geometry.between`` for many second points; NaN where the lengths make no triangle."""
    x, z = second[0] - first[0], second[1] - first[1]
    base = np.hypot(x, z)
    with np.errstate(invalid='ignore', divide='ignore'):
        along = 0.5 * (base + (a - b) * (a + b) / base)
        off = side * np.sqrt((a - along) * (a + along))
        return first[0] + (along * x - off * z) / base, first[1] + (along * z + off * x) / base


def _degrees(ends: tuple[float, float]) -> str:
    return f'{math.degrees(ends[0]):.0f} to {math.degrees(ends[1]):.0f} deg'
