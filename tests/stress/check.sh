#!/bin/bash
# check.sh - the stress of `make check`: a short turn on an image and on a
# block device.  `make soak` has the long one.
here=$(cd "$(dirname "$0")" && pwd)

STRESS_PARTS="fsx names durable" "$here/run.sh" image 1 1 || exit
STRESS_PARTS="fsx_small seek apps durable stopped" "$here/run.sh" loop 1 2
