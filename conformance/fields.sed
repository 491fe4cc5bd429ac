# problem/fields.txt as elements of an array of struct field.
/^#/d
/^$/d
s/^\([a-z0-9_]*\)  *\([a-z0-9_.]*\)  *\([A-Z0-9]*\)/{ .name = "\1", .offset = offsetof(struct problem, \2), .kind = FIELD_\3,/
s/ LIST_[A-Z]*$/ .list =&/
s/ [a-z_]*_names$/ .names =&/
s/$/ },/
