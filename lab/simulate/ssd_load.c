// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The load of the paper on K2 and SSDs (Park and Lee, 2021) on the SSD model, without a kernel.
 *
 * One real-time process issues one request at a time, with pauses, alongside asynchronous
 * background processes. The scheduler follows K2's rule: at most `bound` requests are with the
 * drive, and real-time goes first. With bound=0, each request goes to the drive at once. With
 * rt_block_us, k2's look-ahead (kernel/policy) limits the number further. The block layer takes no
 * time. Prints one line of JSON: the latency of the real-time process, the throughput of all
 * processes, and the drive's work.
 *
 * By hand: make -C lab/simulate, then build/simulate/ssd_load [NAME=NUMBER]..., with the numbers of
 * the drive (lab/devices/flash/ssd_params.c) and those below.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "ssd.h"

#define TAGS	   4096
#define FILES_MAX  64
#define SECOND_NS  1000000000ull
#define SLOT_BYTES 4096

static struct load {
	u64 write; /* 0: reads */
	u64 bg_write; /* the background writes; default: as write */
	u64 sequential;
	u64 bound; /* K2-x; 0: no scheduler */
	u64 rt_block_us; /* 0: only the bound limits */
	u64 pace_kb_s; /* with rt_block_us: pace of the background's writes, not learned */
	u64 processes; /* of the background */
	u64 depth; /* outstanding requests of each */
	u64 pause_us; /* of the real-time process, from an end to the next submission */
	u64 jitter_us; /* random deviation of the pause */
	u64 span_permille; /* of the capacity that is read or written */
	u64 rt_span_permille; /* the real-time process's own part, after that; 0: the same part */
	u64 samples; /* real-time requests measured */
	u64 warm_ms; /* not measured, at the start */
	u64 seed;
} load = {
	.processes = 3,
	.bg_write = 2,
	.depth = 32,
	.pause_us = 2000,
	.span_permille = 125,
	.samples = 5000,
	.warm_ms = 500,
	.seed = 1,
};

static const struct {
	const char *name;
	u64 *value;
} load_numbers[] = {
	{"write", &load.write},
	{"bg_write", &load.bg_write},
	{"sequential", &load.sequential},
	{"bound", &load.bound},
	{"rt_block_us", &load.rt_block_us},
	{"pace_kb_s", &load.pace_kb_s},
	{"processes", &load.processes},
	{"depth", &load.depth},
	{"pause_us", &load.pause_us},
	{"jitter_us", &load.jitter_us},
	{"span_permille", &load.span_permille},
	{"rt_span_permille", &load.rt_span_permille},
	{"samples", &load.samples},
	{"warm_ms", &load.warm_ms},
	{"load_seed", &load.seed},
	{},
};

static struct ssd_params params;
static struct ssd drive;

/* Process 0 is the real-time one. */
static struct process {
	u64 first; /* its range of slots: start and length */
	u64 slots;
	u64 next; /* when sequential */
} process[FILES_MAX];

static struct request {
	u32 process;
	u64 slot;
	u64 submitted_ns;
	u32 next; /* free tags, or the background's queue */
	u32 flight; /* the policy's number */
} request[TAGS];

static u32 free_tag;
static u32 waiting_head = TAGS, waiting_tail = TAGS; /* of the background, under a bound */
static u32 rt_waiting = TAGS;
static u64 in_flight, now_ns, rt_next_ns, random_state;
static u64 wait_until_ns = SSD_NEVER; /* until then background waits for expected real-time */
static u64 *latency_ns, latencies, measured_slots, measured_from_ns;

static u64 below(u64 limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth */
	return (random_state >> 32) % limit;
}

static bool measuring(void)
{
	return now_ns >= measured_from_ns;
}

static struct guard_request for_guard(u32 tag)
{
	bool is_rt = !request[tag].process;

	return (struct guard_request){
		.is_rt = is_rt,
		.write = is_rt ? load.write : load.bg_write,
		.bytes = SLOT_BYTES,
	};
}

static void to_drive(u32 tag)
{
	struct guard_request guarded = for_guard(tag);
	struct ssd_command command = {
		.tag = tag,
		.op = guarded.write ? SSD_WRITE : SSD_READ,
		.sector = request[tag].slot * SSD_SLOT_SECTORS,
		.sectors = SSD_SLOT_SECTORS,
	};

	if (!ssd_submit(&drive, &command, now_ns)) {
		fprintf(stderr, "ssd_load: the drive takes no more: raise queue_commands\n");
		exit(1);
	}
	if (load.bound)
		request[tag].flight = guard_watch(&guarded, in_flight, now_ns);
	in_flight++;
}

static bool may_dispatch(u32 tag)
{
	struct guard_request guarded = for_guard(tag);

	if (guard_allows(&guarded, in_flight, now_ns))
		return true;
	wait_until_ns = guard_wait_until_ns();
	return false;
}

static void dispatch(void)
{
	wait_until_ns = SSD_NEVER;
	while (in_flight < load.bound) {
		u32 tag = rt_waiting != TAGS ? rt_waiting : waiting_head;

		if (tag == TAGS || !may_dispatch(tag))
			return;
		if (tag == rt_waiting) {
			rt_waiting = TAGS;
		} else {
			waiting_head = request[tag].next;
			if (waiting_head == TAGS)
				waiting_tail = TAGS;
		}
		to_drive(tag);
	}
}

static void submit(u32 owner)
{
	struct process *from = &process[owner];
	u32 tag = free_tag;

	free_tag = request[tag].next;
	request[tag] = (struct request){
		.process = owner,
		.submitted_ns = now_ns,
		.next = TAGS,
		.slot = from->first + (load.sequential ? from->next : below(from->slots)),
	};
	from->next = (from->next + 1) % from->slots;
	if (!load.bound) {
		to_drive(tag);
		return;
	}
	if (!owner) {
		guard_rt_arrival(load.write, now_ns);
		rt_waiting = tag;
	} else {
		if (waiting_tail == TAGS)
			waiting_head = tag;
		else
			request[waiting_tail].next = tag;
		waiting_tail = tag;
	}
	dispatch();
}

static u64 pause_ns(void)
{
	u64 pause_ns = load.pause_us * 1000, jitter_ns = load.jitter_us * 1000;

	return jitter_ns ? pause_ns - jitter_ns + below(2 * jitter_ns + 1) : pause_ns;
}

static void ended(u32 tag)
{
	u32 owner = request[tag].process;

	in_flight--;
	if (load.bound)
		guard_done(request[tag].flight, now_ns);
	measured_slots += measuring();
	if (!owner) {
		if (measuring())
			latency_ns[latencies++] = now_ns - request[tag].submitted_ns;
		if (load.bound)
			guard_rt_end(now_ns);
		rt_next_ns = now_ns + pause_ns();
	}
	request[tag].next = free_tag;
	free_tag = tag;
	if (load.bound)
		dispatch();
	if (owner)
		submit(owner);
}

static void prepare(void)
{
	u64 slots = drive.geometry.user_slots * load.span_permille / 1000;
	u64 rt_slots = drive.geometry.user_slots * load.rt_span_permille / 1000;
	u32 i, files = load.processes + 1;

	random_state = load.seed;
	for (i = 0; i < TAGS; i++)
		request[i].next = i + 1;
	for (i = 0; i < files; i++)
		process[i] = load.sequential ? (struct process){.first = slots / files * i,
								.slots = slots / files}
					     : (struct process){.slots = slots};
	if (rt_slots)
		process[0] = (struct process){.first = slots, .slots = rt_slots};
	for (i = 0; i < files; i++)
		if (process[i].slots)
			process[i].next = below(process[i].slots);
	measured_from_ns = load.warm_ms * 1000000;
	latency_ns = calloc(load.samples, sizeof(*latency_ns));
	for (i = 1; i < files; i++) {
		u64 n;

		for (n = 0; n < load.depth; n++)
			submit(i);
	}
}

static void run(void)
{
	while (latencies < load.samples) {
		u64 due_ns = ssd_next_ns(&drive);
		u32 tags[64], count, i;

		now_ns = due_ns < rt_next_ns ? due_ns : rt_next_ns;
		if (wait_until_ns < now_ns) {
			now_ns = wait_until_ns;
			dispatch();
			continue;
		}
		if (now_ns == SSD_NEVER) {
			fprintf(stderr, "ssd_load: a command never ends\n");
			exit(1);
		}
		count = ssd_run(&drive, now_ns, tags, 64);
		for (i = 0; i < count; i++)
			if (latencies < load.samples)
				ended(tags[i]);
		if (now_ns == rt_next_ns && latencies < load.samples) {
			rt_next_ns = SSD_NEVER;
			submit(0);
		}
	}
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static double quantile_us(u64 permille)
{
	return latency_ns[(load.samples * permille + 999) / 1000 - 1] / 1000.0;
}

static void report(void)
{
	const struct ssd_counts *counts = &drive.counts;
	u64 duration_ns = now_ns - measured_from_ns;

	qsort(latency_ns, load.samples, sizeof(*latency_ns), by_value);
	printf("{\"mb_s\": %.1f, \"count\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, "
	       "\"p999_us\": %.1f, \"max_us\": %.1f, ",
	       measured_slots * SLOT_BYTES * 1000.0 / duration_ns, load.samples, quantile_us(500),
	       quantile_us(990), quantile_us(999), latency_ns[load.samples - 1] / 1000.0);
	printf("\"seconds\": %.1f, \"host_slots\": %llu, \"map_slots\": %llu, \"copied_slots\": "
	       "%llu, "
	       "\"padded_slots\": %llu, \"erases\": %llu, \"page_reads\": %llu, \"gc_waits\": "
	       "%llu, "
	       "\"suspends\": %llu}\n",
	       (double)now_ns / SECOND_NS, counts->host, counts->map, counts->copied,
	       counts->padded, counts->erases, counts->page_reads, counts->gc_waits,
	       counts->suspends);
}

static u64 *number(const char *name, size_t length)
{
	const struct ssd_number *of_drive;
	u32 i;

	for (i = 0; load_numbers[i].name; i++)
		if (strlen(load_numbers[i].name) == length &&
		    !strncmp(load_numbers[i].name, name, length))
			return load_numbers[i].value;
	for (of_drive = ssd_numbers; of_drive->name; of_drive++)
		if (strlen(of_drive->name) == length && !strncmp(of_drive->name, name, length))
			return (u64 *)((u8 *)&params + of_drive->offset);
	return NULL;
}

static bool parse(int count, char **words)
{
	int i;

	for (i = 1; i < count; i++) {
		char *value = strchr(words[i], '='), *end;
		u64 *to = value ? number(words[i], value - words[i]) : NULL;

		if (!to) {
			fprintf(stderr, "ssd_load: %s: must be NAME=NUMBER with a known name\n",
				words[i]);
			return false;
		}
		*to = strtoull(value + 1, &end, 10);
		if (end == value + 1 || *end) {
			fprintf(stderr, "ssd_load: %s: no number\n", words[i]);
			return false;
		}
	}
	return true;
}

static const char *load_error(void)
{
	if (load.processes >= FILES_MAX || load.processes * load.depth >= TAGS)
		return "processes, depth: too many requests at once";
	if (!load.samples || !load.span_permille || load.span_permille > 1000 ||
	    load.span_permille + load.rt_span_permille > 1000)
		return "samples, span_permille: at least 1, and spans at most 1000";
	if (load.jitter_us > load.pause_us)
		return "jitter_us: at most pause_us";
	return NULL;
}

int main(int argc, char **argv)
{
	const char *error;

	ssd_params_default(&params);
	if (!parse(argc, argv))
		return 2;
	if (load.bg_write > 1)
		load.bg_write = load.write;
	error = ssd_params_error(&params);
	if (!error)
		error = load_error();
	if (error) {
		fprintf(stderr, "ssd_load: %s\n", error);
		return 2;
	}
	guard_begin((u32)load.rt_block_us, (u32)load.pace_kb_s, (u32)load.bound);
	ssd_init(&drive, &params, malloc(ssd_memory_bytes(&params)));
	prepare();
	run();
	report();
	return 0;
}
