#!/bin/bash
# Compares the facts that two drivers both answered: compare.sh RECORDED ASKED EXCEPTIONS LEAST
# Red: a difference that is no exception, an exception that is no difference, fewer than LEAST facts
# in both.
exec awk -v recorded="$1" -v asked="$2" -v exceptions="$3" -v least="$4" '
BEGIN {
    while ((getline line < exceptions) > 0)
        if (line !~ /^#/ && split(line, word, " ") > 1)
            allowed[word[1]] = 1
    while ((getline line < asked) > 0)
        if (split(line, part, " = ") == 2)
            got[part[1]] = part[2]
    while ((getline line < recorded) > 0) {
        if (split(line, part, " = ") != 2)
            continue
        name = part[1]
        if (!(name in got)) {
            missing++
            print "not asked: " name
            continue
        }
        both++
        if (got[name] == part[2])
            continue
        differ++
        if (name in allowed) {
            used[name] = 1
            continue
        }
        wrong++
        print "differs: " name " is " part[2] ", answered " got[name]
    }
    for (name in allowed)
        if (!(name in used)) {
            wrong++
            print "no difference any more: " name
        }
    printf "%d facts in both, %d equal, %d different (%d red), %d not asked\n", \
        both, both - differ, differ, wrong, missing
    exit (wrong > 0 || both < least)
}'
