# A table, with bars between its columns, as a ROW("...", "...") a line; comments are left out.
/^#/d
/^ *$/d
s/["\\]/\\&/g
s/ *| */", "/g
s/.*/ROW("&")/
