# SPDX-License-Identifier: Apache-2.0
"""A mechanism as C, compiled (needs a C compiler, cc) and called through ctypes: state rates, compared with Python."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

import mbse_ros as mbse

DOUBLES = np.ctypeslib.ndpointer(dtype=float, flags='C_CONTIGUOUS')


def main(name='four_bar', folder='four_bar_c'):
    model = mbse.load(name)
    export = mbse.export_c(model, folder)
    prefix, library = export.names.prefix, Path(folder).resolve() / 'model.so'
    sources = [f'{folder}/{prefix}.c', f'{folder}/{prefix}_casadi.c']
    subprocess.run(['cc', '-O2', '-fPIC', '-shared', *sources, '-lm', '-o', library], check=True)
    rates = ctypes.CDLL(library)[f'{prefix}_rates']       # (q, zd, u, t, p, f, A, B, qdd), see the header
    rates.argtypes = [DOUBLES, DOUBLES, DOUBLES, ctypes.c_double, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES]
    q, g, k = model.start.q, len(model.z), max(1, len(model.inputs))
    zd, u, p = np.full(g, 0.5), np.zeros(k), np.append(model.parameters, 0.0)
    f, A, B, qdd = np.empty(2 * g), np.empty((2 * g, 2 * g)), np.empty((2 * g, k)), np.empty(len(q))
    status = rates(q, zd, u, 0.0, p, f, A, B, qdd)
    python = model.accelerations(q, model.partition().velocity(q, zd, 0.0))
    print(f'{prefix}_rates gives {status}; accelerations differ from Python by {np.max(np.abs(qdd - python)):.2g}')
    return status, qdd, python


if __name__ == '__main__':
    main()
