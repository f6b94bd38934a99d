/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * blk_mq_alloc_data.shallow_depth limits the tags of each word of the bitmap (6.1, and 6.12 up to
 * 6.12.42), or of the whole bitmap (from 6.12.43 on). No header shows which, and distributions
 * backport such changes, so the module tests the code when it is loaded.
 */
#ifndef K2_COMPAT_SHALLOW_DEPTH_H
#define K2_COMPAT_SHALLOW_DEPTH_H

#include <linux/init.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/sbitmap.h>

static bool k2_shallow_depth_per_word __ro_after_init;

static inline int __init k2_shallow_depth_probe(void)
{
	struct sbitmap_queue two_words;
	unsigned int taken = 0;
	int ret;

	ret = sbitmap_queue_init_node(&two_words, 4, 1, false, GFP_KERNEL, NUMA_NO_NODE);
	if (ret)
		return ret;

	sbitmap_queue_min_shallow_depth(&two_words, 1);
	while (sbitmap_queue_get_shallow(&two_words, 1) >= 0)
		taken++;
	k2_shallow_depth_per_word = taken > 1;
	sbitmap_queue_free(&two_words);
	return 0;
}

/*
 * In words of one bit no tags can be reserved: any request may take any of them. The kernel makes
 * such words for 4 to 7 tags. They are replaced by one word, unless memory for it is lacking. No
 * tag may be in use or waited for: the queue is frozen.
 */
static inline void k2_shallow_depth_prepare(struct sbitmap_queue *tags, int node)
{
	struct sbitmap_queue one_word;

	if (!k2_shallow_depth_per_word || tags->sb.shift || tags->sb.depth > BITS_PER_LONG)
		return;
	if (sbitmap_queue_init_node(&one_word, tags->sb.depth, ilog2(BITS_PER_LONG),
				    tags->sb.round_robin, GFP_NOIO | __GFP_NOWARN, node))
		return;
	sbitmap_queue_free(tags);
	*tags = one_word;
}

/* The number of tags that shallow_depth is counted against. */
static inline unsigned int k2_shallow_depth_whole(const struct sbitmap *tags)
{
	return k2_shallow_depth_per_word ? min(tags->depth, 1U << tags->shift) : tags->depth;
}

#endif /* K2_COMPAT_SHALLOW_DEPTH_H */
