# SPDX-License-Identifier: Apache-2.0
"""ROS parameters declared from Settings dataclasses: descriptions, units, ranges; wrong values are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, fields, replace
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ...errors import MbseError, SettingError, shown
from ...settings import Settings
from ..graphs.catalogue import NODES, parameter_names

S = TypeVar('S', bound=Settings)
INTEGER_LIMIT = 2 ** 63 - 1
_TYPES = {kind.value for kind in Parameter.Type}


def descriptor(item: Field[Any], read_only: bool) -> ParameterDescriptor:
    """Descriptor of a settings field: text with its unit, range, allowed words."""
    meta = item.metadata
    text = f'{meta["text"]} [{meta["unit"]}]' if meta['unit'] else meta['text']
    result = ParameterDescriptor(name=item.name, description=text, read_only=read_only)
    if meta['choices']:
        result.additional_constraints = 'one of: ' + ', '.join(map(repr, meta['choices']))
    if meta['low'] is None and meta['high'] is None:
        return result
    if isinstance(item.default, float):
        low, high = _or(meta['low'], -math.inf), _or(meta['high'], math.inf)
        result.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
    elif isinstance(item.default, int):
        low, high = _or(meta['low'], -INTEGER_LIMIT), _or(meta['high'], INTEGER_LIMIT)
        result.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
    return result


def declare(node: Node, default: S, read_only: bool = False) -> S:
    """Declare one parameter a field and return the settings with the values given at the start.

    Raises SettingError or rclpy's ParameterException for a value of the wrong type or out of range.
    """
    values = {}
    for item in fields(default):
        try:
            values[item.name] = node.declare_parameter(item.name, getattr(default, item.name),
                                                       descriptor(item, read_only)).value
        except InvalidParameterTypeException as error:
            given = node.declare_parameter(item.name, descriptor=ParameterDescriptor(dynamic_typing=True))
            if isinstance(item.default, float) and given.type_ is Parameter.Type.INTEGER:
                raise SettingError(item.name, given.value, f'a number with a decimal point, {given.value}.0: ROS 2 '
                                                           'distinguishes the two') from error
            raise
    return replace(default, **values)


def on_change(node: Node, current: Callable[[], S], apply: Callable[[S], None]) -> None:
    """Hand changed settings to ``apply``; whatever it or the settings refuse is refused with that reason."""
    def set_parameters(parameters: list[Parameter]) -> SetParametersResult:
        settings = current()
        known = {item.name for item in fields(settings)}
        changes = {p.name: p.value for p in parameters if p.name in known}
        try:
            if changes:
                apply(replace(settings, **changes))
        except MbseError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(set_parameters)


def checked_request(service: str, callback: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The callback of a service; those that set parameters refuse a value of no type, whose ValueError in rclpy would
    end the node."""
    if service.rpartition('/')[2] not in ('set_parameters', 'set_parameters_atomically'):
        return callback

    def call(request: Any, response: Any) -> Any:
        wrong = next((p for p in request.parameters if p.value.type not in _TYPES), None)
        if wrong is None:
            return callback(request, response)
        reason = f'{shown(wrong.name)}: type {wrong.value.type}, expected one of {", ".join(map(str, sorted(_TYPES)))}'
        refusal = SetParametersResult(successful=False, reason=reason)
        if hasattr(response, 'result'):
            response.result = refusal
        else:
            response.results = [refusal] * len(request.parameters)
        return response

    return call


def declare_entry(node: Node, executable: str) -> tuple[list[Any], Any]:
    """Declare all parameters that the catalogue has for an executable; its fixed settings and its tuning, None without.

    Raises as `declare`, and SettingError for a parameter given at the start that no node of this package has: rclpy
    passes over it in silence. A parameter of another node is let through: one file may serve the whole graph.
    """
    entry, known = NODES[executable], parameter_names()
    fixed = [declare(node, kind(), read_only=True) for kind in entry.fixed]
    tuning = declare(node, entry.tuned()) if entry.tuned else None
    for name, parameter in node._parameter_overrides.items():
        if not node.has_parameter(name) and name not in known and not name.startswith('qos_overrides.'):
            own = ', '.join(sorted(node.list_parameters([], 0).names))
            raise SettingError(name, parameter.value, f'a parameter of this node: {own}')
    return fixed, tuning


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
