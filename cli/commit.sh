#!/bin/sh
# commit.sh FOLDER: the commit of a source tree, "-dirty" behind it where files differ from it. An empty line where
# FOLDER is not the top of a git work tree: a release unpacked inside another repository is no part of that one's commits.
cd "$1" || exit 1
commit=''
# A hook of git's names its own repository in these variables.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_OBJECT_DIRECTORY
if [ "$(git rev-parse --is-inside-work-tree 2>/dev/null)" = true ] && [ -z "$(git rev-parse --show-prefix)" ]; then
    commit=$(git describe --always --dirty --abbrev=12 '--exclude=*' 2>/dev/null)
fi
echo "$commit"
