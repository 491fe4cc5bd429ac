#!/bin/sh
# The paragraphs of golden cases that say what shapes kernels have (problem/shapes.c), as C strings.
#
#     sh shapes.sh QUOTE.SED CASES...
quote=$1
shift
awk 'BEGIN { RS = ""; ORS = "\n\n" } /(^|\n)(default|realistic|length[0-3]|random) /' "$@" | sed -f "$quote"
