#!/usr/bin/env python3
"""Prints 'N passed, N failed[, N skipped]' for the last run of some test targets.

Standard input: their labels (bazel query 'tests(//...)'). First argument: bazel-testlogs. Further
arguments are names of checks that are no Bazel targets, 'ok:NAME' or 'failed:NAME'; each counts as
one case. Only the named targets count, since bazel-testlogs keeps the logs of targets that are
gone; one without a log, or whose log has no case, is a failure. Failed cases go to standard error.
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree as ET


def verdict(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("result") == "skipped":
        return "skipped"
    return "passed"


def reason(case):
    """What a failed case says of itself, cut short; each line indented."""
    told = [f.get("message") or f.text or "" for f in case if f.tag in ("failure", "error")]
    return "".join(f"\n    {line}" for line in "\n".join(told)[:2000].splitlines())


def cases_of(logs, label):
    """Name, with the reason where it failed, and verdict of each case; several logs where the target is
    sharded."""
    folder = logs / label.lstrip("/").replace(":", "/")
    shards = sorted(folder.glob("shard_*/test.xml")) or [folder / "test.xml"]
    for log in shards:
        try:
            tree = ET.parse(log)
        except OSError:
            yield f"{label}: did not run", "failed"
            continue
        except ET.ParseError as e:
            yield f"{label}: its log cannot be read: {e}", "failed"
            continue
        cases = [c for c in tree.iter("testcase") if c.get("status") != "notrun"]
        if not cases:
            yield f"{label}: no case ran", "failed"
        for case in cases:
            name = f"{label}: {case.get('classname')}.{case.get('name')}"
            yield name + reason(case), verdict(case)


def main():
    logs = pathlib.Path(sys.argv[1])
    count = collections.Counter()
    for check in sys.argv[2:]:
        state, _, name = check.partition(":")
        count["passed" if state == "ok" else "failed"] += 1
        if state != "ok":
            print(f"failed: {name}", file=sys.stderr)
    for label in sorted(sys.stdin.read().split()):
        for name, result in cases_of(logs, label):
            count[result] += 1
            if result == "failed":
                print(f"failed: {name}", file=sys.stderr)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{skipped}")
    return 1 if count["failed"] or not count["passed"] else 0


sys.exit(main())
