# SPDX-License-Identifier: Apache-2.0
"""The smallest filter of your own beside ours: the mechanism's equations and a constant gain, in NumPy."""

import numpy as np

import mbse_ros as mbse


class ConstantGain:
    """A Luenberger observer: it makes no claim about its errors, so its covariance stays."""

    def __init__(self, equations, gain):
        self.equations, self.gain = equations, np.atleast_2d(gain).T

    def predict(self, mean, covariance, u, t, dt):
        return self.equations.step(mean, u, t, dt), covariance

    def correct(self, mean, covariance, y, u, t):
        innovation = self.equations.difference(y, self.equations.sensors(mean, u, t))
        return mean + self.gain @ np.nan_to_num(innovation), covariance, innovation, np.diag(self.equations.stddev ** 2)


def main(seconds=4.0):
    truth, errors = mbse.simulate('four_bar', seconds, sensors=['encoder']), {}
    for estimator, options in ((ConstantGain, {'gain': [0.1, 1.0]}), ('errorEKF_FE', {})):
        observer = mbse.Observer('four_bar', estimator, ['encoder'], **options)
        found = observer.start(truth.q[0, truth.model.z] + 0.1).run(truth.samples)
        error = found['theta'] - np.interp(found.t, truth.t, truth['theta'])
        errors[found.estimator] = np.sqrt(np.mean(error[len(error) // 2:] ** 2))
        print(f'{found.estimator}: error of theta {errors[found.estimator]:.4f} rad RMS over the second half')
    return errors


if __name__ == '__main__':
    main()
