# The blocks and commands of a Markdown file, for blocks.sh.
#
#     awk -v out=FOLDER -f blocks.awk FILE.md
#
# Writes each fenced block to FOLDER/LINE.LANGUAGE and prints "block LINE LANGUAGE". Prints "typed LINE COMMAND" for lines of
# the text indented by four spaces, and "command LINE COMMAND" for code within a sentence, where a line may end. Of blocks and
# typed lines below a line <!-- not run: why --> or <!-- not compared: why --> it prints "exempt LINE why". Prints
# "link LINE TARGET" for each link and picture.
/^ *```/ && inside {
    close(inside)
    inside = ""
    next
}
inside {
    print > inside
    next
}
/^ *```/ {
    language = substr($1, 4)
    if (language == "") language = "text"
    inside = out "/" NR "." language
    printf "" > inside
    if (why != "") print "exempt", NR, why
    else print "block", NR, language
    why = ""
    next
}
/^<!-- not (run|compared): .* -->$/ {
    why = substr($0, index($0, ":") + 2)
    sub(/ -->$/, "", why)
    next
}
/^    [^ ]/ && !paragraph { # as in Markdown: indented, and not the continuation of a list
    if (why != "") print "exempt", NR, why
    else print "typed", NR, substr($0, 5)
    next
}
{
    if (/[^ ]/) why = ""
    paragraph = /[^ ]/
    spans($0)
    links($0)
}

function links(line) {
    while (match(line, /\]\([^)]*\)/)) {
        print "link", NR, substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
    }
}

# Code between backticks; what a line leaves open is closed on the next.
function spans(line,    n, piece, i) {
    gsub(/^> */, "", line)
    n = split(pending line, piece, "`")
    for (i = 2; i < n || (i == n && n % 2); i += 2)
        print "command", NR, piece[i]
    pending = n % 2 || line == "" ? "" : "`" piece[n] " "
}
