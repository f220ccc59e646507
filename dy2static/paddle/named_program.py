"""Programs whose inputs and results go by names: what an `Executor` runs."""
from __future__ import annotations

import contextlib
import operator
from functools import reduce
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import chainer
import numpy as np

from ..errors import SignatureError
from ..input_spec import InputSpec


class Target(NamedTuple):
    """One array of the results.

    path: where it is in them: keys, the outermost first; () if it is the result.  shape: None for sizes that are free.
    """

    name: str
    shape: Tuple[Optional[int], ...]
    dtype: np.dtype
    path: Tuple[Any, ...] = ()

    def of(self, result: Any) -> Any:
        """This part of a result.  Raises `SignatureError` where there is none."""
        try:
            return reduce(operator.getitem, self.path, result)
        except (LookupError, TypeError):
            raise SignatureError(f"there is no {self.name} in this result, which is unlike earlier ones") from None


class NamedProgram:
    """A function of arrays that are fed by their names, of whose results some are fetched.

    function: what is called.  parameters: the names of its arguments, in order; keywords: of those that only go by name.
    feeds: the arguments that must be fed, by the names under which they are.  inputs: an `InputSpec` for each array in them.
    targets: what may be fetched.
    train: ``chainer.config.train`` while it runs; None: as it is.
    program: the `Program` behind it, where there is one: ``code`` and ``graph`` are that one's.
    """

    def __init__(self, function: Callable, parameters: Sequence[str], keywords: Sequence[str] = (),
                 feeds: Mapping[str, str] = {}, inputs: Sequence[InputSpec] = (), targets: Sequence[Target] = (),
                 train: Optional[bool] = None, program: Any = None):
        self.function, self.parameters, self.inputs = function, tuple(parameters), list(inputs)
        self.feeds, self.feed_names, self.fetch_targets = dict(feeds), list(feeds), list(targets)
        self.train, self.program = train, program
        self._names = {**feeds, **{name: name for name in (*parameters, *keywords) if name not in feeds.values()}}

    @property
    def code(self) -> str:
        """The generated Python function."""
        return "" if self.program is None else self.program.code

    @property
    def graph(self) -> Any:
        """The graph behind it."""
        return None if self.program is None else self.program.graph

    def run(self, feed: Optional[Mapping[str, Any]] = None,
            fetch_list: Union[None, str, Target, Sequence[Union[str, Target]]] = None) -> List[Any]:
        """What was asked for: Variables, arrays or numbers, without a graph behind them.

        feed: by name, what goes in: an array or Variable, nested lists of numbers, or what the argument is otherwise.
        fetch_list: targets or their names; None: all.

        Raises `SignatureError` for a name that there is not, and where something is missing.
        """
        targets = [self._target(item) for item in _listed(fetch_list, self.fetch_targets)]
        args, kwargs = self._arguments(feed or {})
        with _mode(self.train), chainer.no_backprop_mode():
            result = self.function(*args, **kwargs)
        return [target.of(result) for target in targets]

    def _arguments(self, feed: Mapping[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        given = {}
        for name, value in feed.items():
            if name not in self._names:
                raise SignatureError(f"there is no input {name!r}", hint=f"there are {_words(self._names)}")
            given[self._names[name]] = self._array(name, value)
        missing = [name for name in self.feed_names if self._names[name] not in given]
        if missing:
            raise SignatureError(f"{' and '.join(map(repr, missing))} {'is' if len(missing) == 1 else 'are'} not fed")
        args: List[Any] = []
        for parameter in self.parameters:
            if parameter not in given:
                break
            args.append(given.pop(parameter))
        return args, given

    def _array(self, name: str, value: Any) -> Any:
        """Numbers in lists as the array that they are for."""
        spec = next((spec for spec in self.inputs if spec.name == name), None)
        is_array = spec is None or isinstance(value, (np.ndarray, chainer.Variable))
        return value if is_array else np.asarray(value, spec.dtype)     # type: ignore[union-attr]

    def _target(self, wanted: Union[str, Target]) -> Target:
        name = wanted.name if isinstance(wanted, Target) else wanted
        for target in self.fetch_targets:
            if isinstance(name, str) and name == target.name:
                return target
        raise SignatureError(f"there is no result {name!r}",
                             hint=f"there are {_words([target.name for target in self.fetch_targets])}")

    def __repr__(self) -> str:
        results = ", ".join([target.name for target in self.fetch_targets])
        return f"<program: {', '.join(self.feed_names)} -> {results}>"

    def __str__(self) -> str:
        return repr(self) if self.graph is None else str(self.graph)


def _words(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def _listed(given: Any, otherwise: Sequence[Target]) -> Sequence[Union[str, Target]]:
    if given is None:
        return otherwise
    return [given] if isinstance(given, (str, Target)) else given


@contextlib.contextmanager
def _mode(train: Optional[bool]) -> Iterator[None]:
    if train is None:
        yield
    else:
        with chainer.using_config("train", train):
            yield
