"""Results that the processes of one run of tests share: what one of them has found, the others need not compute again."""
import functools
import os
import pathlib
import pickle

#: Where results of this run are; None: there is one process, which remembers them.
directory = None


def share(basetemp):
    """Share with the other workers of pytest-xdist, if this process is one.  basetemp: where its temporary files are."""
    global directory
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = pathlib.Path(basetemp).parent / "results"
        directory.mkdir(exist_ok=True)


def once(items):
    """A decorator: the function is called once for each of these items, in one of the processes.  What raises is called again."""
    def decorate(function):
        numbers = {id(item): number for number, item in enumerate(items)}

        @functools.lru_cache(maxsize=None)
        def found(item):
            path = directory and directory / f"{function.__module__}.{function.__name__}.{numbers[id(item)]}"
            if path is not None and path.exists():
                return pickle.loads(path.read_bytes())
            result = function(item)
            if path is not None:
                part = path.with_suffix(f".{os.getpid()}")
                part.write_bytes(pickle.dumps(result))
                part.replace(path)                      # whole, or not there
            return result
        return found
    return decorate
