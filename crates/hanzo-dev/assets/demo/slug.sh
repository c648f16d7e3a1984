#!/bin/sh
# Prints the name of a file for the title in $1.
printf '%s\n' "$1" | tr 'A-Z' 'a-z' | sed 's/ /-/'
