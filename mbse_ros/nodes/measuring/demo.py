# SPDX-License-Identifier: Apache-2.0
"""The demo: a crane and an excavator lift through the real graph, recorded, estimated again offline; a linkage.

``agreement``: a run of the nodes beside the offline run of its bag, how late the mass was, what it cost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ...api.check import model_warnings
from ...api.results.mechanism_picture import Picture
from ...api.simulate import simulate_motion
from ...bags.bag import decode, open_bag
from ...bags.messages import stamp_of
from ...bags.series import RecordSeries, read_payload
from ...bags.table import import_table
from ...bags.topics import PAYLOAD
from ...description.presets import preset_words
from ...dynamics.model import load_model
from ...errors import MbseError
from ...machine import load_machine
from ...offline.bag import estimate_bag, parse_tuning
from ...offline.estimate import MachineEstimate
from ...offline.estimate_report import report_run
from ...report.data import COLORS, Band, Chart, Curve, Panel
from ...report.linkage_drawing import write_linkage
from ...report.plots import write_png
from ...report.series import root_mean_square
from ...report.text import number, print_table
from ...report.writer import write_report
from ...resources import share_directory
from ...simulation import estimator_benchmark
from ...simulation.energy_balance import EXAMPLES, SCHEMES, largest_kinetic, run_case
from ...studies.estimators import write_estimator_plots
from ..graphs.graph import COMPOSED
from ..graphs.machine_graph import PATIENT, MachineArguments, machine_graph
from ..graphs.run_graph import RunningGraph, cpu_seconds

START_UP = 6.0      # s: imports and compilation are not the running cost
AS_ONLINE = [f'interpolation.{name}={value}' for name, value in PATIENT.items()]      # tuning of a simulation's nodes
MEASURED = Path('../shared/data/patu655/lift_measured_100hz.csv')
EXCAVATOR_LOAD = 800.0      # kg
MECHANISM = 'four_bar'
MOTION = 3.0            # s
STUDY = 1.0             # s of the study, at 10 ms
WAYS = {'one estimate (default)': 'estimated', 'inverse dynamics (preset paper)': 'low_passed'}     # their colours
SETTLED = 1.0       # s, after which errors count
SHOWN = ('forward Euler', 'augmented Euler', 'exponential exact')
FILTERS = ('DEKF', 'errorEKF_EJ', 'errorEKF_FE', 'UKF')
SENSORS = ('encoder', 'gyro_crank')
OBSERVED = 5.0          # s
PATIENCE = 600.0    # s beside the lift, on a computer with much else to do and all to compile


@dataclass(frozen=True)
class Agreement:
    """How far the payloads of the nodes and of the offline run, at the same stamps, are apart."""

    common: int
    only_online: int
    only_offline: int
    largest: float

    @property
    def agree(self) -> bool:
        """The same segments and the same masses, bit for bit."""
        return self.common > 0 and self.only_online == self.only_offline == 0 and self.largest == 0.0

    def __str__(self) -> str:
        if self.agree:
            return f'identical in all {self.common} payload messages'
        return (f'DIFFERENT: {self.common} payloads at common stamps differ by up to {self.largest:.3g} kg; '
                f'{self.only_online} only online, {self.only_offline} only offline')


def agreement(online: RecordSeries, estimate: MachineEstimate) -> Agreement:
    """Compare all payload messages; a mass that is not known yet equals another that is not."""
    ours = dict(zip(estimate.track.stamp_ns.tolist(), estimate.states.mass.tolist()))
    theirs = dict(zip(online.stamp_ns.tolist(), online.mass.tolist()))
    common = sorted(ours.keys() & theirs.keys())
    pairs = np.array([[ours[s], theirs[s]] for s in common]).reshape(-1, 2)
    gap = np.where(np.isnan(pairs).all(axis=1), 0.0, np.abs(pairs[:, 0] - pairs[:, 1]))
    largest = float(np.max(np.nan_to_num(gap, nan=np.inf), initial=0.0))
    return Agreement(len(common), len(theirs) - len(common), len(ours) - len(common), largest)


def latencies(bag: Path) -> tuple[float, float]:
    """Median and 99 % point, ms, of the time between a payload's stamp and its arrival in the recorder."""
    source = open_bag(bag)
    topics = [topic for topic, kind in source.topics.items() if kind == PAYLOAD]
    delays = [raw.stamp_ns - stamp_of(decode(raw)) for raw in source.messages(topics)]
    median, late = (float(v) * 1e-6 for v in np.percentile(delays, [50, 99]))
    return median, late


class CpuMeter:
    """Shares of a core that named processes use after their start-up (Linux; 0 elsewhere)."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._readings: dict[str, list[tuple[float, float]]] = {}      # clock and processor time, s

    @property
    def seconds(self) -> float:
        """Time since the meter was made, s."""
        return time.monotonic() - self._begin

    def update(self, processes: Mapping[str, int]) -> None:
        """Read the times of the processes, name to pid."""
        if self.seconds < START_UP:
            return
        for name, pid in processes.items():
            used = cpu_seconds(pid)
            if used is not None:
                self._readings.setdefault(name, []).append((time.monotonic(), used))

    def share(self, name: str) -> float:
        """Share of one core between the first and the last reading."""
        readings = self._readings.get(name, [(0.0, 0.0)])
        (begin, first), (end, last) = readings[0], readings[-1]
        return (last - first) / (end - begin) if end > begin else 0.0


def live(console: Console, who: str, arguments: MachineArguments, folder: Path, both_ways: bool = False) -> bool:
    """A lift through the graph, recorded, estimated again offline, with a report, and weighed in ``both_ways``; whether
    online and offline agree."""
    load = arguments.payload
    console.print(f'[bold]{who} lifts {load:g} kg[/bold]: simulated plant, observer and payload, drawing, recorder: '
                  'four processes over DDS')
    bag = folder / 'bag'
    cpu = run_graph(console, replace(arguments, record=str(bag)), folder)
    online = read_payload(bag)
    if online is None:
        raise MbseError(f'no payload was recorded: see {folder / "graph.log"}')
    estimate = estimate_bag(bag, load_machine(arguments.machine), parse_tuning(AS_ONLINE))
    verdict = agreement(online, estimate)
    show(console, load, online, estimate, verdict, cpu, latencies(bag))
    if both_ways:
        compare_ways(console, estimate, bag, folder)
    facts = {'True payload': f'{load:g} kg', 'Online and offline': str(verdict)}
    page = write_report(report_run(estimate, f'{who}: simulated lift of {load:g} kg', facts), folder / 'report')
    console.print(f'report: [bold]{page}[/bold]  (bag: {bag})')
    return verdict.agree


def run_graph(console: Console, arguments: MachineArguments, folder: Path) -> CpuMeter:
    """Run the graph to its end with a progress bar; the nodes' output goes to a log file."""
    environment = {'ROS_AUTOMATIC_DISCOVERY_RANGE': os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')}
    with open(folder / 'graph.log', 'w', encoding='utf-8') as log:
        running = RunningGraph(machine_graph(arguments), lambda line: print(line, file=log, flush=True), environment)
        meter, begin = CpuMeter(), time.monotonic()
        try:
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task('lifting', total=arguments.duration)
                running.start()
                while running.step() and time.monotonic() - begin < 5.0 * arguments.duration + PATIENCE:
                    meter.update({name: child.pid for name, child in running.children.items()})
                    progress.update(task, completed=min(meter.seconds, arguments.duration))
                    time.sleep(0.1)
        finally:
            running.stop()
    if running.status:
        raise MbseError(f'a node failed: see {folder / "graph.log"}')
    return meter


def show(console: Console, payload: float, online: RecordSeries, estimate: MachineEstimate, verdict: Agreement,
         cpu: CpuMeter, latency_ms: tuple[float, float]) -> None:
    """The table of the demo."""
    last = estimate.last.payload
    table = Table('', '', show_header=False, title='Result')
    table.add_row('true payload', f'{payload:.2f} kg')
    table.add_row('estimated online', f'{online.mass[-1]:.2f} kg, 95 % interval {online.lower[-1]:.2f} to '
                                      f'{online.upper[-1]:.2f} kg')
    table.add_row('estimated offline', f'{last.mass:.2f} kg, 95 % interval {last.lower:.2f} to {last.upper:.2f} kg')
    table.add_row('online and offline', str(verdict))
    table.add_row('latency', f'median {latency_ms[0]:.1f} ms, 99 % below {latency_ms[1]:.1f} ms from the newest sample '
                             f'to the payload in the recorder; one sample period (10 ms) of interpolation not counted')
    table.add_row('processor', f'interpolation, observer and payload, composed in one process: '
                               f'{100 * cpu.share(COMPOSED):.0f} % of a core')
    table.add_row('offline', f'{estimate.log_seconds:.1f} s of data in {estimate.seconds:.2f} s')
    console.print(table)


def compare_ways(console: Console, joint: MachineEstimate, bag: Path, folder: Path) -> None:
    """Both ways to weigh on the same bag, in a table and a picture: motion and mass in one estimate, and inverse
    dynamics of an observer that does not know the mass, by the preset ``paper``."""
    paper = estimate_bag(bag, joint.machine, parse_tuning([*AS_ONLINE, *preset_words('paper')]))
    curves, bands, rows = [], [], []
    for (label, color), found in zip(WAYS.items(), (joint, paper)):
        last, truth, settled = found.last.payload, found.truth, found.t > found.t[0] + SETTLED
        columns = [found.names.index(f'velocity/{name}') for name in joint.machine.coordinates]
        away = float('nan') if truth is None else root_mean_square((found.mean[:, columns] - truth.velocity)[settled])
        true = float('nan') if truth is None else truth.payload[-1]
        rows.append((label, f'{last.mass:.2f}', f'{last.lower:.2f} to {last.upper:.2f}', f'{last.mass - true:+.2f}',
                     number(1e3 * away)))
        curves.append(Curve(label, found.t, found.mass, COLORS[color]))
        bands.append(Band(f'_{label}', found.t, found.lower, found.upper, COLORS[color]))       # not in the legend
    print_table(console, 'the two ways to weigh, on this bag',
                ('way', 'mass, kg', '95 % interval', 'error, kg', 'error of the velocity, RMS, mm/s or mrad/s'), rows)
    if joint.truth is not None:
        curves.append(Curve('true', joint.t, joint.truth.payload, COLORS['true'], 'dashes'))
    panel = Panel('Mass of the payload by both ways, with 95 % intervals', 'kg', curves, tuple(bands), height=2.0)
    write_png(Chart('Two ways to weigh', 'both_ways', (panel,)), (joint.t[0], joint.t[-1]), folder / 'both_ways.png')
    console.print(f'picture: [bold]{folder / "both_ways.png"}[/bold]')


def measured_lift(console: Console, folder: Path) -> None:
    """The measured lift of the real crane, where its data are found."""
    console.print('[bold]The measured lift of a real crane[/bold] (PATU 655, valve unknown)')
    import_table(MEASURED, share_directory() / 'config' / 'maps' / 'patu655_measured.yaml', folder / 'measured_bag')
    estimate = estimate_bag(folder / 'measured_bag', load_machine('patu655_measured'), parse_tuning([]))
    last = estimate.last.payload
    page = write_report(report_run(estimate, 'Measured lift, PATU 655'), folder / 'measured_report')
    console.print(f'payload {last.mass:.1f} kg, 95 % interval {last.lower:.1f} to {last.upper:.1f} kg; friction and '
                  f'load cannot be separated by one lift\nreport: [bold]{page}[/bold]')


def run_mechanism_demo(console: Console, folder: Path) -> None:
    """Print the result and write the pictures into ``folder``."""
    model = load_model(MECHANISM)
    folder.mkdir(parents=True, exist_ok=True)
    write_linkage(Picture(model).at(model.start.q), folder / 'linkage.png')
    found = simulate_motion(model, MOTION, sensors=())
    found.report(folder)
    motion = found.motion
    console.print(f'[bold]A four-bar linkage[/bold] from {len(model.description.bodies)} bars in '
                  f'config/mechanisms/{MECHANISM}.yaml: {len(model.names)} coordinates, {len(model.rows)} constraints, '
                  f'{model.degrees_of_freedom} degree of freedom, {len(list(model_warnings(model)))} warnings; '
                  f'{MOTION:g} s of motion, energy within {abs(motion.balance).max():.2g} J, constraints within '
                  f'{motion.violation.max():.1g} m')
    print_table(console, f'energy study in short: largest error of the energy over {STUDY:g} s in steps of 10 ms, J',
                ('example', *SHOWN[:2], 'exponential'), [_errors(example) for example in EXAMPLES])
    _observe(console, folder)
    console.print(f'drawing, motion, plots: [bold]{folder}[/bold]  (mbse benchmark energy, mbse benchmark estimators: '
                  'all of the studies)')


def _observe(console: Console, folder: Path) -> None:
    """Some filters on a model that is wrong, with two kinds of sensors."""
    cases = estimator_benchmark.benchmark_cases([MECHANISM], FILTERS, SENSORS, 1, OBSERVED)
    results = [estimator_benchmark.run_case(case) for case in cases]
    write_estimator_plots(results, folder)
    rows = {(result.case.estimator, result.case.sensor): result.row for result in results}
    print_table(console, 'observers of it, gravity wrong by 1 m/s2 and the start by 0.196 rad: error of the position '
                f'from 2 to {OBSERVED:g} s, rad',
                ('filter', 'encoder', 'gyro', 'us a step'),
                [(name, *(number(rows[name, sensor]['rmse_pos_after_2s']) for sensor in SENSORS),
                  number(rows[name, SENSORS[0]]['step_us'])) for name in FILTERS])


def _errors(example: str) -> tuple[str, ...]:
    """One row of the study."""
    model = load_model(example)
    kinetic = largest_kinetic(model, STUDY)
    runs = [run_case(model, example, 10.0, scheme, STUDY, kinetic) for scheme in SCHEMES if scheme in SHOWN]
    return example, *(f'blows up at {run.blew_up_at:.2f} s' if run.blew_up_at is not None
                      else f'{abs(run.motion.balance).max():.3g}' for run in runs)
