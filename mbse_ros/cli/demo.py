# SPDX-License-Identifier: Apache-2.0
"""``mbse demo``: a crane and an excavator lift through the real graph, recorded, estimated again offline; a linkage."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..bags.series import PayloadSeries, read_payload
from ..bags.table import import_table
from ..errors import MbseError
from ..machine import load_machine
from ..nodes.graph import MachineArguments, machine_graph
from ..nodes.up import RunningGraph
from ..offline.bag import Estimate, estimate_bag, parse_tuning
from ..report.writer import write_report
from ..resources import share_directory
from .compare import Agreement, agreement, latencies
from .demo_mechanism import run_mechanism_demo
from .report_run import report_run
from .usage import CpuMeter

CYCLE_S = 24.0
PROCESSING = ('interpolation_node', 'observer_node', 'payload_node')
MEASURED = Path('../shared/data/patu655/lift_measured_100hz.csv')
EXCAVATOR_LOAD = 800.0      # kg


def run_demo(payload: float, seed: int, output: Path) -> int:
    """All of the demo; exit status 0 when online and offline agree."""
    console = Console()
    folder = output / datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
    folder.mkdir(parents=True)
    agree = live(console, 'A crane', MachineArguments(payload=payload, seed=seed, cycles=1), folder)
    (folder / 'excavator').mkdir()
    agree &= live(console, 'An excavator of 20 t', MachineArguments(
        machine='zx200', payload=EXCAVATOR_LOAD, cycle='boom', seed=seed, cycles=1), folder / 'excavator')
    if MEASURED.is_file():
        measured_lift(console, folder)
    run_mechanism_demo(console, folder / 'mechanism')
    return 0 if agree else 1


def live(console: Console, who: str, arguments: MachineArguments, folder: Path) -> bool:
    """A lift through the graph, recorded, estimated again offline, with a report; whether both agree."""
    load = arguments.payload
    console.print(f'[bold]{who} lifts {load:g} kg[/bold]: simulated plant, four nodes and a recorder, each a process '
                  'of its own, over DDS')
    bag = folder / 'bag'
    cpu = run_graph(console, replace(arguments, record=str(bag)), folder)
    online = read_payload(bag)
    if online is None:
        raise MbseError(f'no payload was recorded: see {folder / "graph.log"}')
    estimate = estimate_bag(bag, load_machine(arguments.machine), parse_tuning([]))
    verdict = agreement(online, estimate)
    show(console, load, online, estimate, verdict, cpu, latencies(bag))
    facts = {'True payload': f'{load:g} kg', 'Online and offline': str(verdict)}
    page = write_report(report_run(estimate, f'{who}: simulated lift of {load:g} kg', facts), folder / 'report')
    console.print(f'report: [bold]{page}[/bold]  (bag: {bag})')
    return verdict.agree


def run_graph(console: Console, arguments: MachineArguments, folder: Path) -> CpuMeter:
    """Run the graph over one cycle with a progress bar; the nodes' output goes to a log file."""
    environment = {'ROS_AUTOMATIC_DISCOVERY_RANGE': os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')}
    with open(folder / 'graph.log', 'w', encoding='utf-8') as log:
        running = RunningGraph(machine_graph(arguments), lambda line: print(line, file=log, flush=True), environment)
        meter, begin = CpuMeter(), time.monotonic()
        try:
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task('lifting', total=CYCLE_S)
                running.start()
                while running.step() and time.monotonic() - begin < 5 * CYCLE_S:
                    meter.update({name: child.pid for name, child in running.children.items()})
                    progress.update(task, completed=min(meter.seconds, CYCLE_S))
                    time.sleep(0.1)
        finally:
            running.stop()
    if running.status:
        raise MbseError(f'a node failed: see {folder / "graph.log"}')
    return meter


def show(console: Console, payload: float, online: PayloadSeries, estimate: Estimate, verdict: Agreement,
         cpu: CpuMeter, latency_ms: tuple[float, float]) -> None:
    """The table of the demo."""
    last = estimate.outputs[-1].payload
    table = Table('', '', show_header=False, title='Result')
    table.add_row('true payload', f'{payload:.2f} kg')
    table.add_row('estimated online', f'{online.mass[-1]:.2f} kg, 95 % interval {online.lower[-1]:.2f} to '
                                      f'{online.upper[-1]:.2f} kg')
    table.add_row('estimated offline', f'{last.mass:.2f} kg, 95 % interval {last.lower:.2f} to {last.upper:.2f} kg')
    table.add_row('online and offline', str(verdict))
    table.add_row('latency', f'median {latency_ms[0]:.1f} ms, 99 % below {latency_ms[1]:.1f} ms from the newest sample '
                             f'to the payload in the recorder; one sample period (10 ms) of interpolation not counted')
    shares = {name: cpu.share(name) for name in PROCESSING}
    table.add_row('processor', ', '.join(f'{name} {100 * share:.0f} %' for name, share in shares.items())
                  + f': {100 * sum(shares.values()):.0f} % of a core together')
    table.add_row('offline', f'{estimate.log_seconds:.1f} s of data in {estimate.seconds:.2f} s')
    console.print(table)


def measured_lift(console: Console, folder: Path) -> None:
    """The measured lift of the real crane, where its data are found."""
    console.print('[bold]The measured lift of a real crane[/bold] (PATU 655, valve unknown)')
    import_table(MEASURED, share_directory() / 'config' / 'maps' / 'patu655_measured.yaml', folder / 'measured_bag')
    estimate = estimate_bag(folder / 'measured_bag', load_machine('patu655_measured'), parse_tuning([]))
    last = estimate.outputs[-1].payload
    page = write_report(report_run(estimate, 'Measured lift, PATU 655'), folder / 'measured_report')
    console.print(f'payload {last.mass:.1f} kg, 95 % interval {last.lower:.1f} to {last.upper:.1f} kg; friction and '
                  f'load cannot be told apart from one lift\nreport: [bold]{page}[/bold]')
