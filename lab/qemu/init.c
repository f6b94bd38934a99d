// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The first program of a guest under QEMU: makes the lab's root, which QEMU shares with the guest
 * over 9P, the guest's root, and goes on with the init script that all targets share.
 *
 * /modules of the initramfs holds what the stock kernel needs for that, named by the order of
 * loading; /init.sh is the script. What fails is in the kernel's log, and the kernel panics as the
 * init ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODULES		"/modules"
#define NEW_ROOT	"/root"
#define OPTIONS		"trans=virtio,version=9p2000.L,msize=262144,cache=loose"
#define TRIES		100
#define TRY_INTERVAL_US 50000

static void fail(const char *what)
{
	int log = open("/dev/kmsg", O_WRONLY);

	dprintf(log < 0 ? 2 : log, "steady-lab: trouble: init: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void load_modules(void)
{
	struct dirent **names;
	int count = scandir(MODULES, &names, is_file, alphasort);

	if (count < 0)
		fail(MODULES);
	for (int i = 0; i < count; i++) {
		char path[512];
		int file;

		snprintf(path, sizeof(path), MODULES "/%s", names[i]->d_name);
		file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0 || syscall(SYS_finit_module, file, "", 0) < 0)
			fail(path);
		close(file);
	}
}

/* The bus finds its devices some time after the driver was loaded. */
static void mount_root(void)
{
	for (int i = 0; i < TRIES; i++) {
		if (!mount("root", NEW_ROOT, "9p", MS_RDONLY, OPTIONS))
			return;
		usleep(TRY_INTERVAL_US);
	}
	fail("mount of the root");
}

static char *read_script(void)
{
	static char text[128 * 1024];
	FILE *file = fopen("/init.sh", "re");

	if (!file || !fread(text, 1, sizeof(text) - 1, file))
		fail("/init.sh");
	fclose(file);
	return text;
}

int main(void)
{
	char *script = read_script();

	if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL))
		fail("mount of /dev");
	load_modules();
	mount_root();
	if (chdir(NEW_ROOT) || mount(NEW_ROOT, "/", NULL, MS_MOVE, NULL) || chroot(".") ||
	    chdir("/"))
		fail("change of the root");
	execl("/bin/sh", "/bin/sh", "-c", script, "init.sh", (char *)NULL);
	fail("/bin/sh");
}
