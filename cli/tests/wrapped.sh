#!/bin/sh
# The program of a cross build by its emulator, as one command: what POSENC is to the scripts here then.
# meson test sets MESON_EXE_WRAPPER, in the shell's words, from the exe_wrapper of the cross file.
eval "exec $MESON_EXE_WRAPPER \"\$PROGRAM\" \"\$@\""
