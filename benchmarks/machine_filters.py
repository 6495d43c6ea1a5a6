# SPDX-License-Identifier: Apache-2.0
"""The filters of machines beside each other: errors of a simulated motion, squares of errors over their stated
variances (NEES) and of innovations (NIS), each 1 where the deviations are right, and cost.

``python benchmarks/machine_filters.py [machine] [payload, kg] [duration, s] [seeds]``
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

import mbse_ros as mbse

SETTLED = 1.0       # s
ERROR = 'hydraulic_errorEKF_FE'


def main(machine: str = 'patu655_lift', payload: float = 200.0, duration: float = 8.0, seeds: int = 2) -> None:
    """A row a filter and tuning."""
    logs = [mbse.simulate(machine, duration, payload=payload, seed=seed) for seed in range(seeds)]
    own = {'nominal_payload': payload}
    print(f'{"filter":64}    z mm  zd mm/s zdd mm/s2  p kPa | NEES z    zd   zdd     p   NIS | '
          '% of a core')
    for name, settings in (('hydraulic', {'weighing': 'apart'}), ('hydraulic', {}), (ERROR, {}), (ERROR, own),
                           (ERROR, {**own, 'acceleration_psd': 2.0}), (ERROR, {**own, 'acceleration_psd': 0.2})):
        observer = mbse.Observer(machine, name, **settings)
        found = np.mean([errors(observer, log) for log in logs], axis=0)
        words = ' '.join(f'{key}={value}' for key, value in settings.items())
        print(f'{name:21} {words:42} ' + '{:7.4f} {:7.3f} {:8.1f} {:7.2f}  | {:5.2f} {:5.2f} {:5.2f} {:5.2f} {:5.2f}'
              ' | {:5.1f}'.format(*found), flush=True)


def errors(observer: mbse.Observer, log: mbse.MachineSimulation) -> list[float]:
    """The columns; of coordinates in mm or mrad."""
    begin = process_time()
    found = observer.start().run(log.samples)
    cost = (process_time() - begin) / found.t[-1] * 100
    settled, at = found.t > SETTLED, np.searchsorted(log.t, found.t - 1e-6)
    rms, nees = [], []
    for kind, truth, unit in (('position', log.position, 1e-3), ('velocity', log.velocity, 1e-3),
                              ('acceleration', log.acceleration, 1e-3), ('pressure', log.pressure, 1e3)):
        places = [k for k, name in enumerate(found.names) if name.startswith(f'{kind}/')]
        off = (found.mean[:, places] - truth[at])[settled]
        rms.append(np.sqrt(np.mean(off ** 2)) / unit)
        nees.append(np.mean((off / found.stddev[:, places][settled]) ** 2))
    return [*rms, *nees, np.nanmean((found.innovation / found.innovation_stddev)[settled] ** 2), cost]


if __name__ == '__main__':
    main(*(kind(word) for kind, word in zip((str, float, float, int), sys.argv[1:])))
