#!/bin/busybox sh
# The guest's first process. It prepares a small Linux, tells the host that it is ready, takes the payload, gives
# each NVMe function the driver the run asks for, runs the command and tells the host the exit code.
#
# It talks to the host over a serial line, a line of text at a time (the host's side is control.py):
#   guest: ready | up TEXT | hmp COMMAND | qmp {JSON} | dma-faults COUNT | exit CODE | failed TEXT
#   host:  go SECONDS-SINCE-1970 (after ready), {JSON} (after hmp and qmp)
# The command may use the line, too, for hmp and qmp: `vmctl`, or $VM_CTL directly.
#
# Everything before `ready` happens once per saved guest, everything after it in every run. There, what the shell
# can do itself is not left to another program: in an emulated processor each new process is felt.

/bin/busybox --install -s /bin
export PATH=/vm/bin:/opt/bin:/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=dumb
export NVMETAL_VM=1 VM_CTL=/dev/ttyS1
pci=/sys/bus/pci

# Descriptor 9 stays open for good: a serial line drops what arrives while nobody has it open.
open_control_line() {
    stty -F $VM_CTL raw -echo
    exec 9<>$VM_CTL
}

failed() {
    echo "failed $*" >&9
    read -r -t 5 _ <&9
    poweroff -f
}

mount_file_systems() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t devtmpfs devtmpfs /dev
    mkdir -p /dev/pts /dev/shm /dev/hugepages
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /tmp
    mount -t debugfs debugfs /sys/kernel/debug
    ln -s /proc/self/fd /dev/fd
}

load_modules() { # FOLDER NAMES...
    folder=$1
    shift
    for name in "$@"; do
        insmod "$folder/$name.ko" || failed "insmod $name"
    done
}

# Repeats a command until it succeeds, for about that many hundredths of a second.
within() { # HUNDREDTHS COMMAND...
    left=$1
    shift
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        usleep 10000
    done
}

# Sets `out` and `err` to the devices of the virtio-serial ports of those names.
find_ports() {
    for port in /sys/class/virtio-ports/*; do
        read -r name <"$port/name"
        eval "$name=/dev/${port##*/}"
    done
}

# Sets `found` to the addresses of all NVMe functions, and succeeds when there are as many as there should be.
find_drives() {
    found=
    count=0
    for device in $pci/devices/*; do
        read -r class <"$device/class"
        if [ "$class" = 0x010802 ]; then
            found="${found:+$found }${device##*/}"
            count=$((count + 1))
        fi
    done
    [ $count -ge "$DRIVES" ]
}

take_driver() { # ADDRESS: succeeds when there was one to take away
    [ -e "$pci/devices/$1/driver" ] && echo "$1" >"$pci/devices/$1/driver/unbind"
}

# The kernel offers a new function to its own driver a moment after it can be seen, so whichever driver is
# there first, it is asked again until it is the right one.
probe() { # ADDRESS DRIVER
    [ -e "$pci/drivers/$2/$1" ] && return
    take_driver "$1"
    echo "$1" >$pci/drivers_probe
    [ -e "$pci/drivers/$2/$1" ]
}

all_disks_there() {
    disks=0
    for disk in /dev/nvme*n*; do
        case $disk in *p* | *\**) ;; *) disks=$((disks + 1)) ;; esac
    done
    [ $disks -ge "$DISKS" ]
}

give_driver() { # ADDRESS
    wanted=$DRIVER
    [ "$DRIVER" != none ] || wanted=vfio-pci
    [ "$wanted" != vfio-pci ] || echo vfio-pci >"$pci/devices/$1/driver_override"
    within 300 probe "$1" "$wanted" || failed "$1 did not take the driver $wanted"
    if [ "$DRIVER" = none ]; then
        take_driver "$1"
        echo >"$pci/devices/$1/driver_override"
    fi
}

give_drivers() {
    # Without an IOMMU, VFIO takes a device only when told that this is meant.
    [ "$UNSAFE_NOIOMMU" = 0 ] || echo 1 >/sys/module/vfio/parameters/enable_unsafe_noiommu_mode
    within 1000 find_drives || failed "$count of $DRIVES drives are there"
    # The kernel met several drives at once and numbered them as it came; given one by one, nvme0 is the first.
    [ "$DRIVES" -le 1 ] || for address in $found; do
        within 1000 take_driver "$address"
    done
    for address in $found; do
        give_driver "$address"
    done
    # The kernel's driver finds the namespaces in the background; a command that needs the disks should see them.
    # One that never comes is not for us to judge.
    [ "$DRIVER" != nvme ] || within 200 all_disks_there
}

describe_drives() {
    [ "$found" ] || return
    first=$pci/devices/${found%% *}
    export VM_BDFS="$found" VM_BDF="${found%% *}"
    group=$(readlink "$first/iommu_group")
    export VM_GROUP="${group##*/}" VM_CDEV=
    # The entry in sysfs is there even where the kernel makes no device for it.
    for entry in "$first"/vfio-dev/*; do
        [ ! -e "/dev/vfio/devices/${entry##*/}" ] || VM_CDEV=${entry##*/}
    done
}

mount_file_systems
open_control_line
hostname -F /etc/hostname
ip link set lo up
. /vm/settings
load_modules /vm/modules $MODULES
echo "$HUGE_PAGES" >/proc/sys/vm/nr_hugepages
mount -t hugetlbfs hugetlbfs /dev/hugepages
within 1000 [ -e /dev/vda ] || failed "no disk for the payload"
# A saved guest holds no page of the payload's disk: it is another file in every run.
echo 3 >/proc/sys/vm/drop_caches
echo ready >&9

read -r _ now <&9
date -s "@$now" >/dev/null
mount -t ext4 -o ro /dev/vda /payload && cp -as /payload/. / || failed "the payload cannot be mounted"
. /vm/run-settings
load_modules /vm/run-modules $RUN_MODULES
give_drivers
describe_drives
find_ports
read -r uptime _ </proc/uptime
echo "up $uptime s, drives: $found" >&9
cd /tmp || failed "no /tmp"
(. /vm/command) </dev/null >"$out" 2>"$err" 9>&-
code=$?
# QEMU completes a command without an error although the IOMMU refused its data; only the kernel's log tells.
faults=$(dmesg | grep -c 'DMAR: \[DMA')
[ "$faults" = 0 ] || echo "dma-faults $faults" >&9
echo "exit $code" >&9
# The host ends the guest; should it not, the guest ends itself.
read -r -t 5 _ <&9
poweroff -f
