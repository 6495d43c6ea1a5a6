# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---
# SPDX-License-Identifier: Apache-2.0

# %% [markdown]
# # Weighing with a crane
#
# Pyrhönen, Jaiswal and Mikkola (2023, see [papers](../../docs/papers.md)) weigh the load of a hydraulic crane from the
# position of its cylinder and two pressures. A kinematic observer with the dynamics of the hydraulic circuit estimates
# the motion; inverse dynamics then gives the mass. The crane is a PATU 655 with one moving cylinder:
# `config/machines/patu655_lift.yaml`.

# %%
import numpy as np

import mbse_ros as mbse

PAYLOAD = 80.0
work = mbse.simulate('patu655_lift', 12.0, payload=PAYLOAD)
print('sensors and commands:', ', '.join(work.samples.names))

# %% [markdown]
# ## What the sensors say
# The crane lifts, holds and lowers. The pressures jump when the valve opens, with the oscillation of the oil spring.

# %%
drawing = work.samples.plot('position/lift', 'pressure/lift_piston', 'pressure/lift_rod', 'command/lift_valve')

# %% [markdown]
# ## The estimate
# One call: samples are interpolated to 1 kHz, the observer runs, and the mass is filtered. The band is the 95 %
# interval. It holds the noise and the uncertainty of every number of the machine's file.

# %%
found = mbse.estimate(work.samples, work.machine)
drawing = found.plot('mass', 'velocity/lift', truth=work)
print(f'true {PAYLOAD:g} kg, estimated {found.mass[-1]:.1f} kg, '
      f'95 % interval {found.lower[-1]:.1f} to {found.upper[-1]:.1f} kg')
assert found.lower[-1] < PAYLOAD < found.upper[-1]

# %% [markdown]
# ## When is the mass updated?
# Where the piston stands still, friction hides the load, so the mass is held. The status says why at every instant.

# %%
status = np.array(found.status)
for word in dict.fromkeys(status):
    print(f'{word:<16} {np.mean(status == word):6.1%} of the time')

# %% [markdown]
# ## What makes the mass uncertain?
# The budget, one standard deviation each. Better data for the first line narrow the interval most; see
# [calibration](../../docs/calibration.md).

# %%
for cause in found.budget[:5]:
    print(f'{cause.kg:6.2f} kg  {cause}')

# %% [markdown]
# ## Motion and mass together, or one after the other
# `weighing: apart` is the method of the paper: the observer does not know the mass, and inverse dynamics finds it
# afterwards. `joint`, our default, takes the balance of forces as a measurement of the observer, so motion, pressures
# and mass are one estimate. Both run on the same samples.

# %%
apart = mbse.estimate(work.samples, work.machine, tuning={'observer.weighing': 'apart'})
for label, it in (('joint', found), ('apart', apart)):
    print(f'{label}: {it.mass[-1]:.2f} kg, 95 % interval {it.lower[-1]:.2f} to {it.upper[-1]:.2f} kg')
assert apart.lower[-1] < PAYLOAD < apart.upper[-1]

# %% [markdown]
# ## The whole log at once
# A factor graph smooths the log with all of its samples (extra `graph`, GTSAM): [factor
# graphs](../../docs/factor_graphs.md), and `examples/factor_graph.py`. What was measured on many logs:
# [figures](../../docs/figures.md).
