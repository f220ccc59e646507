"""The README of an exported model: how it is built and called, and where its weights are."""
from __future__ import annotations

from pathlib import Path

from .entry import Entry
from .interface import Interface

#: How the first line ends.
_TITLE_END = ", compiled by dy2static"


def is_readme(path: Path) -> bool:
    """Whether a file begins as `readme` writes it."""
    return path.is_file() and path.read_bytes().partition(b"\n")[0].strip().endswith(_TITLE_END.encode())


def readme(interface: Interface, title: str, in_source: bool) -> str:
    """The text.  title: what the model was made of.  in_source: the weights stand in the source."""
    name, weights, entry = interface.name, interface.weights, interface.entries[0]
    arrays = "".join(f"- byte {weights.offsets[key]}: `{key}`, {array.dtype} {array.shape}\n"
                     for key, array in weights.arrays.items())
    given = "0, 0" if in_source else "weights, weights_bytes"
    sizes = ", ".join(size for size, _ in entry.sizes.values())
    where = "They stand in the source." if in_source else (
        f"They are in `{name}.weights` ({weights.nbytes} bytes), in the byte order of the machine that wrote them. Read the\n"
        "file to an address that is a multiple of 64, or map it (`mmap`). `{name}_init` compares a checksum.\n"
        "Where you write other weights to these places, put zeros into the bytes 16 to 23: they are not compared then.")
    option = "" if in_source else f"--weights {name}.weights "
    entries = "\n".join(_entry(interface, entry) for entry in interface.entries)
    return f"""# {title}{_TITLE_END}

`{name}.c` and `{name}.h` are the model in C11; they need the C library and nothing else. `main.c` is an example that reads and
writes files of NumPy's.

```
cc -O2 -c {name}.c                                  # for any machine; -march=native for this one
cmake -B build -DVECTORS=ON && cmake --build build
build/{name}_main {option}{' '.join(f'{f.name}.npy' for f in entry.arguments)}
```

Ints that overflow wrap as in NumPy with `-fwrapv` (gcc, clang), which `CMakeLists.txt` gives.

## A call

```c
{name}_model model;                                 /* one for any number of threads */
{name}_init(&model, {given});
size_t bytes = {entry.stem}_arena_bytes({sizes});
void *arena = malloc(bytes);                        /* one for each thread, for any number of calls */
{entry.stem}_arguments arguments = {{...}};
{entry.stem}_results results = {{...}};
int code = {entry.called}(&model, &arguments, &results, arena, bytes);
if (code)
    puts({name}_message(code));
```

{entries}{_updates(interface)}
## Weights

{where}

{arrays or 'There are none.'}"""


def _entry(interface: Interface, entry: Entry) -> str:
    sizes = "".join(f"- `{size}`: {free.in_words}\n" for size, free in entry.sizes.values())
    arguments = "".join(f"- `{f.name}`: {f.type} {f.shown}\n" for f in entry.arguments)
    results = "".join(f"- `{f.name}`: {f.type} {f.shown}{', in the arena' if f.grown else ''}\n" for f in entry.results)
    fixed = "".join(f"- `{key}` is always {value!r}\n" for key, value in entry.program.fixed.items())
    more = ("\nLists and loops take memory of the arena besides, as they grow: where it is not enough, the code is "
            f"`{interface.macro}_NO_MEMORY`.\n" if entry.grows else "")
    shown = f"Sizes:\n\n{sizes}\n" if sizes else ""
    none = "- none\n"
    return f"## {entry.called}\n\n{shown}Arguments:\n\n{arguments or none}\nResults:\n\n{results}{fixed}{more}"


def _updates(interface: Interface) -> str:
    if not interface.updated:
        return ""
    return (f"\n## {interface.name}_update\n\nA step of stochastic gradient descent: the gradients in the results of "
            f"`{interface.entries[-1].called}`, times the\nrate, are taken from the weights, which have to be in memory that may "
            "be written.\n")
