// SPDX-License-Identifier: MIT OR Apache-2.0
/* Arguments NAME=NUMBER of task_set.c: of the card and the load, then of each task. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "k2_policy.h"
#include "task_numbers.h"

struct load_numbers load = {
	.inflight_max = 1,
	.max_sectors_kb = 512,
	.bg_depth = 8,
	.trials = 20,
	.periods = 100,
	.load_seed = 1,
};

struct task_numbers task_numbers[TASKS_MAX];
u32 task_count;

#define LOAD_NUMBER(name)                                                                          \
	{                                                                                          \
#name, &load.name                                                                  \
	}
#define TASK_NUMBER(name)                                                                          \
	{                                                                                          \
#name, offsetof(struct task_numbers, name)                                         \
	}

static u64 *load_number(const char *name, size_t length)
{
	static const struct {
		const char *name;
		u64 *value;
	} numbers[] = {
		LOAD_NUMBER(inflight_max),   LOAD_NUMBER(split_kib),
		LOAD_NUMBER(rt_block_us),    LOAD_NUMBER(background_wait_ms_max),
		LOAD_NUMBER(max_sectors_kb), LOAD_NUMBER(host_us),
		LOAD_NUMBER(bg_read),	     LOAD_NUMBER(bg_write),
		LOAD_NUMBER(bg_kib),	     LOAD_NUMBER(bg_durable),
		LOAD_NUMBER(bg_discard_kib), LOAD_NUMBER(bg_flush_us),
		LOAD_NUMBER(bg_depth),	     LOAD_NUMBER(bg_whole),
		LOAD_NUMBER(fua_bypasses),   LOAD_NUMBER(greedy),
		LOAD_NUMBER(read_limit_ns),  LOAD_NUMBER(read_limit_per_kib_ns),
		LOAD_NUMBER(write_limit_ns), LOAD_NUMBER(write_limit_per_kib_ns),
		LOAD_NUMBER(trials),	     LOAD_NUMBER(periods),
		LOAD_NUMBER(load_seed),	     {},
	};

	for (size_t i = 0; numbers[i].name; i++)
		if (strlen(numbers[i].name) == length && !strncmp(numbers[i].name, name, length))
			return numbers[i].value;
	return (u64 *)card_number(name, length);
}

static u64 *task_number(const char *name, size_t length)
{
	static const struct {
		const char *name;
		size_t offset;
	} numbers[] = {
		TASK_NUMBER(write),
		TASK_NUMBER(durable),
		TASK_NUMBER(level),
		TASK_NUMBER(kib),
		TASK_NUMBER(ios),
		TASK_NUMBER(at_once),
		TASK_NUMBER(period_us),
		TASK_NUMBER(cpu_us),
		TASK_NUMBER(jitter_us),
		TASK_NUMBER(block_us),
		TASK_NUMBER(declared_jitter_us),
		TASK_NUMBER(think_us),
		TASK_NUMBER(exact),
		{},
	};

	for (size_t i = 0; numbers[i].name; i++)
		if (strlen(numbers[i].name) == length && !strncmp(numbers[i].name, name, length))
			return (u64 *)((char *)&task_numbers[task_count - 1] + numbers[i].offset);
	return NULL;
}

static bool parse_word(const char *word)
{
	const char *value = strchr(word, '=');
	size_t length = value ? (size_t)(value - word) : 0;
	u64 *to = NULL;
	char *end;

	if (value)
		to = task_count ? task_number(word, length) : load_number(word, length);
	if (!to) {
		fprintf(stderr, "task_set: %s: must be NAME=NUMBER with a known name\n", word);
		return false;
	}
	*to = strtoull(value + 1, &end, 10);
	if (end == value + 1 || *end) {
		fprintf(stderr, "task_set: %s: must be a whole number\n", word);
		return false;
	}
	return true;
}

static bool check_tasks(void)
{
	for (u32 i = 0; i < task_count; i++) {
		const struct task_numbers *number = &task_numbers[i];

		if (number->period_us && number->kib && number->ios && number->at_once &&
		    number->level < K2_RT_LEVELS)
			continue;
		fprintf(stderr,
			"task_set: task %u: needs period_us, kib, ios, at_once, level below 8\n",
			i);
		return false;
	}
	if (!task_count)
		fprintf(stderr, "task_set: needs a task (task period_us=NUMBER kib=NUMBER)\n");
	return task_count;
}

bool task_numbers_parse(int count, char **words)
{
	for (int i = 1; i < count; i++) {
		if (strcmp(words[i], "task")) {
			if (!parse_word(words[i]))
				return false;
			continue;
		}
		if (task_count == TASKS_MAX) {
			fprintf(stderr, "task_set: at most %d tasks\n", TASKS_MAX);
			return false;
		}
		task_numbers[task_count++] = (struct task_numbers){.ios = 1, .at_once = 1};
	}
	if (!load.trials || !load.periods || !load.max_sectors_kb) {
		fprintf(stderr, "task_set: trials, periods and max_sectors_kb are at least 1\n");
		return false;
	}
	return check_tasks();
}
