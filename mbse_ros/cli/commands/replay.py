# SPDX-License-Identifier: Apache-2.0
"""``mbse replay`` and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
        bag: Annotated[Path, typer.Argument(help='Folder of a bag.')],
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
    from ..up import replay_bag
    raise typer.Exit(replay_bag(bag, rate, loop, paused, all_, wait))
