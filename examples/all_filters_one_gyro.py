# SPDX-License-Identifier: Apache-2.0
"""All filters with one gyro on the crank, as in Naya et al., review: gravity wrong by 1 m/s2, the start by pi/16."""

import numpy as np

import mbse_ros as mbse
from mbse_ros.filters.filters import CHOOSY, OF_MECHANISMS
from mbse_ros.simulation.three_simulations import wrong_model


def main(seconds=5.0, estimators=()):
    truth = mbse.simulate('four_bar', seconds, 5e-3, 'trapezoid', sensors=['crank_gyro'])
    model = wrong_model(truth.model)
    start = model.start.q[model.z] + np.pi / 16
    print('error of theta, rad RMS after 2 s:')
    errors = {}
    for name in estimators or [name for name in OF_MECHANISMS if name not in CHOOSY]:
        try:
            found = mbse.Observer(model, name, ['crank_gyro'], gate=1.0).start(start).run(truth.samples)
        except mbse.errors.DivergenceError:
            errors[name] = np.nan
            print(f'  {name:<20} left the finite numbers')
            continue
        late = found.t > 2.0
        error = found['theta'][late] - np.interp(found.t[late], truth.t, truth['theta'])
        errors[name] = np.sqrt(np.mean(error ** 2))
        print(f'  {name:<20} {errors[name]:.4f}')
    return errors


if __name__ == '__main__':
    main()
