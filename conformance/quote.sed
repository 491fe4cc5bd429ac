# Makes a text file the elements of an array of C strings, one a line (ISO C promises only 4095 bytes a string).
s/["\\]/\\&/g
s/^/"/
s/$/",/
