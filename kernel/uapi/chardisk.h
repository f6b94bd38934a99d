/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * /dev/chardiskN: an eMMC or SD card, or one partition of it, as a character device.
 *
 * read(2), write(2), pread(2), pwrite(2), readv(2), lseek(2), fsync(2) and io_uring's reads and
 * writes without fixed buffers work as on a block device opened with O_DIRECT. The ioctls below add
 * registered buffers, a priority per call, discards and counters.
 *
 * Units. Offsets and lengths are in bytes and multiples of chardisk_info.block_bytes. Addresses are
 * multiples of chardisk_info.memory_align_bytes. Offset 0 is the first byte of the card's user area
 * (mode own) or of the partition (mode lane). Regions are declared in the same offsets.
 *
 * Layout. It is the same for 32 and 64 bit programs, without implicit padding. Reserved fields, and
 * flags without a defined value, must be 0; other values fail with EINVAL.
 *
 * Opening. With O_EXCL (and without O_CREAT) no other file of the device is open, through any node,
 * nor can be opened until this one is closed: EBUSY. EROFS: a read-only device cannot be opened for
 * writing.
 *
 * Errors of reads and writes, by whatever call:
 *   EINVAL      offset, length or address is not aligned; unknown flag; reserved field not 0.
 *   EACCES      not wholly inside one region.
 *   EROFS       a write or discard in a read-only region, or on a card that is write-protected.
 *   EBADF       the file was not opened for this direction.
 *   ENOSPC      a write begins at or after the end of the device (a read there returns 0).
 *   EFAULT      the memory is not mapped, or a read's memory may not be written to.
 *   EOPNOTSUPP  the kernel does not let a device write to this kind of memory.
 *   EIO         the card failed after all retries; EILSEQ and ETIMEDOUT are reported as EIO, too.
 *   ENODEV      the card was removed or taken away from the driver; no later call succeeds.
 *   EINTR       a signal killed the process before anything was transferred.
 * A call that crosses the end of the device is shortened. A call that fails after a part was
 * transferred returns the length of that part (transfer: 0 < done_bytes, and the error).
 *
 * Priority. Calls are served by I/O priority: the eight levels of the real-time class, then all
 * others in order of arrival. The priority is chardisk_transfer.ioprio, that of the io_uring
 * request, or the caller's (ioprio_set(2), or derived from its scheduling policy). A command of a
 * call that is not real-time is at most chardisk_info.bg_command_bytes_max long, and a real-time
 * call waits for at most one such command.
 */
#ifndef _UAPI_CHARDISK_H
#define _UAPI_CHARDISK_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define CHARDISK_VERSION 1
#define CHARDISK_IOCTL	 0xBC

/* chardisk_info.mode */
#define CHARDISK_MODE_OWN  1 /* a whole card, taken from the block layer */
#define CHARDISK_MODE_LANE 2 /* one partition of a card whose rest stays with the block layer */

/* chardisk_info.capabilities */
#define CHARDISK_CAN_WRITE   0x1 /* card and file allow it; regions may still forbid it */
#define CHARDISK_CAN_DISCARD 0x2
#define CHARDISK_HAS_CACHE   0x4 /* volatile: data is durable after fsync(2) or O_DSYNC */
#define CHARDISK_HAS_DURABLE 0x8 /* reliable write: O_DSYNC needs no flush of the cache */
#define CHARDISK_HAS_REGIONS 0x10 /* only declared regions are accessible */
#define CHARDISK_HAS_MEMORY  0x20 /* memory is declared for CHARDISK_BY_ADDRESS */

/*
 * CHARDISK_IOC_INFO: properties of the device, and its present limits, which the knobs in
 * /sys/class/chardisk/chardiskN/ change. Any file may ask.
 * Errors: EINVAL (flags, reserved), ENODEV.
 */
struct chardisk_info {
	__u32 flags; /* in: 0 */
	__u32 version; /* out, like all below: CHARDISK_VERSION */
	__u32 mode; /* CHARDISK_MODE_* */
	__u32 capabilities; /* CHARDISK_* bits above */
	__u64 bytes; /* size of the device */
	__u64 card_offset_bytes; /* the position of offset 0 in the card's user area */
	__u32 block_bytes; /* alignment of offsets and lengths: 512 or 4096 */
	__u32 memory_align_bytes; /* of addresses, and of offsets in registered buffers */
	__u32 command_bytes_max; /* per command of a real-time call; min of knob and hardware */
	__u32 bg_command_bytes_max; /* per command of any other call */
	__u32 segments_max; /* physically contiguous pieces of memory per command */
	__u32 chunk_bytes; /* memory is pinned in chunks of this size, 4 MiB */
	__u32 erase_bytes; /* preferred multiple for discards and for placing data; 0: unknown */
	__u32 regions; /* number of regions; 1 without CHARDISK_HAS_REGIONS: all */
	__u32 buffers_max; /* registered buffers per open file */
	__u32 buffer_bytes_max; /* size of a registered buffer */
	char card[32]; /* name of the card as in /sys/bus/mmc/devices, ends with 0 */
	__u32 reserved[8]; /* in and out: 0 */
};

/* chardisk_region.region_flags */
#define CHARDISK_REGION_READ_ONLY 0x1

/*
 * CHARDISK_IOC_REGION: one region. Regions are in the order of their offsets and do not overlap.
 * A call is served only if it lies wholly inside one region.
 * Errors: EINVAL (flags, reserved), ENOENT (no region of that index), ENODEV.
 */
struct chardisk_region {
	__u32 flags; /* in: 0 */
	__u32 index; /* in: from 0 to chardisk_info.regions - 1 */
	__u64 offset; /* out */
	__u64 bytes; /* out */
	__u32 region_flags; /* out: CHARDISK_REGION_* */
	__u32 reserved; /* in and out: 0 */
};

/* chardisk_register.flags */
#define CHARDISK_BY_ADDRESS 0x1 /* address is physical, in memory declared at load time */

/*
 * CHARDISK_IOC_REGISTER: pin memory of the caller once, for any number of transfers.
 * Memory is given as a mapping, [address, address + bytes): anonymous, hugetlb, shared memory
 * (memfd, also under a udmabuf), or device-dax. A buffer that is a file is mapped first. The
 * kernel rejects memory that a device may not write to. The mapping must be readable and
 * writable.
 *
 * It counts as locked memory of the process (VmLck). Unless the caller has CAP_IPC_LOCK,
 * RLIMIT_MEMLOCK limits the registered memory of all processes of a user, as for io_uring. The
 * buffer belongs to this open file and this address space: after fork(2) a child cannot use it
 * (EPERM), but may unregister it. It ends with UNREGISTER or the last close of the file, after its
 * transfers. Unmapping the memory leaves it registered.
 *
 * BY_ADDRESS needs CAP_SYS_RAWIO, and memory that lies wholly in one range of the module's
 * parameter memory. Such memory is not pinned, and not charged to a user.
 *
 * Errors: EINVAL (alignment, length 0 or above buffer_bytes_max, address overflows, flags,
 * reserved), ENOSPC (buffers_max reached), ENOMEM (RLIMIT_MEMLOCK, or no memory), EFAULT,
 * EOPNOTSUPP, ENODEV. BY_ADDRESS: EPERM, and EACCES outside the declared ranges.
 */
struct chardisk_register {
	__u64 address; /* in: page aligned */
	__u64 bytes; /* in: multiple of memory_align_bytes */
	__u32 flags; /* in: CHARDISK_BY_ADDRESS or 0 */
	__u32 buffer; /* out: its number in this open file, the lowest free one */
	__u32 reserved[2]; /* in and out: 0 */
};

/* CHARDISK_IOC_UNREGISTER. Errors: EINVAL (flags), ENOENT (no such buffer). */
struct chardisk_unregister {
	__u32 flags; /* in: 0 */
	__u32 buffer; /* in */
};

/* chardisk_transfer.op */
#define CHARDISK_READ  0 /* from the device to memory */
#define CHARDISK_WRITE 1

/* chardisk_transfer.flags */
#define CHARDISK_DURABLE 0x1 /* for a write: return when it is durable, as with O_DSYNC */

/* chardisk_transfer.buffer: memory that is not registered; buffer_offset is its address. */
#define CHARDISK_NO_BUFFER 0xffffffffu

/*
 * CHARDISK_IOC_TRANSFER: like pread(2) and pwrite(2), with a registered buffer and its own
 * priority. It neither uses nor changes the file position. Returns 0 if all was transferred, or up
 * to the end of the device.
 * Errors: those of reads and writes. EINVAL also: op, buffer_offset + bytes exceeds the buffer,
 * DURABLE with a read, invalid ioprio. ENOENT: no such buffer. EPERM: the buffer was registered in
 * another address space, or ioprio is real-time without CAP_SYS_NICE or CAP_SYS_ADMIN. done_bytes
 * and commands are also written after an error of the device.
 */
struct chardisk_transfer {
	__u64 offset; /* in: on the device */
	__u64 bytes; /* in: any length (32-bit kernels: up to 2 GiB at a time); 0 does nothing */
	__u64 buffer_offset; /* in: in the buffer; with NO_BUFFER the address */
	__u32 buffer; /* in: number of the registered buffer, or CHARDISK_NO_BUFFER */
	__u32 flags; /* in: CHARDISK_DURABLE or 0 */
	__u16 op; /* in: CHARDISK_READ or CHARDISK_WRITE */
	__u16 ioprio; /* in: as for ioprio_set(2); 0: the caller's */
	__u32 commands; /* out: data commands sent to the card, retries included */
	__u64 done_bytes; /* out */
};

/*
 * CHARDISK_IOC_DISCARD: the contents of a range are no longer needed; later reads of it are
 * undefined. The card discards in parts of chunk_bytes, and serves other calls in between.
 * Errors: EINVAL (alignment, flags, reserved), EACCES, EROFS, EBADF, EOPNOTSUPP (the card cannot),
 * EIO, ENODEV, EINTR. ERANGE: beyond the end of the device; nothing is discarded.
 */
struct chardisk_discard {
	__u64 offset; /* in */
	__u64 bytes; /* in: 0 does nothing */
	__u32 flags; /* in: 0 */
	__u32 reserved; /* in: 0 */
};

/* chardisk_stats.scope */
#define CHARDISK_STATS_FILE   0 /* of this open file */
#define CHARDISK_STATS_DEVICE 1 /* of all since the card was taken */

/*
 * CHARDISK_IOC_STATS: counters, which never decrease. A read of n bytes in one call counts as 1
 * read, n read_bytes, and one read_command per command sent to the card. If memory is contiguous,
 * or has at most segments_max pieces per command, each chunk takes its size / command_bytes_max
 * commands, rounded up.
 * Errors: EINVAL (flags, scope, reserved), ENODEV.
 */
struct chardisk_stats {
	__u32 flags; /* in: 0 */
	__u32 scope; /* in: CHARDISK_STATS_* */
	__u64 reads; /* out, like all below: calls that used the device */
	__u64 read_bytes; /* transferred without error */
	__u64 read_commands; /* sent to the card, retries included */
	__u64 writes;
	__u64 write_bytes;
	__u64 write_commands;
	__u64 flushes; /* of the card's cache */
	__u64 discards; /* erase commands */
	__u64 retries; /* commands sent again after an error */
	__u64 resets; /* of the card, after errors */
	__u64 errors; /* calls that ended with EIO */
	__u64 rt_calls; /* calls of the real-time class, all kinds */
	__u64 reserved[4]; /* in and out: 0 */
};

#define CHARDISK_IOC_INFO	_IOWR(CHARDISK_IOCTL, 0, struct chardisk_info)
#define CHARDISK_IOC_REGION	_IOWR(CHARDISK_IOCTL, 1, struct chardisk_region)
#define CHARDISK_IOC_REGISTER	_IOWR(CHARDISK_IOCTL, 2, struct chardisk_register)
#define CHARDISK_IOC_UNREGISTER _IOW(CHARDISK_IOCTL, 3, struct chardisk_unregister)
#define CHARDISK_IOC_TRANSFER	_IOWR(CHARDISK_IOCTL, 4, struct chardisk_transfer)
#define CHARDISK_IOC_DISCARD	_IOW(CHARDISK_IOCTL, 5, struct chardisk_discard)
#define CHARDISK_IOC_STATS	_IOWR(CHARDISK_IOCTL, 6, struct chardisk_stats)

#endif /* _UAPI_CHARDISK_H */
