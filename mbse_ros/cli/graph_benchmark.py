# SPDX-License-Identifier: Apache-2.0
"""``mbse benchmark graph``: what the nodes cost, and how late the mass is, at several rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from ..nodes.measuring.graph_cost import benchmark_rows, check_rates, row
from ..report.files import check_file, write_json

BEHIND = 0.99       # of the instants, sent in time; below it the publisher was too slow


def run_graph(machine: str, rates: Sequence[int], ways: Sequence[bool], seconds: float, json_file: Path | None) -> None:
    """Measure, print, write; raises SettingError for what cannot be measured, MbseError where a node fails."""
    check_file(json_file)
    check_rates(rates)
    rows = []
    typer.echo(f'{machine}, {seconds:g} s each; from the stamp of the last sample to the arrival of the payload:')
    for rate, composed, graph, passed in benchmark_rows(machine, rates, ways, seconds):
        rows.append(row(rate, composed, graph, passed))
        typer.echo(line(rows[-1]))
        for who, run in (('graph', graph), ('pass-through', passed)):
            if run.sent < BEHIND * run.due:
                typer.echo(f'  {who}: the publisher sent {run.sent} of {run.due} in time (99 % within '
                           f'{run.publisher_late_ms:.1f} ms): {rate * run.sent / run.due:.0f} Hz was reached')
    write_json(json_file, {'rows': rows})


def line(item: Mapping[str, Any]) -> str:
    """A row in words."""
    shares, passed = item['cpu_share'], item['passthrough_cpu_share']
    total = sum(shares.values())
    ratio = f', ratio {total / passed:.1f}' if passed else ''
    return (f'{item["rate_hz"]} Hz, {"one process" if item["composed"] else "processes"}: {item["messages"]} sent, '
            f'{item["lost"]} lost, p50 {item["p50_ms"]:.1f} ms, p99 {item["p99_ms"]:.1f} ms; % of a core: '
            + ', '.join(f'{name} {100 * share:.1f}' for name, share in shares.items())
            + f', in all {100 * total:.1f}, pass-through {100 * passed:.1f}{ratio}')
