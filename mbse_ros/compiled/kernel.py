# SPDX-License-Identifier: Apache-2.0
"""One evaluation of a function: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..errors import DivergenceError
from .background import waiting
from .cache import library
from .compiler import build
from .dense import array_shape, c_source, checked, dense, fitted, made_of

NAME = 'mbse_kernel'


class Kernel:
    """A CasADi function that takes and gives NumPy arrays.

    ``backend``: 'vm' (CasADi's virtual machine), 'c' (generated C, CompilationError where it cannot be had), 'auto'
    (C where there is a compiler, else the VM; ``note`` says why not C). ``rare``: with 'auto' the VM as long as the
    function is called too rarely for a compiler, see ``background``. Attributes: ``name``, ``backend`` ('vm' or 'c':
    which runs now), ``note``. Sparse inputs and outputs of the function are dense here.
    """

    def __init__(self, function: ca.Function, backend: str = 'auto', rare: bool = False) -> None:
        self.name = function.name()
        self._vm = vm = dense(function, NAME)
        self._waiting = waiting(backend, vm, self.name) if rare else None
        self._can_fail = not vm.is_a('SXFunction')
        self._inputs = [np.zeros(array_shape(function.size_in(i))) for i in range(function.n_in())]
        self._outputs = [np.zeros(array_shape(function.size_out(i))) for i in range(function.n_out())]
        self._slots = [(own, own.shape, f'{self.name}: input {i}') for i, own in enumerate(self._inputs)]
        self._lock = Lock()
        self._make('vm' if self._waiting else backend)

    def _make(self, backend: str) -> None:
        vm = self._vm
        self._function, self.backend, self.note = build(
            backend, self.name, lambda: ca.external(NAME, str(library(self.name, lambda: c_source(vm), made_of(vm)))),
            lambda: vm)
        self._run = self.bind(self._inputs, self._outputs)

    def __call__(self, *arrays: ArrayLike) -> tuple[np.ndarray, ...]:
        """Fresh outputs, C order, in the function's shapes, 1-D for columns; a vector may be given in 1-D.

        Raises ValueError (wrong number, shape or kind of arrays), DivergenceError (see ``bind``). Safe with threads.
        """
        if len(arrays) != len(self._inputs):
            raise ValueError(f'{self.name}: got {len(arrays)} arrays, expected {len(self._inputs)}')
        with self._lock:
            for (own, shape, what), array in zip(self._slots, arrays):
                own[...] = fitted(array, shape, what)
            if self._waiting and self._waiting.called():
                self._waiting = None
                self._make('auto')
            self._run()
            return tuple([own.copy() for own in self._outputs])

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Callable[[], None]:
        """Call without arguments that reads ``inputs`` and writes ``outputs`` in place: the least overhead.

        Arrays: C-contiguous float64 of the shapes of ``__call__``, outputs apart from inputs, else ValueError. The
        call is for one thread at a time; it raises DivergenceError when the function reports a failure, such as a
        singular matrix or a root not found (generated C gives NaN or infinity for the former).
        """
        for what, given, own in (('input', inputs, self._inputs), ('output', outputs, self._outputs)):
            if len(given) != len(own):
                raise ValueError(f'{self.name}: got {len(given)} {what}s, expected {len(own)}')
            for i, (array, model) in enumerate(zip(given, own)):
                checked(array, model.shape, f'{self.name}: {what} {i}', writable=what == 'output')
        if any(np.may_share_memory(a, b) for a in outputs for b in inputs):
            raise ValueError(f'{self.name}: an output shares memory with an input')
        return self._bound(list(inputs), list(outputs))

    def _bound(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> Callable[[], None]:
        """The trigger of a CasADi buffer over the arrays, which it keeps alive."""
        buffer, trigger = self._function.buffer()
        for i, array in enumerate(inputs):
            buffer.set_arg(i, array.data)
        for i, array in enumerate(outputs):
            buffer.set_res(i, array.data)
        trigger.arrays = (buffer, inputs, outputs)
        if not self._can_fail:
            return trigger

        def call() -> None:
            trigger()
            if buffer.ret():
                raise DivergenceError(self.name, 0, 'the function reports a failure')
        return call
