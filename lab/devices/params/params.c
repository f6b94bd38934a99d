// SPDX-License-Identifier: GPL-2.0-only
/* The header states what this is for. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "params.h"

static const char fault_syntax[] = "read|write|erase|flush|any:error|timeout:"
				   "op:1..|sectors:FIRST-LAST|ppm:0..1000000";
static const char *const fault_ops[] = {"read", "write", "erase", "flush", "any"};
static const char *const fault_outcomes[] = {"", "error", "timeout"};
static const char *const fault_whens[] = {"op", "sectors", "ppm"};

int param_number_parse(const char *key, const char *text, u64 min, u64 max, u64 *value)
{
	u64 parsed;
	int err = kstrtoull(text, 0, &parsed);

	if (err || parsed < min || parsed > max) {
		pr_err("%s=%s: must be a number in %llu..%llu\n", key, text, min, max);
		return -EINVAL;
	}
	*value = parsed;
	return 0;
}

static int number_set(const char *text, const struct kernel_param *kp)
{
	struct param_number *number = kp->arg;

	return param_number_parse(kp->name, text, number->min, number->max, &number->value);
}

static int number_get(char *to, const struct kernel_param *kp)
{
	const struct param_number *number = kp->arg;

	return sysfs_emit(to, "%llu\n", number->value);
}

const struct kernel_param_ops param_number_ops = {
	.set = number_set,
	.get = number_get,
};

int param_name_check(const char *key, const char *text, size_t chars)
{
	size_t i, len = strlen(text);

	for (i = 0; i < len; i++)
		if (!isgraph(text[i]))
			len = 0;
	if (len && len <= chars)
		return 0;
	pr_err("%s=%s: must be 1..%zu printable characters without spaces\n", key, text, chars);
	return -EINVAL;
}

/* Takes the next word from *rest and finds it in @words. */
static int next_word(char **rest, const char *const *words, size_t count)
{
	char *word = strsep(rest, ":");

	if (!word || !*word)
		return -EINVAL;
	return match_string(words, count, word);
}

static int fault_parse(const char *text, struct flash_fault *to)
{
	char buffer[64], *rest = buffer, *last;
	int on, outcome, when;

	if (strscpy(buffer, text, sizeof(buffer)) < 0)
		return -EINVAL;
	on = next_word(&rest, fault_ops, ARRAY_SIZE(fault_ops));
	outcome = next_word(&rest, fault_outcomes, ARRAY_SIZE(fault_outcomes));
	when = next_word(&rest, fault_whens, ARRAY_SIZE(fault_whens));
	if (on < 0 || outcome < 0 || when < 0 || !rest)
		return -EINVAL;
	*to = (struct flash_fault){.on = on, .outcome = outcome, .when = when};
	last = rest;
	rest = strsep(&last, "-");
	if (kstrtoull(rest, 10, &to->first) || (last && kstrtoull(last, 10, &to->last)))
		return -EINVAL;
	switch (to->when) {
	case FLASH_AT_OP:
		return !last && to->first ? 0 : -EINVAL;
	case FLASH_AT_SECTORS:
		return last && to->first <= to->last ? 0 : -EINVAL;
	case FLASH_AT_RANDOM:
		return !last && to->first <= 1000000 ? 0 : -EINVAL;
	}
	return -EINVAL;
}

int param_faults_parse(char *const *texts, u32 count, struct flash_fault *faults)
{
	u32 i;

	for (i = 0; i < count; i++) {
		if (!fault_parse(texts[i], &faults[i]))
			continue;
		pr_err("fault=%s: must be %s\n", texts[i], fault_syntax);
		return -EINVAL;
	}
	return 0;
}
