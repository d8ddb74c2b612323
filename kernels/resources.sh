#!/bin/sh
# Enters: what ptxas -v says. Leaves: one line a kernel and target: target, registers, stack, spill stores, spill loads, shared, name.
awk '
/Compiling entry function/ { split($0, q, "\x27"); name = q[2]; target = q[4] }
/bytes stack frame/ { stack = $1; store = $5; load = $9 }
/Used [0-9]+ registers/ {
    shared = 0
    for (i = 1; i < NF; i++) { if ($i == "Used") registers = $(i + 1); if ($(i + 1) == "bytes" && $(i + 2) == "smem," || $(i + 1) == "bytes" && $(i + 2) == "smem") shared = $i }
    printf "%s registers=%d stack=%d spill_stores=%d spill_loads=%d shared=%d %s\n", target, registers, stack, store, load, shared, name
}' | sort
