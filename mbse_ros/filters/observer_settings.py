# SPDX-License-Identifier: Apache-2.0
"""Tuning of the observers."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings import Settings, setting
from ..transition.exponential import ORDERS


@dataclass(frozen=True)
class ObserverSettings(Settings):
    """Tuning of the hydraulic observer; the noise of the sensors is in the machine's YAML."""

    estimator: str = setting('hydraulic', 'Filter; hydraulic_errorEKF_FE predicts by the dynamics and does not weigh',
                             choices=('hydraulic', 'hydraulic_errorEKF_FE'))
    transition: str = setting('exact', 'Order of the exponential series, or exact (matrix exponential)', choices=ORDERS)
    noise: str = setting('van_loan', "Process noise: exact (Van Loan) or the paper's closed form",
                         choices=('van_loan', 'paper'))
    measurements: str = setting('samples', 'samples: each corrects once, at its stamp; interpolated: so does each '
                                           'step between them, as in the paper',
                                choices=('samples', 'interpolated'))
    acceleration_psd: float = setting(20.0, 'Random walk of the piston acceleration', '(m/s^2)^2/s', 1e-6, 1e6)
    pressure_psd: float = setting(0.4, 'Random walk of the pressures: errors of the valve model', 'MPa^2/s', 0.0, 1e4)
    spool_psd: float = setting(1e-6, 'Random walk of the spool: errors of the lag model', 'V^2/s', 0.0, 1e3)
    flow_psd: float = setting(1e-3, 'Random walk of the flows of an unknown valve, as piston speed', '(m/s)^2/s',
                              1e-9, 1e3)
    effort_psd: float = setting(1.0, 'Random walk of the effort of a drive, in its largest efforts', '1/s', 1e-9, 1e6)
    free_psd: float = setting(1.0, 'Random walk of the acceleration of a coordinate that no cylinder moves', '(SI)^2/s',
                              1e-9, 1e6)
    supply_psd: float = setting(1.0, 'Random walk of a measured supply', 'MPa^2/s', 0.0, 1e4)
    inclination_psd: float = setting(1e-5, 'Random walk of a measured inclination of the base', 'rad^2/s', 0.0, 1e2)
    base_psd: float = setting(30.0, 'Random walk of a measured acceleration of the base', '(m/s^2)^2/s', 1e-6, 1e6)
    payload_psd: float = setting(1e-7, 'Random walk of the mass of the payload, in ranges of its limits', '1/s', 0.0,
                                 1e2)
    force_psd: float = setting(2e-6, 'Error of the force balance of a cylinder, as pressure on its piston',
                               'MPa^2 s', 1e-12, 1e3)
    force_error: float = setting(-1.0, 'Largest error of the force balance that is looked for, in shares of the '
                                       'largest pressure; 0: none; -1: 0.1, and with payload.contact or hanging '
                                       'only that of a mass that oscillates', '',
                                 -1.0, 1.0)
    pressure_error: float = setting(1000.0, 'Largest random walk of the pressures that is looked for where valves '
                                            'and pump differ from their model; 0: none', 'MPa^2/s', 0.0, 1e6)
    nominal_payload: float = setting(0.0, 'Mass of the payload in the model of hydraulic_errorEKF_FE', 'kg', 0.0, 1e6)
    weighing: str = setting('joint', 'joint: motion and mass in one estimate, tied by the force balance; apart: the '
                                     'motion alone', choices=('joint', 'apart'))
    activity_range: float = setting(
        30.0, 'Factor by which the densities of acceleration and unknown flows may follow the sensors; 1: fixed', '',
        1.0, 1e4)
    start_velocity: float = setting(0.05, 'Standard deviation of the velocity at the start', 'm/s', 1e-6, 10.0)
    start_acceleration: float = setting(0.5, 'Standard deviation of the acceleration at the start', 'm/s^2', 1e-6, 1e3)
    gate: float = setting(0.9999999999, 'Probability beyond which the innovation of a sample is rejected; 1: none is',
                          '', 0.5, 1.0)
    doubt_after: float = setting(0.2, 'A channel whose samples are all rejected for longer makes the state COASTING',
                                 's', 0.001, 60.0)
    lost_after: float = setting(0.5, 'State LOST and started again, if all samples of half of the channels are '
                                     'rejected for longer; a coordinate, if those of its only sensor are', 's',
                                  0.01, 600.0)
    constant_after: float = setting(1.0, 'A sensor whose value stays exactly the same for so long, though the '
                                         'estimate moves by 5 standard deviations, is not used until it changes',
                                    's', 0.01, 600.0)
    fastest_piston: float = setting(1.5, 'No piston moves faster: otherwise a sample is a jump, a state impossible',
                                    'm/s', 0.01, 100.0)
    fastest_joint: float = setting(4.0, 'The same of all other coordinates, rad/s or m/s', '', 0.01, 1000.0)
    silent_after: float = setting(0.3, 'A pressure without a value for longer takes its equation out of the weighing',
                                  's', 0.01, 60.0)
    settle_time: float = setting(0.2, 'Time after a start in which the mass does not use the state; longer while '
                                      'speeds are not known', 's', 0.0, 10.0)
