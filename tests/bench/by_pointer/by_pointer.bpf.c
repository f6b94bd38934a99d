// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Bios of one disk, recognised by their address when their request is issued and when it ends. For
 * run.sh; DISK is the disk's dev_t as the kernel has it.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define BIOS_PER_REQUEST_MAX 32

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} bios SEC(".maps");

__u64 queued, issued, ended, unknown;

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	__u64 address = (__u64)bio, now_ns = bpf_ktime_get_ns();

	if (BPF_CORE_READ(bio, bi_bdev, bd_dev) != DISK)
		return 0;
	bpf_map_update_elem(&bios, &address, &now_ns, BPF_ANY);
	__sync_fetch_and_add(&queued, 1);
	return 0;
}

static int each_bio(struct request *rq, bool is_end)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);

	if (BPF_CORE_READ(rq, part, bd_dev) != DISK)
		return 0;
	for (int i = 0; i < BIOS_PER_REQUEST_MAX && bio; i++) {
		__u64 address = (__u64)bio;

		if (!bpf_map_lookup_elem(&bios, &address))
			__sync_fetch_and_add(&unknown, 1);
		else if (is_end && !bpf_map_delete_elem(&bios, &address))
			__sync_fetch_and_add(&ended, 1);
		else
			__sync_fetch_and_add(&issued, 1);
		bio = BPF_CORE_READ(bio, bi_next);
	}
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(issue, struct request *rq)
{
	return each_bio(rq, false);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(complete, struct request *rq)
{
	return each_bio(rq, true);
}
