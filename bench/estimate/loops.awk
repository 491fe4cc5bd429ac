# The main loop of each function loop_NAME in assembler from clang, as a region for llvm-mca:
#
#     awk -v bytes=32 -f loops.awk loops-avx2.s      bytes of a vector; 0: SVE's own length
#
# Clang's comments say which labels begin innermost loops; a turn ends with the first branch back to
# its label.  What the compiler moved out of the way (the call for the rare case) lies behind that.
# The main loop of a function is the one that stores most vectors; the region's name is NAME and how
# many one turn stores, registers put aside on the stack not counted.  llvm-mca takes no branches: a
# turn that does not run from top to bottom is an error, as is one that calls.

# Vectors stored by an instruction.  vmovups %ymm0, 32(%rdi);  stp q0, q1, [x0];  st2 { v0.4s, v1.4s },
# [x0];  st2w { z0.s, z1.s }, p0, [x0].
function stored(line,    size) {
    if (line ~ /\(%rsp|\[sp/)
        return 0
    if (line ~ /^\tvmov[a-z0-9]+\t%[xyz]mm[0-9]+, .*\(/) {
        size = substr(line, index(line, "%") + 1, 1)
        return (size == "x" ? 16 : size == "y" ? 32 : 64) / bytes
    }
    if (line !~ /^\t(str|stur|stp|st[1-4][bhwd]?)\t/)
        return 0
    sub(/\[.*/, "", line)
    if (bytes)
        return gsub(/[ \t](q[0-9]|v[0-9]+\.(4s|2d|16b))/, "", line) * 16 / bytes
    return gsub(/[ \t]z[0-9]/, "", line)
}

function wrong(text) {
    print "loops.awk: " FILENAME ": " text | "cat >&2"
    failed = 1
}

# The loop of instructions from..n has ended.
function weigh(from,    i, vectors) {
    for (i = from; i <= n; i++)
        vectors += stored(text[i])
    if (vectors > stores) {
        stores = vectors
        first = from
        last = n
    }
}

function print_main(    i) {
    if (!stores || stores != int(stores))
        wrong(name ": no loop that stores whole vectors")
    for (i = first; i <= last && stores; i++)
        if (text[i] ~ /^\t(call|blr?\t|ret|jmp|b\t)/ ||
            i < last && (target[i] in at) && at[target[i]] > first && at[target[i]] <= last)
            wrong(name ": its main loop is not run from top to bottom:" text[i])
    print "# LLVM-MCA-BEGIN " name " " stores
    for (i = first; i <= last && stores; i++)
        print text[i]
    print "# LLVM-MCA-END"
}

/This Inner Loop Header/ { inner[label] = 1 }
/^\.LBB[0-9_]+:/ {
    label = $1
    sub(/:.*/, "", label)
    at[label] = n + 1
    if (/This Inner Loop Header/)
        inner[label] = 1
    next
}
/^loop_[a-z0-9_]+:/ {
    name = $1
    sub(/^loop_/, "", name)
    sub(/:.*/, "", name)
    n = stores = 0
    split("", at)
    split("", target)
    next
}
name == "" { next }
/^\.Lfunc_end/ {
    print_main()
    name = ""
    regions++
    next
}
/^\t[a-z]/ {
    sub(/[ \t]+(#|\/\/)([ \t].*)?$/, "")
    text[++n] = $0
    if ($1 ~ /^(j[a-z]+|b(\.[a-z]+)?|cbn?z|tbn?z)$/ && match($0, /\.LBB[0-9_]+$/)) {
        target[n] = substr($0, RSTART)
        if (inner[target[n]] && (target[n] in at)) {
            weigh(at[target[n]])
            inner[target[n]] = 0
        }
    }
}
END {
    if (!regions)
        wrong("no function loop_NAME")
    exit failed
}
