# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---
# SPDX-License-Identifier: Apache-2.0

# %% [markdown]
# # Exponential integration
#
# A Kalman filter needs two things of a model over one step: where the state goes, and how a small error of the state
# goes along with it. Forward Euler gives both cheaply and is unstable for a mechanism without damping. Pyrhönen et al.
# (2022, see [papers](../../docs/papers.md)) linearise the equations of motion at the start of each step, with the exact
# Jacobian, and solve the linear equations by the exponential of a matrix. State and transition matrix then come from
# one computation.
#
# This notebook repeats the idea on the paper's four-bar linkage: a crank, a coupler and a rocker that fall freely.
# Nothing takes energy out, so any change of the total energy is an error of the integrator.

# %%
import numpy as np
from matplotlib import pyplot

import mbse_ros as mbse

SECONDS = 3.0
four_bar = mbse.load('four_bar')
print(len(four_bar.names), 'coordinates,', len(four_bar.rows), 'constraints, independent:', *four_bar.independent)

# %% [markdown]
# ## The motion
# `simulate` gives coordinates, velocities, accelerations and energies; `plot` draws them.

# %%
motion = mbse.simulate(four_bar, SECONDS, 1e-3, 'exponential', sensors=[])
drawing = motion.plot('theta', 'theta_dot', 'kinetic', 'potential')

# %% [markdown]
# ## Energy with every scheme
# *Forward Euler* uses the old velocity for the position. *Augmented Euler* adds half of the acceleration times the step
# squared to it. The *exponential* scheme cuts the series of the matrix exponential after `order` terms, or not at all
# (`exact`).

# %%
SCHEMES = {'forward Euler': ('forward_euler', {}), 'augmented Euler': ('augmented_euler', {}),
           'exponential, order 1': ('exponential', {'order': 1}), 'exponential, order 2': ('exponential', {'order': 2}),
           'exponential, exact': ('exponential', {'order': 'exact'})}


def energy_errors(dt):
    """Change of the total energy over time for each scheme, J."""
    runs = {}
    for label, (scheme, options) in SCHEMES.items():
        run = mbse.simulate(four_bar, SECONDS, dt, scheme, sensors=[], options=options)
        runs[label] = run.t, run.motion.balance
    return runs


errors = {dt: energy_errors(dt) for dt in (1e-3, 1e-2)}
drawing, places = pyplot.subplots(2, 1, figsize=(8, 7), sharex=True, layout='constrained')
for place, (dt, runs) in zip(places, errors.items()):
    for label, curve in runs.items():
        place.plot(*curve, label=label)
    place.set_yscale('symlog', linthresh=1e-4)
    place.set(title=f'energy balance, step {1e3 * dt:g} ms', ylabel='E - E(0) [J]')
places[1].set_xlabel('time [s]')
legend = places[0].legend()
for dt, runs in errors.items():
    print(f'step {1e3 * dt:g} ms')
    for label, (_, balance) in runs.items():
        print(f'  {label:<22} largest error {np.max(np.abs(balance)):.3g} J')

# %% [markdown]
# Both Euler schemes gain energy at every step. The exponential scheme keeps it a hundred times better at 1 ms, already
# with one term of the series: it is of second order, because the Jacobian says how the accelerations change within the
# step.

# %%
worst = {label: np.max(np.abs(balance)) for label, (_, balance) in errors[1e-3].items()}
assert worst['exponential, exact'] < 0.01 * worst['forward Euler']

# %% [markdown]
# ## Order of convergence
# The step is halved three times. On logarithmic axes the slope of a line is the order of the scheme. The reference is
# DOP853, a Runge-Kutta method of order 8 with a controlled error.

# %%
steps = np.array([8e-3, 4e-3, 2e-3, 1e-3])
true = mbse.simulate(four_bar, 1.0, 1e-3, 'dop853', sensors=[])['theta'][-1]
ends, slopes = {}, {}
for label, (scheme, options) in SCHEMES.items():
    runs = [mbse.simulate(four_bar, 1.0, dt, scheme, sensors=[], options=options) for dt in steps]
    ends[label] = np.array([abs(run['theta'][-1] - true) for run in runs])
    slopes[label] = np.polyfit(np.log(steps), np.log(ends[label]), 1)[0]
    print(f'{label:<22} order {slopes[label]:.2f}')
drawing, place = pyplot.subplots(layout='constrained')
for label, values in ends.items():
    place.loglog(1e3 * steps, values, 'o-', label=label)
place.set(title='error of theta after 1 s', xlabel='step [ms]', ylabel='rad')
legend = place.legend()
assert 0.7 < slopes['forward Euler'] < 1.4 and 1.7 < slopes['exponential, exact'] < 2.4

# %% [markdown]
# ## What the filter gets from it
# The same matrix exponential is the transition of small errors, which `DEKF` uses with the option `transition='exact'`.
# A gyro on the crank measures a speed only. The simple transition `[[I, dt I], [0, I]]` does not know that gravity ties
# speed and angle, so a wrong start stays wrong; the exact one finds the angle.

# %%
truth = mbse.simulate(four_bar, SECONDS, sensors=['crank_gyro'])
start = truth.q[0, four_bar.z] + 0.1
found = {'simple': mbse.Observer(four_bar, 'DEKF', ['crank_gyro']),
         'exact': mbse.Observer(four_bar, 'DEKF', ['crank_gyro'], transition='exact')}
found = {label: observer.start(start).run(truth.samples) for label, observer in found.items()}
drawing, place = pyplot.subplots(layout='constrained')
for label, it in found.items():
    place.plot(it.t, it['theta'] - np.interp(it.t, truth.t, truth['theta']), label=f'{label} transition')
place.set(title='DEKF with a crank gyro, start wrong by 0.1 rad', xlabel='time [s]', ylabel='error of theta [rad]')
legend = place.legend()
late = {label: abs(it['theta'][-1] - truth['theta'][-1]) for label, it in found.items()}
print({label: f'{value:.4f} rad' for label, value in late.items()})
assert late['exact'] < 0.5 * late['simple']
