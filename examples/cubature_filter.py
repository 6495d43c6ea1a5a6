# SPDX-License-Identifier: Apache-2.0
"""A filter of your own on a mechanism: a cubature Kalman filter (Arasaratnam and Haykin 2009), compared with ours.

Run it: python examples/cubature_filter.py. docs/your_own_filter.md goes through it.
"""

import numpy as np

import mbse_ros as mbse


class CubatureFilter:
    """``Observer`` makes it with the mechanism's equations and the options that it was given itself.

    ``acceleration``: density of white noise on the accelerations, rad^2/s^3 or m^2/s^3.
    """

    def __init__(self, equations, acceleration):
        self.equations, self.acceleration = equations, acceleration
        self.R = np.diag(equations.stddev ** 2)

    def points(self, mean, P):
        """2 l points (2 l, l), all of weight 1/(2 l)."""
        spread = np.sqrt(len(mean)) * np.linalg.cholesky(P)
        return mean + np.vstack([spread.T, -spread.T])

    def predict(self, mean, P, u, t, dt):
        moved = np.array([self.equations.step(x, u, t, dt) for x in self.points(mean, P)])
        mean = moved.mean(axis=0)
        away = moved - mean
        return mean, away.T @ away / len(moved) + self.noise(dt)

    def noise(self, dt):
        """Of positions and velocities, whose accelerations are in error by white noise."""
        eye = self.acceleration * np.eye(len(self.equations.names) // 2)
        return np.block([[eye * dt ** 3 / 3, eye * dt ** 2 / 2], [eye * dt ** 2 / 2, eye * dt]])

    def correct(self, mean, P, y, u, t):
        points = self.points(mean, P)
        first = self.equations.sensors(points[0], u, t)
        away = np.array([self.equations.difference(self.equations.sensors(x, u, t), first) for x in points])
        h, away = first + away.mean(axis=0), away - away.mean(axis=0)
        S = away.T @ away / len(points) + self.R
        innovation = self.equations.difference(y, h)
        seen = np.isfinite(y)
        cross = (points - mean).T @ away[:, seen] / len(points)
        K = np.linalg.solve(S[np.ix_(seen, seen)], cross.T).T
        P = P - K @ S[np.ix_(seen, seen)] @ K.T
        return mean + K @ innovation[seen], (P + P.T) / 2, innovation, S


def main(seconds=5.0):
    truth = mbse.simulate('four_bar', seconds, sensors=['encoder', 'crank_gyro'])
    truth.samples.values[100:120] = np.nan                    # no samples for 0.1 s
    wrong = truth.q[0, truth.model.z] + np.pi / 16            # where the filters believe that they start
    results = {}
    for estimator, options in ((CubatureFilter, {'acceleration': 0.09}), ('UKF', {}), ('errorEKF_FE', {})):
        observer = mbse.Observer('four_bar', estimator, ['encoder', 'crank_gyro'], **options)
        found = observer.start(wrong, stddev=np.pi / 16).run(truth.samples)
        error = found['theta'] - np.interp(found.t, truth.t, truth['theta'])
        results[found.estimator] = np.sqrt(np.mean(error[len(error) // 2:] ** 2))
        print(f'{found.estimator:>15}: error of theta {results[found.estimator]:.5f} rad RMS over the second half, '
              f'mean NIS {np.mean(found.nis[120:]):.2f} of 2')
    return results


if __name__ == '__main__':
    main()
