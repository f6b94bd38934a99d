// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lets the debug kernel load a module again: loaded by the lab before all others.
 *
 * KASAN marks the gaps between a module's global variables when the module is loaded, and nobody
 * unmarks them when it goes. Other architectures give each module a shadow of its own; UML has one
 * for all addresses. vmalloc gives out the same addresses again, on 6.12 soon, on 6.1 sometimes;
 * the next module there, or the file that it is read from, is reported as out of bounds.
 */
#include <linux/kasan.h>
#include <linux/module.h>
#include <linux/notifier.h>

#ifdef CONFIG_KASAN
/* Byte by byte: memset() would check the shadow of the shadow. */
static void unmark(const void *base, size_t size)
{
	u8 *shadow = kasan_mem_to_shadow(base);
	size_t i;

	for (i = 0; i < DIV_ROUND_UP(size, 1 << KASAN_SHADOW_SCALE_SHIFT); i++)
		WRITE_ONCE(shadow[i], 0);
}
#else
/* tests/bench/debug_checks.py builds debug kernels without KASAN. */
static void unmark(const void *base, size_t size)
{
}
#endif

#ifdef for_each_mod_mem_type
static void unmark_module(const struct module *mod)
{
	for_each_mod_mem_type(type)
		unmark(mod->mem[type].base, mod->mem[type].size);
}
#else
/* Code and data that only the start needs have no such variables, and are freed by now. */
static void unmark_module(const struct module *mod)
{
	unmark(mod->core_layout.base, mod->core_layout.size);
}
#endif

static int module_changes(struct notifier_block *nb, unsigned long state, void *data)
{
	const struct module *mod = data;

	if (state != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	unmark_module(mod);
	return NOTIFY_OK;
}

static struct notifier_block notifier = {
	.notifier_call = module_changes,
};

static int __init module_shadow_init(void)
{
	return register_module_notifier(&notifier);
}

/* Stays: what is loaded after it relies on it. */
module_init(module_shadow_init);

MODULE_DESCRIPTION("KASAN on UML: forget modules that go");
MODULE_LICENSE("GPL");
