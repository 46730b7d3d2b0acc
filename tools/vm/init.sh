#!/bin/busybox sh
# The guest's first and only process of its own. It prepares a small Linux, tells the host that it is ready,
# takes the payload, gives each NVMe function the driver the run asks for, runs the command and tells the host
# the exit code.
#
# It talks to the host over a serial line, a line of text at a time (the host's side is control.py):
#   guest: ready | up TEXT | hmp COMMAND | qmp {JSON} | exit CODE | failed TEXT
#   host:  go BLOCKS (after ready), {JSON} (after hmp and qmp)
# The command may use the line, too, for hmp and qmp: `vmctl`, or $VM_CTL directly.

/bin/busybox --install -s /bin
export PATH=/vm/bin:/opt/bin:/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=dumb
export NVMETAL_VM=1 VM_CTL=/dev/ttyS1

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /dev/hugepages
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug
ln -s /proc/self/fd /dev/fd
hostname -F /etc/hostname
ip link set lo up

# Descriptor 9 stays open for good: a serial line drops what arrives while nobody has it open.
stty -F $VM_CTL raw -echo
exec 9<>$VM_CTL

failed() {
    echo "failed $*" >&9
    read -t 5 _ <&9
    poweroff -f
}

load_modules() { # FOLDER NAMES...
    folder=$1
    shift
    for name in "$@"; do
        insmod "$folder/$name.ko" || failed "insmod $name"
    done
}

port() { # NAME: the device of a virtio-serial port
    for p in /sys/class/virtio-ports/*; do
        [ "$(cat "$p/name")" = "$1" ] && echo "/dev/${p##*/}"
    done
}

nvme_functions() {
    for d in /sys/bus/pci/devices/*; do
        [ "$(cat "$d/class")" = 0x010802 ] && echo "${d##*/}"
    done
}

# Repeats a command until it succeeds, for at most ten seconds.
until_true() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || return 1
        usleep 10000
    done
}

all_drives_there() { [ "$(nvme_functions | wc -l)" -ge "$DRIVES" ]; }
has_driver() { [ "$(basename "$(readlink "/sys/bus/pci/devices/$1/driver")")" = "$2" ]; }
has_disk() { ls -d "/sys/bus/pci/devices/$1"/nvme/nvme*/nvme*n* >/dev/null 2>&1; }

take_driver() { # ADDRESS: succeeds when there was one to take away
    [ -e "/sys/bus/pci/devices/$1/driver" ] && echo "$1" >"/sys/bus/pci/devices/$1/driver/unbind"
}

# The kernel offers a new function to its own driver a moment after it can be seen, so whichever driver is
# there first, it is asked again until it is the right one.
probe() { # ADDRESS DRIVER
    has_driver "$1" "$2" && return
    take_driver "$1"
    echo "$1" >/sys/bus/pci/drivers_probe
    has_driver "$1" "$2"
}

give_driver() { # ADDRESS
    device=/sys/bus/pci/devices/$1
    wanted=$DRIVER
    [ $DRIVER != none ] || wanted=vfio-pci
    [ $wanted != vfio-pci ] || echo vfio-pci >$device/driver_override
    until_true probe "$1" $wanted || failed "$1 did not take the driver $wanted"
    if [ $DRIVER = none ]; then
        echo "$1" >$device/driver/unbind
        echo >$device/driver_override
    fi
    # The kernel's driver finds the namespaces in the background; a command that needs the disk should see it.
    [ $DRIVER != nvme ] || [ $DISKS = 0 ] || until_true has_disk "$1" || failed "$1 shows no disk"
}

. /vm/settings
load_modules /vm/modules $MODULES
echo "$HUGE_PAGES" >/proc/sys/vm/nr_hugepages
mount -t hugetlbfs hugetlbfs /dev/hugepages

# A guest to be saved holds no page of the payload's disk: it is another file in every run.
echo 3 >/proc/sys/vm/drop_caches
echo ready >&9
read -r _ blocks <&9

dd if=/dev/vda bs=256k count="$blocks" iflag=direct 2>/dev/null | tar -x -C / || failed "unpacking the payload"
. /vm/run-settings
load_modules /vm/run-modules $RUN_MODULES
until_true all_drives_there || failed "only $(nvme_functions | wc -l) of $DRIVES drives are there"
# The kernel found several drives at once and numbered them as it came; given one by one, nvme0 is the first.
[ "$DRIVES" -le 1 ] || for address in $(nvme_functions); do
    until_true take_driver "$address"
done
for address in $(nvme_functions); do
    give_driver "$address"
    VM_BDFS="${VM_BDFS:+$VM_BDFS }$address"
done

first=/sys/bus/pci/devices/${VM_BDFS%% *}
export VM_BDFS
export VM_BDF="${VM_BDFS%% *}"
export VM_GROUP="$(basename "$(readlink "$first/iommu_group" 2>/dev/null)")"
export VM_CDEV="$(ls "$first/vfio-dev" 2>/dev/null | head -n 1)"
# The entry in sysfs is there even where the kernel makes no device for it.
[ -e "/dev/vfio/devices/$VM_CDEV" ] || VM_CDEV=
[ "$VM_BDF" ] || unset VM_BDF VM_GROUP VM_CDEV

echo "up $(cut -d' ' -f1 /proc/uptime) s, $(uname -r), $VM_BDFS" >&9
out=$(port out)
err=$(port err)
cd /tmp || failed "no /tmp"
(. /vm/command) </dev/null >"$out" 2>"$err" 9>&-
echo "exit $?" >&9
# The host ends the guest; should it not, the guest ends itself.
read -t 5 _ <&9
poweroff -f
