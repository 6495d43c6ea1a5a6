# SPDX-License-Identifier: Apache-2.0
"""Samples of a mechanism's sensors to its state, force and health, by any filter: the stage without ROS."""

from ..records import LinkageEstimate, Measured
from .settings import LinkageSettings
from .stage import LinkageStage

__all__ = ['LinkageEstimate', 'LinkageSettings', 'LinkageStage', 'Measured']
