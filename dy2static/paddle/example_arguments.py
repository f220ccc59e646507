"""A program for what an `InputSpec` describes, before there is a call: for arguments that are made up."""
from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from ..call_specs import examples, leaves, sharings, sizes_of
from ..runtime.program import Program


def program_for(specs: Sequence[Any], compiled: Callable[..., Program]) -> Program:
    """What ``compiled`` makes for arrays of zeros as specified: with free sizes, if that can be.

    Raises what it raises if it takes none of them.
    """
    found: Optional[Program] = None
    failed: Optional[Exception] = None
    every = list(leaves(list(specs)))
    is_open = any(None in spec.shape for spec in every)
    for sharing in sharings(specs):
        try:
            found = compiled(*examples(specs, ("array",) * len(every), sharing, next(sizes_of(sharing))))
        except Exception as error:                      # of any kind: the user's code does not take sizes that differ
            failed = failed or error
            continue
        if found.has_free_sizes or not is_open:
            return found
    if found is None:
        raise failed                                    # type: ignore[misc]
    return found
