#!/bin/sh
# Boots systemd as PID 1 of the namespaces that we are in: boot.sh TREE. The tree stays as it is; what the machine
# writes goes to memory, and with it.
set -eu

tree=$1
mount -t tmpfs -o mode=755 machine /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$tree,upperdir=/mnt/upper,workdir=/mnt/work" machine /mnt/root
cd /mnt/root

mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
mount -t tmpfs -o mode=755,nosuid tmpfs dev
mkdir dev/shm dev/pts dev/mqueue dev/hugepages
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for device in null zero full random urandom tty; do
  : >"dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done

pivot_root . mnt
umount -l /mnt
# Credentials are mounted aside and moved in from there; in a container this is the work of the container's maker.
mount --make-rshared /
exec env -i container=machine PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
