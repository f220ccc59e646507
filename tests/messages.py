"""Every error and warning of dy2static that a run of tests provokes: rules that all of them keep, and a page with all of them.

``pytest --messages FILE`` writes the page: one entry for each message, with its class, without numbers and folders, in order.
The rules are checked in every run; a test that provokes a message which breaks one fails.
"""
import functools
import json
import pathlib
import re
from collections import Counter

from dy2static import errors

_SIZE = r"\blength_n?\d"

#: What users do not know, with the reason why no message may hold it.
FOREIGN = {
    r"\bDim\(": "a type of the compiler",
    _SIZE: "a name of the compiler for a size",
    r"\bSymbolic[A-Z]\w*": "a type of the compiler",
    r"\b(BoundHostMethod|CaptureAborted|StagedList|Shadow[A-Z]\w*|return_value_\d+)\b": "a type of the compiler",
    r"<(class '|function |module ')?dy2static\.": "the repr of an object of ours",
    r" object at 0x[0-9a-f]+": "the address of an object",
    r"\b(None; None|: None;|; None$)": "a part of the message that is missing",
    r"  +\S.*;\s*$": "a hint that is missing",
}
#: The classes of messages that may hold it: an InternalError is for a report to us, a LoadError shows what a damaged file says.
EXEMPT = {_SIZE: (errors.InternalError, errors.LoadError)}
_KINDS = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, (errors.Dy2StaticError, Warning)))

#: The messages of this process, with how often each came; and what is wrong with those since `faults` was called last.
seen: Counter = Counter()
_faults = []


def wrong_with(kind, message, hint=None):
    """What is wrong with the message of an error or warning of this class: a list of sentences."""
    whole = message if hint is None else f"{message}; {hint}"
    found = [f"{reason} ({match.group().strip()})" for pattern, reason in FOREIGN.items() for match in [re.search(pattern, whole)]
             if match and not issubclass(kind, EXEMPT.get(pattern, errors.InternalError))]
    if len(re.findall(r"\bD2S\d{3}: ", message)) + issubclass(kind, errors.Dy2StaticError) > 1:
        found.append("the code is written twice")
    if not message.strip() or hint is not None and not hint.strip():
        found.append("a text is empty")
    return [f"{kind.__name__}: {reason}: {whole}" for reason in found]


def watch():
    """From now on look at each error and warning of ours that is created in this process."""
    def of_error(init):
        @functools.wraps(init)
        def created(self, message, at=None, hint=None):
            init(self, message, at, hint)
            _note(type(self), str(message), hint)
        return created

    def of_warning(init):
        @functools.wraps(init)
        def created(self, *args):
            init(self, *args)
            _note(type(self), " ".join(map(str, args)))
        return created

    errors.Dy2StaticError.__init__ = of_error(errors.Dy2StaticError.__init__)
    for kind in _KINDS:
        if issubclass(kind, Warning):
            kind.__init__ = of_warning(kind.__init__)


def _note(kind, message, hint=None):
    seen[_anonymous(f"{kind.__name__}: {message}" + (f"\n    hint: {hint}" if hint else ""))] += 1
    _faults.extend(wrong_with(kind, message, hint))


def _anonymous(text):
    text = re.sub(r"(?<![\w.])(/[\w.+\-]+)+/(?=[\w<])", "", text)      # folders
    return re.sub(r"(?<=[\w\]]:)\d+\b|\b0x[0-9a-f]+|(?<![\w.])\d+(\.\d+)?(e[-+]?\d+)?\b", "N", text)


def faults():
    """What is wrong with the messages since the last call."""
    found = _faults[:]
    del _faults[:]
    return found


def write(path, worker):
    """Write what this process has seen: a worker into a file of its own, the others into the page, with what workers have written."""
    path = pathlib.Path(path)
    if worker:
        path.with_name(f"{path.name}.{worker}").write_text(json.dumps(seen))
        return
    for part in path.parent.glob(path.name + ".gw*"):
        seen.update(json.loads(part.read_text()))
        part.unlink()
    path.write_text("".join(f"{message}\n    ({count} times)\n\n" for message, count in sorted(seen.items())))
