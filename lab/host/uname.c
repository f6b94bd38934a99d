// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loaded into User Mode Linux (LD_PRELOAD) so that a guest does not see which host it runs on.
 *
 * The guest's kernel asks for the host's name and release, and shows them in /proc/cpuinfo.
 */
#include <string.h>
#include <sys/utsname.h>

/* Called by UML in place of the C library's. */
int uname(struct utsname *name)
{
	memset(name, 0, sizeof(*name));
	strcpy(name->sysname, "Linux");
	strcpy(name->nodename, "lab");
	strcpy(name->release, "host");
	strcpy(name->version, "host");
	strcpy(name->machine, "x86_64");
	return 0;
}
