# SPDX-License-Identifier: MIT
# cli_lib.sh - sourced: what tests of commands as they are typed begin with.
#
#   $tandem $agent $trace   programs, and a small trace.dat
#   $work                   a folder that goes when the test ends
#   fail WORD...            notes a fault in $failed; the test goes on

tandem=$TANDEM_BUILD/cli/tandem
agent=$TANDEM_BUILD/agent/tandem-agent
trace=$TANDEM_SOURCE/tests/data/kvm/kvm-tsc.dat
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }
