# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---
# SPDX-License-Identifier: Apache-2.0

# %% [markdown]
# # Observers compared
#
# Naya et al. (2023, see [papers](../../docs/papers.md)) review twenty years of Kalman filters on multibody models, and
# compare them by the *three-simulation method*: a true mechanism makes the measurements, a wrong model of it drifts
# away, and a filter corrects the wrong model by the measurements. The model is wrong as in the paper: gravity is
# smaller by 1 m/s², and the start is off by pi/16.

# %%
import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot

import mbse_ros as mbse

SECONDS = 4.0
FILTERS = ('DEKF', 'errorEKF', 'errorEKF_EJ', 'errorEKF_FE', 'UKF')
truth = mbse.simulate('four_bar', SECONDS, 5e-3, 'trapezoid')
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / 'wrong.yaml'
    file.write_text(Path(truth.model.description.file).read_text().replace('gravity: 9.81', 'gravity: 8.81'))
    model = mbse.load(str(file))
start = model.start.q[model.z] + np.pi / 16
print('sensors of the file:', ', '.join(truth.model.description.mechanical_sensors))

# %% [markdown]
# ## Without a filter
# The wrong model alone.

# %%
alone = mbse.simulate(model, SECONDS, 5e-3, 'trapezoid', sensors=[])
drawing = mbse.compare({'wrong model': alone}, 'theta', truth=truth)

# %% [markdown]
# ## With an encoder, and with a gyro
# An encoder measures the angle, so every filter works. A gyro measures its rate alone: whether the angle can be found
# depends on what the filter's transition knows of the dynamics.


# %%
def run(sensor):
    """Estimates of all filters with one sensor."""
    return {name: mbse.Observer(model, name, [sensor]).start(start).run(truth.samples) for name in FILTERS}


def error(estimate):
    return estimate['theta'] - np.interp(estimate.t, truth.t, truth['theta'])


found = {sensor: run(sensor) for sensor in ('encoder', 'crank_gyro')}
drawing, places = pyplot.subplots(2, 1, figsize=(8, 7), sharex=True, layout='constrained')
for place, (sensor, estimates) in zip(places, found.items()):
    for name, it in estimates.items():
        place.plot(it.t, error(it), label=name)
    place.set(title=sensor, ylabel='error of theta [rad]', ylim=(-0.25, 0.25))
places[1].set_xlabel('time [s]')
legend = places[0].legend(ncols=2)

# %%
late = {sensor: {name: np.sqrt(np.mean(error(it)[it.t > 2.0] ** 2)) for name, it in estimates.items()}
        for sensor, estimates in found.items()}
print(f'{"error after 2 s, rad RMS":<26}' + ''.join(f'{sensor:>12}' for sensor in late))
for name in FILTERS:
    print(f'{name:<26}' + ''.join(f'{late[sensor][name]:>12.5f}' for sensor in late))
assert max(late['encoder'].values()) < 0.01
assert late['crank_gyro']['DEKF'] > 0.05 > 100 * late['crank_gyro']['errorEKF_FE']

# %% [markdown]
# ## Which directions does the gyro see?
# `observability` looks at a window of the motion and names what the sensors cannot see, and the sensor that would help
# most.

# %%
for kind in ('simple', 'exact'):
    sight = mbse.observability('four_bar', ['crank_gyro'], kind=kind, duration=2.0)
    print(f'{kind:>7}: {sight.verdict}', *(f'to {what}' for what in sight.blind))
    assert sight.verdict == {'simple': 'blind', 'exact': 'seen'}[kind]

# %% [markdown]
# ## Is the filter honest?
# The normalised innovation squared (NIS) is one per measurement on average where noises and model are right.
# `errorEKF_FE` estimates the force that the wrong model lacks, and stays near one.

# %%
for name in FILTERS:
    print(f'{name:<14} mean NIS with an encoder {np.mean(found["encoder"][name].nis[400:]):.2f}')
best = found['crank_gyro']['errorEKF_FE']
drawing = best.plot('theta', 'theta_dot', 'force/theta', truth=truth)
assert 0.6 < np.mean(found['encoder']['errorEKF_FE'].nis[400:]) < 1.6

# %% [markdown]
# All filters, sensors and seeds: `./mbse benchmark estimators`, with results in [the estimators in
# figures](../../docs/estimators_figures.md). Which filter to take: [estimators](../../docs/estimators.md).
