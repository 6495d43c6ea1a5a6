# SPDX-License-Identifier: Apache-2.0
"""Mean NEES of the joint filter (motion and mass) on errors drawn from its own linearised model.

    tools/environment.sh python benchmarks/own_model_nees.py --machine zx200 --runs 400

The force balance is a pseudo-measurement: no plant has its noise. So the filter runs over a simulated log, and at each
of its steps the model that it linearised there is taken: transition, process noise with the activity that it had,
samples and balance with their variances. Errors of the state, process noise, noise of the samples and of the balance
are drawn from these; they move as the filter's own gains say, also where the mass takes less of an equation (its share)
or an equation hides it. The gains are those of the compiled step: its covariance and mean are compared at each step.

NEES of the motion, without the mass, and of the mass, over their number of entries, mean over the runs: at instants a
second apart, against the 95 % bounds of that many runs, and its exact expectation over all instants after the first
second, which propagates the covariance of the errors. Errors of the machine's numbers are left out: in a linear model
what the filter says of them is exact. Friction near standstill is drawn as the filter counts it, as what stays the same
for a while. Not tested: the activities, which follow the samples of the log here, and friction that is otherwise.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from drawn_errors import Errors
from joint_step import DT, SUB, Linearised, stepped
from machine_accuracy import PAYLOADS, frames_of
from scipy.stats import chi2


def run(name: str, valve: str, cycle: str, seconds: float, runs: int, seed: int, keep: Path | None) -> None:
    """Print the figures of a machine."""
    own = Linearised(name, valve)
    frames = frames_of(name, cycle, seed, PAYLOADS.get(name, 800.0), keep)[:round(seconds / SUB / DT) + 1]
    xs, us, p = own.log(frames)
    errors = Errors(xs[0][own.full], own.c, runs, np.random.default_rng(seed))
    worst, expected, drawn = 0.0, [], []
    for k, (x, u) in enumerate(zip(xs, us)):
        X, P, whole = stepped(own, errors, x, u, p)
        deviations, after = np.sqrt(np.diag(P)), xs[k + 1]
        far = (X - after[:own.n] / own.model.scale) / deviations
        worst = max(worst, np.abs(far).max(), np.abs((P - after[own.full]) / np.outer(deviations, deviations)).max())
        deviations = np.sqrt(np.diag(whole))
        P, C = (M / np.outer(deviations, deviations) for M in (whole, errors.C[own.c:-1, own.c:-1]))
        if k * DT >= 1.0 and (k + 1) % SUB == 0:
            inverse = np.linalg.inv(P[:-1, :-1])
            expected.append([np.sum(inverse * C[:-1, :-1]) / (own.n - 1), C[-1, -1]])
            if (k + 1) % 1000 == 0:
                z = errors.e[own.c:-1] / deviations[:, None]
                drawn.append([np.einsum('ik,ij,jk->k', z[:-1], inverse, z[:-1]).mean() / (own.n - 1),
                              np.mean(z[-1] ** 2)])
    print(f'{name}, {valve}, {cycle}: step as compiled within {worst:.1e} standard deviations')
    sizes = own.n - 1, 1
    for what, size, exact, values in zip(('motion', 'mass'), sizes, np.array(expected).T, np.array(drawn).T):
        table(what, size, runs, exact, values)


def table(what: str, size: int, runs: int, exact: np.ndarray, values: np.ndarray) -> None:
    """One line for motion or mass."""
    low, high = chi2.ppf([0.025, 0.975], size * runs) / (size * runs)
    inside = int(np.sum((values > low) & (values < high)))
    print(f'  {what:6} ({size:2}) NEES/n {np.mean(values):.3f}, {np.min(values):.3f} to {np.max(values):.3f}; 95 %: '
          f'{low:.3f} to {high:.3f}, inside {inside} of {len(values)}; exact {np.mean(exact):.3f}, '
          f'{np.min(exact):.3f} to {np.max(exact):.3f}', flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', nargs='*', default=['patu655_lift', 'zx200'])
    parser.add_argument('--valve', nargs='*', default=['orifice', 'unknown'])
    parser.add_argument('--cycle', default='random')
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--runs', type=int, default=400)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep', type=Path)
    args = parser.parse_args()
    for name, valve in product(args.machine, args.valve):
        run(name, valve, args.cycle, args.seconds, args.runs, args.seed, args.keep)


if __name__ == '__main__':
    main()
