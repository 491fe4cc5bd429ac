#!/bin/sh
# needed.sh LIBRARY PLUGINS...: checks that the shared library needs no library but C's, and that a plug-in exports its table
# alone and uses no function of the program that loads it.
if ! command -v readelf >/dev/null || ! command -v nm >/dev/null || ! readelf -d "$1" >/dev/null 2>&1; then
    echo 'needed: no readelf, no nm, or no ELF library: skipped'
    exit 77
fi
status=0
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libc|libm|ld-[a-z0-9_-]*)[.]')
if [ -n "$needed" ]; then
    echo "$1 needs more than the C library: $needed"
    status=1
fi
shift
for plugin in "$@"; do
    exports=$(nm -D --defined-only "$plugin" | awk '$3 ~ /posenc/ { print $3 }')
    if [ "$exports" != posenc_plugin ]; then
        echo "$plugin exports, in place of posenc_plugin: $exports"
        status=1
    fi
    wants=$(nm -D --undefined-only "$plugin" | awk '$2 ~ /^posenc/ { print $2 }')
    if [ -n "$wants" ]; then
        echo "$plugin wants of its program: $wants"
        status=1
    fi
done
exit $status
