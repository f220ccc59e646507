"""What NVRTC is asked by ctypes.  Also a program, for a process that compiles beside this one: it imports nothing of this package.

    python -I -S nvrtc_calls.py OUTPUT FOLDER HEADER,HEADER OPTION,OPTION LIBRARY [LIBRARY...]  < kernels.cu

The headers are in the folder; the last library is NVRTC, the others are loaded before it.  It writes machine code to the output,
and prints what NVRTC says.  Its status is that of NVRTC.
"""
import ctypes
import sys
from typing import Any, Dict, List, NamedTuple, Sequence


class Answer(NamedTuple):
    """What NVRTC makes of a text.  status: 0, or its error; then there is no machine code.  log: what it says."""

    status: int
    log: str
    cubin: bytes


def loaded(libraries: Sequence[str]) -> Any:
    """NVRTC, the last of these libraries.  It opens the other ones by their names alone, wherever they are.  Raises OSError."""
    for path in libraries[:-1]:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(libraries[-1])


def compiled(library: Any, text: bytes, headers: Dict[str, bytes], options: Sequence[str]) -> Answer:
    """What NVRTC makes of a text.  headers: the contents of what the text may include."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    names, contents = [name.encode() for name in headers], list(headers.values())
    status = library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", len(names), _strings(contents), _strings(names))
    if status:
        return Answer(status, "", b"")
    try:
        status = library.nvrtcCompileProgram(program, len(options), _strings([option.encode() for option in options]))
        log = b""
        if not library.nvrtcGetProgramLogSize(program, ctypes.byref(size)):
            said = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, said)
            log = said.value
        cubin = b""
        if not status:
            status = library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        if not status:
            made = ctypes.create_string_buffer(size.value)
            status, cubin = library.nvrtcGetCUBIN(program, made), made.raw
        return Answer(status, log.decode("utf-8", "replace"), cubin)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _strings(texts: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * len(texts))(*texts)


def main(arguments: List[str]) -> int:
    """The program."""
    output, folder, headers, options, *libraries = arguments
    contents = {}
    for name in headers.split(","):
        with open(f"{folder}/{name}", "rb") as file:
            contents[name] = file.read()
    answer = compiled(loaded(libraries), sys.stdin.buffer.read(), contents, options.split(","))
    sys.stdout.write(answer.log)
    if not answer.status:
        with open(output, "wb") as file:
            file.write(answer.cubin)
    return answer.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
