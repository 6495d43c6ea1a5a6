# SPDX-License-Identifier: Apache-2.0
"""What is done with a model of the grammar: 12 samples through a filter, smoother, factor graph; C code that is run."""

import subprocess

import numpy as np
from mechanism_grammar import text

from mbse_ros.compiled import Kernel
from mbse_ros.description.load import parse_mechanism
from mbse_ros.dynamics.model import Model
from mbse_ros.dynamics.sensor_equations import sensor_function
from mbse_ros.export.write import export_c
from mbse_ros.filters.filters import OF_MECHANISMS
from mbse_ros.graph.estimate import EstimatedMotion, estimation_graph, solve_estimation
from mbse_ros.graph.smoother import LinkageSmoother
from mbse_ros.streams.linkage import LinkageSettings, LinkageStage

COUNT, STEP, PARTS = 12, 0.01, 10
FREE = 'bodies.tool.mass'       # for filters of numbers
TOOLS = (*OF_MECHANISMS, 'smoother', 'factor graph', 'C')


def model_of(dimension, joint, kind, tool=''):
    """A model whose sensors have noise; a filter of numbers has one."""
    free = (FREE,) if tool in ('joint', 'dual') else ()
    return Model(parse_mechanism(text(dimension, joint, noise=True)), kind, free=free, backend='vm')


def motion(model):
    """A motion from the start at rest, without inputs, and its samples (COUNT, s)."""
    part = model.partition()
    sensors = Kernel(sensor_function(part.system, part.system.values.symbol), 'vm')
    u, q, zd = np.zeros(len(model.inputs)), model.start.q, np.zeros(len(part.independent))
    rows = []
    for _ in range(COUNT):
        rates = part.rates(q, zd, u)
        rows.append((q, part.velocity(q, zd, 0.0), rates.qdd,
                     np.ravel(sensors(q, zd, u, [0.0], part.parameters)[0])))
        for _ in range(PARTS):      # midpoint rule
            half = STEP / PARTS / 2.0
            between = zd + half * part.rates(q, zd, u).zdd
            middle = part.position(q[part.independent] + half * zd, q)
            zd = zd + 2.0 * half * part.rates(middle, between, u).zdd
            q = part.position(q[part.independent] + 2.0 * half * between, q)
    qs, qds, qdds, samples = map(np.array, zip(*rows))
    return EstimatedMotion(STEP * np.arange(COUNT), qs, qds, qdds, np.zeros((COUNT, len(part.independent)))), samples


def run(model, tool, folder, options=''):
    """All numbers that come out of a tool. Raises errors of the package."""
    track, samples = motion(model)
    if tool in OF_MECHANISMS:
        stage = LinkageStage(model, LinkageSettings(estimator=tool, options=options), (), STEP, 'vm')
        found = [estimate for k, row in enumerate(samples)
                 for estimate in stage.add(10 ** 18 + round(k * STEP * 1e9), dict(zip(stage.channels, row)))]
        stage.health()
        return np.array([estimate.q for estimate in found])
    names = tuple(model.description.mechanical_sensors)
    if tool == 'smoother':
        smoother = LinkageSmoother(model, names, STEP, backend='vm')
        smoother.batch(samples, track)
        return smoother.lagged(track.t, samples, 5 * STEP).q
    if tool == 'factor graph':
        return solve_estimation(estimation_graph(model, names, samples, track))['q']
    export_c(model, folder)
    done = subprocess.run('cc -std=c99 -O0 *.c -lm -o test_model && ./test_model', shell=True, cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith('ok'), done
    return np.zeros((COUNT, len(model.names)))
