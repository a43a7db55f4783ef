"""Run a command repeatedly; each time another write to standard error fails.

Not a test: test_streams.py starts it, so that the real descriptors of a process are at stake. It
prints a JSON list of what was wrong, each with the fault, the write and what happened.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from dcme_w2v.cli import main, streams

MOST_WRITES = 100


def full():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


def broken_pipe():
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    os.close(reader)


def hung_up_terminal():
    controller, terminal = os.openpty()
    os.dup2(terminal, 2)
    os.close(terminal)
    os.close(controller)


FAULTS = {one.__name__: one for one in (full, broken_pipe, hung_up_terminal)}


def run(arguments, fault, failing):
    """Run the command in a child; return its exit code and how often it wrote to stderr."""
    counted, count = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        write, writes = streams._Messages.write, 0

        def counting(self, data):
            nonlocal writes
            if writes == failing:
                FAULTS[fault]()
            writes += 1
            os.write(count, b".")
            return write(self, data)

        streams._Messages.write = counting
        try:
            main.main(arguments)
        except SystemExit as end:
            os._exit(end.code or 0)
        finally:
            os._exit(99)
    os.close(count)
    _, status = os.waitpid(child, 0)
    writes = len(os.read(counted, MOST_WRITES + 1))
    os.close(counted)
    return os.waitstatus_to_exitcode(status), writes


def written(output):
    """Return the bytes of all written files without JSON, which has times; remove the files."""
    files = {}
    for path in Path().glob(f"{output}*"):
        for file in path.rglob("*") if path.is_dir() else [path]:
            data = b"" if file.suffix == ".json" else file.read_bytes()
            header = int.from_bytes(data[:8], "little") + 8 if data[8:9] == b"{" else 0
            files[str(file)] = data[header:]
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return files


def faults_of(arguments, output):
    """Return what went wrong, over all writes, each with one of the faults."""
    wrong = []
    main.program.get_command(None, arguments[0])  # imported here, not in every child
    code, writes = run(arguments, None, None)
    whole = written(output)
    if code or not whole or not 0 < writes <= MOST_WRITES:
        wrong.append(["none", writes, code, sorted(whole)])
    for failing in range(writes):
        fault = list(FAULTS)[failing % len(FAULTS)]
        code, _ = run(arguments, fault, failing)
        found = written(output)
        if code != 0 or found != whole:
            wrong.append([fault, failing, code, sorted(found)])
    return wrong


if __name__ == "__main__":
    print(json.dumps(faults_of(sys.argv[2:], sys.argv[1])))
