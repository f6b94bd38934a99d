/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Records a made-up joint of a robot every millisecond, and the raw frames behind it.
 *
 *	cc record.c $(pkg-config --cflags --libs steadyio) -o record
 *	./record /data/run 10000
 *
 * In a real program the loop below is a thread under SCHED_FIFO, and the main thread does the rest.
 * Exit status: 0 recorded; 1 failed; 3 recorded, but records were lost.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <steadyio.h>

#define PERIOD_NS   1000000
#define FRAME_BYTES 512

static const char schema[] = "{\"type\":\"object\",\"properties\":{"
			     "\"step\":{\"type\":\"integer\"},\"angle\":{\"type\":\"number\"}}}";

struct channels {
	struct steadyio_channel *joint;
	struct steadyio_channel *frames;
};

static int failed(const char *what)
{
	fprintf(stderr, "record: %s: %s\n", what, steadyio_error());
	return 1;
}

static void note(void *context, const char *text)
{
	fprintf(stderr, "%s: %s\n", (const char *)context, text);
}

static int add_channels(struct steadyio_recorder *recorder, struct channels *channels)
{
	const struct steadyio_channel_config joint = {
		.struct_bytes = sizeof(joint),
		.topic = "/joint",
		.message_encoding = "json",
		.schema_name = "Joint",
		.schema_encoding = "jsonschema",
		.schema_data = schema,
		.schema_bytes = sizeof(schema) - 1,
		.record_bytes_max = 64,
		.period_ns = PERIOD_NS,
	};
	const struct steadyio_channel_config frames = {
		.struct_bytes = sizeof(frames),
		.topic = "/frames",
		.record_bytes_max = FRAME_BYTES,
		.period_ns = PERIOD_NS,
	};
	if (steadyio_add_channel(recorder, &joint, &channels->joint) != STEADYIO_OK)
		return failed("channel /joint");
	if (steadyio_add_channel(recorder, &frames, &channels->frames) != STEADYIO_OK)
		return failed("channel /frames");
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A lost record is counted; a negative status is an error of this program. */
static int record(const struct channels *channels, long steps)
{
	unsigned char frame[FRAME_BYTES];
	struct timespec next;
	char text[64];
	long step;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (step = 0; step < steps; step++) {
		uint64_t log_time_ns = now_ns();
		int bytes = snprintf(text, sizeof(text), "{\"step\":%ld,\"angle\":%.3f}", step,
				     (double)(step % 3142) / 1000);

		memset(frame, (int)(step & 0xff), sizeof(frame));
		if (steadyio_append(channels->joint, log_time_ns, text, (size_t)bytes) < 0)
			return failed("append");
		if (steadyio_append(channels->frames, log_time_ns, frame, sizeof(frame)) < 0)
			return failed("append");
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return 0;
}

/* Returns the number of lost records. */
static uint64_t tell(const char *topic, const struct steadyio_channel *channel)
{
	struct steadyio_account account = {.struct_bytes = sizeof(account)};
	uint64_t lost;

	if (steadyio_channel_account(channel, &account) != STEADYIO_OK)
		return 1;
	lost = account.lost_ring_full.records + account.lost_in_writing.records;
	printf("%s: received %" PRIu64 ", durable %" PRIu64 ", lost %" PRIu64 "\n", topic,
	       account.received.records, account.durable.records, lost);
	return lost;
}

static int run(struct steadyio_recorder *recorder, long steps)
{
	struct steadyio_stats stats = {.struct_bytes = sizeof(stats)};
	struct channels channels;
	uint64_t lost;

	if (add_channels(recorder, &channels))
		return 1;
	if (steadyio_start(recorder) != STEADYIO_OK)
		return failed("start");
	if (record(&channels, steps))
		return 1;
	if (steadyio_flush(recorder, 10000) != STEADYIO_OK)
		return failed("flush");
	if (steadyio_finish(recorder) != STEADYIO_OK)
		return failed("finish");
	lost = tell("/joint", channels.joint) + tell("/frames", channels.frames);
	if (steadyio_recorder_stats(recorder, &stats) != STEADYIO_OK)
		return failed("stats");
	printf("durable after at most %.1f ms, %" PRIu64 " rotations\n",
	       (double)stats.durable_lag_ns_max / 1e6, stats.rotations);
	return lost ? 3 : 0;
}

int main(int argc, char **argv)
{
	struct steadyio_config config = {
		.struct_bytes = sizeof(config),
		.loss_window_ms = 100,
		.unit_bytes = 256 << 10,
		.segment_bytes = 1 << 20,
		.keep = 4,
		.note = note,
		.note_context = "record",
	};
	struct steadyio_recorder *recorder;
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: record DIRECTORY STEPS\n");
		return 2;
	}
	config.dir = argv[1];
	if (steadyio_open(&config, &recorder) != STEADYIO_OK)
		return failed("open");
	status = run(recorder, strtol(argv[2], NULL, 10));
	steadyio_close(recorder);
	return status;
}
