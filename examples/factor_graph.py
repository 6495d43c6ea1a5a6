# SPDX-License-Identifier: Apache-2.0
"""A lift as a factor graph (needs GTSAM): the payload of the whole log at once, the filter's beside it."""

import mbse_ros as mbse


def main(seconds=12.0, payload=80.0, lag=None):
    work = mbse.simulate('patu655_lift', seconds, payload=payload)
    found = mbse.smooth(work.samples, work.machine, lag=lag)
    print(f'true payload {payload:g} kg')
    for name, it in (('smoother', found), ('filter', found.filtered)):
        print(f'{name:>9}: {it.mass[-1]:.2f} kg, 95 % interval {it.lower[-1]:.2f} to {it.upper[-1]:.2f} kg')
    for name, value, stddev in zip(found.smoothed.names, found.smoothed.parameters, found.smoothed.parameters_stddev):
        print(f'  {name}: {value:.4g} +- {stddev:.2g} (SI)')
    found.plot('mass', 'velocity/lift', truth=work).savefig('smoothed.png')
    print('wrote smoothed.png')
    return found


if __name__ == '__main__':
    main()
