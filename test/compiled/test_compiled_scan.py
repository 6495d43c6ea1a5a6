# SPDX-License-Identifier: Apache-2.0
"""Scan: equal to a loop in Python, whatever the length and however it is split."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Scan, have_compiler
from mbse_ros.errors import DivergenceError

BACKENDS = ['vm', pytest.param('c', marks=pytest.mark.skipif(not have_compiler(), reason='no C compiler'))]
LENGTHS = [0, 1, 7, 10, 64, 65, 256, 257, 1000]
X0, P = np.array([0.3, -0.2, 0.1]), np.array([0.05, 0.8])


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One cache for all tests of the session, not the user's."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path_factory.getbasetemp() / 'compiled'))


def step() -> ca.Function:
    """A damped rotation with friction; y has a structural zero."""
    x, u, p = ca.SX.sym('x', 3), ca.SX.sym('u', 2), ca.SX.sym('p', 2)
    push = ca.if_else(u[0] > x[0], ca.sqrt(1 + u[0] ** 2), ca.tanh(u[1]))
    after = ca.vertcat(x[0] + p[0] * x[1], p[1] * x[1] + p[0] * (push - ca.tanh(x[2])), ca.cos(x[2]) + p[0] * x[0])
    return ca.Function('step', [x, u, p], [after, ca.vertcat(x[0] * u[1], ca.SX(1, 1), after[2], push)])


def python_step(x: np.ndarray, u: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    push = np.sqrt(1 + u[0] ** 2) if u[0] > x[0] else np.tanh(u[1])
    after = np.array([x[0] + p[0] * x[1], p[1] * x[1] + p[0] * (push - np.tanh(x[2])), np.cos(x[2]) + p[0] * x[0]])
    return after, np.array([x[0] * u[1], 0.0, after[2], push])


def series(n: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(n, 2))


@pytest.fixture(params=BACKENDS)
def scan(request: pytest.FixtureRequest) -> Scan:
    return Scan(step(), request.param)


@pytest.mark.parametrize('n', LENGTHS)
def test_equals_a_loop(scan: Scan, n: int) -> None:
    us, x, expected = series(n), X0, np.empty((n, 4))
    for k in range(n):
        x, expected[k] = python_step(x, us[k], P)
    end, ys = scan(X0, us, P)
    np.testing.assert_allclose(end, x, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ys, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(X0, [0.3, -0.2, 0.1])


@pytest.mark.parametrize('sizes', [[1] * 10, [3, 7], [64, 1, 192, 743], [300, 0, 700]])
def test_splitting_changes_no_bit(scan: Scan, sizes: list[int]) -> None:
    us = series(sum(sizes))
    end, ys = scan(X0, us, P)
    x, parts = X0, []
    for part in np.split(us, np.cumsum(sizes)[:-1]):
        x, y = scan(x, part, P)
        parts.append(y)
    assert x.tobytes() == end.tobytes() and np.concatenate(parts).tobytes() == ys.tobytes()


@pytest.mark.skipif(not have_compiler(), reason='no C compiler')
def test_c_and_vm_agree() -> None:
    us = series(500)
    for a, b in zip(Scan(step(), 'vm')(X0, us, P), Scan(step(), 'c')(X0, us, P)):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize('n', [0, 5, 600])
def test_run_fills_the_given_arrays(scan: Scan, n: int) -> None:
    us, x, ys = series(n), X0.copy(), np.full((n, 4), np.nan)
    end, expected = scan(X0, us, P)
    scan.run(x, us, P, x, ys)
    np.testing.assert_array_equal(x, end)
    np.testing.assert_array_equal(ys, expected)


def test_results_are_fresh(scan: Scan) -> None:
    first = scan(X0, series(5), P)
    kept = [array.copy() for array in first]
    scan(X0 + 1, series(5) + 1, P)
    for a, b in zip(first, kept):
        np.testing.assert_array_equal(a, b)
    end, _ = scan(X0, series(0), P)
    end += 1
    assert X0[0] == 0.3


def test_other_ways_to_write_the_arrays(scan: Scan) -> None:
    us = series(9)
    end, ys = scan(X0, us, P)
    frozen = us.copy()
    frozen.flags.writeable = False
    for other in (np.asfortranarray(us), us.tolist(), np.repeat(us, 2, axis=0)[::2], frozen):
        result = scan(list(X0), other, P[:, None])
        np.testing.assert_array_equal(result[0], end)
        np.testing.assert_array_equal(result[1], ys)
    scan(X0, np.ones((3, 2), int), P)


def test_nan_passes_from_its_step_on(scan: Scan) -> None:
    us = series(12)
    us[5, 1] = np.nan
    _, ys = scan(X0, us, P)
    assert np.isfinite(ys[:5]).all() and np.isnan(ys[5, 0])
    us[5, 0] = np.nan       # now the comparison is false and the branch that is taken has a NaN
    end, ys = scan(X0, us, P)
    assert np.isfinite(ys[:5]).all() and np.isnan(ys[5, 3]) and np.isnan(end[1])


def test_wrong_arrays_are_refused(scan: Scan) -> None:
    us, x, ys, long = series(4), np.zeros(3), np.zeros((4, 4)), np.zeros((300, 4))
    for call, message in [
            (lambda: scan(X0[:2], us, P), r'x0: got shape \(2,\), expected \(3,\)'),
            (lambda: scan(X0, us, 1.0), r'p: got shape \(\), expected \(2,\)'),
            (lambda: scan(X0, us[:, :1], P), r'us: got shape \(4, 1\), expected \(n, 2\)'),
            (lambda: scan(X0, us[0], P), r'us: got shape \(2,\), expected \(n, 2\)'),
            (lambda: scan(X0, us[None], P), r'us: got shape \(1, 4, 2\), expected \(n, 2\)'),
            (lambda: scan(X0, us + 0j, P), 'us: got dtype complex128, expected real'),
            (lambda: scan(X0[:2], us[:0], P), r'x0: got shape \(2,\)'),
            (lambda: scan(X0, us[:0], P[:1]), r'p: got shape \(1,\)'),
            (lambda: scan.run(X0, us, P, x, ys[:3]), 'ys: got'),
            (lambda: scan.run(X0, us, P, x, np.asfortranarray(ys)), 'ys: must be C-contiguous'),
            (lambda: scan.run(X0, us, P, np.zeros(2), ys), 'x_out: got'),
            (lambda: scan.run(X0, long[:, :2], P, x, long), 'ys: must not share memory')]:
        with pytest.raises(ValueError, match=message):
            call()
    np.testing.assert_array_equal(x, 0)


def test_wrong_functions_are_refused() -> None:
    x, u = ca.SX.sym('x', 3), ca.SX.sym('u', 1, 2)
    for inputs, outputs in [([x, x], [x, x]), ([x, x, x], [x]), ([x, u, x], [x, x]), ([x, x, x], [x[:2], x])]:
        inputs = [type(i).sym(f'i{k}', i.shape) for k, i in enumerate(inputs)]
        with pytest.raises(ValueError, match='odd: got .* expected columns'):
            Scan(ca.Function('odd', inputs, [ca.SX.zeros(*o.shape) for o in outputs]), 'vm')


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('sizes', [(0, 2, 1, 3), (3, 0, 1, 2), (3, 2, 0, 2), (3, 2, 1, 0)])
def test_a_size_may_be_zero(backend: str, sizes: tuple[int, int, int, int]) -> None:
    nx, nu, n_p, ny = sizes
    x, u, p = ca.SX.sym('x', nx), ca.SX.sym('u', nu), ca.SX.sym('p', n_p)
    total = sum(ca.vertsplit(ca.vertcat(x, u, p)), ca.SX(0))
    end, ys = Scan(ca.Function('f', [x, u, p], [x + 1, ca.repmat(total, ny, 1)]), backend)(
        np.zeros(nx), np.ones((70, nu)), np.ones(n_p))
    np.testing.assert_array_equal(end, np.full(nx, 70.0))
    np.testing.assert_array_equal(ys, np.outer(nx * np.arange(70.0) + nu + n_p, np.ones(ny)))


@pytest.mark.parametrize('backend', BACKENDS)
def test_steps_with_memory_of_their_own(backend: str) -> None:
    x, u, p = ca.MX.sym('x', 2), ca.MX.sym('u', 2, 1), ca.MX.sym('p', 4)
    solution = ca.solve(ca.reshape(p, 2, 2), x + u, 'qr')
    scan = Scan(ca.Function('f', [x, u, p], [solution, ca.sum1(solution)]), backend)
    A, us, y = np.array([[3.0, 1.0], [0.5, 2.0]]), series(300), np.zeros(2)
    end, ys = scan(y, us, A.T.ravel())
    for k in range(300):
        y = np.linalg.solve(A, y + us[k])
        assert ys[k, 0] == pytest.approx(y.sum(), rel=1e-11)
    np.testing.assert_allclose(end, y, rtol=1e-11)


def test_failure_of_a_step_is_an_error() -> None:
    x, u, p = ca.MX.sym('x', 2), ca.MX.sym('u'), ca.MX.sym('p')
    scan = Scan(ca.Function('f', [x, u, p], [ca.solve(ca.blockcat([[u, 0], [1, 1]]), x, 'qr'), u]), 'vm')
    us, x_out = np.ones((100, 1)), np.full(2, 7.0)
    scan(np.ones(2), us, 0.0)
    us[70] = 0.0
    with pytest.raises(DivergenceError) as caught:
        scan.run(np.ones(2), us, np.zeros(1), x_out, np.empty((100, 1)))
    assert caught.value.where == 'f' and caught.value.step == 64      # the first of its block
    np.testing.assert_array_equal(x_out, 7.0)
