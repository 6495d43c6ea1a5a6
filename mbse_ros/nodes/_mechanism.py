# SPDX-License-Identifier: Apache-2.0
"""The model of a node's mechanism."""

from __future__ import annotations

from ..dynamics.model import Model, load_model
from .settings import MechanismSettings


def load_mechanism_model(settings: MechanismSettings) -> Model:
    """Model of the settings; raises DescriptionError and others of the package."""
    coordinates = None if settings.coordinates == 'described' else settings.coordinates
    return load_model(settings.mechanism, coordinates, backend=settings.backend)
