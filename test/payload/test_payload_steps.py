# SPDX-License-Identifier: Apache-2.0
"""Small changes of the load: found where no pose explains them, and the errors in common stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log
from unittest.mock import Mock

import numpy as np
import pytest
from test_payload_common_errors import NAMES, UNKNOWN, least_squares, poses, settle

from mbse_ros.payload import common_errors, steps
from mbse_ros.payload.common_errors import BLOCK, CommonErrors

NOISE = 2.0     # kg, of a block's mass
TRUTH = np.array([1.5, -1.0, 2.0])      # errors, in their deviations: three of them make some 15 kg of a pose


@pytest.fixture(autouse=True)
def constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that stay the same for ever, so that there is a closed solution."""
    for name, value in (('MEMORY', inf), ('VARYING', 0.0), ('STEADY', 0.0)):
        monkeypatch.setattr(common_errors, name, value)


def run(rng: np.random.Generator, loads: np.ndarray, truth: np.ndarray = TRUTH, kept: np.ndarray | None = None,
        rare: bool = False) -> tuple[CommonErrors, np.ndarray, np.ndarray, list[tuple[int, np.ndarray]]]:
    """Estimate, derivatives and masses of blocks of the loads, and at which blocks a step was reported, with the sums
    since."""
    S = poses(rng, len(loads))
    y = loads + S @ truth + NOISE * rng.standard_normal(len(loads))
    errors, found = CommonErrors(NAMES, UNKNOWN), []
    for k, (mass, slopes) in enumerate(zip(y, S)):
        row = NOISE ** -2 * np.array([1.0, mass, *slopes])
        since = errors.take(row[None, :], np.array([True]), np.array([0.0 if kept is None else kept[k]]), BLOCK,
                            rare)
        if since is not None:
            found.append((k, since))
    return errors, S, y, found


@pytest.mark.parametrize('size, wrong', [(12.0, True), (3.0, False)])
def test_a_sensor_that_becomes_wrong_is_named(size: float, wrong: bool) -> None:
    """By twelve deviations: named within two seconds, and its error found, the mass and the others' errors are right;
    when it is well again it is believed again. By three: credible, and not named."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        errors, said = CommonErrors(NAMES, UNKNOWN), []
        for k, slopes in enumerate(poses(rng, 240)):
            off = TRUTH / 4 + np.array([0.0, size * (80 <= k < 160), 0.0])
            mass = 800.0 + slopes @ off + NOISE * rng.standard_normal()
            errors.take(NOISE ** -2 * np.array([[1.0, mass, *slopes]]), np.array([True]), np.zeros(1), BLOCK)
            said.append(errors.incredible)
            if k == 150 and wrong:
                off = errors.mean - off
                assert errors.broken and off @ np.linalg.solve(errors.covariance, off) < 16.3   # chi-squared, 0.1 %
        assert set(said) == {'', NAMES[1]} if wrong else set(said) == {''}
        if wrong:
            assert 80 < said.index(NAMES[1]) <= 100 and all(said[100:160]) and not any(said[200:])
            np.testing.assert_array_equal(np.diag(errors._prior)[1:], 1.0)


@pytest.mark.parametrize('step', [10.0, -10.0, 40.0])
def test_a_step_is_found(step: float) -> None:
    """Within two seconds; what is reported since is of the new load alone, and the errors are those of two loads."""
    for seed in range(5):
        errors, S, y, found = run(np.random.default_rng(seed), np.repeat([800.0, 800.0 + step], 60))
        assert len(found) == 1, seed
        k, since = found[0]
        assert 60 < k <= 80 and errors.incredible == ''
        count = round(since[0] * NOISE ** 2)
        assert abs(k + 1 - count - 60) <= 2     # blocks that go with the wrong load
        own = slice(k + 1 - count, k + 1)
        np.testing.assert_allclose(since, NOISE ** -2 * np.array([count, y[own].sum(), *S[own].sum(axis=0)]))
        settle(errors)
        # each step as one more error of which nothing is known: for a second the load may still change; what was a
        # second before it found may be of a load that had begun to
        begins = np.tri(120)[:, [k + 1 - count, *range(k + 1, k + 11)]]
        rows = np.delete(np.arange(120), np.arange(k + 1 - count - 10, k + 1 - count))
        mean, covariance = least_squares(np.hstack([S, 1e4 * begins])[rows], y[rows], NOISE, 3 + begins.shape[1])
        np.testing.assert_allclose(errors.mean, mean[:3], atol=1e-3)
        np.testing.assert_allclose(errors.covariance, covariance[:3, :3], atol=1e-4)


ROUGH = 20.0        # kg, of a block's mass where a cylinder moves at half its speed or samples are rare


def ramp(lasts: int, size: float) -> np.ndarray:
    """Loads (n,) that change by ``size``, kg, within so many blocks, 60 blocks before and 60 after."""
    return 800.0 + size * np.clip((np.arange(120 + lasts) - 59) / (lasts + 1), 0.0, 1.0)


@pytest.mark.parametrize('step', [10.0, -10.0, 40.0])
def test_what_is_hardly_another_load_is_none(step: float) -> None:
    """A step that is significant, of which the size is known to a kg."""
    for least, found in ((0.9 * abs(step), True), (1.2 * abs(step), False)):
        rng, errors = np.random.default_rng(4), CommonErrors(NAMES, UNKNOWN, least)
        said = [errors.take(NOISE ** -2 * np.array([[1.0, load + 0.1 * NOISE * rng.standard_normal(), 0.0, 0.0, 0.0]]),
                            np.array([True]), np.zeros(1), BLOCK) is not None
                for load in np.repeat([800.0, 800.0 + step], [60, 11])]
        assert any(said) is found, least


def rough(seed: int, loads: np.ndarray, moved: float = 1.0) -> Iterator[tuple[CommonErrors, float, bool]]:
    """After each block: what is known, the load, whether it was found to be another; poses ``moved`` far."""
    rng, errors = np.random.default_rng(seed), CommonErrors(NAMES, UNKNOWN)
    for load, slopes in zip(loads, moved * poses(rng, len(loads))):
        mass = load + slopes @ TRUTH / 3 + ROUGH * rng.standard_normal()
        row = ROUGH ** -2 * np.array([1.0, mass, *slopes])
        found = errors.take(row[None, :], np.array([True]), np.zeros(1), BLOCK) is not None
        yield errors, float(load), found


@pytest.mark.parametrize('lasts, size', [(5, 200.0), (14, -250.0), (25, 400.0)])
def test_a_load_that_is_filled_or_dumped_for_a_while_is_no_wrong_sensor(lasts: int, size: float) -> None:
    """No sensor is named, the errors found are within what is stated of them, and in the end so is the mass."""
    for seed in range(10):
        changed = False
        for errors, _, found in rough(seed, ramp(lasts, size)):
            changed |= found
            assert not (errors.incredible or errors.broken or errors.surprised), seed
        off = np.append(errors._x[0] - 800.0 - size, errors.mean - TRUTH / 3)
        assert changed and off @ np.linalg.solve(errors._P, off) < 18.5     # chi-squared, 0.1 %


def test_the_interval_leans_before_it_is_certain_that_the_load_changes() -> None:
    """Where a ramp is beyond what is known of the mass and not found yet, the interval on its side holds the load in
    half of the blocks; without a change it leans in less than one of ten."""
    held, calm = [], []
    for seed in range(40):
        for k, (errors, load, found) in enumerate(rough(seed, ramp(25, -120.0), 0.0)):
            low = errors._x[0] - 1.96 * errors._P[0, 0] ** 0.5
            if found:
                break
            if 20 <= k < 60:
                calm.append(errors.lean != 0.0)
            elif k >= 66 and load < low:
                assert errors.lean <= 0.0, (seed, k)
                held.append(load > low + errors.lean)
    assert len(held) > 40 and np.mean(held) > 0.4 and np.mean(calm) < 0.1


def test_a_load_that_has_changed_for_a_while_may_still_change() -> None:
    """For as long as it has changed, up to a second; one that was dropped at once is known at once."""
    for lasts, size in ((0, -800.0), (25, 1000.0)):
        settling = [sum(errors.settling for errors, _, _ in rough(seed, ramp(lasts, size))) for seed in range(5)]
        assert min(settling) >= 3 if lasts else max(settling) == 0


@pytest.mark.parametrize('lasts, size', [(10, 40.0), (30, 40.0), (30, 80.0)])
def test_what_was_weighed_while_a_load_still_changed_does_not_count_when_it_has_settled(lasts: int, size: float
                                                                                     ) -> None:
    """Of a load that is filled in 1 and in 3 s; up to 3 kg stayed of it. ``size``, kg."""
    for seed in range(5):
        loads = np.r_[np.zeros(200), np.minimum(1.0, np.arange(1, 81) / lasts) * size]
        errors, S, y, found = run(np.random.default_rng(seed), loads)
        last, since = found[-1]
        counted = slice(last + 1 - round(since[0] * NOISE ** 2), None)
        assert abs((y - S @ TRUTH)[counted].mean() - size) < 1.5
        assert errors.lean == 0.0


def block(mass: float) -> steps.Block:
    """Of a machine without uncertain numbers."""
    return steps.Block(NOISE ** -2 * np.array([1.0, mass]), BLOCK, 0.0)


@pytest.mark.parametrize('off, after, leans', [(6.5, 3, 0), (5.0, 5, 2), (3.0, 10, 6), (2.0, None, 0)])
def test_both_sides_of_another_mass_once_a_load_has_settled(off: float, after: int | None, leans: int) -> None:
    """Ten blocks in which it may change, and ten others: 4.5 deviations of the two means at once, 2.5 with the tenth.
    While it may be another, with so many blocks, the interval leans there; then it is too late."""
    masses, known = steps.Steps(np.zeros(0), 2.0, [], 0.0), steps.Known(np.zeros(1), np.eye(1), np.eye(1), np.zeros(1))
    masses.settle(0)
    for _ in range(steps.LEARNT):
        masses.take(block(0.0))
        assert not masses.settled(known)
    found, leant = [], 0
    for _ in range(steps.LEARNT):
        masses.take(block(off))
        found.append(len(masses.settled(known)))
        leant += masses.lean == pytest.approx(off) if masses.lean else 0
    assert [k for k in found if k] == ([after] if after else []) and leant == leans
    for _ in range(steps.LEARNT):
        masses.take(block(20.0))
        assert not masses.settled(known)
    assert masses.lean == 0.0 or after is None


def test_where_samples_are_rare_nothing_is_weighed_again_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their errors are alike, so that ten blocks say little more than one."""
    loads = np.r_[np.zeros(200), np.minimum(1.0, np.arange(1, 81) / 30) * 40.0]
    often, seldom = (run(np.random.default_rng(0), loads, rare=rare)[3] for rare in (False, True))
    monkeypatch.setattr(steps.Steps, 'settled', Mock(return_value=[]))
    without = run(np.random.default_rng(0), loads)[3]
    assert [k for k, _ in seldom] == [k for k, _ in without] != [k for k, _ in often]


def test_poses_are_no_step() -> None:
    """Errors of twice what is stated move the mass by tens of kg from pose to pose, also where poses are held."""
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        assert not run(rng, np.full(150, 800.0), 2 * TRUTH)[3]
        errors, held = CommonErrors(NAMES, UNKNOWN), np.repeat(poses(rng, 5), 30, axis=0)
        for slopes in held:
            mass = 800.0 + slopes @ TRUTH + NOISE * rng.standard_normal()
            row = NOISE ** -2 * np.array([1.0, mass, *slopes])
            assert errors.take(row[None, :], np.array([True]), np.zeros(1), BLOCK) is None


def test_what_contradicts_itself_is_no_step() -> None:
    """Masses that jump to and fro are left to what judges contradictions."""
    rng = np.random.default_rng(3)
    loads = np.append(np.full(60, 800.0), 830.0 + 60.0 * rng.standard_normal(8))
    assert not run(rng, loads)[3]


def test_a_load_that_the_observer_has_noticed_is_not_found_again() -> None:
    """Where the observer forgets, there is nothing to compare with."""
    kept = np.zeros(120)
    kept[60] = log(1e-12)
    assert not run(np.random.default_rng(4), np.repeat([800.0, 1500.0], 60), kept=kept)[3]


def test_segments_do_not_matter() -> None:
    """All blocks at once report the same as one by one."""
    rng = np.random.default_rng(5)
    S = poses(rng, 120)
    y = np.repeat([800.0, 830.0], 60) + S @ TRUTH + NOISE * rng.standard_normal(120)
    rows = np.column_stack([np.ones(120), y, S]) / NOISE ** 2
    one, other, last = CommonErrors(NAMES, UNKNOWN), CommonErrors(NAMES, UNKNOWN), None
    for row in rows:
        since = one.take(row[None, :], np.array([True]), np.zeros(1), BLOCK)
        last = since if since is not None else None if last is None else last + row
    np.testing.assert_allclose(other.take(rows, np.full(120, True), np.zeros(120), BLOCK), last, rtol=1e-12)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)


def weigh(errors: CommonErrors, rng: np.random.Generator, off: np.ndarray, slopes: np.ndarray) -> None:
    """One block of 800 kg with errors."""
    mass = 800.0 + slopes @ off + NOISE * rng.standard_normal()
    errors.take(NOISE ** -2 * np.array([[1.0, mass, *slopes]]), np.array([True]), np.zeros(1), BLOCK)


def test_two_sensors_that_become_wrong() -> None:
    """The second is named where it is off by more; when it is well again the first one still is wrong, and named."""
    rng, errors, said = np.random.default_rng(11), CommonErrors(NAMES, UNKNOWN), []
    for k, slopes in enumerate(poses(rng, 320)):
        weigh(errors, rng, np.array([0.0, 10.0 * (k >= 80), 15.0 * (160 <= k < 240)]), slopes)
        said.append(errors.incredible)
    assert (said[150], said[230], said[310]) == (NAMES[1], NAMES[2], NAMES[1]) and errors.broken


def test_the_same_blocks_do_not_confirm_themselves() -> None:
    """Where no samples follow, the blocks that speak of a sensor are not taken for a second opinion."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        errors = CommonErrors(NAMES, UNKNOWN)
        for k, slopes in enumerate(poses(rng, 100)):
            weigh(errors, rng, np.array([0.0, 12.0 * (k >= 80), 0.0]), slopes)
            if errors._masses.suspected:
                break
        assert 80 < k < 99
        blocks = list(errors._masses.blocks)
        errors.take(np.zeros((3, 5)), np.zeros(3, bool), np.zeros(3), 1.0)      # closed for want of samples
        assert not errors._broken and list(errors._masses.blocks) == blocks


@pytest.mark.parametrize('step, off', [(0.0, 0.0), (8.0, 0.0), (40.0, 0.0), (0.0, 12.0), (0.0, 30.0)])
def test_what_is_not_looked_at_would_have_found_nothing(monkeypatch: pytest.MonkeyPatch, step: float, off: float
                                                        ) -> None:
    """The bounds by which most windows and errors need no look leave every number what it is."""
    def trace(seed: int) -> list[object]:
        rng, errors, seen = np.random.default_rng(seed), CommonErrors(NAMES, UNKNOWN), []
        for k, slopes in enumerate(poses(rng, 200)):
            mass = 800.0 + step * (k >= 90) + slopes @ (TRUTH + [0.0, off * (k >= 60), 0.0]) + NOISE * rng.normal()
            since = errors.take(NOISE ** -2 * np.array([[1.0, mass, *slopes]]), np.array([True]), np.zeros(1), BLOCK)
            seen += [errors.mean.tolist(), errors.covariance.tolist(), errors.incredible, errors.broken,
                     None if since is None else since.tolist()]
        return seen
    looked = Mock(side_effect=steps.Steps._place)
    monkeypatch.setattr(steps.Steps, '_place', lambda *args: looked(*args))
    quick, few = [trace(seed) for seed in range(3)], looked.call_count
    monkeypatch.setattr(steps._Masses, 'may_step', True)
    monkeypatch.setattr(common_errors, 'SAFE', -inf)
    assert quick == [trace(seed) for seed in range(3)]
    assert few < (looked.call_count - few) / 2 and (few > 0 or not step + off)
