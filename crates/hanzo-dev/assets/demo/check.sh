#!/bin/sh
# Checks slug.sh; ends with 1 when a title comes out wrong.
failed=0

check() {
    got=$(sh ./slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok      $1"
    else
        echo "FAILED  $1: expected $2, got $got"
        failed=1
    fi
}

check 'Notes' 'notes'
check 'Release Notes' 'release-notes'
check 'Notes On The New Release' 'notes-on-the-new-release'
exit "$failed"
