#!/bin/sh
# Builds README and docs as a site, with a page of the C API that is made of the headers. Installs MkDocs if it is missing.
#
#     sh docs/site.sh [FOLDER]      the folder of the site (default: build/site); open FOLDER/index.html
set -u
case ${1:-} in /*) site=$1 ;; *) site=$PWD/${1:-} ;; esac
cd "$(dirname "$0")/.." || exit 1
[ -n "${1:-}" ] || site=$PWD/build/site
job=docs/site.sh install=yes
say() {
    echo "$job: $1" >&2
}
. tools/packages.sh
find_manager
look tests:material
# shellcheck disable=SC2086  # a list of words
[ -z "$packages" ] || install_packages $packages
PYTHONDONTWRITEBYTECODE=1 mkdocs build --strict --quiet --site-dir "$site"
