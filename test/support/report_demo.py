# SPDX-License-Identifier: Apache-2.0
"""A made-up but plausible lift of a crane for the tests of the report: 24 s, samples at 100 Hz, states at 1 kHz."""

from __future__ import annotations

import numpy as np

from mbse_ros.report.data import Animation, Innovation, Nis, PayloadTrack, Run, Series, Signal, Table

STATUS_NAMES = {0: 'updating', 1: 'too slow', 2: 'no data', 3: 'not observable', 4: 'outside the stroke',
                5: 'accelerating'}
_KNOTS = ((0, 0), (1, 0), (1.2, 20), (7, 20), (7.2, 0), (9, 0), (9.2, -35), (12, -35), (12.2, 0), (13, 0), (13.2, 45),
          (15, 45), (15.2, 0), (16.5, 0), (16.7, -18), (21.5, -18), (21.7, 0), (24, 0))   # s, mm/s


def demo_run(seed: int = 1, truth: bool = True, step: float = 1e-3) -> Run:
    """The run with a state each step (s) and a sample each tenth; without truth it looks like a measured lift."""
    random = np.random.default_rng(seed)
    t = np.arange(0, 24, step)
    z, v, a = _motion(t)
    innovations = [Innovation(name, unit, t[::10], random.normal(0, s, t[::10].size), np.full(t[::10].size, s), scale)
                   for name, unit, s, scale in (('position/lift', 'mm', 4.1e-4, 1e3),
                                                ('pressure/lift_piston', 'kPa', 1.5e4, 1e-3),
                                                ('pressure/lift_rod', 'kPa', 9e3, 1e-3))]
    nis = Nis(t[::10], random.chisquare(3, t[::10].size), 3, 0.2158, 9.3484)
    return Run(
        'Simulated lift of 50 kg', 'patu655_lift', _FACTS, _NOTES, _signals(random, t, z, v, a, truth), innovations,
        nis, _payload(random, t[::10], v[::10], a[::10], truth), _animation(random, t[::20], z[::20]),
        [Table('Errors at the stamps', ('quantity', 'RMSE', 'largest'), [('position', '0.03 mm', '0.11 mm'),
                                                                         ('velocity', '0.8 mm/s', '3.9 mm/s')])])


_FACTS = {'Machine': 'patu655_lift, one lift cylinder', 'Data': '24.0 s, 2400 samples at 100 Hz, none lost',
          'Observer': 'exponential DEKF, 1 kHz, order 2', 'Valve': 'orifice',
          'Cost': '0.07 s, 0.3 % of real time'}
_NOTES = ('The mass counts what hangs at the tip of the boom, hook included.',
          'Friction & load cannot be separated by one lift alone <here both directions were driven>.')


def _motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    times, speeds = np.array(_KNOTS).T
    v = np.interp(t, times, speeds * 1e-3)
    half = round(0.06 / (t[1] - t[0]))
    window = np.hanning(2 * half + 1)
    v = np.convolve(np.pad(v, half, mode='edge'), window / window.sum(), mode='valid')
    return 0.12 + np.cumsum(v) * (t[1] - t[0]), v, np.gradient(v, t)


def _noise(random: np.random.Generator, size: int, stddev: float) -> np.ndarray:
    """Noise with the smoothness of a filter's error."""
    kernel = np.exp(-np.linspace(0, 6, 300))
    return stddev * np.convolve(random.normal(size=size + 299), kernel / np.linalg.norm(kernel), mode='valid')


def _signals(random: np.random.Generator, t: np.ndarray, z: np.ndarray, v: np.ndarray, a: np.ndarray,
             truth: bool) -> list[Signal]:
    ring = 1e5 * np.sin(2 * np.pi * 13.9 * t) * np.exp(-3 * np.abs(a) / 0.05) * (np.abs(a) > 1e-3)
    piston = 4.1e6 + 1.3e6 * (v > 1e-3) + 5e5 * z + 2e6 * a + ring
    rod = 2.2e6 + 9e5 * (v < -1e-3) - 1e6 * a
    rows = (('Position, lift', 'mm', 1e3, 'Motion', z, 3e-5, 4e-4),
            ('Velocity, lift', 'mm/s', 1e3, 'Motion', v, 8e-4, None),
            ('Acceleration, lift', 'm/s²', 1.0, 'Motion', a, 2e-2, None),
            ('Pressure, lift piston side', 'MPa', 1e-6, 'Pressures', piston, 8e3, 12e3),
            ('Pressure, lift rod side', 'MPa', 1e-6, 'Pressures', rod, 6e3, 8e3))
    signals = []
    for name, unit, scale, group, true, stddev, noise in rows:
        sampled = None if noise is None else true[::10] + random.normal(0, noise, t[::10].size)
        if sampled is not None and group == 'Pressures':
            sampled[(t[::10] > 10) & (t[::10] < 11.2)] = np.nan     # a sensor that fails for 1.2 s
        spread = stddev * (1 + 5 * np.exp(-t / 0.3))
        estimated = Series(t, true + _noise(random, t.size, 1.0) * spread, spread)
        signals.append(Signal(name, unit, scale, group, None if noise is None else Series(t[::10], sampled), estimated,
                              Series(t, true) if truth else None))
    return signals


def _payload(random: np.random.Generator, t: np.ndarray, v: np.ndarray, a: np.ndarray, truth: bool) -> PayloadTrack:
    moving, calm = np.abs(v) > 4e-3, np.abs(a) < 3e-2
    status = np.where(t < 0.3, 2, np.where(~moving, 1, np.where(~calm, 5, 0)))
    raw = np.where(moving, 50 + random.normal(0, 9, t.size) + 400 * a, np.nan)
    raw[::97] += 300.0
    used = np.cumsum(status == 0)
    with np.errstate(invalid='ignore', divide='ignore'):
        mass = np.where(used > 0, 50.3 + 6 * np.exp(-used / 150) * np.cos(used / 60), np.nan)
        half = np.where(used > 0, 1.9 + 60 / np.sqrt(np.maximum(used, 1)), np.nan)
    low_passed = np.where(moving, 50.2 + _noise(random, t.size, 3.0), np.nan)
    return PayloadTrack(t, raw, low_passed, mass, mass - half, mass + half, status, STATUS_NAMES,
                        true=50.0 if truth else None)


def _animation(random: np.random.Generator, t: np.ndarray, z: np.ndarray) -> Animation:
    captions = [f'{50 + 5 * np.exp(-k / 150):.1f} kg' if k > 60 else 'no mass yet' for k in range(t.size)]
    return Animation(t, _outline(z), _outline(z + random.normal(0, 4e-4, z.size)), captions,
                     mass=np.full(t.size, 50.0))


def _outline(z: np.ndarray) -> dict[str, np.ndarray]:
    """Boom and lift cylinder of the PATU crane at piston positions z, by the law of cosines."""
    base, eye, tip = np.array([0.26, -1.04]), np.array([0.3025, -0.105]), np.array([2.89, 0.0246])
    length, b, e = 0.82 + z, np.hypot(*base), np.hypot(*eye)
    between = np.arccos((b**2 + e**2 - length**2) / (2 * b * e))
    angle = np.arctan2(base[1], base[0]) + between - np.arctan2(eye[1], eye[0])

    def turned(point: np.ndarray) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.column_stack([c * point[0] - s * point[1], 0 * c, s * point[0] + c * point[1]])

    pivot, rod_eye, end = np.zeros((z.size, 3)), turned(eye), turned(tip)
    foot = np.broadcast_to([base[0], 0.0, base[1]], (z.size, 3))
    gland = foot + 0.75 * (rod_eye - foot) / length[:, None]
    return {'boom': np.stack([pivot, rod_eye, end, pivot], axis=1),
            'cylinder/lift': np.stack([foot, gland, rod_eye], axis=1), 'payload': end[:, None]}
