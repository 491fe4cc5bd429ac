# A text file as elements of an array of C strings, one a line (ISO C promises 4095 bytes a string).
s/["\\]/\\&/g
s/^/"/
s/$/",/
