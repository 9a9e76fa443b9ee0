#!/bin/sh
# Runs rustdoc with its unstable options. Only rustdoc gets the variable: rustc would rebuild all dependencies with it.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
