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
sed "s,/usr/bin/python3,$scratch/bin/python3-of-system,; s,/usr/share/javascript/d3,$scratch/path," "$root/tools/packages.sh" >work/tools/packages.sh
touch bin/d3.min.js

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
    mkdir -p "$folder/meson-info"
    touch "$folder/build.ninja"
    for file in lib/libposenc.a posenc.pc posenc plugins/one.so; do echo "  \"$PWD/build/$file\": \"/usr/local/$file\","; done \
        >"$folder/meson-info/intro-installed.json" ;;
esac
STUB
make_stub ninja <<'STUB'
[ "$1" != --version ] || { echo 1.11 && exit; }
echo "$NINJA_STATUS"
[ -z "$SLOW" ] || sh -c "$SLOW"
[ ! -d build ] || cd build
[ -z "$MAKES" ] || { printf '#!/bin/sh\necho "the program: $*"\n' >posenc && chmod +x posenc; }
STUB
for compiler in cc c++ gcc clang; do
    case $compiler in clang) words='Debian clang version 14.0.6' ;; *) words="$compiler (Debian) 12.2.0" ;; esac
    echo "[ \"\$1\" = -E ] || echo '$words'" | make_stub $compiler
done
echo 'case " $HAS " in *" $2 "*) ;; *) exit 1 ;; esac' >packages # --exists NAME
{ echo '[ "$1" != --version ] || { echo 1.8; exit; }' && cat packages; } | make_stub pkg-config
echo 'exit 0' | make_stub true
echo 'exit 0' | make_stub apt-get
echo 'exit 0' | make_stub apt-cache
echo 'echo ${WHO:-1000}' | make_stub id
# Programs that only some machines have.
mkdir spare spare/asks spare/trusts
echo 'exit 0' | make_stub ../spare/dnf
echo 'exit 0' | make_stub ../spare/brew
echo 'echo "sudo: a password is required" >&2; exit 1' | make_stub ../spare/asks/sudo
echo '[ "$1" = -n ] && shift && exec "$@"' | make_stub ../spare/trusts/sudo

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
# Runs ./run on such a machine: WHO is the user, HAS its libraries, MAKES is set if building makes the program. It lacks the
# stubs that WITHOUT names, and has those of the folder spare that WITH names.
run_stubbed() { # [WITHOUT=NAMES] [WITH=NAME] NAME=VALUE... ./run ARGUMENTS...
    rm -rf path && cp -R bin path
    case $1 in WITHOUT=*) (cd path && rm ${1#*=}) && shift ;; esac
    case $1 in WITH=*) cp "spare/${1#*=}" path && shift ;; esac
    : >calls
    run env -i PATH="$scratch/path" HOME="$scratch" MESON=meson HAS="$everything" MODULES="$modules" MAKES=yes "$@"
}

# One test for each row of stdin: its name | variables and words of ./run | exit status | what it prints (=), calls (+) and does
# not call (-). The build of the row before is there only if the name begins with "then".
tests_of() {
    while IFS='|' read -r name words wanted checks; do
        case $name in then*) ;; *) rm -rf work/build ;; esac
        eval "run_stubbed $words" </dev/null
        missing=
        [ $status = "$wanted" ] || missing="exit $wanted, it is $status"
        echo "$checks" | awk -F ' && ' '{ for (i = 1; i <= NF; i++) print $i }' >checks
        while read -r check; do
            case $check in
            =*) grep -qF -e "${check#=}" stderr stdout ;;
            +*) grep -qE -e "${check#+}" calls ;;
            -*) ! grep -qE -e "${check#-}" calls ;;
            esac || missing="$missing $check"
        done <checks
        same "$name" "$missing" ''
    done
}

# ---- Words that are no job ----

jobs_of_all=$(sed -n 's/^    start_beside //p; s/^    tests \(check test .*\) beside/\1/p' "$root/run")
for word in $jobs_of_all $(sed -n '/^case .job in$/,$s/^\([a-z][a-z0-9 |-]*\))$/\1/p' "$root/run" | tr -d '|'); do
    echo "$word is named where a job is not known|./run nonsense|2|=no job and no command 'nonsense' && = $word && -^meson [a-z] && -apt-get"
done >rows
tests_of <rows
for word in $(sed -n 's/^    { "\([a-z]*\)",.*/\1/p' work/cli/main.c); do
    echo "$word goes to the program|./run $word --help|0|=the program: $word --help"
done >rows
tests_of <rows
for word in test test-all test-aarch64 build coverage; do
    echo "$word takes no words|./run $word nonsense|2|=$word takes no words; there are: nonsense && -^meson [a-z] && -apt-get"
done >rows
tests_of <rows
tests_of <<'ROWS'
also after --no-install|./run --no-install nonsense|2|='nonsense'
test-all counts the jobs that it runs beside others|./run --no-install test-all|1|=0  test-sanitizers: meson test in build-tsan && =1 of test-sanitizers
a bundle has one name|./run bundle one.tar.gz two.tar.gz|2|=bundle takes one file; there are: one.tar.gz two.tar.gz
which is no .zip|./run bundle x.zip|1|=bundle: x.zip: expected NAME.tar.gz
nor a folder|./run bundle cli|1|=bundle: cli: expected NAME.tar.gz
nor a file in a folder that is not there|./run bundle nowhere/x.tar.gz|1|=bundle: nowhere/x.tar.gz: its folder is not there
nor built on a release that nobody tried|BUNDLE_SUITE=buster ./run bundle|1|=BUNDLE_SUITE
ROWS

# ---- Counts ----

# Tests how tally_verify counts a log of verify with this last line.
expect_count() { # LINE STATUS "PASSED FAILED SKIPPED"
    echo "$1" >verify.log
    (
        . "$root/tools/count.sh"
        passed=0 failed=0 skipped=0 table='' failures=''
        tally_verify quick verify.log "$2" >stdout
        echo "$passed $failed $skipped" >counted
    )
    same "verify that ends with $2 and '$1' is counted" "$(cat counted)" "$3"
}
expect_count '0 failed, 15 passed, 2 skipped' 0 '15 0 2'
expect_count '3 failed, 15 passed, 0 skipped' 1 '15 3 0'
expect_count '0 failed, 15 passed, 0 skipped' 2 '15 1 0'
expect_count 'rope_half: 3 of 15 cases' 0 '0 1 0'

printf 'ok 1 - one\nnot ok 2 - two\n1..2\n' >tap.log
named=$(. "$root/tools/count.sh" && job=one passed=0 failed=0 skipped=0 table='' failures='' && tally_tap rows tap.log 1 >stdout && echo "$failures")
same 'a failed test is named' "$named" 'one: rows: not ok 2 - two'

echo '0 passed, 0 failed, 0 skipped' >runner.log
counted=$(. "$root/tools/count.sh" && passed=0 failed=0 skipped=0 table='' && tally_runner quick runner.log | head -n 1)
same 'a run of no backend is a failure' "$counted" 'quick: ran no backend: 0 passed, 1 failed, 0 skipped'

# ---- The workflow ----

for word in $jobs_of_all; do
    grep -q "run: ./run ${word}\$\|command: .*[[ ]${word}[],]" "$root/.github/workflows/ci.yml"
    same "continuous integration runs $word" $? 0
done
for release in 12 13; do
    grep -q "system: 'debian:$release'" "$root/.github/workflows/ci.yml"
    same "and tests on a bare Debian $release" $? 0
done

# ---- What a machine lacks ----

tests_of <<'ROWS'
report without jansson is rejected|HAS='criterion benchmark' ./run report|2|=report: it takes the program, and that takes jansson && =to install it: su -c 'apt-get install libjansson-dev' && -^meson [a-z]
so is bench|HAS='criterion benchmark' ./run bench|2|=bench: it takes the program, and that takes jansson && -^meson [a-z]
the library is built without it|HAS='criterion benchmark' MAKES= ./run build|0|=the program is not
without rights: why, and the line to copy|HAS=benchmark ./run build|0|=not installed, that takes root, or sudo && =to install them: su -c 'apt-get install libjansson-dev libcriterion-dev libsleef-dev' && -^apt-get install
with --no-install, too|HAS=benchmark WHO=0 ./run --no-install build|0|=not installed, --no-install && =to install them: apt-get install libjansson-dev libcriterion-dev libsleef-dev && -^apt-get install
root installs|HAS=benchmark WHO=0 ./run build|0|+^apt-get install .* libjansson-dev libcriterion-dev libsleef-dev
a report takes what makes it|HAS= WHO=0 ./run report|2|+^apt-get install .* libjansson-dev libbenchmark-dev libsleef-dev$
tests are built with everything, and take what they need|HAS= WHO=0 MODULES= ./run test|1|+^ninja -C build$ && +^apt-get install .* libcriterion-dev .* python3-pytest python3-jsonschema python3-gmpy2
pictures take matplotlib, and no test|HAS=jansson WHO=0 MODULES= ./run plot|0|+^apt-get install .* libsleef-dev .*python3-jinja2 python3-rich python3-matplotlib$
a sudo that wants a password is said to want one|WITH=asks/sudo HAS=benchmark ./run build|0|=sudo wants a password && =to install them: sudo apt-get install libjansson-dev && -^sudo [^-] && -^apt-get
a sudo that wants none installs|WITH=trusts/sudo HAS=benchmark ./run build|0|+^apt-get install .* libjansson-dev
without ninja there is no build|WITHOUT=ninja ./run build|2|=missing: ninja && =to install them: su -c 'apt-get install ninja-build'
pkg-config is named where it is missing|WITHOUT=pkg-config ./run build|0|=pkgconf
what takes it is rejected|WITHOUT=pkg-config ./run report|2|=to install it: su -c 'apt-get install pkgconf libjansson-dev'
ROWS

# ---- Without the packages of the page ----

tests_of <<'ROWS'
with --no-install the packages of the page are named|WITHOUT=d3.min.js MODULES=venv ./run --no-install report|0|=python3-jinja2 python3-rich libjs-d3 && =the program: report && -^python3 -m venv
two Pythons with a module each are not enough|MODULES='venv jinja2' SYSTEM_MODULES=rich ./run report|0|+^python3 -m venv
nor the other way round|MODULES='venv rich' SYSTEM_MODULES=jinja2 ./run report|0|+^python3 -m venv
one with both is|MODULES=venv SYSTEM_MODULES='jinja2 rich' ./run report|0|-^python3 -m venv
without rights pip brings them|WITHOUT=d3.min.js MODULES=venv ./run report|0|=installing jinja2 rich d3 by pip, in build/venv && =the program: report && +^python3 -m venv --system-site-packages build/venv$ && +^venv: -m pip install .* jinja2>=[0-9.]* rich>=[0-9.]* XStatic-D3$
then no more|WITHOUT=d3.min.js MODULES=venv ./run report|0|-^python3 -m venv && -^venv:
then another compiler keeps them|WITHOUT=d3.min.js MODULES=venv CC=clang ./run build|0|+^meson setup build$ && -^python3 -m venv
ROWS
same 'in their virtual environment' "$(ls work/build/venv/bin)" "$(printf 'python3\npython3-installed')"
tests_of <<'ROWS'
Fedora has no D3, which pip brings|WITHOUT='apt-get apt-cache d3.min.js' WITH=dnf WHO=0 MODULES='venv jinja2 rich' ./run report|0|=no package here brings d3 && =installing d3 by pip && +^venv: -m pip install
Fedora has the rest|WITHOUT='apt-get apt-cache d3.min.js' WITH=dnf WHO=0 MODULES=venv ./run report|0|+^dnf install .*python3-jinja2 python3-rich
where pip cannot either, the rest is built|WITHOUT='apt-get apt-cache d3.min.js' WITH=brew MODULES=venv OFFLINE=yes ./run report|0|=no package here brings jinja2 && =posenc report lacks jinja2 rich d3 && =the program: report
then it is tried again|WITHOUT='apt-get apt-cache d3.min.js' WITH=brew MODULES=venv ./run report|0|+^venv: -m pip install
without Python the rest is built|WITHOUT='apt-get apt-cache d3.min.js' WITH=brew MODULES= ./run report|0|=posenc report lacks Python 3.9 or later && =the program: report
without a program there is no page|WITHOUT='apt-get apt-cache d3.min.js' WITH=brew MODULES=venv HAS=criterion MAKES= ./run build|0|-^python3 -m venv
ROWS

# ---- Builds ----

tests_of <<'ROWS'
a command takes what is installed|./run report|0|+^ninja -C build lib/libposenc.a posenc plugins/one.so$
a build is set up, and has no tests|./run build|0|+^meson setup build$ && +^ninja -C build lib/libposenc.a posenc plugins/one.so$
then once|./run build|0|-^meson setup
then the same compiler by another name changes nothing|CC=gcc ./run build|0|-^meson setup
then another compiler makes everything again|CC=clang ./run build|0|=build is made again, with Debian clang version 14.0.6 && +^meson setup build$
then without CC the default does|./run build|0|=build is made again, with cc (Debian) 12.2.0 && +^meson setup build$
then a library that came is looked for again|HAS=jansson ./run build|0|+^meson setup --reconfigure build$
ROWS
waits="i=0; until grep -q 'compiling build' %s; do i=\$((i + 1)); [ \$i -lt 6000 ] || exit 1; sleep 0.1; done"
run_stubbed SLOW="$(printf "$waits" "'$scratch/stderr'")" ./run build
ended 'a long build says where its output goes' 0 '^./run: compiling build, written to build/run-build.log' stderr
reason=$(no_terminal)
if [ -n "$reason" ]; then
    skip 'on a terminal Ninja shows its progress' "$reason"
else
    terminal 80 xterm screen "cd '$scratch/work' && exec env -i PATH='$scratch/path' HOME='$scratch' MESON=meson HAS='$everything' \
        MODULES='$modules' MAKES=yes ./run build"
    wait $shown
    grep -q 'compiling %f of %t' screen
    verdict 'on a terminal Ninja shows its progress'
fi
if [ -n "$build" ]; then
    printf '#!/bin/sh\nexit 127\n' >pkg-config
    chmod +x pkg-config
    run env PATH="$scratch:$PATH" sh "$root/cli/tests/consumer.sh" "$build"
    [ $status = 0 ] && grep -q '^ok .* # SKIP no pkg-config' stdout && ! grep -q '^not ok' stdout
    verdict 'without pkg-config, what an installed library is found by is skipped by name'
fi
finish
