# SPDX-License-Identifier: Apache-2.0
"""``mbse replay``: the sensors of a bag as topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import BagError, SettingError
from .arguments import OfBag


def replay(
        bag: OfBag,
        rate: Annotated[float, typer.Option(help='Speed: 2 is twice as fast.')] = 1.0,
        loop: Annotated[bool, typer.Option('--loop', help='Start again at the end.')] = False,
        paused: Annotated[bool, typer.Option(
            '--paused', help='Wait for the service ~/pause (std_srvs/SetBool).')] = False,
        all_: Annotated[bool, typer.Option(
            '--all', help="Publish the bag's estimates too, not only its sensors.")] = False,
        wait: Annotated[float, typer.Option(
            help='Longest time to wait for a reader of each sensor topic before the start, s.')] = 5.0,
) -> None:
    """Publish the sensors of a bag, with /clock.

    The service /replay_node/pause (std_srvs/SetBool) pauses and continues.
    """
    raise typer.Exit(replay_bag(bag, rate, loop, paused, all_, wait))


def replay_bag(bag: Path, rate: float, loop: bool, paused: bool, everything: bool, wait: float) -> int:
    """Start the replay node; exit status. Without ``everything`` only the sensors are played: live nodes estimate."""
    from ..bags.bag import open_bag
    from ..nodes.graphs.graph import Graph, Process
    from ..nodes.graphs.run_graph import up
    if not rate > 0:
        raise SettingError('rate', rate, 'a number above 0')
    known = open_bag(bag).topics
    topics = [] if everything else [topic for topic in known if '/sensors/' in topic]
    if not everything and not topics:
        raise BagError(str(bag), 'no sensors to replay; there are ' + ', '.join(sorted(known)) + ' (--all plays them)')
    parameters = {'bag': str(bag), 'rate': rate, 'loop': loop, 'paused': paused, 'topics': ' '.join(topics),
                  'wait_subscribers': 1 if wait > 0 else 0, 'wait_time': wait}
    return up(Graph((Process('replay_node', 'replay_node', parameters=parameters, final=True),)))
