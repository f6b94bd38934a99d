/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the unit tests of the policy share: EXPECT, and a list of tests to run. */
#ifndef EXPECT_H
#define EXPECT_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "k2_types.h"

static int failed;

#define EXPECT(actual, expected)                                                                   \
	expect(__FILE__, __LINE__, #actual, (uint64_t)(actual), (uint64_t)(expected))

static inline void expect(const char *file, int line, const char *what, uint64_t actual,
			  uint64_t expected)
{
	if (actual == expected)
		return;
	printf("%s:%d: %s is %" PRIu64 ", expected %" PRIu64 "\n", file, line, what, actual,
	       expected);
	failed = 1;
}

/* From @low to @high. */
#define EXPECT_WITHIN(actual, low, high)                                                           \
	expect_within(__FILE__, __LINE__, #actual, (uint64_t)(actual), (uint64_t)(low),            \
		      (uint64_t)(high))

static inline void expect_within(const char *file, int line, const char *what, uint64_t actual,
				 uint64_t low, uint64_t high)
{
	if (actual >= low && actual <= high)
		return;
	printf("%s:%d: %s is %" PRIu64 ", expected %" PRIu64 " to %" PRIu64 "\n", file, line, what,
	       actual, low, high);
	failed = 1;
}

struct test {
	const char *name;
	void (*run)(void);
};

#define TEST(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static inline int run_tests(const char *subject, const struct test *tests, size_t count)
{
	int status = EXIT_SUCCESS;

	for (size_t i = 0; i < count; i++) {
		failed = 0;
		tests[i].run();
		printf("%s policy: %s%s\n", failed ? "FAIL" : "ok  ", subject, tests[i].name);
		if (failed)
			status = EXIT_FAILURE;
	}
	return status;
}

#endif /* EXPECT_H */
