#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in a guest under QEMU: systemd, as the first process of a container that has the whole guest,
# starts services_check.sh as a service. Exits as that did.
set -e
system=/run/system
mkdir -p $system
mount -t tmpfs -o size=300m,mode=755 tmpfs $system
tar -xf services.tar -C $system
install -m 755 "$STEADY" $system/usr/bin/steady
install -m 755 "$STEADY_TESTS/../bound/services_check.sh" $system/check.sh
cp "$STEADY_TESTS/../../experiments/devices/foresee-ncemad9d-usb.toml" $system/card.toml
sed 's/^name = "log"$/&\nservice = "logger.service"/' "$STEADY_TESTS/../../docs/examples/robot.toml" \
	>$system/tasks.toml

# Else systemd asks how the system is to be called.
echo 00000000000000000000000000000001 >$system/etc/machine-id
units=$system/etc/systemd/system
mkdir -p $units
cat >$units/check.target <<'END'
[Unit]
Wants=check.service systemd-udevd.service
END
cat >$units/check.service <<'END'
[Unit]
DefaultDependencies=no
After=systemd-udevd.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c "/check.sh >/out 2>&1; echo $? >/status; systemctl exit"
END
# It stays loaded, as a service that runs, and is of a user who may not open /dev/k2 otherwise.
echo 'robot:x:990:990::/:/bin/sh' >>$system/etc/passwd
printf 'robot:x:990:\nsteadyio:x:991:\n' >>$system/etc/group
touch $system/priority $system/declared
chmod 666 $system/priority $system/declared
cat >$units/logger.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
RemainAfterExit=yes
User=robot
ExecStart=/bin/sh -c "ionice >/priority; cat /sys/block/vda/queue/iosched/rt_declared >/declared; true"
END

mkdir -p $system/dev $system/proc $system/sys $system/run
mount --rbind /dev $system/dev
mount --rbind /sys $system/sys
mkdir -p $system/sys/fs/cgroup
mount -t cgroup2 cgroup2 $system/sys/fs/cgroup
unshare --fork --pid --mount --mount-proc=$system/proc env -i container=steadyio \
	/usr/sbin/chroot $system /lib/systemd/systemd --unit=check.target --log-target=console --show-status=no ||
	echo "systemd: status $?"
cat $system/out
exit "$(cat $system/status)"
