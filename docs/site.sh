#!/bin/sh
# Builds README and docs as a site, with generated pages of reference. Installs MkDocs and builds the program if missing.
#
# POSENC is the program whose help is shown (default: build/posenc).
#
#     sh docs/site.sh [FOLDER]      the folder of the site (default: build/site); open FOLDER/index.html
set -u
case ${1:-} in '' | /*) site=${1:-} ;; *) site=$PWD/$1 ;; esac # of the caller's folder
cd "$(dirname "$0")/.." || exit 1
site=${site:-$PWD/build/site}
job=docs/site.sh install=yes
say() {
    echo "$job: $1" >&2
}
. tools/packages.sh # takes $job, $install and say(); look sets $packages to what is missing
find_manager
look tests:material
[ -z "$packages" ] || install_packages $packages
[ -x "${POSENC:-build/posenc}" ] || ./run build || exit 1
PYTHONDONTWRITEBYTECODE=1 mkdocs build --strict --quiet --site-dir "$site"
