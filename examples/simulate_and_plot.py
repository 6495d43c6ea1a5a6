# SPDX-License-Identifier: Apache-2.0
"""The free motion of a mechanism by two integrators, its energy balance, and a picture."""

import numpy as np

import mbse_ros as mbse


def main(seconds=5.0, name='four_bar'):
    model = mbse.load(name)
    print(f'{name}: {len(model.names)} coordinates, independent: {", ".join(model.independent)}')
    for scheme in ('exponential', 'trapezoid'):
        run = mbse.simulate(model, seconds, 1e-3, scheme, sensors=[])
        print(f'{scheme:>12}: energy kept within {np.max(np.abs(run.motion.balance)):.2g} J, '
              f'constraints within {np.max(run.motion.violation):.1g}')
    run.plot('theta', 'theta_dot', 'kinetic', 'potential').savefig('motion.png')
    print('wrote motion.png')
    return run


if __name__ == '__main__':
    main()
