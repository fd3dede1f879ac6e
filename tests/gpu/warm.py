#!/usr/bin/env python3
"""Runs Python programs one after the other, each in a process of its own, with the slow imports done once.

Usage: warm.py MODULE[,MODULE...]    then on standard input one JSON list a line: [program.py, argument...]
A child is forked for each: the modules are imported, nothing of CUDA has happened. It answers with a JSON
line {"code", "out", "err"}. The environment, LD_PRELOAD in it, is the one this process was started with, so
a program runs as it would by itself, but for the seconds that importing a framework takes.
"""
import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback


def child(argv, out, err):
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.argv = argv
    sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
    code = 0
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else (1 if e.code else 0)
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)  # the program's own exit handlers run, and the shim's


def serve(argv):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            child(argv, out, err)
        _, status = os.waitpid(pid, 0)
        texts = []
        for f in (out, err):
            f.seek(0)
            texts.append(f.read().decode(errors="replace"))
    return {"code": os.waitstatus_to_exitcode(status), "out": texts[0], "err": texts[1][-2000:]}


def main():
    for name in sys.argv[1].split(","):
        importlib.import_module(name)
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        sys.exit("warm.py: CUDA was initialised by an import")
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
