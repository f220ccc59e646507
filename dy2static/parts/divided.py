"""A function that runs in parts: Python for the lines that cannot be compiled, calls of compiled functions for the others."""
from __future__ import annotations

import functools
import types
import weakref
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

import chainer
import gast
from chainer.training.updaters import StandardUpdater

from ..conversion import load_around, load_made, tree_of
from ..errors import Dy2StaticError
from ..heap.aborts import CaptureAborted
from ..heap.ownership import is_generated, is_left_alone, is_library
from ..pyast.loader import LoadedFunction
from ..pyast.printer import unparse
from ..runtime import dy, updating
from ..runtime.ledger import Ledger
from ..runtime.staticness import StaticCallable
from ..runtime.traceback import hide_calls
from ..transformers.super_calls import SuperCalls
from .cuts import Cut, Known, span
from .data import places_of_data
from .division import Cuts, Division, Key, Run, can_be_divided
from .loops import Ahead
from .part import Compiled, Part
from .steps import UPDATE, Step, under
from .trees import divided_tree, part_name, part_tree, place_of_call

#: So many functions of one code are compiled between parts: others are made anew in each call.
_MOST_OF_ONE_CODE = 3


#: As Chainer has it: somebody may replace it later.
_LINK_CALL = chainer.Link.__call__

#: The method of an updater that makes a step; Python gets the data in it, and in what calls it.
_STEP, _CALLS_STEP = "update_core", StandardUpdater.update

#: The modules of a library whose functions call Links or steps, which may be the user's.
_CALLING = ("chainer.links", "chainer.sequential", "chainer.training.updaters.standard_updater")

#: What only eager code finds its callers by.
_LOOKING_AT_FRAMES = frozenset(("_getframe", "currentframe"))


class Parts:
    """The parts of one compiled function and of those that it calls between them.

    make: makes a compiled function, which knows of these parts.  known: the cuts.  ledger: of what captures of all of them take.
    """

    def __init__(self, make: Callable[[types.FunctionType, Parts], Compiled]):
        self.make, self.known, self.ledger = make, Known(), Ledger()
        self._parts: "weakref.WeakKeyDictionary[types.FunctionType, Dict[Key, Part]]" = weakref.WeakKeyDictionary()
        self._of: "weakref.WeakKeyDictionary[types.FunctionType, Part]" = weakref.WeakKeyDictionary()
        self._made_here: "weakref.WeakSet[types.FunctionType]" = weakref.WeakSet()
        self._routes: "weakref.WeakKeyDictionary[types.FunctionType, Optional[Compiled]]" = weakref.WeakKeyDictionary()
        self._trees: "weakref.WeakKeyDictionary[types.FunctionType, gast.FunctionDef]" = weakref.WeakKeyDictionary()
        self._idle: "weakref.WeakKeyDictionary[types.FunctionType, Compiled]" = weakref.WeakKeyDictionary()
        self._made: Dict[types.CodeType, int] = {}
        self._routing: Dict[types.CodeType, Optional[LoadedFunction]] = {}

    def clear(self) -> None:
        """Forget all parts."""
        with self.known.lock:
            self.known.clear()
            self.ledger.clear()
            for learned in (self._parts, self._of, self._made_here, self._routes, self._idle, self._trees, self._made,
                            self._routing):
                learned.clear()

    def learned(self) -> Tuple[Any, ...]:
        """What is known now, for `restore`."""
        with self.known.lock:
            parts = {function: frozenset(parts) for function, parts in self._parts.items()}
            return self.known.learned(), parts, weakref.WeakSet(self._routes)

    def restore(self, learned: Tuple[Any, ...]) -> None:
        """Know no more cuts, and have no more parts, than then."""
        known, parts, routes = learned
        with self.known.lock:
            self.known.restore(known)
            for function, made in list(self._parts.items()):
                for key in made.keys() - parts.get(function, ()):
                    del made[key]
            for function in set(self._routes) - set(routes):
                del self._routes[function]
                self._idle.pop(function, None)
                self._made.pop(function.__code__, None)

    def all(self) -> Tuple[Part, ...]:
        """The parts that are in use, in the order of the source."""
        with self.known.lock:
            found = [part for parts in self._parts.values() for part in parts.values()
                     if not part.compiled.is_divided and part.compiled.is_worth_it()]
        return tuple(sorted(found, key=lambda part: part.run.key.first))

    def compiled(self) -> Tuple[Compiled, ...]:
        """The parts, and the compiled functions that are called between them; also those that are not worth their calls."""
        with self.known.lock:
            parts = [part.compiled for parts in self._parts.values() for part in parts.values()]
            return (*parts, *[route for route in self._routes.values() if route is not None])

    def learn(self, function: types.FunctionType, stop: CaptureAborted) -> Optional[Cut]:
        """Divide a function where its capture stopped.  None where that does not help: then nothing has changed."""
        with self.known.lock:
            tree = self._tree(function)
            return self.known.add(function, tree, stop) if tree is not None and can_be_divided(tree) else None

    def has_cuts(self, function: types.FunctionType) -> bool:
        """Whether a function is known to have lines that cannot be compiled."""
        with self.known.lock:
            tree = self._tree(function)
            return tree is not None and can_be_divided(tree) and self.known.are_in(function, tree)

    def _tree(self, function: types.FunctionType) -> Optional[gast.FunctionDef]:
        """The definition of a function, not to be changed; None where there is none."""
        if function not in self._trees:
            try:
                self._trees[function] = tree_of(function)
            except Dy2StaticError:
                return None
        return self._trees[function]

    def taken_tree(self, function: types.FunctionType) -> gast.FunctionDef:
        """The definition of a function, which the caller may change."""
        return self._trees.pop(function, None) or tree_of(function)

    def halve(self, function: types.FunctionType, stop: CaptureAborted) -> bool:
        """Divide a function of which it is not known which statement stops its capture.  False where that does not help.

        So it is for those that Python calls between parts: they are short, and run as Python.
        """
        part = self._of.get(function)
        if part is not None:
            return self.known.halve(function, part.run.statements, stop)
        if function in self._routes:
            return False
        try:
            tree = tree_of(function)
        except Dy2StaticError:
            return False
        return can_be_divided(tree) and self.known.halve(function, tree.body, stop)

    def is_part(self, function: types.FunctionType) -> bool:
        """Whether a function is a part of one of the user's."""
        return function in self._made_here

    def makes_step(self, function: types.FunctionType) -> bool:
        """Whether a function is the training step of an updater, or Chainer's method that calls it."""
        return not self.is_part(function) and (function.__name__ == _STEP or function is _CALLS_STEP)

    @staticmethod
    def may_divide(function: types.FunctionType) -> bool:
        """Whether a function can run in parts."""
        try:
            return can_be_divided(tree_of(function))
        except Dy2StaticError:
            return False

    def part(self, function: types.FunctionType, run: Run, tree: gast.FunctionDef) -> Part:
        """The part of a function that a run of its statements is."""
        owner = self._of[function].owner if function in self._of else function
        # what leads out of a part gives pairs there, as nothing of its owner does
        parts = self._parts.setdefault(function if gast.Return in run.leaves else owner, {})
        if run.key not in parts:
            loaded = load_made(lambda: part_tree(tree, run), function)
            made = instantiate(loaded, function, dy)
            made.__defaults__ = made.__kwdefaults__ = None
            made.__annotations__ = {}
            self._made_here.add(made)
            self._of[made] = parts[run.key] = Part(made, run, owner, self.make(made, self))
        return parts[run.key]

    def leave_plain(self, part: Part) -> None:
        """Let Python carry out a part that is not worth a call."""
        self.known.leave_plain(part.function, part.run.key)

    @property
    def may_do_more(self) -> bool:
        """Whether calls may still show work in what has not been worth a call so far."""
        return self.known.has_plain or bool(self._idle)

    def try_again(self) -> None:
        """Ask once more of the parts, and of the functions called between them, that were not worth a call."""
        with self.known.lock:
            self.known.leave_none_plain()
            parts = [part.compiled for parts in self._parts.values() for part in parts.values() if part.compiled.is_divided]
            for compiled in (*parts, *self._idle.values()):
                compiled.begin_again()
            self._routes.update(self._idle)
            self._idle.clear()

    # --- calls that Python makes between parts ---------------------------------------------------------------------------

    def route(self, function: Any) -> Any:
        """What to call for a function that Python calls between parts: its compiled form, if it has one."""
        kind = type(function)
        if kind is types.FunctionType:
            return self._routed(function)
        if kind is types.MethodType and type(function.__func__) is types.FunctionType:
            if updating.ORIGINALS.get(function.__func__, function.__func__) is UPDATE:
                return Step(function.__self__, self.route, self._routed)
            routed = self._routed(function.__func__)
            return function if routed is function.__func__ else types.MethodType(routed, function.__self__)
        if kind is functools.partial:
            routed = self.route(function.func)
            return function if routed is function.func else functools.partial(routed, *function.args, **function.keywords)
        if isinstance(function, chainer.Link) and not isinstance(kind.__call__, StaticCallable):
            return self._link(function, kind)
        return function

    def _link(self, link: chainer.Link, kind: type) -> Any:
        forward = getattr(kind, "forward", None)
        plain = (kind.__call__ is not _LINK_CALL or type(forward) is not types.FunctionType
                 or "forward" in link.__dict__ or link._n_local_link_hooks > 0 or chainer._get_link_hooks())
        return link if plain else types.MethodType(self._routed(forward), link)

    def _routed(self, function: types.FunctionType) -> Callable:
        route = self._routes.get(function, function)
        if route is function:
            with self.known.lock:                       # another thread may have been faster
                if function not in self._routes:
                    self._routes[function] = self.make(function, self) if self._may_be_compiled(function) else None
                route = self._routes[function]
        if route is not None and route.is_worth_it() is False:
            self._idle[function] = route
            route = self._routes[function] = None
        return self._made_anew(function) if route is None else route

    def _made_anew(self, function: types.FunctionType) -> types.FunctionType:
        """A function that each call makes again, with cuts in it: Python carries it out, and what it calls is compiled."""
        code = function.__code__
        if self._made.get(code, 0) <= _MOST_OF_ONE_CODE:
            return function
        with self.known.lock:
            if code not in self._routing:
                self._routing[code] = None
                if self.has_cuts(function):
                    tree = SuperCalls().transform(self.taken_tree(function))
                    division = Division(tree, Cuts(lines=frozenset(range(*span(tree)))))
                    self._routing[code] = load_around(divided_tree(tree, division, {}), function)
        loaded = self._routing[code]
        return function if loaded is None else instantiate(loaded, function, names_for(self.route, Ahead()))

    def _may_be_compiled(self, function: types.FunctionType) -> bool:
        """Whether a function that Python calls between parts may be compiled, and whether it is not made anew in each call."""
        module = function.__module__ or ""
        calls_users = module.startswith(_CALLING) or function is UPDATE
        if is_library(module) and not calls_users or is_left_alone(function) or is_generated(function):
            return False
        if not _LOOKING_AT_FRAMES.isdisjoint(function.__code__.co_names):
            return False
        self._made[function.__code__] = self._made.get(function.__code__, 0) + 1
        return self._made[function.__code__] <= _MOST_OF_ONE_CODE


class Trial:
    """A part until it is known whether it is worth its calls."""

    def __init__(self, parts: Parts, part: Part, namespace: types.SimpleNamespace, name: str):
        self.parts, self.part, self.namespace, self.name = parts, part, namespace, name

    def __call__(self, *args: Any) -> Any:
        result = self.part.compiled(*args)
        worth = self.part.compiled.is_worth_it()
        if worth is False or worth and self.part.compiled.is_settled:
            setattr(self.namespace, self.name, self.part.compiled)
            if not worth:
                self.parts.leave_plain(self.part)
        return result


#: So many calls of a divided function are watched for which others they call.
_WATCHED = 4


class Divided:
    """One function in parts, by what is known of its cuts at each call.

    gets_data: whether it is a training step, in which Python fetches and converts the data.
    """

    def __init__(self, function: types.FunctionType, parts: Parts, gets_data: bool = False):
        self.function, self.parts, self.gets_data = function, parts, gets_data
        self._version = -1
        self._cuts: Optional[Cuts] = None
        self._tree: Optional[gast.FunctionDef] = None
        self._call: types.FunctionType = function
        self._names = types.SimpleNamespace()
        self._used: List[Compiled] = []
        self._parts: Dict[str, Part] = {}
        self._calls, self._is_asked = 0, False
        self._code, self._ahead = function.__code__, Ahead()
        self._places: FrozenSet[Tuple[int, int, int, int]] = frozenset()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.function
        if function.__code__ is not self._code:         # somebody gave it other code since
            return function(*args, **kwargs)
        if self._version != self.parts.known.version:
            self._divide()
        call = self._call
        if call.__defaults__ is not function.__defaults__:
            call.__defaults__ = function.__defaults__
        if call.__kwdefaults__ is not function.__kwdefaults__:
            call.__kwdefaults__ = function.__kwdefaults__
        if self._calls < _WATCHED:
            self._calls += 1
            if self._calls >= _WATCHED:
                self._names.call = self.parts.route
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            hide_calls(error, call.__code__, self._places)
            raise

    def parts_by_name(self) -> Dict[str, Part]:
        """The parts, by the names under which the function calls them."""
        return dict(self._parts)

    def is_worth_it(self) -> Optional[bool]:
        """Whether parts in it, or compiled functions that it calls, pay for their calls; None while that is not known."""
        with self.parts.known.lock:                     # what another thread asks is not a call of itself
            if self._is_asked:                          # it calls itself
                return False
            self._is_asked = True
            try:
                found = [compiled.is_worth_it() for compiled in self._used]
            finally:
                self._is_asked = False
        return True if True in found else None if None in found or self._calls < _WATCHED else False

    def begin_again(self) -> None:
        """Watch the next calls as if they were the first."""
        self._version, self._cuts = -1, None

    def _watched(self, function: Any) -> Any:
        """As `Parts.route`, and notes which compiled functions are called; after some calls that is known."""
        route = self.parts.route(function)
        compiled = under(route)
        if hasattr(compiled, "is_worth_it") and compiled not in self._used:
            self._used.append(compiled)
        return route

    @property
    def code(self) -> str:
        """The source of the function with the calls of its parts."""
        if self._version != self.parts.known.version:
            self._divide()
        return "" if self._tree is None else unparse(self._tree)

    def _divide(self) -> None:
        with self.parts.known.lock:
            version = self.parts.known.version
            tree, cuts = self._cut()
            if cuts != self._cuts:
                division = Division(tree, cuts)
                is_first = self._cuts is None           # later ones know which runs are compiled
                if is_first and self.parts.known.shorten(self.function, [run.statements for run in division.runs.values()]):
                    tree, cuts = self._cut()
                    division = Division(tree, cuts)
                self._make(tree, division)
            self._cuts, self._version = cuts, version

    def _cut(self) -> Tuple[gast.FunctionDef, Cuts]:
        """The definition of the function, and its cuts."""
        tree = SuperCalls().transform(self.parts.taken_tree(self.function))
        cuts = self.parts.known.of(self.function, tree)
        return tree, cuts._replace(spots=cuts.spots | places_of_data(tree)) if self.gets_data else cuts

    def _make(self, tree: gast.FunctionDef, division: Division) -> None:
        namespace = self._names = names_for(self._watched, self._ahead)
        self._calls, self._used, self._parts = 0, [], {}
        numbers: Dict[gast.AST, int] = {}
        for number, (first, run) in enumerate(division.runs.items()):
            numbers[first], name = number, part_name(number)
            part = self.parts.part(self.function, run, tree)
            self._parts[name] = part
            is_known = part.compiled.is_worth_it() and part.compiled.is_settled
            self._used.append(part.compiled)
            setattr(namespace, name, part.compiled if is_known else Trial(self.parts, part, namespace, name))
        self._places = frozenset([place_of_call(first) for first in numbers])
        self._tree = divided_tree(tree, division, numbers)
        self._call = instantiate(load_around(self._tree, self.function), self.function, namespace)


def names_for(route: Callable[[Any], Any], ahead: Ahead) -> types.SimpleNamespace:
    """What a divided function finds under ``_dy``.  route: what its calls go through."""
    return types.SimpleNamespace(call=route, Unbound=dy.Unbound, leave=dy.leave, ahead=ahead, after=dy.after, rest=dy.rest)


def instantiate(loaded: LoadedFunction, function: types.FunctionType, names: Any) -> types.FunctionType:
    """A function of loaded code with the globals and cells of another one."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    return loaded.instantiate(function.__globals__, cells, names, function)
