#!/bin/sh
# Sees to it that gfortran is there: installs it where that is allowed, otherwise prints the line to run and fails.
command -v gfortran >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "gfortran is missing: installing it (apt-get install gfortran)"
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gfortran >/dev/null && exit 0
fi
echo "gfortran is missing. Run this, then the same command again:"
echo "    sudo apt-get update && sudo apt-get install -y gfortran"
exit 1
