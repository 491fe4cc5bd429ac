#!/bin/sh
# typed.sh root|user: types the commands of docs/install.md on a machine that has nothing, and builds the examples of use.
# ./run bare starts it as root, in the tree. It prints TAP.
#
# The commands stand in docs/install.md below a line <!-- typed by root --> or <!-- typed by a user -->, up to the next heading,
# block or such line. A user who may not install anything is given a compiler, Meson, Ninja and pkg-config, and no library.
who=$1 tools='gcc libc6-dev ninja-build meson pkgconf cmake'
tree=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$who" = user ]; then
    useradd -m guest && cp -a "$tree" /home/guest/posenc && chown -R guest: /home/guest/posenc || exit 1
    # Without rights, ./run has to name all packages that are missing.
    su guest -c 'cd ~/posenc && ./run build' >/tmp/nothing 2>&1
    echo $? >>/tmp/nothing
    if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends $tools; } >/tmp/tools 2>&1; then
        cat /tmp/tools
    fi
    exec su guest -c 'cd ~/posenc && HOME=/home/guest exec sh tools/bare/typed.sh guest'
fi
. "$tree/cli/tests/tap.sh"

# Runs a command in this shell, so that its exports last, and tests that it succeeds.
typed() { # COMMAND
    eval "$1" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null
    status=$?
    [ $status = 0 ]
    verdict "$1"
}

# Prints the commands below the line that says who types them.
commands() { # WHO
    awk -v line="<!-- typed by $1 -->" '
        $0 == line { on = 1; next }
        /^(#|<!--|```)/ { on = 0 }
        on && /^    [^ ]/ { sub(/  +#.*/, ""); print substr($0, 5) }' "$tree/docs/install.md"
}

if [ "$who" = guest ]; then
    grep -q gcc /tmp/nothing && [ "$(tail -n 1 /tmp/nothing)" = 2 ]
    verdict 'without a compiler and rights the user is told'
fi

# The program of README, and the commands of docs/install.md.
awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$tree/README.md" >"$tree/main.c"
if [ "$who" = root ]; then commands root; else commands 'a user'; fi >commands
[ -s "$scratch/commands" ] || fail 'docs/install.md has commands' 'none was found'
cd "$tree" || exit 1
while read -r command; do
    typed "$command"
    case $command in
    './run report')
        page=posenc-report/report.html
        grep -q 'version: *"3[.]5' $page && ! grep -q 'D3 is missing' "$scratch/stderr"
        verdict 'its page has charts'
        ;;
    *-o\ *) ;;
    cc\ *) typed ./a.out ;;
    esac
done <"$scratch/commands"
cd "$scratch" || exit 1

# Examples of use: the installed library by Meson and CMake, the tree as a subproject, the program.
[ "$who" != root ] || apt-get install -y -qq --no-install-recommends cmake >stdout 2>stderr || fail 'cmake comes' ''
cp -r "$tree/cli/tests/consumer" work/by
cd work/by || exit 1
typed "meson setup by-meson && ninja -C by-meson && by-meson/consumer"
home=$([ "$who" = root ] || echo "-DCMAKE_PREFIX_PATH=$HOME/.local")
typed "cmake -G Ninja $home -S . -B by-cmake && cmake --build by-cmake && by-cmake/consumer && by-cmake/consumer_static"
mkdir subprojects && ln -s "$tree" subprojects/posenc
typed "meson setup --wrap-mode=forcefallback within && ninja -C within && within/consumer"
if [ "$who" = root ]; then
    typed 'posenc verify --backend scalar --suite vectors'
    typed 'posenc verify --backend sleef --kernel rope_table'
fi
finish
