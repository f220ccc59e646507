"""A folder with a model in C: what one compiles, links and reads."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence, Union

from ...backends.c.closed import ClosedText, closed_function
from ...errors import ExportError
from ...ir.c_forms import c_type
from ...ir.types import Tensor
from ..captured import exported
from ..program import Argument, ExportedProgram, Result
from .entry import Entry, identifier
from .interface import Interface
from .main_program import main_program
from .readme import is_readme, readme
from .source import source
from .weights import Weights

#: Up to so many bytes, weights may stand in the source: compilers take seconds for each megabyte.
_MOST_IN_SOURCE = 1 << 24

_CMAKE = """cmake_minimum_required(VERSION 3.13)
project({name} C)

# -DVECTORS=ON: for the vector instructions of this machine; without, any machine of its kind runs it.
option(VECTORS "code for the machine at hand" OFF)
option(MAIN "the program {name}_main" ON)

add_library({name} {name}.c)
target_include_directories({name} PUBLIC $<BUILD_INTERFACE:${{CMAKE_CURRENT_SOURCE_DIR}}> $<INSTALL_INTERFACE:include>)
set_target_properties({name} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  # ints wrap, and numbers are rounded after each operation: as NumPy computes
  target_compile_options({name} PRIVATE -O2 -fwrapv -ffp-contract=off -fno-math-errno -fopenmp-simd)
  if(VECTORS)
    target_compile_options({name} PRIVATE -march=native)
  endif()
endif()
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()

if(MAIN)
  add_executable({name}_main main.c)
  target_link_libraries({name}_main {name})
endif()

configure_file({name}.pc.in {name}.pc @ONLY)
include(GNUInstallDirs)
install(TARGETS {name} ARCHIVE DESTINATION ${{CMAKE_INSTALL_LIBDIR}} LIBRARY DESTINATION ${{CMAKE_INSTALL_LIBDIR}})
install(FILES {name}.h DESTINATION include)
install(FILES ${{CMAKE_CURRENT_BINARY_DIR}}/{name}.pc DESTINATION ${{CMAKE_INSTALL_LIBDIR}}/pkgconfig)
"""

_PKG_CONFIG = """prefix=@CMAKE_INSTALL_PREFIX@
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: {name}
Description: a model compiled by dy2static
Version: 1.0
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -l{name}
Libs.private: -lm
"""


@dataclass(frozen=True)
class ExportedC:
    """What an export to C wrote.

    name: of the functions and files.  folder: where they are.  source_bytes, weights_bytes: of the source and the weights.
    arena_bytes: of the arena for the smallest sizes, without what lists and loops need.
    """

    name: str
    folder: Path
    source_bytes: int
    weights_bytes: int
    arena_bytes: int


def c(target: Any, args_or_input_spec: Any, folder: Union[str, Path], *, name: str = "", training: bool = False,
      gradients: Union[bool, Sequence[str]] = False, weights: str = "file", **options: Any) -> ExportedC:
    """Write a model as plain C into a folder: source, header, weights and build files.  Returns an `ExportedC`.

    target: a function, a method or a Link, compiled or not, or a model that was loaded.
    args_or_input_spec: for each positional argument an `InputSpec`, an array or a Variable; None in a shape is any size.
    name: of files and functions; without, that of the function.
    training: the value of ``chainer.config.train``.
    gradients: also a function ``NAME_backward`` that computes them, and ``NAME_update``, a step of gradient descent;
        True, or names of parameters and arguments.
    weights: ``"file"`` for a file ``NAME.weights`` that the program reads or maps, ``"source"`` for an array in the source.
    options: ``state=True`` makes arguments and results of the attributes and arrays that calls read and change.

    Raises `ExportError`, with the user's line, if an operation cannot be written in C, before anything is written;
    `SignatureError` for wrong arguments; ValueError for other ``weights``; OSError if a file cannot be written.
    """
    if weights not in ("file", "source"):
        raise ValueError(f"weights is 'file' or 'source', not {weights!r}")
    programs = [exported(target, args_or_input_spec, training=training, **options)]
    if gradients:
        programs.append(exported(target, args_or_input_spec, training=training, gradients=gradients, **options))
    return write(programs, folder, name=name, in_source=weights == "source")


def write_program(program: ExportedProgram, folder: Union[str, Path]) -> None:
    """Write one program as C into a folder.  Raises `ExportError`."""
    write([program], folder)


def model(programs: Sequence[ExportedProgram], name: str, text: ClosedText) -> Interface:
    """A model as part of a text.  programs: one, or also the one with gradients.  Raises `ExportError`."""
    for program in programs:
        parts: Sequence[Union[Argument, Result]] = (*program.arguments, *program.results)
        for part in parts:
            if isinstance(part.value.type, Tensor) and c_type(part.value.dtype) is None:
                raise ExportError(f"{part.name} of {program.name} is an array of {part.value.dtype}, which C does not have",
                                  next((node.loc for node in program.graph.walk() if part.value in node.inputs), None),
                                  "take and give arrays of another dtype, such as float32")
    entries = [Entry(name, role, program, closed_function(program.graph, f"{name}_{role}_program", text))
               for role, program in zip(("run", "backward"), programs)]
    parameters = {p.name: p for program in programs for p in program.parameters}
    return Interface(name, entries, Weights(list(parameters.values())))


def _check_folder(folder: Path, names: Sequence[str]) -> None:
    """Raise `ExportError` where files would be overwritten that are none of an exported model."""
    there = next((folder / name for name in names if (folder / name).exists()), None)
    if folder.exists() and not folder.is_dir():
        there = folder
    if there is not None and not is_readme(folder / "README.md"):
        raise ExportError(f"{there} exists, and is no file of an exported model", hint="choose another folder, or an empty one")


def write(programs: Sequence[ExportedProgram], folder: Union[str, Path], *, name: str = "", in_source: bool = False) -> ExportedC:
    """The same for programs that are there: one, or also the one with gradients."""
    text, title = ClosedText(), programs[0].name
    interface = model(programs, identifier(name or title), text)
    name, nbytes = interface.name, interface.weights.nbytes
    if in_source and nbytes > _MOST_IN_SOURCE:
        raise ExportError(f"weights of {nbytes} bytes are too many for a source", hint='give them as weights="file"')
    text_of_source = source(interface, text, title, in_source)
    texts = {f"{name}.c": text_of_source, f"{name}.h": interface.header(title), "main.c": main_program(interface, in_source),
             "CMakeLists.txt": _CMAKE.format(name=name), f"{name}.pc.in": _PKG_CONFIG.format(name=name),
             "README.md": readme(interface, title, in_source)}
    folder = Path(folder)
    _check_folder(folder, list(texts))
    folder.mkdir(parents=True, exist_ok=True)
    for file, contents in texts.items():
        (folder / file).write_text(contents, encoding="utf-8")
    if not in_source:
        interface.weights.block().tofile(str(folder / f"{name}.weights"))
    first = interface.entries[0]
    least = {symbol: free.least // free.factor for symbol, (_, free) in first.sizes.items()}
    return ExportedC(name, folder, len(text_of_source.encode()), nbytes, first.function.arena_bytes(least))
