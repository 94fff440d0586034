#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ./demo ends well and shows the interrupt of a request on both sides of the boundary, in order.
set -euo pipefail
[ "$TANDEM_BUILD" -ef "$TANDEM_SOURCE/build/main" ] || { echo "SKIP: ./demo builds build/main, and this is another build"; exit 77; }
out=$("$TANDEM_SOURCE/demo")
injected=$(grep -n ' host .*kvm_inj_virq' <<<"$out" | head -n 1 | cut -d: -f1)
handled=$(grep -n ' web .*irq_handler_entry' <<<"$out" | head -n 1 | cut -d: -f1)
[ "$injected" -lt "$handled" ] || { echo "FAIL: the guest handles an interrupt before the host injects it"; exit 1; }
grep -q '(0 stamps go back)' <<<"$out" || { echo "FAIL: stamps go back"; exit 1; }
