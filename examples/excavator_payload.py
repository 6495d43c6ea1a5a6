# SPDX-License-Identifier: Apache-2.0
"""What a 20 t excavator lifts with its boom, what makes the result uncertain, and its motion with intervals."""

import mbse_ros as mbse


def main(seconds=24.0, payload=1200.0):
    work = mbse.simulate('zx200', seconds, payload=payload, cycle='boom', rate=50.0)
    found = mbse.estimate(work.samples, work.machine)
    print(f'true load {payload:g} kg')
    for load in found.loads:
        print(f'{load.start:5.1f} to {load.end:5.1f} s: {load.mass:.0f} kg ({load.lower:.0f} to {load.upper:.0f}), '
              f'{load.status}')
    for cause in found.budget[:3]:
        print(f'  {cause}: {cause.kg:.1f} kg, 1 sigma')
    found.plot('mass', 'position/boom', 'velocity/boom', truth=work).savefig('excavator.png')
    print('wrote excavator.png')
    return found


if __name__ == '__main__':
    main()
