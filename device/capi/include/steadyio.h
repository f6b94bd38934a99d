/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * steadyio: record from a real-time thread without blocking it.
 *
 * A recording is a directory of segments of equal size, each a plain MCAP file, the oldest
 * overwritten first. Its life:
 *
 *	steadyio_open()		copies the configuration.
 *	steadyio_add_channel()	adds a stream of records; as often as needed, also while recording.
 *	steadyio_start()	checks everything, makes the segments, starts the writer thread.
 *	steadyio_append()	copies a record into locked memory; wait-free.
 *	steadyio_flush()	waits until all records so far are durable; not for real-time threads.
 *	steadyio_keep_incident() keeps the last seconds from being overwritten; not for real-time
 *				threads.
 *	steadyio_finish()	makes everything durable, ends the segment, stops the writer thread.
 *	steadyio_close()	frees the recorder and its channels.
 *
 * Functions return an enum steadyio_status, unless stated otherwise. Negative values are errors:
 * nothing was done, and steadyio_error() names the argument and the reason.
 *
 * Threads: a channel belongs to one appending thread at a time. A recorder may be used from several
 * threads. After steadyio_close() neither may be used.
 *
 * Structs begin with their own size, so that a program keeps working with later versions of the
 * library, in which they may be longer. Fields that are 0 or NULL have the value named as default:
 *
 *	struct steadyio_config config = { .struct_bytes = sizeof(config), .dir = "/data/run" };
 */
#ifndef STEADYIO_H
#define STEADYIO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum steadyio_status {
	STEADYIO_OK = 0,
	/* The record is counted as lost: the ring is full. */
	STEADYIO_RING_FULL = 1,
	/* The record is counted as lost: it is longer than record_bytes_max. */
	STEADYIO_TOO_LONG = 2,
	/* Not everything became durable in time. */
	STEADYIO_TIMEOUT = 3,
	/* The recording ended because all segments are full (STEADYIO_STOP). */
	STEADYIO_FULL = 4,
	/* Not everything that was appended is durable, or will be: the accounts say what was lost. */
	STEADYIO_LOST = 5,
	/* The kernel allows no such I/O with this memory: steadyio_buffer_can() has the reason. */
	STEADYIO_REJECTED = 6,
	/* An argument or a field of a struct is wrong. */
	STEADYIO_INVALID = -1,
	/* Not possible now: not started yet, already finished, or used by another thread. */
	STEADYIO_STATE = -2,
	/* The system, the file system or the device failed. */
	STEADYIO_FAILED = -3,
	/* A bug in the library. Close the recorder; recovery completes what was written. */
	STEADYIO_PANIC = -4,
};

/* How much is kept: what `keep` counts. */
enum steadyio_keep_by {
	STEADYIO_KEEP_SEGMENTS = 0,
	/* As many segments as fit into this many bytes. */
	STEADYIO_KEEP_BYTES = 1,
	/* As many segments as leave this many bytes of the file system free. */
	STEADYIO_KEEP_FREE_BYTES = 2,
	/* Enough segments for this many milliseconds; every channel needs a period. */
	STEADYIO_KEEP_MS = 3,
};

/* What happens when all segments are full. */
enum steadyio_when_full {
	/* The oldest is overwritten. */
	STEADYIO_RECYCLE = 0,
	/* Recording ends; later records are lost, and counted. */
	STEADYIO_STOP = 1,
};

/* What happens when a write or sync fails. */
enum steadyio_on_failure {
	/*
	 * It is tried again, and recording goes on when the device does. Meanwhile records wait in the
	 * rings, and are lost when those are full.
	 */
	STEADYIO_WAIT = 0,
	/* Recording ends. Durable records are kept; later ones are lost, and counted. */
	STEADYIO_EXIT = 1,
};

/* How a recording goes. */
enum steadyio_state {
	STEADYIO_RECORDING = 0,
	/* The device fails; steadyio_trouble() says how. */
	STEADYIO_WAITING = 1,
	/* The recording has ended: further records are lost. */
	STEADYIO_ENDED = 2,
};

/* How the writer thread submits I/O. */
enum steadyio_engine {
	/* io_uring if the kernel has it and allows it, else pwrite. */
	STEADYIO_BEST = 0,
	STEADYIO_IO_URING = 1,
	STEADYIO_PWRITE = 2,
};

/* Compression of the blocks, in the writer thread: steadyio_append() does not wait for it. */
enum steadyio_compression {
	STEADYIO_UNCOMPRESSED = 0,
	/* Takes less CPU time. */
	STEADYIO_LZ4 = 1,
	/* Takes less space. */
	STEADYIO_ZSTD = 2,
};

enum steadyio_flags {
	/* Do not lock rings and buffers into memory. A page fault can then delay an append. */
	STEADYIO_NO_LOCK = 1,
	/* Run the writer thread on writer_cpu only. */
	STEADYIO_WRITER_CPU = 2,
	/* Overwrite damaged segments instead of renaming them. */
	STEADYIO_DISCARD_DAMAGED = 4,
};

struct steadyio_config {
	/* sizeof(struct steadyio_config) */
	size_t struct_bytes;
	/* Directory of the segments, for nothing else. Created if missing. */
	const char *dir;
	/* How much a power cut may lose, in time. Default 500. */
	uint64_t loss_window_ms;
	/* Largest write; ideally a multiple of the device's erase block. Default 1 MiB. */
	uint64_t unit_bytes;
	/* Default 64 MiB. */
	uint64_t segment_bytes;
	/* How much is kept, in the unit of keep_by. Default 8 segments. */
	uint64_t keep;
	/* enum steadyio_keep_by */
	uint32_t keep_by;
	/* enum steadyio_when_full */
	uint32_t when_full;
	/* enum steadyio_engine */
	uint32_t engine;
	/* enum steadyio_flags, or-ed */
	uint32_t flags;
	/* SCHED_FIFO priority of the writer thread, 1 to 99; 0: not under SCHED_FIFO. */
	uint32_t writer_fifo_priority;
	/* With STEADYIO_WRITER_CPU. */
	uint32_t writer_cpu;
	/* As in ionice(1): 1 real-time, 2 best effort, 3 idle; 0: as the process. */
	uint32_t writer_io_class;
	/* 0 (first) to 7. */
	uint32_t writer_io_level;
	/* Progress of steadyio_start(), which calls it in its thread; may be NULL. */
	void (*note)(void *context, const char *text);
	void *note_context;
	/* Longest record that a channel may have, 64 MiB at most: memory for four of them (above
	 * 16 MiB, two) is locked. Default: what unit_bytes has room for. */
	uint64_t longest_record_bytes;
	/* enum steadyio_on_failure */
	uint32_t on_failure;
	/* How many channels may be added after steadyio_start(). Default 0. */
	uint32_t late_channels;
	/* Room for their names and schemas, all together, twice in memory and in each segment.
	 * Default 4 KiB for each of late_channels. */
	uint64_t late_definition_bytes;
	/* What MCAP calls so: how channels and schemas are to be understood, "ros2" for example.
	 * Default: none. */
	const char *profile;
	/* Unix socket on which a thread answers how the recording goes (docs/spec/control-1.md), from
	 * steadyio_start() to steadyio_finish(). Default: none. */
	const char *control_socket;
	/* enum steadyio_compression */
	uint32_t compression;
};

/*
 * Of the metadata of a channel, with the value "true": the last record is written again into each new
 * segment, so that a ring that has wrapped can be replayed. The longest records of all such channels
 * together may take a quarter of a segment.
 */
#define STEADYIO_LATCHED "steadyio.latched"

/* A key and a value. */
struct steadyio_pair {
	const char *key;
	const char *value;
};

struct steadyio_channel_config {
	/* sizeof(struct steadyio_channel_config) */
	size_t struct_bytes;
	/* Name of the channel. */
	const char *topic;
	/* Encoding of the records: "json", "cdr", ... Default: none. */
	const char *message_encoding;
	/* Name of the records' type. NULL: no schema; then the other schema fields must be 0 too. */
	const char *schema_name;
	/* Language of the schema: "jsonschema", "ros2msg", ... Default: none. */
	const char *schema_encoding;
	const void *schema_data;
	size_t schema_bytes;
	/* Longest record. */
	uint64_t record_bytes_max;
	/* Time between records. Default: irregular. */
	uint64_t period_ns;
	/* Memory between append and writer. Default: one second of records; all channels without a
	 * period share 32 MiB; one that is added after steadyio_start() has 1 MiB. Of channels without
	 * a period less, if no more memory may be locked (ulimit -l). */
	uint64_t ring_bytes;
	/* Free keys and values in the recording's channel, each key once. The key STEADYIO_LATCHED with
	 * the value "true" has a meaning. Default: none. */
	const struct steadyio_pair *metadata;
	size_t metadata_pairs;
};

struct steadyio_amount {
	uint64_t records;
	/* Of the records themselves, without anything the format adds. */
	uint64_t bytes;
};

/* What became of a channel's records: received = buffered + written + lost_*. */
struct steadyio_account {
	/* sizeof(struct steadyio_account) */
	size_t struct_bytes;
	/* Handed to steadyio_append(). */
	struct steadyio_amount received;
	/* In the ring, or in flight to the device. */
	struct steadyio_amount buffered;
	/* Written, durable or not. */
	struct steadyio_amount written;
	/* Of those: on the medium. */
	struct steadyio_amount durable;
	/* Lost: the ring was full, or the record too long. */
	struct steadyio_amount lost_ring_full;
	/* Lost: the device or the file system failed. */
	struct steadyio_amount lost_in_writing;
	/* Log times; 0 if there is no such record. */
	uint64_t last_received_ns;
	uint64_t last_durable_ns;
	/* Of records lost because the ring was full. */
	uint64_t first_lost_ns;
	uint64_t last_lost_ns;
	/* Of the ring, at the writer thread's last poll, and the maximum of all polls. */
	uint64_t ring_used_bytes;
	uint64_t ring_used_bytes_max;
};

/* Statistics of the writer thread. */
struct steadyio_stats {
	/* sizeof(struct steadyio_stats) */
	size_t struct_bytes;
	/* Longest time between two polls of the rings. */
	uint64_t poll_gap_ns_max;
	/* From an append to its record being durable, of the latest sync and the longest. */
	uint64_t durable_lag_ns;
	uint64_t durable_lag_ns_max;
	/* Syncs that came later than the loss window allows. */
	uint64_t window_exceeded;
	/* Changes to another segment. */
	uint64_t rotations;
	/* Handed to the device, with format and padding. */
	uint64_t device_bytes;
	/* Left before they were full: a part cannot be written, or what was written is gone. */
	uint64_t failed_segments;
	/* Writes and syncs that failed; steadyio_trouble() says how the latest did. */
	uint64_t failures;
	/* STEADYIO_WAITING: since when, on CLOCK_MONOTONIC. */
	uint64_t waiting_since_ns;
	/* enum steadyio_state */
	uint32_t state;
};

struct steadyio_recorder;
struct steadyio_channel;

/* Nothing is created on any disk before steadyio_start(). */
int steadyio_open(const struct steadyio_config *config, struct steadyio_recorder **recorder);

/*
 * The channel lives as long as the recorder. After steadyio_start() it may be appended to at once; its
 * definition is durable before its first record is. Then this call allocates and locks memory, and
 * waits for other calls on the recorder: not for real-time threads.
 */
int steadyio_add_channel(struct steadyio_recorder *recorder,
			 const struct steadyio_channel_config *config,
			 struct steadyio_channel **channel);

/*
 * Checks the configuration before anything is created, locks the memory, makes missing segments
 * (which writes all of them once: it may take minutes) and starts the writer thread.
 */
int steadyio_start(struct steadyio_recorder *recorder);

/*
 * Appends a record, or counts it as lost. Makes no system call, takes no lock, allocates nothing and
 * never blocks; its time depends on the length of the record only. log_time_ns goes into the
 * recording, by custom in ns since 1970, and need not rise.
 */
int steadyio_append(struct steadyio_channel *channel, uint64_t log_time_ns, const void *data,
		    size_t bytes);

/* The same of a record that was made at another time. The time of steadyio_append() is both. */
int steadyio_append_published(struct steadyio_channel *channel, uint64_t log_time_ns,
			      uint64_t publish_time_ns, const void *data, size_t bytes);

/*
 * Waits until all records appended before are durable. Returns STEADYIO_TIMEOUT if that takes
 * longer, and STEADYIO_LOST if a record was lost before the call, or during it. One flush reports
 * each loss.
 */
int steadyio_flush(struct steadyio_recorder *recorder, uint64_t timeout_ms);

/*
 * Keeps what was received in the last so many milliseconds from being overwritten, now and in later
 * recordings, until `steady incidents release`. When it returns STEADYIO_OK, what was received
 * before the call is durable; STEADYIO_TIMEOUT if that takes more than 10 s, as the device fails.
 * Not for real-time threads. covered_ms, if not NULL, is how much of the time is there: less, if
 * what is older is overwritten already. The name has up to 64 letters, digits, '.', '_' and '-'.
 * STEADYIO_STATE if there is an incident of this name, if nothing is recorded yet, or if fewer than
 * two segments would be left to record in.
 */
int steadyio_keep_incident(struct steadyio_recorder *recorder, const char *name, uint64_t last_ms,
			   uint64_t *covered_ms);

/* Makes no system call either, and may be called while others append. */
int steadyio_channel_account(const struct steadyio_channel *channel,
			     struct steadyio_account *account);

int steadyio_recorder_stats(const struct steadyio_recorder *recorder, struct steadyio_stats *stats);

/*
 * What failed last, or why the recording ended, as text with its 0, cut to text_bytes.
 * Returns the length of the whole text; 0 if nothing is wrong.
 */
size_t steadyio_trouble(const struct steadyio_recorder *recorder, char *text, size_t text_bytes);

/*
 * Makes durable what was appended before, and ends the segment. STEADYIO_FULL or STEADYIO_FAILED if
 * recording had ended before that, or the device does not work within 5 s; STEADYIO_LOST if any
 * record of the recording is not durable: the accounts say what was lost.
 */
int steadyio_finish(struct steadyio_recorder *recorder);

/* Frees everything; finishes first if necessary, without a report. NULL does nothing. */
void steadyio_close(struct steadyio_recorder *recorder);

/*
 * Declares a real-time task of this process to k2, the I/O scheduler: background and lower levels then
 * block its requests on this disk for a stated time at most, from the first request on. device is a
 * block device or a partition; task has words of the file /dev/k2 (docs/reference/k2.md), such as
 * "level=0 period_us=10000 jitter_us=200 block_us=440". *fd is an open file: the task ends with
 * close(*fd), or with the process. It can be read for state and counts, and polled for POLLPRI.
 * STEADYIO_INVALID: a word is wrong, or k2 rejects the task; steadyio_error() says why.
 * STEADYIO_FAILED: there is no /dev/k2, or it may not be opened.
 */
int steadyio_declare(const char *device, const char *task, int *fd);

/* A way of doing I/O with a buffer. */
enum steadyio_use {
	/* Reads and writes with O_DIRECT, and of /dev/chardiskN. */
	STEADYIO_USE_DIRECT = 0,
	/* Registered with an io_uring; tried with a directory or block device as target. */
	STEADYIO_USE_IO_URING_FIXED = 1,
	/* Registered with /dev/chardiskN; tried with that as target. */
	STEADYIO_USE_CHARDISK = 2,
};

struct steadyio_buffer;

/*
 * Maps the first `bytes` (a multiple of 4096) of memory that others have made: a memfd, also one under
 * a udmabuf, huge pages, a reserved region as device-dax (docs/reference/buffers.md). Then tries which
 * I/O the kernel allows with it. `target` is what data will go to or come from: a directory on a file
 * system, a block device, or /dev/chardiskN; NULL: /var/tmp. A block of it is read into the first and
 * the last page of the memory, whose contents are put back: nobody else may write to them meanwhile.
 * The file may be closed afterwards. STEADYIO_FAILED if it cannot be mapped, or the target not be
 * read; not for real-time threads.
 */
int steadyio_buffer_from_fd(int fd, uint64_t bytes, const char *target,
			    struct steadyio_buffer **buffer);

/* The memory; NULL for NULL. */
void *steadyio_buffer_data(const struct steadyio_buffer *buffer);

/*
 * STEADYIO_OK if `use` (enum steadyio_use) works, STEADYIO_REJECTED if the kernel refuses it;
 * STEADYIO_INVALID if it was not tried. *reason, if reason is not NULL, is the rule that refuses it,
 * or "", and lives as long as the buffer.
 */
int steadyio_buffer_can(const struct steadyio_buffer *buffer, uint32_t use, const char **reason);

/* Unmaps the memory, which no I/O may use any more. NULL does nothing. */
void steadyio_buffer_close(struct steadyio_buffer *buffer);

/*
 * The error of this thread's latest call that returned a negative value. Never NULL;
 * valid until the next such call.
 */
const char *steadyio_error(void);

/* What a status means, without details. Never NULL. */
const char *steadyio_status_text(int status);

/* Version of the library. */
const char *steadyio_version(void);

#ifdef __cplusplus
}
#endif

#endif
