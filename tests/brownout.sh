#!/bin/sh
# Runs of the brownout program from the command line: what a restart keeps, names, what is refused, files that cannot be written.
# Enters: the program, a folder for its output, which is emptied. Leaves: a line for each failure, the sums at the end.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
rm -rf "$2" && mkdir -p "$2" && cd "$2" || exit 1
passed=0
failed=0

verdict() { # NAME CODE
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: brownout: $1"; fi
}

# A small wake over little dust: a run of 40 steps takes less than a second.
run() {
    timeout 120 "$program" --blades 2 --segments-per-turn 12 --wake-turns 2 --particles 1000 --height 0.3 --cell 3 --supply 0.02 "$@" >log 2>errors
}

# Ends with CODE after one line, which has TEXT in it.
ends() { # CODE TEXT OPTION...
    code=$1 says=$2; shift 2
    run "$@"
    [ $? = "$code" ] && [ "$(wc -l <errors)" = 1 ] && grep -q "^brownout: .*$says" errors
}

# The frames of a collection: time and file in each line.
frames() { sed -n 's/.*timestep="\(.*\)" file="\(.*\)".*/\1 \2/p' "$1"; }

# A run in one piece; the same that was cut, and goes on in the same folder and in another one. Frames asked for are of the first
# piece: one in four steps.
run --reproducible yes --steps 40 --frames 10 --output whole
verdict "a run" $?
[ "$(tail -n 1 whole/run.csv | cut -d, -f6)" -gt 0 ]
verdict "dust flies" $?
run --reproducible yes --steps 20 --frames 5 --checkpoint-every 10 --output cut
verdict "the first piece of a run" $?
cp -r cut again
run --reproducible yes --steps 40 --frames 5 --restart cut/checkpoint.npz --output other
verdict "a restart in another folder" $?
rm -f cut/wake_0002.vtp
run --reproducible yes --steps 40 --frames 5 --restart cut/checkpoint.npz --output cut
verdict "a restart in the same folder" $?
[ "$(frames whole/dust.pvd | wc -l)" = 10 ] && cmp -s whole/dust.pvd cut/dust.pvd && cmp -s whole/cloud.pvd cut/cloud.pvd
verdict "after a restart frames have the times of the uncut run" $?
for name in wake_0003.vtp dust_0006.vtp cloud_0010.vti; do
    cmp "whole/$name" "cut/$name"
    verdict "after a restart $name is that of the uncut run" $?
done
frames whole/wake.pvd | grep -v wake_0002 >expected && frames cut/wake.pvd | cmp - expected
verdict "a frame that is gone is not listed" $?
frames whole/dust.pvd | tail -n 5 >expected && frames other/dust.pvd | cmp - expected && [ ! -e other/dust_0005.vtp ]
verdict "in another folder the frames are those that it has" $?
cmp whole/run.csv cut/run.csv
verdict "after a restart run.csv is that of the uncut run" $?
# A piece that went on past its checkpoint.
run --reproducible yes --steps 30 --frames 5 --restart again/checkpoint.npz --output again
run --reproducible yes --steps 40 --frames 5 --restart again/checkpoint.npz --output again
cmp whole/dust.pvd again/dust.pvd && cmp whole/run.csv again/run.csv
verdict "a second restart from the same checkpoint" $?

# What a restart refuses.
ends 2 "other options" --supply 0.01 --reproducible yes --steps 40 --restart cut/checkpoint.npz --output none
verdict "a restart with another supply" $?
ends 2 "later step" --reproducible yes --steps 10 --restart cut/checkpoint.npz --output none
verdict "a restart past the end" $?
cp cut/checkpoint.npz.host lonely.host
ends 1 "lonely" --reproducible yes --steps 40 --restart lonely --output none
verdict "a restart without the library's file" $?

# Options.
for text in / nan inf 1,5; do
    ends 2 "--height cannot be" --steps 2 --height $text
    verdict "--height $text" $?
done
ends 2 "--steps cannot be" --steps /
verdict "--steps /" $?
ends 1 "tolerance" --tolerance 1e-30 --steps 2 --output none
verdict "what the library refuses is told in a line" $?
ends 1 "cell" --cell 1e-9 --steps 2 --output none
verdict "cells that are too small" $?
for threads in 1 2; do
    run --method fmm --reproducible yes --threads $threads --steps 48 --frames 1 --output threads_$threads
done
cmp threads_1/wake_0001.vtp threads_2/wake_0001.vtp && cmp threads_1/dust_0001.vtp threads_2/dust_0001.vtp
verdict "--reproducible yes with --method fmm" $?
[ "$(tail -n 1 threads_1/run.csv | cut -d, -f7)" = 48 ]
verdict "two blades have 48 free segments after two turns" $?

# Names.
run --steps 2 --output "it's \$(here)/and \"there\"" && [ -s "it's \$(here)/and \"there\"/run.csv" ]
verdict "a folder with quotes in its name" $?

# What cannot be written.
mkdir -p blocked/run.csv && : >file
ends 1 "blocked/run.csv cannot be written" --steps 2 --output blocked
verdict "run.csv is a folder" $?
ends 1 "file/below" --steps 2 --output file/below
verdict "the folder is below a file" $?
ends 1 "nowhere/a.npz" --steps 2 --checkpoint-every 1 --checkpoint nowhere/a.npz --output none
verdict "the folder of the checkpoint is missing" $?
if [ -c /dev/full ]; then
    for name in run.csv wake_0001.vtp dust_0001.vtp cloud_0001.vti cloud.pvd checkpoint.npz.host.new; do
        rm -rf full && mkdir full && ln -s /dev/full "full/$name"
        ends 1 "full/$name cannot be written" --steps 4 --frames 2 --checkpoint-every 2 --output full
        verdict "$name on a full disk" $?
    done
fi

echo "brownout: $passed passed, $failed failed"
[ $failed = 0 ]
