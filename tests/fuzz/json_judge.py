#!/usr/bin/env python3
"""tests/fuzz/json_judge.py FILE - are the documents in the file JSON, and do they say what was meant?

Called by  json_fuzz.cc, which writes the file: for each document a line 'document N BYTES', one event a line, 'json', the
           text. Exit status 1, with the document's number first on standard output, at the first one that is wrong.
"""
import codecs
import json
import sys

codecs.register_error("each", lambda e: ("\ufffd", e.start + 1))


def text(field):
    """The writer's promise: each byte that is not part of UTF-8 becomes one U+FFFD."""
    return bytes.fromhex(field[:-1]).decode("utf-8", "each")


class Members(list):
    """An object as a list of pairs: a name may be there twice."""


def value_of(words):
    kind = words[0]
    if kind == "text":
        return text(words[2])
    if kind == "u64":
        return int(words[2])
    if kind == "bool":
        return words[2] == "1"
    if kind == "double":
        value = float.fromhex(words[2])
        return value if abs(value) < float("inf") else None
    assert kind == "null", words
    return None


def meant(events):
    root = []
    stack = [root]
    for line in events:
        words = line.split(" ")
        if words[0] == "end":
            stack.pop()
            continue
        value = {"object": Members, "array": list}.get(words[0], lambda: value_of(words))()
        stack[-1].append((text(words[1]), value) if isinstance(stack[-1], Members) else value)
        if words[0] in ("object", "array"):
            stack.append(value)
    assert len(stack) == 1 and len(root) == 1, events
    return root[0]


def same(read, want):
    if isinstance(want, tuple):
        return read[0] == want[0] and same(read[1], want[1])
    if isinstance(want, list):
        return (type(read) is type(want) and len(read) == len(want) and
                all(same(r, w) for r, w in zip(read, want)))
    if isinstance(want, float):
        return type(read) in (int, float) and abs(read - want) <= abs(want) * 1e-12
    return type(read) is type(want) and read == want


def refuse(word):
    raise ValueError(f"{word} is no JSON")


def main():
    with open(sys.argv[1], "rb") as batch:
        while header := batch.readline():
            _, number, size = header.split()
            events = []
            while (line := batch.readline()) != b"json\n":
                events.append(line.decode().rstrip("\n"))
            document = batch.read(int(size))
            try:
                read = json.loads(document.decode("utf-8"), object_pairs_hook=Members,
                                  parse_constant=refuse)
                if not same(read, meant(events)):
                    raise ValueError("another document than was meant")
            except ValueError as e:
                print(f"{int(number)}: {e}\n{document!r}")
                return 1
    return 0


sys.exit(main())
