/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints where the C compiler puts each field of steadyio.h; layout.rs compares. */
#include <stdio.h>

#include <steadyio.h>
#include <steadyio_store.h>

#define STRUCT(type) printf(#type " %zu\n", sizeof(struct type))
#define FIELD(type, field)                                                                         \
	printf(#type "." #field " %zu %zu\n", offsetof(struct type, field),                        \
	       sizeof(((struct type *)0)->field))

static void configs(void)
{
	STRUCT(steadyio_config);
	FIELD(steadyio_config, struct_bytes);
	FIELD(steadyio_config, dir);
	FIELD(steadyio_config, loss_window_ms);
	FIELD(steadyio_config, unit_bytes);
	FIELD(steadyio_config, segment_bytes);
	FIELD(steadyio_config, keep);
	FIELD(steadyio_config, keep_by);
	FIELD(steadyio_config, when_full);
	FIELD(steadyio_config, engine);
	FIELD(steadyio_config, flags);
	FIELD(steadyio_config, writer_fifo_priority);
	FIELD(steadyio_config, writer_cpu);
	FIELD(steadyio_config, writer_io_class);
	FIELD(steadyio_config, writer_io_level);
	FIELD(steadyio_config, note);
	FIELD(steadyio_config, note_context);
	FIELD(steadyio_config, longest_record_bytes);
	FIELD(steadyio_config, on_failure);
	FIELD(steadyio_config, late_channels);
	FIELD(steadyio_config, late_definition_bytes);
	FIELD(steadyio_config, profile);
	FIELD(steadyio_config, control_socket);
	FIELD(steadyio_config, compression);
	STRUCT(steadyio_channel_config);
	FIELD(steadyio_channel_config, struct_bytes);
	FIELD(steadyio_channel_config, topic);
	FIELD(steadyio_channel_config, message_encoding);
	FIELD(steadyio_channel_config, schema_name);
	FIELD(steadyio_channel_config, schema_encoding);
	FIELD(steadyio_channel_config, schema_data);
	FIELD(steadyio_channel_config, schema_bytes);
	FIELD(steadyio_channel_config, record_bytes_max);
	FIELD(steadyio_channel_config, period_ns);
	FIELD(steadyio_channel_config, ring_bytes);
	FIELD(steadyio_channel_config, metadata);
	FIELD(steadyio_channel_config, metadata_pairs);
	STRUCT(steadyio_pair);
	FIELD(steadyio_pair, key);
	FIELD(steadyio_pair, value);
}

static void results(void)
{
	STRUCT(steadyio_account);
	FIELD(steadyio_account, struct_bytes);
	FIELD(steadyio_account, received);
	FIELD(steadyio_account, received.bytes);
	FIELD(steadyio_account, buffered);
	FIELD(steadyio_account, written);
	FIELD(steadyio_account, durable);
	FIELD(steadyio_account, lost_ring_full);
	FIELD(steadyio_account, lost_in_writing);
	FIELD(steadyio_account, last_received_ns);
	FIELD(steadyio_account, last_durable_ns);
	FIELD(steadyio_account, first_lost_ns);
	FIELD(steadyio_account, last_lost_ns);
	FIELD(steadyio_account, ring_used_bytes);
	FIELD(steadyio_account, ring_used_bytes_max);
	STRUCT(steadyio_stats);
	FIELD(steadyio_stats, struct_bytes);
	FIELD(steadyio_stats, poll_gap_ns_max);
	FIELD(steadyio_stats, durable_lag_ns);
	FIELD(steadyio_stats, durable_lag_ns_max);
	FIELD(steadyio_stats, window_exceeded);
	FIELD(steadyio_stats, rotations);
	FIELD(steadyio_stats, device_bytes);
	FIELD(steadyio_stats, failed_segments);
	FIELD(steadyio_stats, failures);
	FIELD(steadyio_stats, waiting_since_ns);
	FIELD(steadyio_stats, state);
}

static void store(void)
{
	STRUCT(steadyio_store_options);
	FIELD(steadyio_store_options, struct_bytes);
	FIELD(steadyio_store_options, align_bytes);
	FIELD(steadyio_store_options, extents_max);
	FIELD(steadyio_store_options, flags);
	STRUCT(steadyio_extent_options);
	FIELD(steadyio_extent_options, struct_bytes);
	FIELD(steadyio_extent_options, bytes);
	FIELD(steadyio_extent_options, flags);
	FIELD(steadyio_extent_options, reserved);
	STRUCT(steadyio_extent);
	FIELD(steadyio_extent, struct_bytes);
	FIELD(steadyio_extent, id);
	FIELD(steadyio_extent, start_bytes);
	FIELD(steadyio_extent, bytes);
	FIELD(steadyio_extent, valid_bytes);
	FIELD(steadyio_extent, load_commands);
	FIELD(steadyio_extent, crc);
	FIELD(steadyio_extent, flags);
	STRUCT(steadyio_store_stats);
	FIELD(steadyio_store_stats, struct_bytes);
	FIELD(steadyio_store_stats, store_bytes);
	FIELD(steadyio_store_stats, align_bytes);
	FIELD(steadyio_store_stats, free_bytes);
	FIELD(steadyio_store_stats, free_bytes_max);
	FIELD(steadyio_store_stats, command_bytes);
	FIELD(steadyio_store_stats, reads);
	FIELD(steadyio_store_stats, writes);
	FIELD(steadyio_store_stats, flushes);
	FIELD(steadyio_store_stats, extents);
	FIELD(steadyio_store_stats, extents_max);
}

static void numbers(void)
{
	printf("store %d %d %d %d flags %d %d %d %d block %d\n", STEADYIO_STORE_MISSING,
	       STEADYIO_STORE_FULL, STEADYIO_STORE_DAMAGED, STEADYIO_STORE_NONE,
	       STEADYIO_STORE_READ_ONLY, STEADYIO_STORE_FORCE, STEADYIO_EXTENT_TWICE,
	       STEADYIO_EXTENT_NO_CHECKSUM, STEADYIO_STORE_BLOCK_BYTES);
	printf("statuses %d %d %d %d %d %d %d %d %d %d %d\n", STEADYIO_OK, STEADYIO_RING_FULL,
	       STEADYIO_TOO_LONG, STEADYIO_TIMEOUT, STEADYIO_FULL, STEADYIO_LOST, STEADYIO_REJECTED,
	       STEADYIO_INVALID, STEADYIO_STATE, STEADYIO_FAILED, STEADYIO_PANIC);
}

int main(void)
{
	configs();
	results();
	store();
	numbers();
	return 0;
}
