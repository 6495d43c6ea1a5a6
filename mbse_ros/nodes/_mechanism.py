# SPDX-License-Identifier: Apache-2.0
"""The model of a node's mechanism."""

from __future__ import annotations

from collections.abc import Collection

from ..dynamics.model import Model, load_model
from .settings import MechanismSettings


def load_mechanism_model(settings: MechanismSettings, free: Collection[str] = ()) -> Model:
    """Model of the settings, with numbers ``free`` to be estimated; raises DescriptionError and others of the
    package."""
    coordinates = None if settings.coordinates == 'described' else settings.coordinates
    return load_model(settings.mechanism, coordinates, free=free, backend=settings.backend)
