# SPDX-License-Identifier: Apache-2.0
"""Kernel: the same numbers from the virtual machine and from C, arrays in NumPy's layout, clear errors."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from mbse_ros.compiled import Kernel, have_compiler
from mbse_ros.errors import DivergenceError, SettingError

needs_compiler = pytest.mark.skipif(not have_compiler(), reason='no C compiler')
BACKENDS = ['vm', pytest.param('c', marks=needs_compiler)]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One cache for all tests of the session, not the user's."""
    monkeypatch.setenv('MBSE_CACHE_DIR', str(tmp_path_factory.getbasetemp() / 'compiled'))


def nonlinear() -> ca.Function:
    """Orifice-like and friction-like terms, under a name that glibc knows as well."""
    x, p = ca.SX.sym('x', 4), ca.SX.sym('p', 2)
    drop = x[0] - x[1]
    flow = p[0] * ca.if_else(drop > 0, 1, -1) * ca.sqrt(ca.fmax(ca.fabs(drop), 1e-3))
    friction = ca.tanh(x[2] / 0.01) * (p[1] + ca.exp(-x[3] ** 2)) + ca.atan2(x[1], x[2])
    return ca.Function('step', [x, p], [ca.vertcat(flow, friction), ca.jacobian(ca.vertcat(flow, friction), x)])


@needs_compiler
def test_c_and_vm_agree() -> None:
    vm, c = Kernel(nonlinear(), 'vm'), Kernel(nonlinear(), 'c')
    assert (vm.backend, c.backend, vm.name) == ('vm', 'c', 'step')
    rng = np.random.default_rng(1)
    for _ in range(200):
        x, p = rng.normal(size=4) * 10.0 ** rng.integers(-4, 3), rng.normal(size=2)
        for a, b in zip(vm(x, p), c(x, p)):
            np.testing.assert_allclose(a, b, rtol=1e-15, atol=0)


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('symbolic', [ca.SX, ca.MX])
def test_matrices_keep_their_shape_and_order(backend: str, symbolic: type) -> None:
    A, B, row = symbolic.sym('A', 2, 3), symbolic.sym('B', ca.Sparsity.lower(3)), symbolic.sym('r', 1, 3)
    function = ca.Function('f', [A, B, row], [A @ B, ca.tril(B.T @ B), row + 1, ca.sum2(A), A[0, 0]])
    kernel = Kernel(function, backend)
    a, b, r = np.arange(6.0).reshape(2, 3), np.arange(1.0, 10.0).reshape(3, 3), np.arange(3.0)
    product, triangle, more, sums, entry = kernel(a, b, r)
    lower = np.tril(b)
    np.testing.assert_array_equal(product, a @ lower)
    np.testing.assert_array_equal(triangle, np.tril(lower.T @ lower))
    np.testing.assert_array_equal(more, [[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(sums, [3.0, 12.0])
    np.testing.assert_array_equal(entry, [0.0])
    assert all(array.flags.c_contiguous for array in (product, triangle))
    np.testing.assert_array_equal(kernel(np.asfortranarray(a), b, r[None])[0], a @ lower)


@pytest.mark.parametrize('backend', BACKENDS)
def test_outputs_are_fresh_and_inputs_untouched(backend: str) -> None:
    kernel = Kernel(nonlinear(), backend)
    x, p = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(2)
    first = kernel(x, p)
    kept = [array.copy() for array in first]
    kernel(x + 1, p)
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    for a, b in zip(first, kept):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('backend', BACKENDS)
def test_nan_passes_where_it_belongs(backend: str) -> None:
    value, _ = Kernel(nonlinear(), backend)(np.array([1.0, 0.5, np.nan, 0.0]), np.ones(2))
    assert np.isfinite(value[0]) and np.isnan(value[1])


def test_other_ways_to_write_a_vector() -> None:
    x = ca.SX.sym('x', 2)
    s = ca.SX.sym('s')
    kernel = Kernel(ca.Function('f', [x, s], [x * s]), 'vm')
    column, strided = np.array([[1.0], [2.0]]), np.arange(1.0, 5.0)[::2]
    for vector in ([1, 2], np.array([1, 2]), column, column.T, strided):
        expected = np.asarray(vector, float).ravel() * 3
        for scalar in (3, 3.0, [3.0], np.array([[3.0]])):
            np.testing.assert_array_equal(kernel(vector, scalar)[0], expected)


def test_wrong_arrays_are_refused() -> None:
    A, x = ca.SX.sym('A', 2, 3), ca.SX.sym('x', 3)
    kernel = Kernel(ca.Function('product', [A, x], [A @ x]), 'vm')
    good = np.zeros((2, 3)), np.zeros(3)
    with pytest.raises(ValueError, match='product: got 1 arrays, expected 2'):
        kernel(good[0])
    for bad in (np.zeros((3, 2)), np.zeros(6), np.zeros((1, 6)), 0.0):
        with pytest.raises(ValueError, match=r'product: input 0: got shape .*, expected \(2, 3\)'):
            kernel(bad, good[1])
    for bad in (np.zeros(1), 0.0, np.zeros((3, 3)), np.zeros(0), np.zeros((3, 0))):
        with pytest.raises(ValueError, match=r'product: input 1: got shape .*, expected \(3,\)'):
            kernel(good[0], bad)
    for bad in (np.zeros(3, complex), np.array(['a', 'b', 'c'])):
        with pytest.raises(ValueError, match='expected real numbers'):
            kernel(good[0], bad)


@pytest.mark.parametrize('backend', BACKENDS)
def test_bound_call_works_in_place(backend: str) -> None:
    kernel = Kernel(nonlinear(), backend)
    x, p, value, jacobian = np.array([3.0, 1.0, 0.1, 0.2]), np.ones(2), np.zeros(2), np.zeros((2, 4))
    call = kernel.bind([x, p], [value, jacobian])
    del kernel
    for shift in (0.0, 0.5):
        x += shift
        call()
        expected = Kernel(nonlinear(), backend)(x, p)
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(jacobian, expected[1])


def test_bind_refuses_what_bare_pointers_cannot_take() -> None:
    kernel = Kernel(nonlinear(), 'vm')
    x, p, value, jacobian = np.zeros(4), np.zeros(2), np.zeros(2), np.zeros((2, 4))
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    for inputs, outputs, message in [
            ([x], [value, jacobian], 'got 1 inputs, expected 2'),
            ([x, p], [value], 'got 1 outputs, expected 2'),
            ([x, np.zeros(4)[::2]], [value, jacobian], 'input 1: must be C-contiguous'),
            ([x, [0.0, 0.0]], [value, jacobian], 'input 1: got list'),
            ([x, p.astype(np.float32)], [value, jacobian], 'input 1: got float32'),
            ([x, p], [value, np.zeros((4, 2))], r'output 1: got float64 \(4, 2\)'),
            ([x, p], [frozen, jacobian], 'output 0: .*writable'),
            ([x, p], [x[1:3], jacobian], 'shares memory')]:
        with pytest.raises(ValueError, match=message):
            kernel.bind(inputs, outputs)


def test_failure_of_the_function_is_an_error() -> None:
    A, b = ca.MX.sym('A', 2, 2), ca.MX.sym('b', 2)
    kernel = Kernel(ca.Function('solution', [A, b], [ca.solve(A, b, 'qr')]), 'vm')
    np.testing.assert_allclose(kernel(np.eye(2) * 2, np.ones(2))[0], 0.5)
    with pytest.raises(DivergenceError, match='solution'):
        kernel(np.zeros((2, 2)), np.ones(2))


@pytest.mark.parametrize('backend', BACKENDS)
def test_threads_do_not_mix_their_arrays(backend: str) -> None:
    x = ca.SX.sym('x', 3)
    kernel = Kernel(ca.Function('double', [x], [2 * x, -x]), backend)

    def right(value: float) -> bool:
        array = np.full(3, value)
        return all((twice == 2 * value).all() and (less == -value).all()
                   for twice, less in (kernel(array) for _ in range(2000)))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(right, [1.0, 2.0, 3.0, 4.0]))
    finally:
        sys.setswitchinterval(interval)


@needs_compiler
def test_choice_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('MBSE_BACKEND', raising=False)
    assert Kernel(nonlinear()).backend == 'c'
    monkeypatch.setenv('MBSE_BACKEND', 'vm')
    assert Kernel(nonlinear()).backend == 'vm'
    assert Kernel(nonlinear(), 'c').backend == 'c'
    monkeypatch.setenv('MBSE_BACKEND', 'gpu')
    with pytest.raises(SettingError, match="MBSE_BACKEND: got 'gpu'"):
        Kernel(nonlinear())
    with pytest.raises(SettingError, match='backend: got'):
        Kernel(nonlinear(), 'C')


def test_work_folder_stays_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Kernel(nonlinear())
    assert not list(tmp_path.iterdir())
