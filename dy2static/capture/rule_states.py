"""The states of update rules: one program takes them as inputs, whether the first update has made them yet or not."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Type

from chainer import UpdateRule

from ..heap.dict_shadows import ShadowDict
from ..heap.object_shadows import ShadowBase, attributes_of, class_of
from ..record.paths import Attribute, RuleState, Source
from ..record.writes import StoreState, Write
from ..runtime.rule_states import MAKERS, described_state, is_known
from ..symbolic.values import SymbolicParameter

if TYPE_CHECKING:
    from .protocols import Calls, Capture


class RuleStates:
    """The states of one capture that a call reads for the first time when it updates.

    In eager mode the update finds no state in the first call, and makes one.  Here every call finds one at the end of a
    `RuleState`, and lets the rule have it (`StoreState`): this changes something in the first call only.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self._made: Dict[Source, Dict[str, Any]] = {}   # those of rules that have none, for the whole capture
        self._states: Dict[int, ShadowDict] = {}        # by the attributes of the rule

    def enter(self, rule: Any, parameter: Any) -> None:
        """Let a rule have its state, if that can be told from the Parameter, and nothing has looked for it in this call."""
        attributes = attributes_of(rule) if isinstance(rule, ShadowBase) else None
        if not isinstance(attributes, ShadowDict) or not self._is_plain(rule, attributes, parameter):
            return
        heap = self.capture.heap
        heap.check_fresh()
        for name in MAKERS[class_of(rule)].reads:
            bool(getattr(rule.hyperparam, name))        # guards it
        source = heap.source(RuleState, parameter.__dict__["source"], attributes.source)
        state = attributes.real["_state"]
        if state is None:
            if source not in self._made:
                self._made[source] = described_state(heap.real_of(parameter))
            state = self._made[source]
        shadow = self._states[id(attributes)] = heap.shadow(state, source)
        dict.__setitem__(attributes, "_state", shadow)  # a write: what it was is not read

    def _is_plain(self, rule: ShadowBase, attributes: ShadowDict, parameter: Any) -> bool:
        """Whether a rule is of Chainer's, is the rule of a Parameter of the user's, and has a state that was not looked at."""
        heap, own = self.capture.heap, getattr(parameter, "__dict__", {})
        if self.capture.staging.depth or not is_known(class_of(rule)) or type(parameter) is not SymbolicParameter or \
                "source" not in own or heap.source_of(rule) is not heap.source(Attribute, own["source"], "update_rule"):
            return False
        is_seen = "_state" in attributes.loaded or "_state" in attributes.removed or dict.__contains__(attributes, "_state")
        return not is_seen and type(attributes.real.get("_state", ())) in (type(None), dict) and "init_state" not in attributes.real

    def write_of(self, container: Any, kind: Type[Write], item: Any) -> Type[Write]:
        """The kind of a change: `StoreState` if a rule gets the state that it may have already."""
        return StoreState if item is not None and self._states.get(id(container)) is item else kind


def init_states(calls: Calls, function: Callable[..., Any], rule: Any, parameter: Any) -> None:
    """``rule._init_states(parameter)`` in front of an update."""
    calls.capture.rule_states.enter(rule, parameter)
    calls.capture.functions.staged(function)(rule, parameter)


#: What is called for these functions: see `handlers.HANDLERS`.
STATE_HANDLERS: Dict[Any, Callable[..., Any]] = {UpdateRule._init_states: init_states}
