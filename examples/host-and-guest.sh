#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the LTTng traces of a host and its guest as one, the guest's clock corrected.
# usage: host-and-guest.sh HOST-TRACE GUEST-TRACE CORRECTIONS
#
# The filter stands before the muxer that merges the two; "gmux" only makes one stream of messages of the guest's CPUs.
# "babeltrace2 convert" would put filters behind the muxer: hence "run". "tandem view" builds the same by itself.
set -eu
[ $# = 3 ] || { echo "usage: host-and-guest.sh HOST-TRACE GUEST-TRACE CORRECTIONS" >&2; exit 2; }

exec babeltrace2 run \
	-c host:source.ctf.fs -p "inputs=[\"$1\"]" \
	-c guest:source.ctf.fs -p "inputs=[\"$2\"]" \
	-c gmux:filter.utils.muxer \
	-c fix:filter.tandem.clock -p "corrections=\"$3\",host-clock=\"$1\"" \
	-c mux:filter.utils.muxer \
	-c out:sink.text.pretty -p clock-seconds=yes \
	-x guest:gmux -x gmux:fix -x fix:mux -x host:mux -x mux:out
