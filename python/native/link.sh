#!/bin/sh
# The linker of the Python package's library on Linux: the soname comes last, after the one that Cargo hands on from the crate above.
exec "${CC:-cc}" "$@" -Wl,-soname,libwakefmm-python.so
