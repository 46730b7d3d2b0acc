#!/bin/busybox sh
# vmctl hmp COMMAND...   a command of QEMU's human monitor
# vmctl qmp JSON         a command of QEMU's machine protocol
# Prints the answer, one line of JSON. (Inside the guest; the host's side is control.py.)
[ $# -ge 2 ] || {
    echo "usage: vmctl hmp COMMAND | vmctl qmp JSON" >&2
    exit 2
}
exec 9<>"$VM_CTL"
echo "$*" >&9
read -r answer <&9 && printf '%s\n' "$answer"
case $answer in '{"error"'*) exit 1 ;; esac
