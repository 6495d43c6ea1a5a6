# SPDX-License-Identifier: Apache-2.0
"""Kinds of machines as chains of bodies that cylinders move, and what is typical of their masses.

Nobody outside a maker's drawing office knows the masses of booms. Of excavators their shares of the operating mass are
those of the 20 t excavator of this package (zx200.yaml: PWRI OPERA, OperaSim-AGX, Apache-2.0); centres of mass are
between that and the centroids of the parts in the URDF of the 12 t excavator of the same project (zx120_ros). Of cranes
they are those of the crane of this package (patu655.yaml), taken as one of 1 t; those of wheel loaders are ours. The
deviations are ours: 25 % of a mass, 6 % of the length of the body for its centre: so wide that calibration finds what
they are. How heavy a machine is for its length is that of zx200 (33 kg for the cubic metre) and of the invented
machines of ``examples``: it serves to notice a wrong digit.
"""

from __future__ import annotations

from dataclasses import dataclass

MASS_SPREAD = 0.25
CENTER_SPREAD = 0.06        # of the length of the body
INERTIA_SPREAD = 0.4
STEEL = 7850.0              # kg/m^3
WALL = 0.1                  # of the bore: wall of a barrel
FITTINGS = 1.3              # of the mass of tube and rod: heads, eyes, oil


@dataclass(frozen=True)
class ChainLink:
    """A body of the chain: its name and first pin, the cylinder that moves it, its share of the mass, centre of mass as
    shares of its length along the line of its pins and to the left of it, radius of gyration as a share of the length.
    ``base``, ``eye``: on which side of the line of pins the cylinder's pins are, 1 above. ``slides``: along the body
    before it, a telescope."""

    name: str
    cylinder: str
    share: float
    center: tuple[float, float]
    gyration: float
    base: int
    eye: int
    slides: bool = False


@dataclass(frozen=True)
class MachineKind:
    """``links`` from the machine outwards; ``bucket``: one more body that a ``linkage`` moves: 'rocker' and link of an
    excavator, or 'bellcrank' and link of a wheel loader; or a 'grapple' that hangs. ``vehicle``: the mass is that of
    all of it, also of a machine without a bucket."""

    name: str
    text: str
    links: tuple[ChainLink, ...]
    bucket: ChainLink | None = None
    linkage: str = ''
    load: float = 0.12      # largest, as a share of the mass
    by_cube: float = 0.0    # kg/m^3: mass over the cube of the length of all bodies that turn, in a row; 0: not known
    vehicle: bool = False

    @property
    def cylinders(self) -> list[str]:
        """Their names, from the machine outwards."""
        return [link.cylinder for link in (*self.links, self.bucket) if link is not None]

    @property
    def most(self) -> float:
        """The largest load that is believed, as a share of the mass: an excavator does not carry itself, a crane close
        to its column several times its own mass."""
        return 1.0 if self.whole else 10.0

    @property
    def whole(self) -> bool:
        """Whether the mass is that of a machine that drives."""
        return self.vehicle or self.bucket is not None


_BOOM = ChainLink('boom', 'boom', 0.115, (0.48, 0.065), 0.22, -1, 1)
_ARM = ChainLink('arm', 'arm', 0.05, (0.35, 0.06), 0.25, 1, 1)
_BUCKET = ChainLink('bucket', 'bucket', 0.033, (0.36, 0.28), 0.31, 1, 1)
BAR = 0.002                 # of the mass: rocker, and link
LOAD_CENTER = 0.45, 0.23, 0.08      # of a bucket's load, as shares of pin to teeth; deviation
_CRANE = ChainLink('boom', 'lift', 0.15, (0.45, 0.02), 0.27, -1, -1)
_TELESCOPE = ChainLink('inner_boom', 'telescope', 0.05, (0.6, 0.0), 0.29, 1, 1, True)
KINDS = {kind.name: kind for kind in (
    MachineKind('excavator', 'excavator with a mono boom and a bucket linkage', (_BOOM, _ARM), _BUCKET,
                'rocker', by_cube=36.0),
    MachineKind('two_piece_excavator', 'excavator whose boom has two pieces, with a cylinder between them', (
        ChainLink('boom', 'boom', 0.07, (0.5, 0.03), 0.27, -1, 1),
        ChainLink('upper_boom', 'adjust', 0.055, (0.45, 0.03), 0.27, -1, -1), _ARM), _BUCKET,
                'rocker', by_cube=40.0),
    MachineKind('wheel_loader', 'wheel loader with a Z-bar linkage', (
        ChainLink('boom', 'lift', 0.08, (0.5, 0.0), 0.3, -1, -1),),
                ChainLink('bucket', 'tilt', 0.075, (0.4, 0.2), 0.3, 1, 1), 'bellcrank', 0.3, 680.0),
    MachineKind('loader_crane', 'loader or forestry crane with two booms', (
        _CRANE, ChainLink('outer_boom', 'tilt', 0.17, (0.45, 0.02), 0.3, 1, 1)), load=1.0, by_cube=7.4),
    MachineKind('forwarder_crane', 'crane of a forwarder: two booms, a telescope, a grapple that hangs', (
        _CRANE, ChainLink('outer_boom', 'tilt', 0.13, (0.4, 0.03), 0.3, 1, 1), _TELESCOPE), None, 'grapple', 0.8, 7.4),
    MachineKind('telehandler', 'telehandler: a boom with a telescope, and a carriage that a cylinder tilts', (
        ChainLink('boom', 'lift', 0.09, (0.45, 0.0), 0.28, -1, -1), _TELESCOPE,
        ChainLink('carriage', 'tilt', 0.04, (0.2, 0.1), 0.5, 1, 1)), load=0.35, by_cube=130.0,
                vehicle=True),
    MachineKind('one_boom_crane', 'crane with one boom', (_CRANE,), load=1.0, by_cube=56.0),
    MachineKind('single_cylinder', 'an arm on a pin that one cylinder lifts', (
        ChainLink('arm', 'lift', 0.5, (0.45, 0.0), 0.29, -1, -1),), load=1.0))}
"""By name."""
