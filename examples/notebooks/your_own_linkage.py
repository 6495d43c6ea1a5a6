# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---
# SPDX-License-Identifier: Apache-2.0

# %% [markdown]
# # Your own linkage from a CSV
#
# You have a linkage, an encoder on it, and a table of what the encoder said. You need a file of the linkage and one
# call. The linkage here is a small four-bar rig whose crank turns through; put your lengths and masses in its place
# ([all keys](../../docs/mechanism_yaml.md)).

# %%
import tempfile
from pathlib import Path

import numpy as np

import mbse_ros as mbse

RIG = """
format: mbse/mechanism/1
name: rig
gravity: 9.81 m/s^2
parameters: {crank: 0.1 m, coupler: 0.4 m, rocker: 0.3 m, ground: 0.45 m, start: pi/3}
points: {A: {fixed: [0, 0]}, B: {fixed: [ground, 0]}, P1: [crank*cos(start), crank*sin(start)], P2: [0.38, 0.29]}
bodies:
  crank: {points: [A, P1], length: crank, mass: 0.3 kg, uniform: true}
  coupler: {points: [P1, P2], length: coupler, mass: 0.5 kg, uniform: true}
  rocker: {points: [P2, B], length: rocker, mass: 0.4 kg, uniform: true}
named: {theta: {angle: crank}}
independent: [theta]
initial: {position: {theta: start}, velocity: {theta: 12 rad/s}}
sensors: {encoder: {kind: encoder, coordinate: theta, stddev: 0.01 rad}}
"""
folder = tempfile.TemporaryDirectory()
file, table = (Path(folder.name) / name for name in ('rig.yaml', 'rig.csv'))
file.write_text(RIG)
checked = mbse.check(str(file))
print(*checked.warnings or ['nothing is odd about the file'], sep='\n')

# %% [markdown]
# ## The table
# A column `t`, s, and one per sensor, by its name in the file. Yours comes from the rig; this one is simulated, at
# 40 Hz with stamps that jitter by some ms.

# %%
truth = mbse.simulate(str(file), 4.0, 1e-3, sensors=[])
dice = np.random.default_rng(1)
t = np.arange(0.025, 3.95, 0.025) + dice.uniform(-0.003, 0.003, 157)
encoder = np.interp(t, truth.t, truth['theta']) + dice.normal(0.0, 0.01, len(t))
np.savetxt(table, np.column_stack([t, encoder]), delimiter=',', header='t,encoder', comments='', fmt='%.6f')
print(*table.read_text().splitlines()[:4], sep='\n')

# %% [markdown]
# ## The estimate
# The crank turns by half a radian from one sample to the next, so the filter takes shorter steps. A sample counts at a
# step, so stamps that jitter need steps that are short beside the jitter: 1 ms here. With 5 ms the filter would refuse
# samples, and say so in `warnings`. The speed, which nothing measures, comes from the model.

# %%
found = {name: mbse.estimate(str(table), mechanism=str(file), estimator=name, step=0.001)
         for name in ('errorEKF_FE', 'UKF')}
drawing = mbse.compare(found, 'theta', 'theta_dot', truth=truth)
for name, it in found.items():
    off = it['theta'] - np.interp(it.t, truth.t, truth['theta'])
    rms = np.sqrt(np.mean(off[it.t > 1.0] ** 2))
    print(f'{name:<12} {rms:.4f} rad RMS after 1 s; warnings:', *it.warnings or ['none'])
    assert rms < 0.01 and not it.warnings

# %% [markdown]
# ## Is the filter honest?
# NEES and NIS against their bounds, if a truth is known, as from a second encoder or a simulation. With
# [`mbse.study`](../../docs/python_api.md#a-study) you do this for many filters and runs at once.

# %%
honest = found['errorEKF_FE'].consistency(truth, skip=1.0)
low, high = honest.nis_bounds
print(f'mean NEES {honest.nees_mean:.2f}, mean NIS {honest.nis_mean:.2f}, expected {low:.2f} to {high:.2f}')
drawing = honest.plot()
assert low < honest.nis_mean < high
folder.cleanup()
