# SPDX-License-Identifier: Apache-2.0
"""Drawings of linkages and plots of studies: what must be in sight is, names do not cover each other."""

import numpy as np
import pytest
from PIL import Image

from mbse_ros.report.data import Curve, Panel, ReportError
from mbse_ros.report.linkage import JOINTS, Link, Linkage, Part, extent, flat, floor, project, round_length
from mbse_ros.report.linkage_drawing import Labels, _canvas, write_animation, write_linkage
from mbse_ros.report.plots import Bars, write_bars, write_plots

BLUE = np.array([0x2a, 0x7d, 0xe1])


def bar(x0, y0, x1, y1, name='bar'):
    points = np.array([[x0, y0], [x1, y1]], dtype=float)
    return Part(name, points, points.mean(axis=0))


def pixels(path):
    return np.asarray(Image.open(path).convert('RGB')).astype(int)


def near(image, color, tolerance=60):
    """Share of pixels of about this colour."""
    return float(np.mean(np.abs(image - color).sum(axis=2) < tolerance))


def test_the_projection_is_that_of_an_eye_above():
    axes = project(np.eye(3))
    assert axes[2, 0] == 0.0 and axes[2, 1] > 0.8                 # z stands upright
    assert axes[0, 0] > 0.8 and axes[1, 1] > 0.1                  # x to the right, y into the picture
    assert np.all(np.linalg.norm(axes, axis=1) <= 1.0)            # parallel projection shortens
    eye = np.linalg.svd(project(np.eye(3)).T)[2][2]
    assert np.allclose(project(eye), 0.0, atol=1e-12)


def test_extent_holds_all_poses():
    poses = [Linkage('', [bar(0, 0, np.cos(a), np.sin(a))]) for a in np.linspace(0, np.pi, 7)]
    x_min, x_max, y_min, y_max = extent(poses)
    assert x_min < -1 and x_max > 1 and y_min < 0 and y_max > 1
    with pytest.raises(ReportError, match='no finite point'):
        extent([Linkage('', [bar(np.nan, 0, np.nan, 1)])])


def test_a_spatial_linkage_lies_over_its_floor():
    points = np.array([[0, 0, 0.5], [1.0, 0.3, 1.2]])
    linkage = Linkage('', [Part('arm', points, points.mean(axis=0))], gravity=np.array([0, 0, -9.81]))
    assert linkage.dimension == 3 and flat(linkage).dimension == 2
    lines = floor([linkage])
    assert lines.shape[1:] == (2, 2) and len(lines) >= 4
    low = project(np.array([0.5, 0.1, 0.5]))
    assert lines.reshape(-1, 2).min(axis=0)[0] < low[0] < lines.reshape(-1, 2).max(axis=0)[0]


@pytest.mark.parametrize('size, expected', [(0.9, 0.5), (1.0, 1.0), (4.99, 2.0), (70.0, 50.0), (0.012, 0.01)])
def test_round_length(size, expected):
    assert round_length(size) == pytest.approx(expected)


def test_a_body_is_where_it_should_be(tmp_path):
    """A bar in the upper half colours the upper half."""
    for y, name in ((1.0, 'above'), (-1.0, 'below')):
        parts = [bar(-1, y, 1, y), Part('x', np.array([[0.0, -y]]), np.array([0.0, -y]))]
        write_linkage(Linkage('t', parts), tmp_path / f'{name}.png')
    above, below = pixels(tmp_path / 'above.png'), pixels(tmp_path / 'below.png')
    half = len(above) // 2
    assert near(above[:half], BLUE) > 0.005 > near(above[half:], BLUE)
    assert near(below[half:], BLUE) > 0.005 > near(below[:half], BLUE)


def joint_picture(folder, dimension, *joints):
    """Pixels of a bar with joints."""
    part = Part('bar', np.array([np.zeros(dimension), np.ones(dimension)]), 0.5 * np.ones(dimension))
    write_linkage(Linkage('t', [part], joints, gravity=-9.81 * np.eye(dimension)[-1]), folder / 'x.png')
    return pixels(folder / 'x.png')


@pytest.mark.parametrize('dimension, kinds', [(2, JOINTS[:3] + JOINTS[6:]), (3, (*JOINTS[:2], *JOINTS[3:]))])
def test_every_joint_has_a_symbol_of_its_own(dimension, kinds, tmp_path):
    """The picture with the joint differs from that without it, in its middle, and from those of all other types."""
    bare, place = joint_picture(tmp_path, dimension), 0.5 * np.ones(dimension)
    drawn = {kind: joint_picture(tmp_path, dimension, Link('', kind, place, place + 0.2, np.eye(dimension)[0]))
             for kind in kinds}
    for picture in drawn.values():
        changed = np.argwhere(np.any(picture != bare, axis=2))
        assert len(changed) > 20 and np.all(np.abs(changed.mean(axis=0) / bare.shape[:2] - 0.5) < 0.25)
    assert len({picture.tobytes() for picture in drawn.values()}) == len(kinds)


def test_the_ground_is_drawn_under_its_joints(tmp_path):
    for kind, more in (('revolute', True), ('prismatic', True), ('distance', False)):
        free, held = (joint_picture(tmp_path, 2, Link('', kind, np.zeros(2), np.full(2, 0.3), np.eye(2)[0], ground))
                      for ground in (False, True))
        assert np.any(free != held) == more


@pytest.mark.parametrize('kind', ['spring', 'coil', 'actuator'])
def test_springs_and_actuators(kind, tmp_path):
    parts = [bar(0, 0, 1, 1)]
    element = Link('push', kind, np.array([0.2, 0.9]), np.array([0.9, 0.1]))
    for k, elements in enumerate(([], [element])):
        write_linkage(Linkage('t', parts, (), elements), tmp_path / f'{k}.png')
    assert np.any(pixels(tmp_path / '0.png') != pixels(tmp_path / '1.png'))


def test_names_do_not_cover_each_other():
    """Also where many things lie close together."""
    linkage = Linkage('t', [bar(0, 0, 1, 0.2), bar(1, 0.2, 1.6, -0.3), bar(1.6, -0.3, 2, 0)])
    figure, ax = _canvas([linkage], 9.0, 120)
    labels = Labels(ax)
    labels.keep_off(*(part.outline for part in linkage.parts))
    for place in ([0, 0], [1, 0.2], [1.02, 0.22], [1.6, -0.3], [0.5, 0.1]):
        labels.add('joint_name', np.array(place))
    labels.add('', np.zeros(2))
    texts = labels.draw()
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 5
    assert not [(a, b) for k, a in enumerate(boxes) for b in boxes[:k] if a.overlaps(b)]


def test_a_heap_of_names_is_left_out(tmp_path):
    """Forty-one bars: the picture is that of bars without names."""
    for k, letter in enumerate('ab'):
        parts = [bar(i, 0, i + 0.9, 0.5, letter * 9) for i in range(41)]
        write_linkage(Linkage('t', parts), tmp_path / f'{k}.png')
    assert np.all(pixels(tmp_path / '0.png') == pixels(tmp_path / '1.png'))


def test_animation(tmp_path):
    t = np.linspace(0, 6, 100)
    poses = [Linkage('', [bar(0, 0, np.cos(a), np.sin(a))]) for a in t]
    write_animation(poses, t, tmp_path / 'a.gif')
    with Image.open(tmp_path / 'a.gif') as gif:
        assert 50 <= gif.n_frames <= 75 and (tmp_path / 'a.gif').stat().st_size < 300_000
        first = np.asarray(gif.convert('RGB')).astype(int)
        gif.seek(gif.n_frames // 2)
        middle = np.asarray(gif.convert('RGB')).astype(int)
    assert np.mean(np.any(first != middle, axis=2)) > 0.005


def test_plots(tmp_path):
    x = np.linspace(0, 1, 50)
    for scale in ('linear', 'log', 'symlog'):
        curves = [Curve('a', x, np.exp(5 * x)), Curve('b', x, 1 + x, kind='marks')]
        write_plots([Panel('t', 'y', curves, y_scale=scale)], tmp_path / f'{scale}.png')
    assert len({(tmp_path / f'{scale}.png').read_bytes() for scale in ('linear', 'log', 'symlog')}) == 3


def test_a_long_curve_keeps_its_peak(tmp_path):
    """One outlier of a hundred thousand points is drawn."""
    x = np.linspace(0, 1, 100_000)
    for k, peak in enumerate((0.0, 1.0)):
        y = np.zeros_like(x)
        y[51_234] = peak
        write_plots([Panel('t', 'y', [Curve('', x, y)], limits=(-1, 2))], tmp_path / f'{k}.png')
    column = np.any(pixels(tmp_path / '0.png') != pixels(tmp_path / '1.png'), axis=(0, 2))
    assert 1 <= column.sum() < 12


def test_bars(tmp_path):
    """A bar of twice the value is twice as long; None has none."""
    write_bars([Bars('t', 'us', ['a', 'b', 'c'], {'one': [1.0, 2.0, None]})], tmp_path / 'b.png')
    rows = (np.abs(pixels(tmp_path / 'b.png') - BLUE).sum(axis=2) < 20).sum(axis=1)
    lengths = sorted(set(rows[rows > 20]))
    assert lengths[-1] == pytest.approx(2 * lengths[0], rel=0.02)
    write_bars([Bars('t', 'us', ['a'], {'one': [1.0], 'two': [30.0]}, log=True)] * 2, tmp_path / 'c.png')
    assert (tmp_path / 'c.png').is_file()
