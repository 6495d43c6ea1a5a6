# SPDX-License-Identifier: Apache-2.0
"""The kinematic and hydraulic observer: exponential DEKF over a whole segment in one compiled call.

Pyrhönen et al., mass estimation, section 3.1. What goes into the compiled step besides the model: the sensor noise and
the tuning, so that a change of tuning needs no new compilation. Each sample corrects once, at its stamp: see
``between_samples``. The densities of the random walks follow how lively the machine is: see ``activity``.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, isfinite, isnan, log, nan

import casadi as ca
import numpy as np

from ..compiled.of_scipy import gate_limit
from ..errors import DescriptionError, SettingError
from ..machine import Machine
from ..machine.equations import SEVERAL_APART, why_unweighed
from ..machine.parameters import of_motion
from ..transition.exponential import halvings_for
from .between_samples import DENSITY, InterpolationError, RareCommands, SamplePlan, SamplePlans, pushes
from .force_error import ForceError, stated_keys
from .hydraulic_dekf import ERROR, HydraulicFilter, hydraulic_dekf, initial
from .hydraulic_error import fastest_friction
from .hydraulic_model import NOISES, fastest_rate, hydraulic_model
from .hydraulic_state import MPA, PUSHED, SegmentResult, last_samples, variances
from .mass_information import LARGEST_ACTIVITY, LOG_TRUSTED, OWN_COLUMNS
from .observer_settings import ObserverSettings
from .parts.step import RunningFilter
from .unweighed import ANY, OutsideForce, SilentPressures, UnweighedMotion
from .weighing import PAUSES, frictions

NOMINAL_STEP = 1e-3         # s, compiled for at the start
FASTEST = 1e9               # 1/s, of fluid and spools: beyond, one step is more than 20 doublings of another
GATED_AT_ONCE = 256         # steps between two looks at the gate, which may have to be run again
MASS_AFTER_SHOCK = 1e3      # factor on the random walk of the mass after a shock
SHOCK = 1e8         # times what the force balance does not know, in a shock
LIVELIEST = 100.0   # times the largest activity: a shock, in the first step after the sample before


class HydraulicObserver:
    """Observer of one machine: holds the state between segments.

    ``threshold``: the normalised innovation squared beyond which a sample is rejected; ``prepared``, s: step in force.
    """

    def __init__(self, machine: Machine, settings: ObserverSettings, backend: str = 'auto') -> None:
        self.machine, self.backend, self.channels = machine, backend, machine.channels
        self._plans, self._variance = SamplePlans(len(self.channels)), variances(machine)
        if not self._variance.all():
            exact = next(channel for channel in machine.all_channels if channel.sensor.noise == 0.0)
            raise DescriptionError(machine.description.file, f'sensors.{exact.sensor.name}.stddev', 0.0,
                                   'a standard deviation or a resolution above 0')
        self._lines, self._commands = InterpolationError(self._variance, pushes(machine)), RareCommands(machine)
        self.rate, self.prepared = fastest_rate(machine), NOMINAL_STEP
        if not self.rate <= FASTEST:
            raise DescriptionError(machine.description.file, 'hydraulics', f'rates of {self.rate:.3g} 1/s',
                                   f'rates up to {FASTEST:g} 1/s: a volume, hose, time_constant or laminar_pressure is '
                                   'too small, or a valve too large')
        self.settings = settings
        self._take_model()
        self.configure(settings)

    def _take_model(self) -> None:
        """The model that the tuning asks for, with no state."""
        self.model = hydraulic_model(self.machine, *self._kind(self.settings))
        self.rate = fastest_rate(self.machine)
        if self.model.driven:
            self.rate = max(self.rate, fastest_friction(self.machine))
        self.names, self._filters = self.model.names, dict[tuple[str, str, int], RunningFilter[HydraulicFilter]]()
        self.running = self._running_for(self.prepared)
        state, mass = self.filter.state, self.filter.state.places['mass'].start
        self._full, self.slopes = state.indices['P'], self.filter.slopes
        self._to_si = np.outer(self.model.scale, self.model.scale)
        names, places = self.machine.parameters.names, self.model.consider(self.machine)
        self._of_motion = np.array([of_motion(names[place]) for place in places]
                                   + [True] * frictions(self.machine, self.model), dtype=bool)
        self._activity, self._mass_activity = state.places['activity'], mass
        self._unweighed = UnweighedMotion(self.machine, state.places['moved'], mass, self._full[-1, -1])
        self._silent = SilentPressures(self.machine, self.model, self._full, self.slopes)
        self._error = ForceError(self.machine, self.model, self.filter) if self.model.weighs else None
        self._outside = OutsideForce(np.array([not name.startswith(PUSHED) for name in self.channels]))
        self._open: np.ndarray | None = None    # by equation: whether its pressures have samples; None: all have
        self._rare = False      # whether commands were in the last step
        tuning, outputs = self.filter.tuning.places, self.filter.outputs.places
        self._dt, self._balance, self._slow, self._noise, self._pressure_psd = (
            tuning[name] for name in ('dt', 'force_psd', 'force_slow', 'variance', 'pressure_psd'))
        self._mean, self._innovation, self._spread, self._weighing, *_ = outputs.values()

    @property
    def filter(self) -> HydraulicFilter:
        """The filter in force."""
        return self.running.filter

    @property
    def started(self) -> bool:
        """Whether there is a state to continue from."""
        return self.running.started

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays, unless it is of another kind: ``weighing``."""
        self.settings = settings
        if self._kind(settings) != (self.model.weighs, self.model.driven):
            self._take_model()
        self.prepare(self.prepared)
        tuning = self.filter.tuning
        known = {name: getattr(settings, name) for name in (*NOISES, 'activity_range')}
        known |= {name: np.zeros(tuning.parts[name]) for name in ('force_psd', 'force_slow')}
        known |= {'nominal_payload': np.full(tuning.parts['nominal_payload'][0], settings.nominal_payload)}
        self.running.tuning = tuning.flat(**known, dt=0.0, variance=self._variance, p=self.machine.parameters.mean)
        self._stated_psd: float | np.ndarray = settings.force_psd
        if self._error:
            self._error.configure(settings)
            self._stated_psd = settings.force_psd + self._error.known
            self.running.tuning[self._slow] = self._error.slow(self._error.density)
        self._force_psd = self._stated_psd
        self._use_balance(True)
        self.threshold = gate_limit(settings.gate)

    def _kind(self, settings: ObserverSettings) -> tuple[bool, bool]:
        """Whether the mass is in the state, and whether the machine's own equations of motion predict it; raises
        SettingError where several masses are to be in it or in its model."""
        driven = settings.estimator == ERROR
        joint = settings.weighing == 'joint' and not driven
        if joint and self.machine.description.payloads:
            raise SettingError('observer.weighing', settings.weighing, f'apart: {SEVERAL_APART}')
        if driven and self.machine.description.payloads:
            raise SettingError('observer.estimator', ERROR, 'hydraulic: its model has one nominal_payload, and this '
                               f'machine several payloads ({", ".join(self.machine.description.payloads)})')
        return joint and not why_unweighed(self.machine), driven

    def step(self, dt: float) -> tuple[ca.Function, np.ndarray, np.ndarray]:
        """``observer_step`` for ``dt``, s, with the state and the parameters in force: what one step costs."""
        p = self.running.tuning.copy()
        p[self._dt] = dt
        return self._filter(dt).step(), self.running.state.copy(), p

    def _key(self, dt: float) -> tuple[str, str, int]:
        return self.settings.transition, self.settings.noise, max(2, halvings_for(self.rate * dt / 2))

    def _filter(self, dt: float) -> HydraulicFilter:
        return hydraulic_dekf(self.machine, self.model, *self._key(dt))

    def _running_for(self, dt: float) -> RunningFilter[HydraulicFilter]:
        key = self._key(dt)
        if key not in self._filters:
            self._filters[key] = RunningFilter(self._filter(dt), self.backend)
        return self._filters[key]

    def prepare(self, dt: float) -> None:
        """Choose, and compile where it is new, the step for ``dt``, s; state and tuning stay."""
        running, before = self._running_for(dt), self.running
        running.state, running.tuning = before.state, before.tuning
        self.running, self.prepared = running, dt
        if self._error:
            self._error.interrupt()

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force, or what it gives up; '' when nothing is."""
        return '; '.join(filter(None, [self._truncated(), self._one_load()]))

    def _one_load(self) -> str:
        if self.model.weighs or why_unweighed(self.machine):
            return ''
        cause = f'estimator {ERROR}' if self.model.driven else f'weighing {self.settings.weighing}'
        return (f'{cause}: the state has no mass. That which is weighed by it, and its interval, are for one load '
                'throughout: after a change the mass follows over many seconds, without CHANGING; masses that '
                'contradict each other raise no alarm' + ', and force_error has no effect' * bool(
                    self.settings.force_error > 0.0 or stated_keys(self.machine)))

    def _truncated(self) -> str:
        stiffness = self.rate * self.prepared
        if self.settings.transition == 'exact' or stiffness <= 1.0:
            return ''
        return (f'transition {self.settings.transition}: the fastest mode of {self.machine.name} times the step is '
                f'{stiffness:.2g}, above 1, where a truncated series is wrong; use exact')

    def reset(self) -> None:
        """Forget the state, and what was found of the force balance."""
        self.lose()
        if self._error:
            self._error.reset()

    def lose(self) -> None:
        """Forget the state."""
        self.running.state = np.zeros(0)

    def start(self, measured: np.ndarray, commands: np.ndarray, moving: bool = False, pause: float = 0.0) -> None:
        """State from the first samples (channels,), SI, NaN where missing: at rest, as uncertain as the settings say;
        ``moving``: its speeds and what makes them are not known; ``pause``, s, since the state in force, whose load
        counts then; 0: it does not.

        A coordinate or pressure without a sample starts in the middle of its range, with that range as its stddev.
        Raises PositionProblemError where the mechanism cannot be so.
        """
        X, stddev = initial(self.machine, self.model, self.settings, commands)
        for k, item in enumerate(self.model.measured):
            if np.isfinite(measured[k]) and item.index is not None:
                X[item.index] = (measured[k] - item.offset) / item.gain + item.zero
                stddev[item.index] = np.sqrt(self._variance[k]) / item.gain
        before, x = self.running.state, self.filter.start(X, stddev, commands)
        x = self.filter.opened(x, self.settings) if moving else x
        self.running.state = self.filter.with_load(x, before, exp(-pause / PAUSES)) if before.size and pause > 0 else x
        for part in self._plans, self._lines, self._outside, self._silent, self._unweighed, self._commands:
            part.reset()
        self._open = None
        if self._error:
            self._error.interrupt()

    def start_again(self, samples: Mapping[int, float]) -> None:
        """Coordinates at the samples, SI, of the channels at these places that measure them, with speeds, and what
        makes them, unknown: as after a force that is not known. All else stays; the load may be another one. Raises
        PositionProblemError."""
        self.running.state = self.filter.restarted(self.running.state, samples, self._variance, self.settings)
        self._lines.reset()
        self._outside.reset()
        if self._error:
            self._error.interrupt()

    def process(self, values: np.ndarray, commands: np.ndarray, repeats: np.ndarray, dt: float) -> SegmentResult:
        """Run over a segment: measurements (n, channels), SI, NaN where missing; commands (n, valves), V, given at
        each step; ``repeats`` (channels,): steps from sample to sample, the last step being at a sample.
        """
        n, m = len(values), len(self.channels)
        if dt != self.prepared:
            self.prepare(dt)
        shared = repeats if self.settings.measurements == 'samples' else np.ones(m)
        plan, tuning = self._plans.next(n, shared, dt), self.running.tuning
        tuning[self._dt] = dt
        noise, self._force_psd = self._variance, self._stated_psd
        if self._error:
            tuning[self._slow] = self._error.slow(self._error.density)
            self._force_psd = np.maximum(self._force_psd, self._error.density)
        if len(plan.divided):
            self._lines.take(values, repeats, plan.divided)
            noise = (noise + self._lines.variance) * plan.parts
            if self.model.weighs:
                self._force_psd = self._force_psd + self._lines.density(repeats, dt, plan.divided) / MPA ** 2
        tuning[self._noise] = noise
        rare = self._commands.take(commands, dt, repeats)
        if rare is None:
            self._follow_samples(False)
        u = np.empty((n, m + commands.shape[1]))
        u[:, :m], u[:, m:] = nan, commands
        if plan.at_the_end:
            u[-1, :m] = values[-1]
        else:
            np.copyto(u[:, :m], values, where=plan.used)
        held, far = self.running.state, self._lines.rare(plan.divided) if len(plan.divided) else ()
        before, (y, innovation, variance, rejected) = held[self._mean], self._run(u, plan, rare)
        if self._error:
            quiet = rare is None and self._open is None and not far
            self._distrust(self._error.take(self.running, held, u, y, dt, quiet, self._outside.acts), y)
        after = self.running.state
        if self.model.weighs:
            self._unweighed.forget(after, y[-1, self._weighing], self._open)
        slopes, covariance = after.take(self.slopes), after.take(self._full)   # for one deviation each
        of_motion = covariance.diagonal() + np.square(slopes[:, self._of_motion]).sum(axis=1)
        covariance += slopes @ slopes.T
        covariance *= self._to_si
        return SegmentResult(plan.on_lines(before, y[:, self._mean]), covariance, of_motion * self._to_si.diagonal(),
                             innovation, variance, rejected, isfinite(np.add.reduce(after)),
                             y[:, self._weighing] if self.model.weighs else np.zeros((0, OWN_COLUMNS)),
                             self._outside.acts, far,
                             self._error.found if self._error else None)

    def _distrust(self, share: float, y: np.ndarray) -> None:
        """Of what was known of the mass before the last step in ``y`` only a share counts: it was no outside force."""
        if share < 1.0:
            self._outside.reset()
            x, mass = self.running.state, self._full[-1, -1]
            x[mass] = max(x[mass], min(x[mass] / share, ANY ** 2))
            y[-1, self._weighing.stop + LOG_TRUSTED] = log(share)

    def _run(self, u: np.ndarray, plan: SamplePlan, rare: np.ndarray | None
               ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Outputs of all steps; innovations of the last samples, their variances, and which were beyond the gate.

        Where one is beyond it, the steps since the samples before it run again: see ``_rerun``. ``rare``
        (n, 1): whether commands are, in each step; None: in none.
        """
        m = len(self.channels)
        there = np.zeros((0, 0), dtype=bool)        # found where it is needed
        refused: dict[tuple[int, int], tuple[float, float]] = {}
        found, done = [], 0
        whole = plan.all_sampled and not isnan(np.add.reduce(u[:, :m][plan.newest]))    # each channel has a sample
        silent = self._silent.over(u, self.prepared, plan, whole, self.settings)
        ends = [len(u), *(int(k) for flags in (silent, rare) if flags is not None
                          for k in np.flatnonzero((flags[1:] != flags[:-1]).any(axis=1)) + 1)]
        while done < len(u):
            ahead = min(self._outside.steps or GATED_AT_ONCE, GATED_AT_ONCE)
            stop = min(done + ahead, *(k for k in ends if k > done))
            if silent is not None:
                self._close(silent[done])
            if rare is not None:
                self._follow_samples(bool(rare[done]))
            start = self.running.state
            self._use_balance(not self._outside.acts)
            if self._outside.acts:
                start[self._mass_activity] = LARGEST_ACTIVITY
            y, far = self._gate(start, u[done:stop])
            if far is None and whole and stop - done == len(u):     # nearly always
                self._outside.calm(stop, True, self.prepared)
                return (y, y[:, self._innovation][plan.newest].copy(), y[:, self._spread][plan.newest].copy(),
                        np.zeros(m, dtype=bool))
            if not len(there):
                there = u[:, :m] == u[:, :m]
            if far is None:
                self._outside.calm(stop - done, bool(there[done:stop].any()), self.prepared)
            else:
                row = done + far[0]
                sampled = np.flatnonzero(there[done:row].any(axis=1))
                begin, stop = done + (int(sampled[-1]) + 1 if sampled.size else 0), row + 1
                if begin > done:
                    self.running.state, clear, _ = self.running.steps(start, u[done:begin], self.running.tuning)
                    found.append(clear)
                    self._outside.calm(begin - done, True, self.prepared)
                else:
                    self.running.state = start
                y, beyond = self._rerun(u[begin:stop])
                self._outside.calm(stop - begin, False, self.prepared)
                if self.model.weighs and self._outside.shock(there[row], [k for _, k in beyond], self.prepared):
                    self.running.state = self.filter.opened(self.running.state, self.settings)
                refused |= {(begin + step, channel): value for (step, channel), value in beyond.items()}
            found.append(y)
            done = stop
        y = found[0] if len(found) == 1 else np.concatenate(found)
        return y, *last_samples(y[:, self._innovation], y[:, self._spread], there, refused)

    def _close(self, silent: np.ndarray) -> None:
        """Take equations with ``silent`` (pressures,) ones out of the balance."""
        if self.model.weighs:
            closed = self._silent.closed(silent)
            self._open = ~closed if closed.any() else None
        if silent.any():
            self.running.state = self._silent.released(self.running.state, silent)

    def _follow_samples(self, rare: bool) -> None:
        """Let pressures follow their samples where commands are ``rare``; what was weighed before may be wrong."""
        if rare and not self._rare and self.model.weighs:
            self.running.state[self._mass_activity] = LARGEST_ACTIVITY
        self._rare, walk = rare, self._error.walk if self._error else 0.0
        self.running.tuning[self._pressure_psd] = max(self.settings.pressure_psd, DENSITY * rare, walk)

    def _rerun(self, u: np.ndarray) -> tuple[np.ndarray, dict[tuple[int, int], tuple[float, float]]]:
        """Outputs of the steps up to samples that surprise, and innovations and variances of those rejected.

        They run as if there had been a shock, which all sensors see: then the farthest sample beyond the gate is
        rejected, until none is. A shock may come from a force that the balance does not know, as of a load that drops:
        so they run without the balance, except for pressures that contradict it alone and for the first time. If
        without those rejected the machine is quiet, it was.
        """
        start, lively = self.running.state, self.running.state.copy()
        lively[self._activity] = LIVELIEST * self.settings.activity_range
        y, refused, left = self._reject(lively, u)
        if self.model.weighs:
            if self._outside.possible([channel for _, channel in refused]):
                refused, left = {}, u
            lively = lively.copy()
            lively[self._mass_activity] = max(lively[self._mass_activity], MASS_AFTER_SHOCK)
            self._use_balance(False)
            y, more, left = self._reject(lively, left)
            self._use_balance(not self._outside.acts)
            refused |= more
        if refused:
            end = self.running.state
            again, far = self._gate(start, left)
            y, self.running.state = (again, self.running.state) if far is None else (y, end)
        return y, refused

    def _reject(self, start: np.ndarray, u: np.ndarray
                  ) -> tuple[np.ndarray, dict[tuple[int, int], tuple[float, float]], np.ndarray]:
        """Outputs of the steps without the samples beyond the gate, these samples, and what is left of ``u``."""
        left, refused = u.copy(), {}
        y, far = self._gate(start, left)
        while far is not None:
            refused[far[:2]], left[far[:2]] = far[2:], nan
            y, far = self._gate(start, left)
        return y, refused, left

    def _use_balance(self, used: bool) -> None:
        factor = SHOCK if not used else 1.0 if self._open is None else np.where(self._open, 1.0, SHOCK)
        self.running.tuning[self._balance] = self._force_psd * factor

    def _gate(self, start: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, tuple[int, int, float, float] | None]:
        """Outputs of all steps from ``start``; step, channel, innovation and its variance of the sample farthest beyond
        the gate in the first step that has one."""
        running = self.running
        running.state, y, _ = running.steps(start, u, running.tuning)
        innovations, variances = y[:, self._innovation], y[:, self._spread]
        squares = innovations ** 2
        far = squares > self.threshold * variances
        if not np.count_nonzero(far):
            return y, None
        row = int(np.argmax(far.any(axis=1)))
        worst = int(np.argmax(np.where(far[row], squares[row] / variances[row], 0.0)))
        return y, (row, worst, float(innovations[row, worst]), float(variances[row, worst]))
