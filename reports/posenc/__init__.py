"""The part of posenc that people read: pictures, later reports and comparisons.

The C program computes, checks and measures; this package turns its numbers into something to look at.
"""
