"""A program around an exported model that reads its arguments from files of NumPy's and writes its results to such files."""
from __future__ import annotations

import re
from typing import Any, List

import numpy as np

from ...backends.c.closed import size_text
from ...ir.dims import Dim
from .entry import Entry, Field
from .interface import Interface

_TEXT = r"""/* Runs @NAME@ once: @NAME@_main [--weights FILE] [--seed N] @USAGE@
   Results are written to files called as the results, in the folder at hand. */
#include "@NAME@.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 32 };

/* For sizes that are computed from others. */
static inline int64_t dy_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t dy_floor_divide(int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); }

typedef struct {
    void *data;
    int axes;
    int64_t shape[MOST_AXES];
} array;

static void quit(const char *file, const char *why)
{
    fprintf(stderr, "%s: %s\n", file, why);
    exit(1);
}

/* Blocks of memory form a list: each begins with the address of the one before. */
static void *blocks;

static void *take(size_t bytes)
{
    void **const block = bytes < SIZE_MAX / 2 ? aligned_alloc(64, (bytes + 191) / 64 * 64) : 0;
    if (!block)
        quit("@NAME@", "there is not enough memory");
    *block = blocks;
    blocks = block;
    return (char *)block + 64;
}

static void give_back(void *data)
{
    void **before = &blocks, *const block = (char *)data - 64;
    while (*before != block)
        before = *before;
    *before = *(void **)block;
    free(block);
}

/* The contents of a file, and how many bytes it has. */
static unsigned char *contents(const char *name, size_t *bytes)
{
    FILE *const file = fopen(name, "rb");
    if (!file)
        quit(name, "cannot be opened");
    size_t room = 1 << 16;
    unsigned char *data = take(room);
    for (*bytes = 0;;) {
        *bytes += fread(data + *bytes, 1, room - *bytes, file);
        if (*bytes < room)
            break;
        unsigned char *const larger = take(2 * room);
        memcpy(larger, data, room);
        give_back(data);
        data = larger;
        room *= 2;
    }
    fclose(file);
    return data;
}

/* An array in NumPy's format (numpy.lib.format): a head in Python's syntax, then the elements. */
static array read_array(const char *name, const char *kind, size_t item)
{
    size_t bytes;
    unsigned char *const data = contents(name, &bytes);
    if (bytes < 12 || memcmp(data, "\x93NUMPY", 6))
        quit(name, "is no file of NumPy's");
    const size_t begin = data[6] == 1 ? 10 : 12;
    size_t length = data[8] + 256u * data[9];
    if (begin == 12)
        length += ((size_t)data[10] << 16) + ((size_t)data[11] << 24);
    if (begin + length > bytes)
        quit(name, "is cut off");
    char *const head = take(length + 1);
    memcpy(head, data + begin, length);
    head[length] = 0;
    char wanted[32];
    snprintf(wanted, sizeof wanted, "'descr': '%s'", kind);
    if (!strstr(head, wanted))
        quit(name, "has elements of another type");
    if (!strstr(head, "'fortran_order': False"))
        quit(name, "is not in C order");
    array found = {0, 0, {0}};
    const char *at = strstr(head, "'shape': (");
    if (!at)
        quit(name, "has no shape");
    size_t count = 1;
    for (at += 10; *at && *at != ')'; found.axes++) {
        char *end;
        if (found.axes == MOST_AXES)
            quit(name, "has too many axes");
        found.shape[found.axes] = strtoll(at, &end, 10);
        if (end == at || found.shape[found.axes] < 0)
            quit(name, "has no shape");
        if (found.shape[found.axes] && count > bytes / (size_t)found.shape[found.axes])
            quit(name, "is cut off"); /* as many elements do not fit into the file, and perhaps into no number */
        count *= (size_t)found.shape[found.axes];
        at = end + strspn(end, ", ");
    }
    if (bytes - begin - length < count * item)
        quit(name, "is cut off");
    found.data = take(count * item);
    memcpy(found.data, data + begin + length, count * item);
    give_back(head);
    give_back(data);
    return found;
}

static void write_array(const char *name, const char *kind, const void *data, size_t item, int axes, const int64_t *shape)
{
    char head[1024];
    size_t count = 1;
    int length = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (", kind);
    for (int axis = 0; axis < axes; axis++) {
        length += snprintf(head + length, sizeof head - (size_t)length, "%lld, ", (long long)shape[axis]);
        count *= (size_t)shape[axis];
    }
    length += snprintf(head + length, sizeof head - (size_t)length, "), }");
    const int whole = (10 + length + 1 + 63) / 64 * 64 - 10;
    const unsigned char begin[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(whole % 256),
                                     (unsigned char)(whole / 256)};
    FILE *const file = fopen(name, "wb");
    if (!file)
        quit(name, "cannot be opened");
    size_t written = fwrite(begin, 1, sizeof begin, file) == sizeof begin;
    written &= fprintf(file, "%-*s\n", whole - 1, head) == whole;
    written &= fwrite(data, item, count, file) == count;
    if (fclose(file) || !written)
        quit(name, "cannot be written");
}

static void expect(const char *file, const array *found, int axes, const int64_t *shape)
{
    int same = found->axes == axes;
    for (int axis = 0; same && axis < axes; axis++)
        same = found->shape[axis] == shape[axis];
    if (!same)
        quit(file, "has another shape");
}

int main(int count, char **given)
{
    const char *weights_file = 0;
    unsigned long seed = 0;
    int first = 1;
    while (first + 1 < count && !strncmp(given[first], "--", 2)) {
        if (!strcmp(given[first], "--weights"))
            weights_file = given[first + 1];
        else if (!strcmp(given[first], "--seed"))
            seed = strtoul(given[first + 1], 0, 10);
        else
            quit(given[first], "is no option");
        first += 2;
    }
    (void)seed;
    if (count - first != @COUNT@) {
        fprintf(stderr, "usage: %s [--weights FILE] [--seed N] @USAGE@\n", given[0]);
        return 2;
    }
    @NAME@_model model;
    size_t bytes = 0;
@ABSENT@    const unsigned char *weights = weights_file ? contents(weights_file, &bytes) : 0;
    int code = @NAME@_init(&model, weights, bytes);
    if (code)
        quit(weights_file ? weights_file : "weights", @NAME@_message(code));
    @NAME@_arguments arguments;
    @NAME@_results results;
    memset(&arguments, 0, sizeof arguments);
    memset(&results, 0, sizeof results);
@READ@
    void *arena = take(arena_bytes);
    code = @NAME@_run(&model, &arguments, &results, arena, arena_bytes);
    while (code == @MACRO@_NO_MEMORY && arena_bytes < (size_t)1 << 30) {
        give_back(arena);
        arena_bytes *= 4;
        arena = take(arena_bytes);
        code = @NAME@_run(&model, &arguments, &results, arena, arena_bytes);
    }
    if (code)
        quit("@NAME@", @NAME@_message(code));
@WRITE@
    while (blocks)
        give_back((char *)blocks + 64);
    return 0;
}
"""


_ABSENT = """    if (!weights_file)
        quit("@NAME@.weights", "has to be named: --weights @NAME@.weights");
"""


def main_program(interface: Interface, in_source: bool) -> str:
    """The text of the program, which calls ``NAME_run``.  in_source: the weights stand in the source."""
    entry = interface.entries[0]
    fields = [("ABSENT", "" if in_source else _ABSENT),
              ("USAGE", " ".join(f"{f.name}.npy" for f in entry.arguments)), ("COUNT", str(len(entry.arguments))),
              ("READ", _indented(_reads(entry))), ("WRITE", _indented(_writes(entry))),
              ("MACRO", interface.macro), ("NAME", interface.name)]
    text = _TEXT
    for name, value in fields:
        text = text.replace(f"@{name}@", value)
    return text


def _indented(lines: List[str]) -> str:
    return "\n".join("    " + line for line in lines)


def _kind(field: Field) -> str:
    """How NumPy's files call the type of the elements."""
    return np.dtype(field.value.dtype).newbyteorder("<").str


def _size(entry: Entry, size: Any) -> str:
    """A size as an expression of C."""
    if not isinstance(size, Dim):
        return str(size)
    numbers = {size_text(Dim(symbol)): entry.number(symbol, "arguments.") for symbol in entry.sizes}
    return re.sub(r"[A-Za-z_]\w*", lambda found: numbers.get(found.group(), found.group()), size_text(size))


def _reads(entry: Entry) -> List[str]:
    lines: List[str] = []
    for k, field in enumerate(entry.arguments):
        lines.append(f'const array array_{k} = read_array(given[first + {k}], "{_kind(field)}", sizeof({field.type}));')
    for name, size in entry.sizes.values():
        lines += [f"if (array_{size.argument}.axes <= {size.axis})",
                  f'    quit(given[first + {size.argument}], "has too few axes");',
                  f"arguments.{name} = array_{size.argument}.shape[{size.axis}];"]
    sizes_ = ", ".join(f"arguments.{name}" for name, _ in entry.sizes.values())
    lines += [f"size_t arena_bytes = {entry.stem}_arena_bytes({sizes_});", "if (!arena_bytes)",
              f'    quit("{entry.name}", {entry.name}_message({entry.name.upper()}_BAD_SIZE));']
    for k, field in enumerate(entry.arguments):
        sizes = [_size(entry, n) for n in field.value.shape] if field.ndim else []
        lines.append(f"expect(given[first + {k}], &array_{k}, {len(sizes)}, (const int64_t[]){{{', '.join(sizes) or '0'}}});")
        lines.append(f"arguments.{field.name} = {'' if field.is_array else f'*(const {field.type} *)'}array_{k}.data;")
    if entry.draws:
        lines += [f"{entry.name}_random random;", f"{entry.name}_seed(&random, (uint32_t)seed);",
                  "arguments.random = &random;"]
    for field in entry.results:
        if field.is_array and not field.grown:
            count = " * ".join([f"(size_t)({_size(entry, n)})" for n in field.value.shape] if field.ndim else []) or "1"
            lines.append(f"results.{field.name} = take(({count}) * sizeof({field.type}));")
    return lines


def _writes(entry: Entry) -> List[str]:
    lines: List[str] = []
    for field in entry.results:
        sizes = [_size(entry, n) for n in field.value.shape] if field.ndim and not field.grown else []
        shape = f"results.{field.name}_shape" if field.grown else f"(const int64_t[]){{{', '.join(sizes) or '0'}}}"
        data = f"{'' if field.is_array else '&'}results.{field.name}"
        lines.append(f'write_array("{field.name}.npy", "{_kind(field)}", {data}, sizeof({field.type}), {field.ndim}, {shape});')
    return lines
