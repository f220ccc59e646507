"""The source of an exported model: the functions of its graph, and around them those that the header names."""
from __future__ import annotations

from typing import Dict, List, Mapping

from ...backends.c.closed import ROOM, ClosedText, headers_of, is_array, size_text
from ...backends.memory_planner import ALIGNMENT, aligned
from ...ir.dims import Dim
from ...ir.graph import Value
from ...ir.types import Extent
from .entry import Entry, Field
from .headers import joined
from .interface import CODES, Interface
from .largest import largest_products
from .weights import CHECKSUM, Weights, checksum_in_c

_PRAGMAS = """/* Numbers are rounded after each operation, as NumPy does it. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"
#pragma clang diagnostic ignored "-Wbitwise-conditional-parentheses"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif
"""

_SEED = """
void {name}_seed({name}_random *random, uint32_t seed)
{{
    for (int k = 0; k < DY_WORDS; k++) {{
        random->key[k] = seed;
        seed = 1812433253u * (seed ^ (seed >> 30)) + (uint32_t)k + 1;
    }}
    random->position = DY_WORDS;
    random->has_normal = 0;
    random->normal = 0;
}}
"""

_BEGIN = "((char *)(((uintptr_t)arena + 63) & ~(uintptr_t)63))"


def source(interface: Interface, text: ClosedText, title: str, in_source: bool) -> str:
    """The whole text.  text: what the functions of the entries have in common.  in_source: the weights stand in it."""
    functions_ = functions(interface, text, in_source)
    return f"/* {title}, compiled by dy2static. */\n#include \"{interface.name}.h\"\n\n{preamble(functions_)}\n{functions_}"


def preamble(text: str) -> str:
    """What stands in front of the functions of a text."""
    return f"{_PRAGMAS}\n{joined(headers_of(text))}"


def functions(interface: Interface, text: ClosedText, in_source: bool = False) -> str:
    """The functions of one model."""
    seed = _SEED.format(name=interface.name) if interface.draws else ""
    entries = [part for entry in interface.entries for part in (entry.function.text, _arena(entry), _run(interface, entry))]
    return "\n".join(filter(None, (
        *entries, _update(interface), _messages(interface, text), _init(interface, interface.weights, in_source), seed)))


def _messages(interface: Interface, text: ClosedText) -> str:
    fixed = "\n".join(f"    case {number}: return {_literal(meaning)};" for _, number, meaning in CODES)
    found = "\n".join(f"    case {number}: return {_literal(str(failure))};" for number, failure in enumerate(text.failures, 1))
    return f"""const char *{interface.name}_message(int code)
{{
    switch (code) {{
{fixed}
{found}
    default: return "no code of this model";
    }}
}}
"""


def _literal(text: str) -> str:
    """A text as C has it."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def _init(interface: Interface, weights: Weights, in_source: bool) -> str:
    name, macro = interface.name, interface.macro
    own = weights.as_source(f"{name}_own_weights") if in_source else ""
    given = f"{name}_own_weights" if in_source else "0"
    size = f"{macro}_WEIGHTS_BYTES"
    return f"""{own}
{checksum_in_c(name)}
int {name}_init({name}_model *model, const void *weights, size_t bytes)
{{
    static const uint32_t head[] = {{{', '.join(f'0x{word:08x}' for word in weights.head)}}};
    if (!model)
        return {macro}_NULL_POINTER;
    if (!weights && !bytes) {{
        weights = {given};
        bytes = weights ? {size} : 0;
    }}
    if (!weights || bytes != {size} || (uintptr_t)weights % 64 || memcmp(weights, head, sizeof head))
        return {macro}_BAD_WEIGHTS;
    if (!{name}_is_sound(weights, bytes))
        return {macro}_DAMAGED_WEIGHTS;
    model->weights = weights;
    return {macro}_OK;
}}
"""


def _bad_sizes(entry: Entry, holder: str = "") -> List[str]:
    """Tests of C for sizes that the model is not for; holder: what they are members of, with ``->``."""
    tests = []
    for size, free in entry.sizes.values():
        no_multiple = "" if free.factor == 1 else f" || {holder}{size} % {free.factor}"
        most = "INT32_MAX" if free.most is None else free.most
        tests.append(f"{holder}{size} < {free.least} || {holder}{size} > {most}{no_multiple}")
    for powers in largest_products(entry.function.graph):   # the numbers of elements stay within 64 bits
        factors = [f"(double){holder}{entry.sizes[symbol][0]}" for symbol, power in powers.items() if symbol in entry.sizes
                   for _ in range(power)]
        if len(factors) > 1:
            tests.append(f"{' * '.join(factors)} > 1e12")
    return tests


def _arena(entry: Entry) -> str:
    function, symbols = entry.function.function, entry.function.symbols
    room = f" + ({ROOM} + ({function.sized} + 63) / 64 * 64)" if function.sized != 0 else ""
    lines = [line for test in _bad_sizes(entry) for line in (f"    if ({test})", "        return 0;")]
    if room:
        lines += [f"    const int64_t {size_text(Dim(symbol))} = {entry.number(symbol)};" for symbol in symbols]
        lines += [f"    (void){size_text(Dim(symbol))};" for symbol in symbols]
    fixed = 3 * ALIGNMENT + aligned(function.scratch)          # as `ClosedFunction.arena_bytes`
    body = "\n".join([*lines, f"    return (size_t)({fixed}{room});"])
    return f"{entry.arena_signature}\n{{\n{body}\n}}\n"


class _Slots:
    """The elements of ``p``, ``n`` and ``d`` in the order in which the function reads and writes them."""

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {"p": 0, "n": 0, "d": 0}

    def next(self, vector: str) -> str:
        self.counts[vector] += 1
        return f"{vector}[{self.counts[vector] - 1}]"

    def of(self, value: Value) -> str:
        """That of an input or output."""
        if is_array(value):
            return self.next("p")
        return self.next("d" if getattr(value.type, "kind", "") == "py_float" else "n")


def _run(interface: Interface, entry: Entry) -> str:
    macro, slots, function = interface.macro, _Slots(), entry.function.function
    lines: List[str] = []
    pointers = [f"!arguments->{f.name}" for f in entry.arguments if f.is_array]
    pointers += [f"!results->{f.name}" for f in entry.results if f.is_array and not f.grown]
    pointers += ["!arguments->random"] if entry.draws else []
    tests = " || ".join(["!model", "!arguments", "!results", "!arena", *pointers])
    lines += [f"if ({tests})", f"    return {macro}_NULL_POINTER;"]
    lines += [line for test in _bad_sizes(entry, "arguments->") for line in (f"if ({test})", f"    return {macro}_BAD_SIZE;")]
    lines += ["char *const begin = " + _BEGIN + ";",
              f"const size_t skipped = (size_t)(begin - (char *)arena), scratch = {aligned(function.scratch)};",
              "if (arena_bytes < skipped + scratch)", f"    return {macro}_NO_MEMORY;",
              "dy_heap heap = dy_heap_of(begin + scratch, (int64_t)(arena_bytes - skipped - scratch));"]
    lines += _inputs(entry, interface.weights, slots)
    returned = _outputs(entry, slots)
    lines += returned["before"]
    lines += [f"const int status = {entry.function.name}(p, n, d);", "if (status)",
              f"    return heap.exhausted ? {macro}_NO_MEMORY : status;"]
    lines += returned["after"]
    unused = [f"(void){x};" for x in "pnd" if not slots.counts[x]] + ["(void)model;"]
    head = [f"char *p[{max(slots.counts['p'], 1)}];", f"int64_t n[{max(slots.counts['n'], 1)}];",
            f"double d[{max(slots.counts['d'], 1)}];", *(f"memset({x}, 0, sizeof {x});" for x in "pnd")]
    body = "\n".join("    " + line for line in [*head, *unused, *lines, f"return {macro}_OK;"])
    return f"{entry.signature}\n{{\n{body}\n}}\n"


def _inputs(entry: Entry, weights: Weights, slots: _Slots) -> List[str]:
    lines: List[str] = []
    arguments = len(entry.arguments)
    for k, value in enumerate(entry.function.graph.inputs):
        slot = slots.of(value)
        if isinstance(value.type, Extent):
            lines.append(f"{slot} = {entry.number(value.type.symbol, 'arguments->')};")
        elif k < arguments:
            field = entry.arguments[k]
            lines.append(f"{slot} = {'(char *)(uintptr_t)' if field.is_array else ''}arguments->{field.name};")
        else:
            offset = weights.offsets[entry.program.parameters[k - arguments].name]
            lines.append(f"{slot} = (char *)(uintptr_t)(model->weights + {offset});")
    if entry.draws:
        lines.append(f"{slots.next('n')} = (int64_t)(uintptr_t)arguments->random;")
    lines.append(f"{slots.next('n')} = (int64_t)(uintptr_t)&heap;")
    return lines


def _outputs(entry: Entry, slots: _Slots) -> Mapping[str, List[str]]:
    before: List[str] = []
    after: List[str] = []
    for field in entry.results:
        if field.is_array and not field.grown:
            before.append(f"{slots.next('p')} = (char *)results->{field.name};")
    if entry.function.function.scratch:
        before.append(f"{slots.next('p')} = begin;")
    symbols: Dict[str, str] = {symbol: entry.number(symbol, "arguments->") for symbol in entry.function.symbols}
    grown: List[Field] = []
    for k, value in enumerate(entry.function.graph.outputs):
        if k < len(entry.results):
            field = entry.results[k]
            if field.grown:
                after.append(f"results->{field.name} = (const {field.type} *)(void *){slots.next('p')};")
                slots.next("n")
                grown.append(field)
            elif not field.is_array:
                after.append(f"results->{field.name} = {slots.of(value)};")
        else:
            symbols[value.type.symbol] = slots.next("n")
    names = {symbol for field in grown for size in field.value.shape for symbol in getattr(size, "symbols", ())}
    after += [f"const int64_t {size_text(Dim(symbol))} = {symbols[symbol]};" for symbol in sorted(names)]
    after += [f"results->{field.name}_shape[{axis}] = {size_text(size)};"
              for field in grown for axis, size in enumerate(field.value.shape)]
    return {"before": before, "after": after}


def _update(interface: Interface) -> str:
    if not interface.updated:
        return ""
    macro = interface.macro
    tests = " || ".join(["!weights", "!results", *(f"!results->{field.name}" for field, _ in interface.updated)])
    lines = [f"if ({tests})", f"    return {macro}_NULL_POINTER;"]
    lines += [f"memset((char *)weights + {CHECKSUM.start}, 0, {CHECKSUM.stop - CHECKSUM.start});"]
    for field, name in interface.updated:
        at, count = interface.weights.offsets[name], interface.weights.arrays[name].size
        lines += [f"{field.type} *const {field.name} = ({field.type} *)(void *)((char *)weights + {at});",
                  f"for (int64_t k = 0; k < {count}; k++)",
                  f"    {field.name}[k] -= ({field.type})rate * results->{field.name}[k];"]
    body = "\n".join("    " + line for line in [*lines, f"return {macro}_OK;"])
    return f"{interface.update_signature}\n{{\n{body}\n}}\n"
