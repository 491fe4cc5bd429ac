#!/bin/sh
# commit.sh FOLDER: prints the commit of a source tree, with -dirty if files differ from it. Prints an empty line if FOLDER is
# not the top of a git work tree: a release that is unpacked in another repository has no commit.
cd "$1" || exit 1
commit=''
# Hooks of git name their own repository in these variables.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_OBJECT_DIRECTORY
if [ "$(git rev-parse --is-inside-work-tree 2>/dev/null)" = true ] && [ -z "$(git rev-parse --show-prefix)" ]; then
    commit=$(git describe --always --dirty --abbrev=12 '--exclude=*' 2>/dev/null)
fi
echo "$commit"
