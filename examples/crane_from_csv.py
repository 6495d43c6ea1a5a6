# SPDX-License-Identifier: Apache-2.0
"""Payload of a crane from a CSV table: columns to channels, SI, then one call. Without a table one is simulated."""

import sys

import numpy as np

import mbse_ros as mbse

# Column of the table -> channel, and the factor to SI.
COLUMNS = {'s_mm': ('position/lift', 1e-3), 'p_piston_bar': ('pressure/lift_piston', 1e5),
           'p_rod_bar': ('pressure/lift_rod', 1e5), 'valve_V': ('command/lift_valve', 1.0)}


def write_table(path, seconds, payload):
    samples = mbse.simulate('patu655_lift', seconds, payload=payload).samples
    columns = [samples[channel] / factor for channel, factor in COLUMNS.values()]
    np.savetxt(path, np.column_stack([samples.t, *columns]), delimiter=',', comments='', fmt='%.8g',
               header=','.join(['t_s', *COLUMNS]))


def main(table=None, seconds=12.0, payload=80.0):
    if table is None:
        table = 'lift.csv'
        write_table(table, seconds, payload)
    rows = np.genfromtxt(table, delimiter=',', names=True)
    log = {channel: (rows['t_s'], factor * rows[column]) for column, (channel, factor) in COLUMNS.items()}
    found = mbse.estimate(log, 'patu655_lift')
    print(f'{table}: {found.mass[-1]:.1f} kg, 95 % interval {found.lower[-1]:.1f} to {found.upper[-1]:.1f} kg')
    for line in found.warnings:
        print(f'warning: {line}')
    return found


if __name__ == '__main__':
    main(*sys.argv[1:2])
