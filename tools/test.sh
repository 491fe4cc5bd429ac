#!/bin/sh
# Tests ./run on machines that lack something: a copy of its scripts runs with a PATH of stubs for all programs that install
# or build, so that nothing is installed or built. Prints TAP.
#
#     sh tools/test.sh [BUILD]      also installs this build and uses it without pkg-config
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:+$(cd "$1" && pwd)}
. "$root/cli/tests/tap.sh"
mkdir -p work/cli bin
cp -R "$root/run" "$root/tools" work
cp "$root/cli/main.c" work/cli
cp "$root/pyproject.toml" work
# The system's Python and D3 are stubs as well.
sed "s,/usr/bin/python3,$scratch/bin/python3-of-system,; s,/usr/share/javascript,$scratch/share," "$root/tools/packages.sh" >work/tools/packages.sh
mkdir -p share/d3 && touch share/d3/d3.min.js

# The tools that shell scripts take are those of this machine, and no others.
for tool in awk basename cat chmod cksum cp cut date dirname env find getconf grep head ln ls mkdir mktemp mv nm rm sed sh sleep sort tail \
    touch tr uname wc xargs; do
    path=$(command -v $tool) && ln -s "$path" "bin/$tool"
done
make_stub() { # NAME: its script is on stdin; what it was called with goes to the file calls
    { printf '#!/bin/sh\necho "${0##*/} $*" >>"%s/calls"\n' "$scratch" && cat; } >"bin/$1"
    chmod +x "bin/$1"
}
make_stub meson <<'STUB'
case $1 in
--version) echo 1.0.1 ;;
setup)
    for folder; do :; done
    [ "$2" != --wipe ] || rm -rf "$folder"
    mkdir -p "$folder/meson-info"
    touch "$folder/build.ninja"
    printf '"c": {\n"full_version": "%s",\n"build": {\n' "$(${CC:-cc} --version)" >"$folder/meson-info/intro-compilers.json"
    for file in lib/libposenc.a posenc.pc posenc plugins/one.so; do echo "  \"$PWD/build/$file\": \"/usr/local/$file\","; done \
        >"$folder/meson-info/intro-installed.json" ;;
compile)
    [ -z "$SLOW" ] || { echo '[0/40] Regenerating' && echo '[10/40] Compiling x.c' && sh -c "$SLOW"; }
    [ -z "$MAKES" ] || { printf '#!/bin/sh\necho "the program: $*"\n' >build/posenc && chmod +x build/posenc; } ;;
esac
STUB
for compiler in cc c++ gcc clang; do
    case $compiler in clang) words='Debian clang version 14.0.6' ;; *) words="$compiler (Debian) 12.2.0" ;; esac
    echo "[ \"\$1\" = -E ] || echo '$words'" | make_stub $compiler
done
echo 'echo 1.11' | make_stub ninja
echo 'case " $HAS " in *" $2 "*) ;; *) exit 1 ;; esac' >packages # --exists NAME
{ echo '[ "$1" != --version ] || { echo 1.8; exit; }' && cat packages; } | make_stub pkg-config
echo 'exit 0' | make_stub true
echo 'exit 0' | make_stub apt-get
echo 'exit 0' | make_stub apt-cache
echo 'echo ${WHO:-1000}' | make_stub id

# A Python has the modules in MODULES. One in a virtual environment has all as soon as pip was called, unless OFFLINE is set.
make_stub python3 <<'STUB'
case $1 in
-c)
    shift 2
    for module; do
        case " $MODULES " in *" $module "*) ;; *) exit 1 ;; esac
    done ;;
-m)
    for folder; do :; done
    mkdir -p "$folder/bin"
    cat >"$folder/bin/python3" <<'END'
#!/bin/sh
[ "$1" != -m ] || echo "venv: $*" >>"$HOME/calls"
[ "$1" != -m ] || [ -n "$OFFLINE" ] || touch "$0-installed"
[ -e "$0-installed" ]
END
    chmod +x "$folder/bin/python3" ;;
esac
STUB

echo 'MODULES=$SYSTEM_MODULES exec python3 "$@"' | make_stub python3-of-system

everything='jansson criterion benchmark sleef'
modules='venv jinja2 rich matplotlib pytest jsonschema gmpy2'
# Runs ./run on such a machine: WHO is the user, HAS its libraries, MAKES is set if building makes the program.
run_stubbed() { # NAME=VALUE... ./run ARGUMENTS...
    : >calls
    run env -i PATH="$scratch/bin" HOME="$scratch" MESON=meson HAS="$everything" MODULES="$modules" MAKES=yes "$@"
}

# Tests the exit status of the last run, and that it printed each of some texts.
expect_output() { # NAME STATUS TEXT...
    name=$1 missing=
    [ $status = "$2" ] || missing="exit $2; it is $status"
    shift 2
    for text; do
        grep -qF -e "$text" stderr stdout || missing=$text
    done
    same "$name" "without: $missing" 'without: '
}

expect_call() { # NAME PATTERN: the last run called such a program
    grep -q -e "$2" calls
    verdict "$1" "not called: $2"
}
expect_no_call() { # NAME PATTERN: it called none
    ! grep -q -e "$2" calls
    verdict "$1" "called: $2"
}
remove_build() { # removes the build
    rm -rf work/build
}

# ---- Words that are no job ----

run_stubbed ./run nonsense
expect_output 'a word that is no job is rejected, with those that are' 2 "no job and no command 'nonsense'" test-sanitizers verify
expect_no_call 'at once' 'meson\|apt-get'
run_stubbed ./run --no-install nonsense
expect_output 'also after --no-install' 2 "'nonsense'"
for word in test test-all test-aarch64 build coverage; do
    run_stubbed ./run $word nonsense
    expect_output "$word takes no words" 2 "$word takes no words; there are: nonsense"
    expect_no_call 'at once' 'meson\|apt-get'
done
for word in $(sed -n 's/^    { "\([a-z]*\)",.*/\1/p' work/cli/main.c); do
    remove_build
    run_stubbed ./run "$word" --help
    expect_output "$word goes to the program" 0 "the program: $word --help"
done
tested=$(sed -n 's/^    tests \(check test .*\)/\1/p' "$root/run")
run_stubbed ./run nonsense
for word in $tested $(sed -n '/^case .job in$/,$s/^\([a-z][a-z0-9 |-]*\))$/\1/p' "$root/run" | tr -d '|'); do
    expect_output "$word is named where a job is not known" 2 " $word"
done

run_stubbed ./run bundle one.tar.gz two.tar.gz
expect_output 'a bundle has one name' 2 'bundle takes one file; there are: one.tar.gz two.tar.gz'
for name in x.zip x.tgz x.tar.xz; do
    run_stubbed ./run bundle $name
    expect_output "which is not $name" 1 "bundle: $name: expected NAME.tar.gz, or a folder"
done
run_stubbed ./run bundle cli
expect_output 'nor a folder that is there' 1 'bundle: cli is there: expected NAME.tar.gz, or a folder that is not there yet'
run_stubbed ./run bundle nowhere/x.tar.gz
expect_output 'nor a file in a folder that is not there' 1 'bundle: nowhere/x.tar.gz: its folder is not there'
run_stubbed BUNDLE_SUITE=buster ./run bundle
expect_output 'nor built on a release that nobody tried' 1 'BUNDLE_SUITE'

# ---- Counts ----

# Tests how tally_verify counts a log of verify with this last line.
expect_count() { # LINE STATUS "PASSED FAILED SKIPPED"
    echo "$1" >verify.log
    (
        . "$root/tools/count.sh"
        passed=0 failed=0 skipped=0 table=''
        tally_verify quick verify.log "$2" >stdout
        echo "$passed $failed $skipped" >counted
    )
    same "verify that ends with $2 and '$1' is counted" "$(cat counted)" "$3"
}
expect_count '0 failed, 15 passed, 2 skipped' 0 '15 0 2'
expect_count '3 failed, 15 passed, 0 skipped, 1 inconclusive' 1 '15 3 0'
expect_count '0 failed, 15 passed, 0 skipped' 2 '15 1 0'
expect_count 'rope_half: 3 of 15 cases' 0 '0 1 0'

echo '0 passed, 0 failed, 0 skipped' >runner.log
counted=$(. "$root/tools/count.sh" && passed=0 failed=0 skipped=0 table='' && tally_runner quick runner.log | head -n 1)
same 'a run of no backend is a failure' "$counted" 'quick: ran no backend: 0 passed, 1 failed, 0 skipped'

# ---- The workflow ----

for word in $tested; do
    grep -q "run: ./run ${word}\$\|command: .*[[ ]${word}[],]" "$root/.github/workflows/ci.yml"
    same "continuous integration runs $word" $? 0
done
for release in 12 13; do
    grep -q "system: 'debian:$release'" "$root/.github/workflows/ci.yml"
    same "and tests on a bare Debian $release" $? 0
done

# ---- Without jansson ----

for word in report bench; do
    remove_build
    run_stubbed HAS='criterion benchmark' ./run $word
    expect_output "$word without jansson is rejected" 2 "$word: it takes the program, and that takes jansson" \
        "to install it: su -c 'apt-get install libjansson-dev'"
    expect_no_call 'before anything is built' '^meson [a-z]'
done
run_stubbed HAS='criterion benchmark' MAKES= ./run build
expect_output 'the library is built without it' 0 'the program is not'

# ---- Without rights ----

line='apt-get install libjansson-dev libcriterion-dev libsleef-dev'
run_stubbed HAS=benchmark ./run build
expect_output 'without rights: why, and the line to copy' 0 'not installed, that takes root, or sudo' "to install them: su -c '$line'"
expect_no_call 'and nothing is installed' '^apt-get install'
run_stubbed HAS=benchmark WHO=0 ./run --no-install build
expect_output 'with --no-install, too' 0 'not installed, --no-install' "to install them: $line"
run_stubbed HAS=benchmark WHO=0 ./run build
expect_call 'root installs' '^apt-get install .* libjansson-dev libcriterion-dev libsleef-dev'
run_stubbed HAS= WHO=0 ./run report
expect_call 'a report takes what makes it' '^apt-get install .* libjansson-dev libbenchmark-dev libsleef-dev$'
run_stubbed HAS= WHO=0 MODULES= ./run test
expect_call 'and tests are built with everything' '^meson compile -C build$'
expect_call 'and take what they need as well' '^apt-get install .* libcriterion-dev .* python3-pytest python3-jsonschema python3-gmpy2'
run_stubbed HAS=jansson WHO=0 MODULES= ./run plot
expect_call 'pictures take matplotlib, and no test' '^apt-get install .* libsleef-dev .*python3-jinja2 python3-rich python3-matplotlib$'
echo 'echo "sudo: a password is required" >&2; exit 1' | make_stub sudo
run_stubbed HAS=benchmark ./run build
expect_output 'a sudo that wants a password is said to want one' 0 'sudo wants a password' "to install them: sudo $line"
expect_no_call 'and nothing is asked' '^sudo [^-]\|^apt-get'
echo '[ "$1" = -n ] && shift && exec "$@"' | make_stub sudo
run_stubbed HAS=benchmark ./run build
expect_call 'a sudo that wants none installs' '^apt-get install .* libjansson-dev'
rm bin/sudo
mv bin/ninja ninja
run_stubbed ./run build
expect_output 'without ninja there is no build' 2 'missing: ninja' "to install them: su -c 'apt-get install ninja-build'"
mv ninja bin

# ---- Without the packages of the page ----

rm share/d3/d3.min.js
venv='^python3 -m venv --system-site-packages build/venv$' pip='^venv: -m pip install .* jinja2>=[0-9.]* rich>=[0-9.]* XStatic-D3$'
remove_build
run_stubbed MODULES=venv ./run --no-install report
expect_output 'with --no-install the packages of the page are named' 0 'python3-jinja2 python3-rich libjs-d3' 'the program: report'
expect_no_call 'and pip is not called' "$venv"
touch share/d3/d3.min.js
for modules_here in 'jinja2:rich' 'rich:jinja2'; do
    remove_build
    run_stubbed MODULES="venv ${modules_here%:*}" SYSTEM_MODULES=${modules_here#*:} ./run report
    expect_call "two Pythons with a module each ($modules_here) are not enough" "$venv"
done
remove_build
run_stubbed MODULES=venv SYSTEM_MODULES='jinja2 rich' ./run report
expect_no_call 'one with both is' "$venv"
rm share/d3/d3.min.js
remove_build
run_stubbed MODULES=venv ./run report
expect_output 'without rights pip brings them' 0 'installing jinja2 rich d3 by pip, in build/venv' 'the program: report'
expect_call 'in a virtual environment' "$venv"
expect_call 'as many as pyproject.toml names' "$pip"
run_stubbed MODULES=venv ./run report
expect_no_call 'once' "$venv\|$pip"
run_stubbed MODULES=venv CC=clang ./run build
expect_call 'another compiler' '^meson setup --wipe build$'
same 'keeps the virtual environment' "$(ls work/build/venv/bin)" "$(printf 'python3\npython3-installed')"
remove_build
mv bin/apt-get bin/apt-cache .
echo 'exit 0' | make_stub dnf
run_stubbed WHO=0 MODULES='venv jinja2 rich' ./run report
expect_output 'Fedora has no D3' 0 'no package here brings d3' 'installing d3 by pip'
expect_call 'which pip brings' "$pip"
remove_build
run_stubbed WHO=0 MODULES=venv ./run report
expect_call 'Fedora has the rest' '^dnf install .*python3-jinja2 python3-rich'
rm bin/dnf
echo 'exit 0' | make_stub brew
remove_build
run_stubbed MODULES=venv OFFLINE=yes ./run report
expect_output 'where pip cannot either, the rest is built' 0 'no package here brings jinja2' 'posenc report lacks jinja2 rich d3' 'the program: report'
[ ! -e work/build/venv ]
verdict 'and nothing half-made stays'
run_stubbed MODULES=venv ./run report
expect_call 'it is tried again' "$pip"
remove_build
run_stubbed MODULES= ./run report
expect_output 'without Python the rest is built' 0 'posenc report lacks Python 3.9 or later' 'the program: report'
remove_build
run_stubbed MODULES=venv HAS=criterion MAKES= ./run build
expect_no_call 'without a program there is no page' "$venv"
rm bin/brew
mv apt-get apt-cache bin
touch share/d3/d3.min.js

# ---- A build that takes long ----

# The stub of meson runs until ./run has printed that it does, which a file or the screen shows.
until='i=0; until %s; do i=$((i + 1)); [ $i -lt 6000 ] || exit 1; sleep 0.1; done'
run_stubbed SLOW="$(printf "$until" '[ -s build/run-told ]')" ./run build
expect_output 'a long build says what it does' 0 './run: compiling build: 40 steps, written to build/run-build.log' './run: compiled build in '
same 'once each' "$(cat stdout stderr | grep -c compil)" 2
run_stubbed ./run build
! grep -q compil stderr stdout
verdict 'and a short one nothing'
reason=$(no_terminal)
if [ -n "$reason" ]; then
    skip 'on a terminal, how much, and how long' "$reason"
else
    printf "$until" "grep -q 'compiling 10 of 40' '$scratch/screen'" >until-shown
    cat >on-terminal <<END
cd '$scratch/work' && exec env -i PATH='$scratch/bin' HOME='$scratch' MESON=meson HAS='$everything' MODULES='$modules' MAKES=yes \
    SLOW="sh '$scratch/until-shown'" ./run build
END
    terminal 80 xterm screen "sh '$scratch/on-terminal'"
    wait $shown
    tr '\r' '\n' <screen | grep -Eq 'compiling 10 of 40, about [0-9]+ s left$' &&
        tr '\r' '\n' <screen | grep "^$(printf '\033')" | tail -n 1 | grep -Eq 'ready|K$'
    verdict 'on a terminal, how much, and how long'
fi

# ---- Another compiler ----

remove_build
run_stubbed ./run report
expect_call 'a command takes what is installed' '^meson compile -C build --ninja-args=lib/libposenc.a,posenc,plugins/one.so$'
remove_build
run_stubbed ./run build
expect_call 'a build is set up' '^meson setup build$'
expect_call 'and has no tests' '^meson compile -C build --ninja-args=lib/libposenc.a,posenc,plugins/one.so$'
run_stubbed ./run build
expect_no_call 'once' '^meson setup'
run_stubbed CC=gcc ./run build
expect_no_call 'the same compiler by another name changes nothing' '^meson setup'
run_stubbed CC=clang ./run build
expect_output 'another compiler is said' 0 'was made with cc (Debian) 12.2.0; all of it is made again with clang'
expect_call 'and makes everything again' '^meson setup --wipe build$'
run_stubbed ./run build
expect_output 'afterwards, without CC, it stays' 0 'build is made with Debian clang version 14.0.6, and stays so until CC'
expect_no_call 'as it is' '^meson setup'

# ---- Without pkg-config ----

remove_build
mv bin/pkg-config .
run_stubbed ./run build
expect_output 'pkg-config is named where it is missing' 0 'pkgconf'
remove_build
run_stubbed ./run report
expect_output 'what takes it is rejected' 2 "to install it: su -c 'apt-get install pkgconf libjansson-dev'"
if [ -n "$build" ]; then
    printf '#!/bin/sh\nexit 127\n' >pkg-config
    run env PATH="$scratch:$PATH" sh "$root/cli/tests/consumer.sh" "$build"
    [ $status = 0 ] && grep -q '^ok .* # SKIP no pkg-config' stdout && ! grep -q '^not ok' stdout
    verdict 'what an installed library is found by is skipped by name'
fi
finish
