# SPDX-License-Identifier: Apache-2.0
"""Solids of machines: closed surfaces around their outlines, which move with the pose and keep their shape."""

from collections import Counter

import numpy as np
import pytest
from transforms3d.euler import euler2mat
from transforms3d.quaternions import quat2mat

from mbse_ros.machine import load_machine
from mbse_ros.report.solids import ACROSS, Solids, quaternions, rounded

SHAPES = {'bar': [[0, 0], [2, 0]], 'bent': [[0, 0], [1, 1], [2, 0.8]], 'area': [[0, 0], [0, 1], [2, 1], [2, 0], [0, 0]],
          'concave': [[0, 0], [2, 0], [2, 2], [1, 0.5], [0, 2], [0, 0]], 'straight': [[0, 0], [1, 0], [3, 0], [0, 0]],
          'crossing': [[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]}


def area(polygon):
    x, y = polygon.T
    return 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))


@pytest.mark.parametrize('name', SHAPES)
def test_plates_are_closed_and_as_thick_as_said(name):
    """Each edge has two triangles; the volume by the divergence theorem is that of the plate; no point of the outline
    is nearer to its edge."""
    line = np.array(SHAPES[name], dtype=float)
    polygon, radius = rounded(line, 0.05), 0.05
    edges = np.roll(polygon, -1, axis=0) - polygon
    for point in line:
        along = np.clip(np.einsum('ij,ij->i', point - polygon, edges) / (edges ** 2).sum(axis=1), 0, 1)
        away = np.linalg.norm(polygon + along[:, None] * edges - point, axis=1).min()
        assert away >= radius * np.cos(np.pi / 8) - 1e-9
    body, = Solids({name: np.column_stack([line[:, 0], 0 * line[:, 0], line[:, 1]])}).parts
    corners = [tuple(point) for point in body.triangles().round(9)]
    edges = Counter((corners[k + i], corners[k + (i + 1) % 3]) for k in range(0, len(corners), 3) for i in range(3))
    assert set(edges.values()) == {1} and all((end, start) in edges for start, end in edges)
    a, b, c = np.moveaxis(body.triangles().reshape(-1, 3, 3), 1, 0)
    volume = np.einsum('ij,ij->', a, np.cross(b, c)) / 6
    assert volume == pytest.approx(area(body.polygon) * body.across, rel=1e-9) and area(body.polygon) > 0.0


@pytest.mark.parametrize('name', ['zx200', 'patu655'])
def test_pins_stay_on_the_points_of_the_outline(name):
    """In any pose, also where the machine swings; barrels end at the gland, the rods begin there."""
    machine = load_machine(name)
    solids, z = machine.solids, machine.model.start.q[machine.model.z].copy()
    z[:2] += 0.05
    if 'swing_joint' in machine.coordinates:
        z[machine.coordinates.index('swing_joint')] = 1.1
    lines = machine.outline(z)
    points = np.vstack(list(lines.values()))
    for part, (origin, x, y, axis) in zip(solids.parts, solids.placed(lines)):
        for a, b in part.pins:
            assert np.linalg.norm(points - (origin + a * x + b * y), axis=1).min() < 1e-6
        assert axis @ x == pytest.approx(0.0, abs=1e-9) and axis @ y == pytest.approx(0.0, abs=1e-9)
        if part.kind in ('barrel', 'rod'):
            start = {'barrel': 0, 'rod': 1}[part.kind]
            np.testing.assert_allclose([origin, origin + x], lines[part.name][start:start + 2], atol=1e-12)
    assert solids.thick * ACROSS > 0.05


def test_quaternions_are_those_of_the_axes():
    """Also of half turns, where some components are 0."""
    turns = [euler2mat(*angles) for angles in ((0, 0, 0), (np.pi, 0, 0), (0, np.pi, 0), (np.pi, np.pi / 2, 0.3),
                                               (1.0, -2.0, 3.0), (np.pi, 0.0, np.pi / 2))]
    for turn, (x, y, z, w) in zip(turns, quaternions(np.array(turns).transpose(0, 2, 1))):
        np.testing.assert_allclose(quat2mat([w, x, y, z]), turn, atol=1e-12)
