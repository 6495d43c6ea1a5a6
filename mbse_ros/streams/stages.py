# SPDX-License-Identifier: Apache-2.0
"""The algorithm on one page: from a segment of samples to the mass of the payload.

1. Align: ``interpolation.Interpolator`` puts the samples of all channels on one time grid, a ``Segment`` at a time.
2. ``ObserverStage.process``: judge the samples; start where there is no state; predict, correct and weigh in each step
   of the segment; judge the state; publish a ``StateEstimate``.
3. ``PayloadStage.process``: judge whether the state may be weighed; collect what its steps measure of the mass, or hold
   the mass; judge the mass; publish a ``PayloadEstimate``.

The nodes, ``pipeline.Pipeline`` for a bag, and the Python API drive these stages alike: a record in, a record out.

A mechanism without hydraulics goes the same way in ``linkage.LinkageStage``, except that each sample counts at once, at
the nearest instant of a grid, and one that comes late takes the filter back (``history``): then nothing is weighed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, isnan, nan

import numpy as np

from ..errors import PositionProblemError, SampleError, SingularConfigurationError
from ..filters.hydraulic_observer import HydraulicObserver
from ..filters.mass_information import columns
from ..filters.observer_settings import ObserverSettings
from ..filters.set_state import set_state
from ..machine import Machine
from ..machine.equations import SEVERAL_APART, why_unweighed
from ..monitor.faults import GATED, Fault, Health
from ..monitor.mass import Verdict
from ..monitor.rates import SHARE
from ..monitor.state import Assessment
from ..payload.gates import too_slow
from ..payload.joint import JointEstimator
from ..payload.mass import UNBALANCED, Cause, Mass, PayloadEstimator, PayloadSettings
from ..payload.paper import InverseDynamics, PaperEstimator
from ..payload.tool_force import ToolForce, ToolForces, has_contact
from .machine_monitor import MachineMonitor, MachineState, UsableSamples
from .mass_monitor import MassMonitor
from .records import ObserverStatus, PayloadEstimate, PayloadStatus, Segment, StateEstimate
from .stage import Stage


class ObserverStage(Stage[MachineState, StateEstimate]):
    """Segments in, state estimates out; starts by itself from the first samples."""

    def __init__(self, machine: Machine, settings: ObserverSettings = ObserverSettings(),
                 backend: str = 'auto') -> None:
        self.machine, self._observer = machine, HydraulicObserver(machine, settings, backend)
        self._monitor = MachineMonitor(machine, self._observer)
        self.reset()

    def process(self, segment: Segment) -> StateEstimate:
        """State over a segment. Raises SampleError when its channels are not those of the machine."""
        self._check(segment)
        restart = self._forget(segment)
        samples = self._monitor.judge_samples(segment)
        restart = self._monitor.starts(segment, samples, restart)
        values = self._start(segment, samples) if restart else self._monitor.start_again(segment, samples)
        # predict, correct by samples, correct by the force balance (weigh): step by step, in one compiled function
        result = self._observer.process(values, segment.command_values, segment.repeats, segment.step_ns * 1e-9)
        self._last_ns = segment.stamp_ns
        state = MachineState(segment, values[-1].tolist(), result, restart)
        return self._follow((state,), (state,))[0][0]       # learn, judge the state, publish

    def _check(self, segment: Segment) -> None:
        for got, expected in ((segment.channels, self.machine.channels), (segment.commands, self.machine.commands)):
            if tuple(got) != expected:
                raise SampleError('segment', segment.stamp_ns, tuple(got), f'the channels {expected}')
        if len(segment.values) == 0:
            raise SampleError('segment', segment.stamp_ns, 'no steps', 'at least one step')

    def _forget(self, segment: Segment) -> bool:
        """Forget what does not count any more for a segment; whether a state is to start with it."""
        restart = segment.restart or not self._observer.started
        if segment.independent(self._last_ns):
            self.reset()
        if segment.restart:
            self._monitor.forget_samples()
        if restart:
            self._monitor.begin(segment.start_ns * 1e-9)
        return restart

    def _start(self, segment: Segment, samples: UsableSamples) -> np.ndarray:
        """Start the state; values (n, channels) of the segment. A stream is taken to begin at rest; where it starts
        again the machine may be in motion."""
        self._observer.start(self._monitor.first_samples(segment, samples), segment.command_values[0],
                             moving=not segment.begins, pause=(segment.start_ns - self._last_ns) * 1e-9)
        return samples.values

    def _learn(self, state: MachineState) -> None:
        self._monitor.learn(state)

    def _judge(self, state: MachineState) -> Assessment:
        return self._monitor.judge_state(state, self._observer.threshold)

    def _lose(self, assessment: Assessment) -> None:
        self._observer.lose()

    def _publish(self, state: MachineState, assessment: Assessment) -> StateEstimate:
        """The record; the innovations are those of the samples at the last step."""
        segment, measured, result, restart = state
        innovation = result.innovation
        if any(map(isnan, measured)):
            innovation = np.where(np.isnan(measured), nan, innovation)
        squares = [ratio * ratio for ratio in self._monitor.ratios if ratio == ratio]
        return StateEstimate(segment.sequence, segment.stamp_ns, segment.step_ns, restart, self.names,
                             result.mean, result.covariance, segment.channels, segment.values[-1], innovation,
                             np.sqrt(result.innovation_variance), sum(squares), len(squares), assessment.status,
                             assessment.reason, result.weighing, assessment.faults)

    def predicted(self, last: StateEstimate, stamp_ns: int) -> StateEstimate | None:
        """The state at a later stamp than that of the ``last`` estimate, by the model and the commands in force: with
        its status, without samples; None where that was forgotten since. Raises DivergenceError."""
        if not self._observer.started or last.stamp_ns != self._last_ns:
            return None
        of, running = self._observer, self._observer.running
        seconds, tuning, layout = (stamp_ns - last.stamp_ns) * 1e-9, running.tuning.copy(), running.filter.state
        count = max(1, ceil(seconds / of.prepared))
        tuning[running.filter.tuning.places['dt']] = seconds / count
        row = np.concatenate([np.full(len(of.channels), nan), running.state[layout.places['commands']]])
        after, outputs, _ = running.steps(running.state, np.tile(row, (count, 1)), tuning)
        slopes, none = after.take(of.slopes), np.zeros(0)
        covariance = (running.covariance(after) + slopes @ slopes.T) * np.outer(of.model.scale, of.model.scale)
        return replace(last, stamp_ns=stamp_ns, step_ns=stamp_ns - last.stamp_ns, restart=False,
                       mean=outputs[-1:, running.filter.outputs.places['x']], covariance=covariance, channels=(),
                       measured=none, innovation=none, innovation_stddev=none, nis=0.0, nis_dof=0,
                       weighing=last.weighing[:0])

    @property
    def names(self) -> tuple[str, ...]:
        """Entries (nx,) of the state."""
        return self._observer.names

    @property
    def settings(self) -> ObserverSettings:
        """The tuning in force."""
        return self._observer.settings

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force; '' when nothing is."""
        return self._observer.note

    def health(self) -> Health:
        """Of the last innovations."""
        return Health(*self._monitor.health)

    def configure(self, settings: ObserverSettings) -> None:
        """Take new tuning from the next segment on; the state stays."""
        self._observer.configure(settings)
        self._monitor.configure()

    def set_state(self, values: Mapping[str, float], stddev: Mapping[str, float]) -> None:
        """Continue from there with the next segment, see ``filters/set_state.py``."""
        set_state(self._observer, values, stddev)

    def reset(self) -> None:
        """Forget the state; the next segment starts it again."""
        self._observer.reset()
        self._last_ns = 0       # stamp of the last segment with a state
        self._monitor.reset()


class PayloadStage:
    """State estimates in, payload masses out; holds the mass, and says why, where a sample cannot be trusted.
    Where the file has a `payload.contact`, with the force there."""

    _forces: ToolForces | None = None

    def __init__(self, machine: Machine, settings: PayloadSettings = PayloadSettings(), backend: str = 'auto') -> None:
        if has_contact(machine):
            self._forces = ToolForces(machine, settings, backend)
        self._machine, self._columns, self._weighs = machine, columns(len(machine.parameters.consider)), True
        self._joint, self._paper = (kind(machine, settings, backend) for kind in (JointEstimator, PaperEstimator))
        self._estimator: PayloadEstimator = self._joint
        self._monitor = MassMonitor(machine, lambda new, old: self._estimator.difference(new, old))
        self._mass: Mass | None = None
        self._unbalanced = False
        self.reset()

    def process(self, state: StateEstimate) -> PayloadEstimate:
        """Mass after a state estimate. Raises SampleError where it is for another machine's uncertain numbers."""
        return self._after(state, self._before(state))

    def _before(self, state: StateEstimate) -> Verdict | None:
        """Why nothing is weighed by a state; None where it is."""
        self._check(state)
        self._choose(state.weighs)
        pause = self._monitor.pause_before(state)
        if pause is not None:
            self._estimator.restart(pause)
        return self._monitor.judge_state(state, self._mass)

    def _after(self, state: StateEstimate, held: Verdict | None) -> PayloadEstimate:
        """The mass after a state."""
        mass, held = self._weigh(state) if held is None else self._hold(state, held)
        self._mass, self._unbalanced = mass, Fault.FORCE_BALANCE in state.faults
        verdict = self._monitor.judge_mass(state, mass, self._estimator.kept, held, self.settings.max_interval_share)
        return self._publish(state, mass, verdict)

    def _check(self, state: StateEstimate) -> None:
        if state.weighs and state.weighing.shape[1] != self._columns:
            raise SampleError('state.weighing', state.stamp_ns, state.weighing.shape[1],
                              f'{self._columns} columns, as of this machine')

    def _choose(self, weighs: bool) -> None:
        """The estimator for what the observer gives; one that had been left begins from nothing."""
        if weighs is not self._weighs:
            self._weighs, self._estimator = weighs, self._joint if weighs else self._paper
            self._estimator.reset()

    def _weigh(self, state: StateEstimate) -> tuple[Mass, Verdict | None]:
        """The mass after what a state measures of it; why it is held where the pose is singular."""
        share = SHARE if state.faults and Fault.RARE in state.faults else 1.0
        try:
            return self._estimator.process(state.mean, state.covariance, state.step_ns * 1e-9, state.weighing,
                                           share), None
        except (PositionProblemError, SingularConfigurationError) as error:
            self._estimator.restart()
            return self._estimator.hold(), (PayloadStatus.OUTSIDE_STROKE, str(error), Fault.SINGULAR)

    def _hold(self, state: StateEstimate, why: Verdict) -> tuple[Mass, Verdict]:
        """The mass so far, less what was learnt of it just before a state in doubt."""
        if self._monitor.doubted:
            self._estimator.doubt()
        return self._estimator.hold(state.weighing), why

    def _publish(self, state: StateEstimate, mass: Mass, verdict: Verdict) -> PayloadEstimate:
        lower, upper = mass.bounds
        return PayloadEstimate(state.sequence, state.stamp_ns, mass.mass, mass.stddev, lower, upper, mass.raw,
                               mass.low_passed, mass.samples, *verdict,
                               tool_force=self._tool_force(state, mass, verdict))

    def _tool_force(self, state: StateEstimate, mass: Mass, verdict: Verdict) -> ToolForce | None:
        if self._forces is None:
            return None
        status = verdict[0]
        return self._forces.process(state.stamp_ns, (state.mean[-1], state.measured, state.innovation), state.restart,
                                    state.status is ObserverStatus.LOST, mass if status in GATED else None,
                                    status is PayloadStatus.CHANGING,
                                    None if status is PayloadStatus.NO_DATA else status is PayloadStatus.CONTACT)

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""
        return self._estimator.settings

    @property
    def note(self) -> str:
        """What is wrong with the tuning in force, or has no effect; '' when nothing is."""
        return '; '.join(filter(None, [too_slow(self._machine, 'payload.min_speed', self.settings.min_speed),
                                       self._idle()]))

    def _idle(self) -> str:
        """What has no effect with the way in which the observer's states, once there are some, are weighed."""
        if self._mass is None or not self._weighs or self.settings.low_pass == 'information':
            return ''
        return (f'payload.low_pass {self.settings.low_pass} has no effect: the observer weighs (weighing joint), and '
                'its samples count by their information; weighing apart has it')

    @property
    def budget(self) -> tuple[Cause, ...]:
        """What makes the mass uncertain, the largest first."""
        found = self._estimator.budget(self._mass.noise) if self._mass is not None else ()
        return tuple(replace(cause, cause=UNBALANCED + cause.cause) if self._unbalanced and cause.noise else cause
                     for cause in found)

    @property
    def budgets(self) -> dict[str, tuple[Cause, ...]]:
        """The same of each of several payloads by name; none of one."""
        return {}

    @property
    def distrust(self) -> str:
        """How long ago the last alarm was, and what is left until the mass counts again; '' while it counts."""
        return self._monitor.distrust

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        for estimator in self._joint, self._paper, *filter(None, [self._forces]):
            estimator.configure(settings)

    def reset(self) -> None:
        """Forget the mass: another load."""
        self._estimator.reset()
        if self._forces is not None:
            self._forces.reset()
        self._monitor.reset()
        self._mass = None


class Unweighed(PayloadStage):
    """State estimates in, payload estimates without a mass out; no tuning changes anything."""

    settings, note, budget, distrust = PayloadSettings(), '', (), ''

    def __init__(self, machine: Machine, settings: PayloadSettings = PayloadSettings()) -> None:
        self._reason, self.settings = why_unweighed(machine), settings

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning."""
        self.settings = settings

    def reset(self) -> None:
        """Nothing is known that could be forgotten."""

    def process(self, state: StateEstimate) -> PayloadEstimate:
        """No mass, and why."""
        return PayloadEstimate(state.sequence, state.stamp_ns, nan, nan, nan, nan, nan, nan, 0,
                               PayloadStatus.NOT_OBSERVABLE, self._reason, Fault.UNWEIGHED)


class _OneOfSeveral(PayloadStage):
    """The stage of one of several payloads, by its ``name``, with the inverse ``dynamics`` of all."""

    def __init__(self, machine: Machine, name: str, dynamics: InverseDynamics, settings: PayloadSettings) -> None:
        self._machine, self._dynamics, names = machine, dynamics, list(machine.description.payloads)
        self._estimator = self._paper = PaperEstimator(machine, settings, place=names.index(name), dynamics=dynamics)
        self._monitor = MassMonitor(machine, self._paper.difference, name)
        self._mass = None
        self.reset()

    def _check(self, state: StateEstimate) -> None:
        if state.weighs:
            raise SampleError('state.weighing', state.stamp_ns, 'a mass in the state of the observer',
                              f'none: {SEVERAL_APART}')

    def _choose(self, weighs: bool) -> None:
        """There is one estimator."""

    def _publish(self, state: StateEstimate, mass: Mass, verdict: Verdict) -> PayloadEstimate:
        """With the sums of masses that the pose shows, where it does not show this one."""
        estimate = super()._publish(state, mass, verdict)
        if verdict[0] is not PayloadStatus.NOT_OBSERVABLE or not self._dynamics.seen:
            return estimate
        return replace(estimate, reason=f'{estimate.reason}; the forces show {self._dynamics.seen}')

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        self._paper.configure(settings)


class SeveralPayloads(PayloadStage):
    """States of an observer of the motion alone in, an estimate of each of several payloads out: the first, with all by
    name in ``PayloadEstimate.payloads``."""

    def __init__(self, machine: Machine, settings: PayloadSettings = PayloadSettings(), backend: str = 'auto') -> None:
        self._machine, self._mass, self._weighs, dynamics = machine, None, False, InverseDynamics(machine, backend)
        self.stages = {name: _OneOfSeveral(machine, name, dynamics, settings) for name in machine.description.payloads}
        self._first = next(iter(self.stages.values()))

    def process(self, state: StateEstimate) -> PayloadEstimate:
        """The masses after a state estimate. Raises SampleError where the observer has weighed."""
        held = {name: stage._before(state) for name, stage in self.stages.items()}
        found = {name: stage._after(state, held[name]) for name, stage in self.stages.items()}
        return replace(next(iter(found.values())), payloads=found)

    @property
    def settings(self) -> PayloadSettings:
        """The tuning in force."""
        return self._first.settings

    @property
    def budget(self) -> tuple[Cause, ...]:
        """What makes the first mass uncertain, the largest first."""
        return self._first.budget

    @property
    def budgets(self) -> dict[str, tuple[Cause, ...]]:
        """The same of each by name."""
        return {name: stage.budget for name, stage in self.stages.items()}

    @property
    def distrust(self) -> str:
        """Nothing: no other observer weighs."""
        return ''

    def configure(self, settings: PayloadSettings) -> None:
        """Take new tuning from the next segment on."""
        for stage in self.stages.values():
            stage.configure(settings)

    def reset(self) -> None:
        """Forget the masses: other loads."""
        for stage in self.stages.values():
            stage.reset()


def payload_stage(machine: Machine, settings: PayloadSettings = PayloadSettings(), backend: str = 'auto'
                  ) -> PayloadStage:
    """The stage that weighs, or, where no sensors do, the one that says so."""
    if why_unweighed(machine):
        return Unweighed(machine, settings)
    return (SeveralPayloads if machine.description.payloads else PayloadStage)(machine, settings, backend)
