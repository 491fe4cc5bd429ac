#!/bin/sh
# Runs the program of a cross build by its emulator. It is POSENC for the scripts in this folder then. meson test sets
# MESON_EXE_WRAPPER, as words of a shell, to the exe_wrapper of the cross file.
eval "exec $MESON_EXE_WRAPPER \"\$PROGRAM\" \"\$@\""
