#!/bin/sh
# Each way of making a mistake and each slip that mistakes.inc names, once, as macros A_HOW(name) and A_SLIP(name).
cat <<'END'
#ifndef A_HOW
#define A_HOW(name)
#endif
#ifndef A_SLIP
#define A_SLIP(name)
#endif
END
sed -n -e 's/^MISTAKE([^,]*, [^,]*, [^,]*, \([a-z_0-9]*\), \([a-z_0-9]*\), .*/\1 \2/p' \
  -e 's/^EVERYWHERE(.*, \([a-z_]*\), \([a-z_0-9]*\))$/\1 \2/p' "$1" |
  sed 's/\(.*\) \(.*\)/A_HOW(\1)\
A_SLIP(\2)/' | sort -u
echo '#undef A_HOW'
echo '#undef A_SLIP'
