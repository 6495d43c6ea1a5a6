# SPDX-License-Identifier: Apache-2.0
"""The service ~/reset."""

from __future__ import annotations

from std_srvs.srv import Trigger

from ._lifecycle import ManagedNode


def offer_reset(node: ManagedNode, answer: str) -> None:
    """Service that forgets what the node's stage knows, and answers so."""
    def on_reset(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = node.machine is not None, answer
        if response.success:
            node.stage.reset()
        else:
            response.message = 'not configured'
        return response

    node.create_service(Trigger, '~/reset', on_reset)
