# Reads the public headers and writes a C program that prints its binary interface: the value of each enum member, the size of
# each struct, and the offset and size of each struct member.
{ while (match($0, /\/\*[^*]*\*+([^\/*][^*]*\*+)*\//)) $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH) }
/\/\*/ { sub(/\/\*.*/, ""); inside_comment = 1; keep = 1 }
inside_comment && !keep { if (!sub(/.*\*\//, "")) next; inside_comment = 0 }
{ keep = 0 }
BEGIN { print "#include <posenc/backend.h>\n#include <posenc/experimental.h>\n#include <stdio.h>\nint main(void)\n{" }
/^(struct|enum POSENC_ENUM) posenc_[a-z0-9_]+ \{/ { kind = $1; name = $(NF - 1); text = ""; next }
/^\};/ && kind { members(); kind = ""; next }
kind { text = text " " $0 }
END { print "    return 0;\n}" }

function members(    n, i, part, all) {
    if (kind == "struct")
        printf "    printf(\"struct %s %%zu\\n\", sizeof(struct %s));\n", name, name
    n = split(text, all, kind == "struct" ? ";" : ",")
    for (i = 1; i <= n; i++)
        if (kind == "enum") value(all[i])
        else declaration(all[i])
}

function value(text) {
    if (match(text, /[A-Za-z_][A-Za-z_0-9]*/)) {
        text = substr(text, RSTART, RLENGTH)
        printf "    printf(\"%s %%d\\n\", (int)%s);\n", text, text
    }
}

function declaration(text,    n, i, names) {
    if (match(text, /\(\*[a-z0-9_]+\)/)) {
        member(substr(text, RSTART + 2, RLENGTH - 3))
        return
    }
    gsub(/\[[^]]*\]/, "", text)
    n = split(text, names, ",")
    for (i = 1; i <= n; i++)
        if (match(names[i], /[a-z_][a-z_0-9]*[ \t]*$/)) member(substr(names[i], RSTART, RLENGTH))
}

function member(m) {
    gsub(/[ \t]/, "", m)
    printf "    printf(\"%s.%s %%zu %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n", \
        name, m, name, m, name, m
}
