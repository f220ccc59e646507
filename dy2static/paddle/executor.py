"""Runs programs with named inputs and results: Paddle's `Executor`."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Union

import chainer
import numpy as np

from ..errors import SignatureError
from .named_program import NamedProgram, Target
from .places import place_of


class Executor:
    """Runs programs on a place, which is the processor.

        exe = Executor(CPUPlace())
        program, feed_names, fetch_targets = load_inference_model("model", exe)
        probabilities, = exe.run(program, feed={feed_names[0]: images}, fetch_list=fetch_targets)

    place: `CPUPlace()`, or None.

    Raises `BackendError` for a GPU, and `SignatureError` for an argument that is not a place.
    """

    def __init__(self, place: Any = None):
        self.place = place_of(place)
        self._closed = False

    def run(self, program: Any, feed: Optional[Mapping[str, Any]] = None,
            fetch_list: Union[None, str, Target, Sequence[Union[str, Target]]] = None, *, return_numpy: bool = True,
            use_program_cache: bool = True) -> List[Any]:
        """Run a program.  Returns the results in ``fetch_list``, in that order.

        program: from `load_inference_model`, from a `TracedLayer`, or the ``main_program`` of a compiled function.
        feed: a dict from names of inputs to arrays.
        fetch_list: targets (``fetch_targets``, ``outputs``) or their names; None means all.
        return_numpy: True returns arrays, False returns Variables without a graph.
        use_program_cache: ignored; programs are always kept.

        Raises `SignatureError` for unknown names, for missing inputs, and after `close`.
        """
        if self._closed:
            raise SignatureError("this Executor has been closed")
        program = getattr(program, "main_program", program)
        if not isinstance(program, NamedProgram):
            raise SignatureError(f"an Executor runs programs, not {type(program).__name__}",
                                 hint="those of load_inference_model, or the main_program of a compiled function")
        found = program.run(feed, fetch_list)
        return [_array(item) if return_numpy else _variable(item) for item in found]

    def close(self) -> None:
        """Close the executor.  `run` raises afterwards."""
        self._closed = True

    def __repr__(self) -> str:
        return f"Executor({self.place!r})"


def _array(item: Any) -> np.ndarray:
    return np.asarray(item.array if isinstance(item, chainer.Variable) else item)


def _variable(item: Any) -> chainer.Variable:
    return item if isinstance(item, chainer.Variable) else chainer.as_variable(np.asarray(item))
