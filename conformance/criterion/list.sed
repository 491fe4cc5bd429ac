# Makes of backends.def a macro that applies F to each backend, those absent from this build too.
1i\
#define FOR_EACH_BACKEND(F, kernel) \\
s/^POSENC_BACKEND(\([a-z0-9_]*\))$/    F(kernel, \1) \\/p
$a\

