# SPDX-License-Identifier: Apache-2.0
"""Optimisation changes no bit; options of a user come last."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from core_support import simulate

from mbse_ros.compiled import have_compiler
from mbse_ros.compiled.compiler import compile_library, compiler, flags
from mbse_ros.machine import load_machine
from mbse_ros.streams.pipeline import Output, Pipeline

pytestmark = pytest.mark.skipif(not have_compiler(), reason='no C compiler')


def estimated() -> list[Output]:
    """The crane begins to lift, all in compiled functions."""
    pipeline = Pipeline(load_machine('patu655_lift'))
    return [output for frame in simulate(50.0, 1)[:200] for channel, value in (*frame.samples.items(),
                                                                               *frame.commands.items())
            for output in pipeline.add(channel, frame.stamp_ns, value)]


@pytest.mark.parametrize('option', ['-O0', '-O2'])
def test_an_estimate_has_the_same_bits(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('CC', raising=False)
    ours = estimated()
    monkeypatch.setenv('CC', f'{shutil.which("cc")} {option}')
    others = estimated()
    assert len(ours) == len(others) > 190
    assert np.isfinite(ours[-1].payload.mass)
    for a, b in zip(ours, others):
        np.testing.assert_array_equal(a.state.mean, b.state.mean)
        np.testing.assert_array_equal(a.state.covariance, b.state.covariance)
        np.testing.assert_array_equal(a.state.weighing, b.state.weighing)
        assert repr(a.payload) == repr(b.payload)       # a mass that is not known is NaN


def test_options_of_the_variable_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ours, but not between the words of a launcher and its compiler."""
    said, program = tmp_path / 'said', tmp_path / 'launcher'
    program.write_text(f'#!/bin/sh\necho "$@" > "{said}"\nexec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv('CC', f'{program} cc -O0 -g')
    command = compiler()
    assert command is not None and command[1:] == ('cc', '-O0', '-g')
    assert compile_library('answer', 'int mbse_answer(void) { return 42; }\n', command)
    assert said.read_text().split()[:len(flags()) + 3] == ['cc', *flags(), '-O0', '-g']
