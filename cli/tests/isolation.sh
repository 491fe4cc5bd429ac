#!/bin/sh
# A plug-in that ends, hangs or damages its process makes one result, and all others of the run are kept. MISBEHAVES is a
# plug-in that does what the name of its file says (plugin.c). Sanitizers would detect much of it first.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/tap.sh"

# Prints options of a short limit of CPU time for a plug-in that does not return. Its other calls take microseconds.
patience() { # NAME [SECONDS]
    case $1 in
    loop_* | sleep_* | stop_* | thread_exit_* | deaf_*) echo "--limit ${2:-1}" ;;
    esac
}

# Makes a plug-in that does what NAME says.
make_plugin() { # NAME
    cp "$MISBEHAVES" "work/$1.so"
}

# Prints the reasons of results of a kernel that crashed or failed, or the number of its results that passed.
reasons() { sed -n "s/.*\"kernel\":\"$1\".*\"status\":\"\(crash\|fail\)\",\"reason\":\"\([^\"]*\)\".*/\2/p" stdout; }
count_passes() { grep -c "\"t\":\"check\",\"kernel\":\"$1\".*\"backend\":\"$2\".*\"status\":\"pass\"" stdout; }

make_plugin good
run $watched "$POSENC" verify --plugin ./good.so --backend scalar,example --kernel alibi,alibi_add --suite memory --out jsonl
want="$(count_passes alibi scalar) $(count_passes alibi_add example)" alone=$(count_passes alibi example)
same 'what behaves passes' "$status $([ "$alone" -gt 10 ] && echo some)" '0 some'

# Each line has a plug-in and the reason of its result. Other kernels and backends have their results.
while read -r name said; do
    make_plugin "$name"
    # shellcheck disable=SC2046  # words
    run $watched "$POSENC" verify --plugin "./$name.so" --backend scalar,example --kernel alibi,alibi_add --suite memory $(patience "$name") --out jsonl
    if [ $status = 1 ] && reasons alibi | grep -Eq "$said" && [ "$(tail -n 1 stdout | grep -c '"complete":true')" = 1 ] &&
        ! grep -q "$(printf '\033')" stdout stderr; then
        case $name in
        *_when_* | *_lanes | no_text | other_abi | escapes | strange_*) same "verify: $name, and others go on" "$(count_passes alibi scalar)" "${want% *}" ;;
        *) same "verify: $name, and others go on" "$(count_passes alibi scalar) $(count_passes alibi_add example)" "$want" ;;
        esac
    else
        fail "verify: $name" "exit $status, want 1 and: $said; $(reasons alibi)"
    fi
    rm -f "work/$name.so"
done <<END
exit_in_call ^the process was ended by exit.0. in alibi/f32/
quick_exit_in_call ^the process was ended by exit.0. in alibi/f32/
done_in_call ^the process was ended by exit.42. in alibi/f32/
abort_in_call ^the process ended by signal 6 .* in alibi/f32/
thread_exit_in_call ^(the process was ended by exit|did not return)
heap_in_call ^the process ended by signal
stack_in_call SIGSEGV|signal 11
fault_in_call SIGSEGV
sigpipe_in_call ^the process ended by signal 13 .* in alibi/f32/
close_in_call ^the process was ended by exit
deaf_in_call ^did not return within .* s of CPU time in alibi/f32/
group_in_call ^the process ended by signal 9
loop_in_call ^did not return within .* s of CPU time in alibi/f32/
sleep_in_call ^did not return within .* in which it slept in alibi/f32/
stop_in_call ^did not return within
no_code SIG
exit_when_loaded ^the process was ended by exit.0. while it was loaded
quick_exit_when_loaded ^the process was ended by exit.0. while it was loaded
abort_when_loaded ^the process ended by signal 6 .* while it was loaded
stack_when_loaded while it was loaded
loop_when_loaded ^did not return within .* while it was loaded
sleep_when_loaded ^did not return within .* while it was loaded
no_text while it was loaded
exit_when_unloaded while it was unloaded
quick_exit_when_unloaded while it was unloaded
abort_when_unloaded while it was unloaded
other_abi ^the plug-in was built for another posenc.h: .*ABI 999
escapes ^the plug-in has no description, or one that is not plain text
strange_name ^the plug-in has no usable name
strange_needs or such needs: expected one line of UTF-8
exit_in_lanes ^the process was ended by exit.0. in lanes
loop_in_lanes ^did not return within .* in lanes
many_lanes ^lanes.. is 1000000: expected 1 to 64
other_lanes ^lanes.. is 1, then 2
END

make_plugin exit_in_call
make_plugin second
run $watched "$POSENC" verify --plugin ./exit_in_call.so --plugin ./second.so --kernel alibi --suite memory --out jsonl
same 'one that exits takes no backend along that comes after it' "$status $(count_passes alibi second)" "1 $alone"

# The call that crashed is printed as a problem that can be run again.
make_plugin abort_in_call
run $watched "$POSENC" verify --plugin ./abort_in_call.so --kernel alibi --out jsonl
same 'a crash says the call that ran, and what passed before it is kept' \
    "$(grep '"status":"crash"' stdout | grep -c "\"problem\":\"alibi .*posenc verify --plugin ./abort_in_call.so --backend example --problem 'alibi ") \
$([ "$(count_passes alibi example)" -gt 10 ] && echo kept)" '1 kept'

# Processes that a plug-in leaves behind and text that it prints change no result.
for name in fork print scribble; do
    make_plugin ${name}_in_call
    run $watched "$POSENC" verify --plugin ./${name}_in_call.so --kernel alibi --suite memory --out csv
    same "$name: the run ends, and results alone are in it" \
        "$status $(grep -c 'no result' stdout) $(grep -c ',pass,' stdout | sed 's/^[1-9][0-9]*$/some/')" '0 0 some'
done
# With a closed standard output the verdict is the same and the other output is complete.
for name in sigpipe print; do
    make_plugin ${name}_in_call
    (cd work && "$POSENC" verify --plugin ./${name}_in_call.so --kernel alibi --suite memory --out jsonl --out csv:all.csv 2>&1) | :
    same "$name: its verdict where nobody reads" "$(grep -c ',crash,' work/all.csv) $(grep -c ',pass,' work/all.csv | sed 's/^[1-9][0-9]*$/some/')" \
        "$([ $name = print ]; echo $?) $([ $name = print ] && echo some || echo 0)"
done
rm -f work/*

# bench, which times nothing that failed.
small='alibi heads=2 queries=32 keys=32'
make_plugin good
run $watched "$POSENC" bench --plugin ./good.so --backend scalar,example --problem "$small" --time-limit 0.1 --out csv
is_timed=yes
if grep -q 'nothing is timed here' stderr; then
    is_timed=no
    skip 'bench' "$(cat stderr)"
else
    same 'bench: what behaves is timed' "$status $(grep -c ',bench,.*,example,.*,0\.99,' stdout)" '0 1'
    while read -r name said; do
        make_plugin "$name"
        # shellcheck disable=SC2046  # words
        run $watched "$POSENC" bench --plugin "./$name.so" --backend scalar,example --problem "$small" --time-limit 0.1 $(patience "$name") --out csv
        same "bench: $name" "$status $(grep -c ',bench,.*,scalar,.*,0\.99,' stdout) $(grep -Ec ",bench,.*wrong: $said" stdout)" '1 1 1'
        rm -f "work/$name.so"
    done <<END
exit_in_call crashed: the process was ended by exit.0. in alibi/f32/given/problem
abort_in_call crashed: the process ended by signal 6
loop_in_call crashed: did not return within .* s of CPU time
exit_when_loaded the process was ended by exit.0. while it was loaded
many_lanes lanes.. is 1000000
END
    rm -f work/*
fi

# The other commands that call kernels: a message with the kernel, exit 1.
test_death() { # NAME PATTERN ARGUMENTS...
    name=$1 pattern=$2
    shift 2
    run $watched "$POSENC" "$@"
    ended "$name" 1 "$pattern" stderr
}
make_plugin exit_when_loaded
test_death 'list: a plug-in that exits' 'exit_when_loaded.so: cannot be loaded: the process was ended by exit.0.' list backends --plugin ./exit_when_loaded.so
make_plugin exit_in_first_call
test_death 'table: likewise' 'posenc table: the process was ended by exit.0. in alibi' table --problem 'alibi heads=1 queries=1 keys=4' \
    --backend example --plugin ./exit_in_first_call.so --out csv:a.csv
make_plugin loop_in_first_call
test_death 'and one that hangs' 'posenc table: did not return within' table --problem 'alibi heads=1 queries=1 keys=4' --backend example \
    --plugin ./loop_in_first_call.so --limit 1 --out csv:a.csv
same 'no file is left' "$(ls work)" "$(printf 'exit_in_first_call.so\nexit_when_loaded.so\nloop_in_first_call.so')"
make_plugin abort_in_first_call
test_death 'verify -v: one that aborts' 'posenc verify: the process ended by signal 6 .* in alibi' verify -v --plugin ./abort_in_first_call.so \
    --backend example --problem "$small"
# Plug-ins of a folder are skipped with a message.
run env POSENC_PLUGINS=. $watched "$POSENC" list kernels
same 'a folder with one that exits' "$status $(grep -c 'skipped: ./exit_when_loaded.so: the process was ended by exit(0)' stderr)" '0 1'
rm -f work/*

# TERM and INT end a run at once, with all of its processes, and the results so far are written.
make_plugin loop_in_call
looping="--plugin $scratch/work/loop_in_call.so --kernel alibi --limit 86400"
plugin_loops() { [ -e "$scratch/loops" ]; }
# Starts the program in the background and returns when the plug-in loops.
start_looping() { # ARGUMENTS...
    rm -f loops
    (cd work && MISBEHAVED="$scratch/loops" exec "$POSENC" "$@") >stdout 2>stderr &
    pid=$!
    await plugin_loops
}
test_signal() { # NAME SIGNAL WRITTEN ARGUMENTS...: `written` is in what was printed or, by then, in work
    name=$1 signal=$2 written=$3
    shift 3
    start_looping "$@"
    kill -"$signal" $pid
    await no_process 'loop_in_call[.]so' || kill -KILL $pid
    wait $pid
    got=$?
    same "$name" "$got $(cat stdout work/*.md 2>/dev/null | grep -c "$written" | sed 's/^[1-9][0-9]*$/some/')" \
        "$([ "$signal" = INT ] && echo 130 || echo 143) some"
}
# The shell lets a process in the background ignore INT, and posenc minds that of HUP alone.
test_signal 'verify: TERM' TERM 'not complete\|incomplete\|ended early\|alibi' verify $looping
test_signal 'verify: INT' INT alibi verify $looping
if [ $is_timed = yes ]; then
    test_signal 'bench: TERM' TERM alibi bench $looping --backend scalar,example --out console --out md:b.md
fi
ends 'no process is left' 'loop_in_call[.]so'
same 'nor a temporary file' "$(find work -name '*.posenc-*')" ''
rm -f work/*

# KILL leaves nothing, either: a file has no name until it is complete.
make_plugin loop_in_call
start_looping verify $looping --out md:a.md
kill -KILL $pid
wait $pid 2>/dev/null
same 'KILL leaves no file' "$(find work -name 'a.md*')" ''
[ "$(uname)" != Linux ] || await no_process 'loop_in_call[.]so'
finish
