"""The commands of posenc that are written in Python: reports, comparisons, pictures, and the reading of model files.

The C program computes, checks and times; this package runs it and presents its records and tables.
"""
