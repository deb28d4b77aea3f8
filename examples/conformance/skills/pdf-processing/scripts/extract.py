"""Prints the lines of a text file that is called a PDF document in this fixture."""

import sys

print(open(sys.argv[1], encoding="utf-8").read())
