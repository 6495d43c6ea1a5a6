# SPDX-License-Identifier: Apache-2.0
"""LAPACK without scipy.linalg, and chi-squared without scipy.special: the same bits, and both live beside them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from scipy.special import chdtri

from mbse_ros.compiled import of_scipy
from mbse_ros.compiled.of_scipy import NEVER, compiled_part, exceeded, gate_limit
from mbse_ros.dynamics.partition import lstsq, null_space, pivoted

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''
import sys, numpy as np
from mbse_ros.dynamics.partition import lstsq, null_space, pivoted
from mbse_ros.compiled.of_scipy import exceeded
a, b = np.random.default_rng(1).normal(size=(5, 7)), np.arange(5.0)
ours = lstsq(a, b, 1e-10), null_space(a, 1e-8), *pivoted(a)
limit = exceeded(1, 0.01)
assert not {'scipy.linalg', 'scipy.special', 'scipy.linalg.lapack'} & set(sys.modules)
import scipy.linalg, scipy.special
theirs = (scipy.linalg.lstsq(a, b, cond=1e-10)[0], scipy.linalg.null_space(a, rcond=1e-8),
          *scipy.linalg.qr(a, mode='economic', pivoting=True)[1:])
assert all(np.array_equal(one, other) for one, other in zip(ours, theirs)), (ours, theirs)
assert limit == scipy.special.chdtri(1, 0.01)
assert np.allclose(scipy.linalg.expm(np.zeros((2, 2))), np.eye(2))
'''


@pytest.mark.parametrize('shape', [(1, 1), (3, 3), (4, 9), (9, 4), (0, 3), (30, 44)])
@pytest.mark.parametrize('deficient', [False, True])
def test_the_same_bits_as_scipy(shape: tuple[int, int], deficient: bool) -> None:
    random = np.random.default_rng(shape[0] + 100 * deficient)
    for _ in range(20):
        a, b = random.normal(size=shape), random.normal(size=shape[0])
        if deficient and shape[0] > 1:
            a[-1] = a[0]
        a = np.asfortranarray(a) if random.random() < 0.5 else a
        assert np.array_equal(lstsq(a, b, 1e-10), scipy.linalg.lstsq(a, b, cond=1e-10)[0])
        assert np.array_equal(null_space(a, 1e-8), scipy.linalg.null_space(a, rcond=1e-8))
        if a.size:
            _, R, order = scipy.linalg.qr(a, mode='economic', pivoting=True)
            assert all(np.array_equal(one, other) for one, other in zip(pivoted(a), (R, order)))


@pytest.mark.parametrize('function', [lambda a: lstsq(a, np.zeros(2), 1e-10), lambda a: null_space(a, 1e-8), pivoted])
def test_what_is_not_finite_is_refused(function) -> None:
    with pytest.raises(ValueError, match='infs or NaNs'):
        function(np.array([[1.0, np.nan], [0.0, 1.0]]))


def test_quantiles_of_chi_squared() -> None:
    for freedom in (1, 2, 3.7, 12, 55.5):
        for probability in (0.5, 1e-2, 1e-4, 1e-5, 1e-12):
            assert exceeded(freedom, probability) == chdtri(freedom, probability)


def test_of_a_gate_that_is_open_no_innovation_is_too_large() -> None:
    assert gate_limit(0.99) == chdtri(1, 1 - 0.99) < gate_limit(np.nextafter(1.0, 0.0)) < 100
    assert gate_limit(1.0) == NEVER and (1e100 / 1e-6) ** 2 < NEVER < NEVER * 1e20 < np.inf


def test_in_a_process_of_its_own_before_and_beside_scipy() -> None:
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
    subprocess.run([sys.executable, '-c', PROGRAM], env=environment, check=True)


def test_where_there_is_no_such_file_the_public_module_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_scipy, 'find_spec', lambda name: None)
    assert compiled_part('linalg', '_no_such_module', 'scipy.linalg.lapack') is scipy.linalg.lapack


def test_where_the_file_lacks_a_function_the_public_module_serves() -> None:
    """Another version of SciPy may have it elsewhere."""
    assert compiled_part('linalg', '_flapack', 'scipy.linalg.lapack', 'no_such_routine') is scipy.linalg.lapack
