# SPDX-License-Identifier: Apache-2.0
"""The estimation graph of a mechanism eliminated by hand: a chain of small states, in compiled code.

Where constraints, equations of motion and the trapezoidal rule hold exactly, all nodes of an instant follow from
``x = [z, zd, f, b]``: independent coordinates, their velocities, the force along them and the biases. Eliminating the
graph in the order of time is then a Kalman filter on the linearised chain and its back-substitution a
Rauch-Tung-Striebel smoother; to linearise again at the result is a Gauss-Newton step of the whole graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...compiled import Scan
from ...compiled.of_scipy import NEVER
from ...errors import DivergenceError
from ...filters.parts.layout import Layout
from ...filters.parts.model_step import rates
from ...filters.parts.problem import Problem
from ...filters.parts.update import correction

CLOSINGS = 3        # of Newton's method for the dependent coordinates, at each linearisation
LONGEST = 0.2       # rad or m of an independent coordinate in one step
_NONE = np.zeros(0)


@dataclass(frozen=True)
class Gaussian:
    """Mean (l,) and covariance (l, l) of a state of the chain."""

    mean: np.ndarray
    covariance: np.ndarray


@dataclass
class ChainPoints:
    """Where a chain is linearised: ``q`` (k, n) and ``x`` (k, l); ``y`` (k, s), ``u`` (k, inputs) and ``t`` (k,) are
    given."""

    q: np.ndarray
    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    t: np.ndarray

    def part(self, chosen: slice, copy: bool = False) -> ChainPoints:
        """Some of the points."""
        values = (value[chosen] for value in (self.q, self.x, self.y, self.u, self.t))
        return ChainPoints(*(value.copy() if copy else value for value in values))


class Swept:
    """A Gauss-Newton step of a chain.

    ``step`` (k, l) of the states, ``covariance`` (k, l, l), column by column as rows and columns are alike; ``ahead``:
    the second state as the first instant alone predicts it, less its point; ``q``, ``qd``, ``qdd`` (k, n): at the
    points.
    """

    def __init__(self, point: Layout, kept: Layout, smoothed: Layout, at: np.ndarray, forward: np.ndarray,
                 backward: np.ndarray) -> None:
        l = smoothed.parts['m'][0]
        self._point, self._kept, self._at, self._forward = point, kept, at, forward
        both = np.concatenate([backward[::-1], forward[-1:, :smoothed.size]])
        self.step, self.covariance = both[:, :l], both[:, l:].reshape(-1, l, l)
        self.q, self.qd, self.qdd = (at[:, point.places[name]] for name in ('q', 'qd', 'qdd'))

    @property
    def ahead(self) -> Gaussian:
        """Mean and covariance of the second state, of the first one's prior and samples alone."""
        first, places = self._forward[0], self._kept.places
        l = self.step.shape[1]
        return Gaussian(first[places['m_ahead']], first[places['P_ahead']].reshape(l, l))

    def log_evidence(self, y: np.ndarray, P: np.ndarray, m: np.ndarray, angular: Sequence[bool], variance: np.ndarray
                     ) -> float:
        """``log p(y)`` of samples (k, s) under the chain linearised at its points, each given those before it: prior
        covariance P (l, l) and mean m (l,), less the point, of the first state."""
        at, l = self._point.arrays(self._at), len(m)
        kept = self._kept.arrays(self._forward)
        means = np.vstack([m, kept['m_ahead'][:-1].reshape(-1, l)])[:len(y)]
        covariances = np.concatenate([P[None], kept['P_ahead'][:-1].reshape(-1, l, l)])[:len(y)]
        found = 0.0
        for o, h, H, mean, cov in zip(y, at['h'].reshape(len(y), -1), at['H'], means, covariances):
            here = np.isfinite(o)
            v = np.where(here, o - h - H @ mean, 0.0)
            v = np.where(angular, (v + np.pi) % (2 * np.pi) - np.pi, v)[here]
            S = 2 * np.pi * (H[here] @ cov @ H[here].T + np.diag(variance[here]))
            found -= (np.linalg.slogdet(S)[1] + 2 * np.pi * v @ np.linalg.solve(S, v)) / 2 if len(v) else 0.0
        return float(found)

    @property
    def size(self) -> float:
        """Largest entry of the step, in standard deviations."""
        variance = np.diagonal(self.covariance, axis1=1, axis2=2)
        return float(np.sqrt((self.step ** 2 / variance).max()))

    @property
    def gap(self) -> float:
        """Largest residual of what has to hold exactly, at the points."""
        rule = self._forward[:-1, self._kept.places['gap']]
        return max(float(self._at[:, self._point.places['gap']].max()), float(rule.max(initial=0.0)))


class Chain:
    """Compiled sweeps over chains of any length, of a problem with its sensors; ``size`` l of a state.

    ``variance`` (s,) of samples; ``walk`` (g,): density of the random walk of the force; ``biased`` places of the
    channels that have a constant bias.
    """

    def __init__(self, problem: Problem, dt: float, variance: np.ndarray, walk: np.ndarray,
                 biased: tuple[int, ...] = (), backend: str = 'auto') -> None:
        self.problem, self.dt, self.biased, self.variance = problem, dt, biased, variance
        self.g, self.s = problem.g, len(problem.channels)
        self.size = 3 * self.g + len(biased)
        l, g, n = self.size, self.g, problem.n
        self.point = Layout({'x': (l, 1), 'zdd': (g, 1), 'A': (g, 2 * g), 'B': (g, g), 'h': (self.s, 1),
                             'H': (self.s, l), 'q': (n, 1), 'qd': (n, 1), 'qdd': (n, 1), 'gap': (1, 1)})
        self.taken = ('x', 'zdd', 'A', 'B', 'h', 'H')
        self.link = Layout({name: self.point.parts[name] for name in self.taken})
        self.kept = Layout({'m': (l, 1), 'P': (l, l), 'm_ahead': (l, 1), 'P_ahead': (l, l), 'F': (l, l), 'S': (l, l),
                            'gap': (1, 1)})
        self.smoothed = Layout({'m': (l, 1), 'P': (l, l)})
        self._tuning = np.concatenate([variance, walk, np.asarray(problem.model.parameters)])
        self._point = Scan(self._point_function(), backend)
        self._forward = Scan(self._forward_function(), backend)
        self._backward = Scan(self._backward_function(), backend)

    def sweep(self, points: ChainPoints, start: Gaussian) -> Swept:
        """Linearise at points, filter and smooth from the prior ``start`` of the first; DivergenceError with the step
        that is not finite."""
        width = self.link.size
        rows = np.hstack([points.q, points.x, points.u, points.t[:, None]])
        _, at = self._point(_NONE, rows, self._tuning)
        pairs = np.hstack([at[:, :width], np.concatenate([at[1:, :width], at[-1:, :width]]), points.y])
        first = np.concatenate([start.mean - points.x[0], start.covariance.ravel()])
        _, forward = self._forward(first, pairs, self._tuning)
        _, backward = self._backward(forward[-1, :self.smoothed.size], forward[-2::-1], _NONE)
        swept = Swept(self.point, self.kept, self.smoothed, at, forward, backward)
        if not np.isfinite(swept.step).all():
            bad = int(np.flatnonzero(~np.isfinite(swept.step).all(axis=1))[0])
            raise DivergenceError('smoother', bad, f'at t = {points.t[bad]:.6g} s')
        return swept

    def move(self, points: ChainPoints, swept: Swept) -> None:
        """Take a step, a long one in part; the points are changed."""
        longest = np.abs(swept.step[:, :self.g]).max()
        points.q[...] = swept.q
        points.x += swept.step * min(1.0, LONGEST / max(longest, 1e-300))

    def _split(self, x: ca.SX) -> list[ca.SX]:
        g = self.g
        return [x[:g], x[g:2 * g], x[2 * g:3 * g], x[3 * g:]]

    def _tuned(self, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        return p[:self.s], p[self.s:self.s + self.g], p[self.s + self.g:]

    def _point_function(self) -> ca.Function:
        """Model and sensors at one instant; the dependent coordinates closed."""
        of, g, n = self.problem, self.g, self.problem.n
        inputs = of.system.u.numel() - g
        row, p = of.symbol('row', n + self.size + inputs + 1), of.symbol('p', len(self._tuning))
        q, x, u, t = row[:n], row[n:n + self.size], row[n + self.size:n + self.size + inputs], row[-1]
        z, zd, f, bias = self._split(x)
        numbers = self._tuned(p)[2]
        q = of.close(q, z, t, numbers, CLOSINGS)
        at = rates(of, q, zd, u, f, t, numbers)
        h, H_z, H_zd, H_zdd = of.sensors(q, zd, at.zdd, ca.vertcat(u, f), t, numbers)
        lift = at.B[g:, -g:]
        onto = type(h)(ca.DM(np.eye(self.s)[:, list(self.biased)]))
        H = ca.horzcat(H_z + H_zdd @ at.a, H_zd + H_zdd @ at.b, H_zdd @ lift, onto)
        _, gap = of.newton(q, t, numbers)
        out = self.point.pack(x=x, zdd=at.zdd, A=at.A[g:, :], B=lift, h=h + onto @ bias, H=H, q=q, qd=at.qd,
                              qdd=at.qdd, gap=gap)
        none = of.symbol('none', 0)
        return ca.Function('mbse_chain_point', [none, row, p], [none, out], {'cse': True})

    def _forward_function(self) -> ca.Function:
        """Update by the samples of an instant, then prediction of the next one."""
        l, s = self.size, self.s
        state, p = ca.SX.sym('state', self.smoothed.size), ca.SX.sym('p', len(self._tuning))
        row = ca.SX.sym('row', 2 * self.link.size + s)
        here, there = self.link.unpack(row[:self.link.size]), self.link.unpack(row[self.link.size:2 * self.link.size])
        before, (variance, walk, _) = self.smoothed.unpack(state), self._tuned(p)
        update = correction(l, self.problem.angular)
        moved = here['h'] + here['H'] @ before['m']
        m, P, *_ = update(before['m'], before['P'], row[2 * self.link.size:], moved, here['H'], variance, NEVER)
        F, offset, Sigma, gap = self._transition(here, there, walk)
        ahead, P_ahead = F @ m + offset, F @ P @ F.T + Sigma
        P_ahead = (P_ahead + P_ahead.T) / 2
        out = self.kept.pack(m=m, P=P, m_ahead=ahead, P_ahead=P_ahead, F=F, S=Sigma, gap=gap)
        return ca.Function('mbse_chain_forward', [state, row, p], [self.smoothed.pack(m=ahead, P=P_ahead), out],
                           {'cse': True})

    def _transition(self, here: dict[str, ca.SX], there: dict[str, ca.SX], walk: ca.SX
                    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """``dx1 = F dx0 + offset + noise`` of covariance Sigma, from the trapezoidal rule linearised at both ends, and
        the largest residual of the rule there.

        ``(I - h A1) dX1 = (I + h A0) dX0 + h (B0 df0 + B1 df1) - r`` with ``h = dt/2``, ``df1 = df0 + f0 - f1 + w``.
        """
        g, h = self.g, self.dt / 2
        eye, zero = ca.SX.eye(g), ca.SX(g, g)
        A0, A1 = (ca.vertcat(ca.horzcat(zero, eye), item['A']) for item in (here, there))
        B0, B1 = (ca.vertcat(zero, item['B']) for item in (here, there))
        (z0, zd0, f0, b0), (z1, zd1, f1, b1) = self._split(here['x']), self._split(there['x'])
        r = ca.vertcat(z1 - z0 - h * (zd0 + zd1), zd1 - zd0 - h * (here['zdd'] + there['zdd']))
        right = ca.horzcat(ca.SX.eye(2 * g) + h * A0, h * (B0 + B1), h * (B1 @ (f0 - f1)) - r, h * B1)
        solved = ca.solve(ca.SX.eye(2 * g) - h * A1, ca.densify(right))
        top, drift, lift = solved[:, :3 * g], solved[:, 3 * g], solved[:, 3 * g + 1:]
        c = self.size - 3 * g
        F = ca.diagcat(ca.vertcat(top, ca.horzcat(ca.SX(g, 2 * g), eye)), ca.SX.eye(c))
        G = ca.vertcat(lift, eye, ca.SX(c, g))
        Sigma = G @ ca.diag(walk * self.dt) @ G.T
        return ca.densify(F), ca.vertcat(drift, f0 - f1, b0 - b1), ca.densify(Sigma), ca.norm_inf(r)

    def _backward_function(self) -> ca.Function:
        """State smoothed, from the one after it: ``C = P F' P-^-1``, in Joseph's form, P- scaled to a correlation."""
        l = self.size
        state, row = ca.SX.sym('state', self.smoothed.size), ca.SX.sym('row', self.kept.size)
        later, at = self.smoothed.unpack(state), self.kept.unpack(row)
        scale = ca.sqrt(ca.diag(at['P_ahead']))
        scaled = at['P_ahead'] / (scale @ scale.T)
        C = (ca.solve(scaled, ca.densify((at['F'] @ at['P']) / ca.repmat(scale, 1, l)))
             / ca.repmat(scale, 1, l)).T
        rest = ca.SX.eye(l) - C @ at['F']
        P = rest @ at['P'] @ rest.T + C @ (later['P'] + at['S']) @ C.T
        m = at['m'] + C @ (later['m'] - at['m_ahead'])
        out = self.smoothed.pack(m=m, P=(P + P.T) / 2)
        return ca.Function('mbse_chain_backward', [state, row, ca.SX.sym('p', 0)], [out, out], {'cse': True})
