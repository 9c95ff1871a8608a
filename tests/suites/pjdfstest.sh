#!/bin/sh
# pjdfstest.sh - POSIX semantics, 8,798 checks.  PJDFSTEST: where pjdfstest has
# been built.  Needs prove (perl).
. "$(dirname "$0")/common.sh"
need PJDFSTEST "${PJDFSTEST-}" pjdfstest
begin 1G
cd "$mnt" || exit 1
prove -r "$PJDFSTEST/tests" || fail "pjdfstest"
end
