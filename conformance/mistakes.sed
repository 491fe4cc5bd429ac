# cases/mistakes.txt as macros: MISTAKE(name, kernel, suite, how, function, what) and, in every kernel,
# EVERYWHERE(name, suite, property, concerns, first, last, how, function).
1i\
#ifndef MISTAKE\
#define MISTAKE(name, kernel, suite, how, function, what)\
#endif\
#ifndef EVERYWHERE\
#define EVERYWHERE(name, suite, property, concerns, first, last, how, function)\
#endif
$a\
#undef MISTAKE\
#undef EVERYWHERE
/^#/d
/^$/d
s/["\\]/\\&/g
s/^\* \([^ |]*\) | \([a-z]*\)\/\([^ |]*\) | \([a-z_]*\) | \([A-Z0-9]*\) \([A-Z0-9]*\) | \([a-z]*\) \([a-z_0-9]*\)$/EVERYWHERE("\1", \2, "\3", \4, \5, \6, \7, \8)/
s/^\([a-z_0-9]*\) | \([a-z_0-9]*\) | \([a-z]*\) | \([a-z_0-9]*\) \([a-z_0-9]*\) | \(.*\)$/MISTAKE(\1, \2, \3, \4, \5, "\6")/
