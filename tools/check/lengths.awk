# Files and functions that have grown past what one can hold in mind.  A function is what stands between braces in the
# first column, as clang-format lays it out.
#
#     awk -f lengths.awk FILES
#
# Aimed at are files below 500 lines and functions of about 40; rejected is what is longer than this:
BEGIN {
    most_file = 500
    most_function = 75
    # The public header is one text that is read as a whole.
    free["impl/include/posenc.h"]
}

FNR == 1 { end_file(); file = FILENAME; files++ }
{ lines = FNR }
/^\{/ { begun = FNR }
/^\}/ && begun {
    length_of = FNR - begun + 1
    if (length_of > longest_function) longest_function = length_of
    if (length_of > most_function)
        reject(file ":" begun ": a function of " length_of " lines; at most " most_function)
    begun = 0
}
END {
    end_file()
    print files " files of at most " longest_file " lines, functions of at most " longest_function
    exit wrong
}

function end_file() {
    if (file == "" || file in free) return
    if (lines > longest_file) longest_file = lines
    if (lines > most_file) reject(file ": " lines " lines; at most " most_file)
}

function reject(message) {
    print message
    wrong = 1
}
