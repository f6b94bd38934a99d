# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run a command in the lab's root, which shows only the named files of the host.

Builds there have the same bytes on every machine: same tools, same paths, no network.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from steady_lab.errors import LabError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What the host's network needs of the host's files, for the one build that downloads.
NETWORK_FILES = (
    *("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts", "/etc/ssl"),
    *("/usr/share/ca-certificates", "/usr/local/share/ca-certificates"),
)
NETWORK_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@dataclass(frozen=True)
class Place:
    """A file or folder of the host that a command in the root sees, and where."""

    host: Path
    inside: str
    writable: bool = False


def sandbox(
    root: Path, places: Sequence[Place], environment: Mapping[str, str], chdir: str = "/"
) -> list[str]:
    """Return the bwrap command before a command in `root`, without network and capabilities.

    /tmp, /run and /dev/shm are empty, /proc and /sys are not there.
    """
    words = _new_namespaces()
    _check_namespaces()
    words += ["--cap-drop", "ALL", "--clearenv", "--ro-bind", str(root), "/", "--dev", "/dev"]
    for empty in ("/dev/shm", "/run", "/tmp"):
        words += ["--tmpfs", empty]
    for place in places:
        bind = "--bind" if place.writable else "--ro-bind"
        words += [bind, str(place.host), place.inside]
    for name, value in (_processor() | dict(environment)).items():
        words += ["--setenv", name, value]
    return [*words, "--chdir", chdir]


def _new_namespaces() -> list[str]:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session"]
    if os.getuid() != 0:
        # Files of the user are root's, as they are where root runs the lab.
        words += ["--unshare-user", "--uid", "0", "--gid", "0"]
    return words


@functools.cache
def _check_namespaces() -> None:
    """Raise LabError, once and first, where bwrap is missing or the system forbids namespaces."""
    if not shutil.which("bwrap"):
        raise LabError("bwrap is missing: install bubblewrap (`make setup` does, too)")
    command = [*_new_namespaces(), "--ro-bind", "/", "/", "true"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(
            f"the lab needs new namespaces, which this system forbids: {done.stderr.strip()} (run "
            "it as root, or set user.max_user_namespaces above 0, kernel.unprivileged_userns_clone "
            "to 1 and kernel.apparmor_restrict_unprivileged_userns to 0 with sysctl; a container "
            "needs --privileged)"
        )


def _processor() -> dict[str, str]:
    """Pass on which processor features the C library must not use."""
    tunables = os.environ.get("GLIBC_TUNABLES")
    return {"GLIBC_TUNABLES": tunables} if tunables else {}


def build_sandbox(
    root: Path,
    places: Sequence[Place],
    environment: Mapping[str, str] | None = None,
    chdir: str = "/",
    network: bool = False,
) -> list[str]:
    """Return the bwrap command before a build: as `sandbox`, with /proc, on request with network.

    The host's name, which compilers might note down, is not the host's.
    """
    variables = {"PATH": PATH, "LC_ALL": "C", "TZ": "UTC", "HOME": "/tmp"} | dict(environment or {})
    more = []
    if network:
        more.append("--share-net")
        files = (Path(name) for name in NETWORK_FILES)
        places = [*places, *(Place(file, str(file)) for file in files if file.exists())]
        for name in (*NETWORK_VARIABLES, *map(str.upper, NETWORK_VARIABLES)):
            if name in os.environ:
                variables[name] = os.environ[name]
    more += ["--ro-bind", "/proc", "/proc", "--hostname", "lab"]
    return [*sandbox(root, places, variables, chdir), *more]


def run_inside(
    root: Path,
    command: Sequence[str],
    places: Sequence[Place],
    environment: Mapping[str, str] | None = None,
    chdir: str = "/",
    network: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a build command in `root` and return how it ended, with its output."""
    words = [*build_sandbox(root, places, environment, chdir, network), *command]
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


# Passes SIGTERM on, and waits for the end that the command then chooses.
_WAIT = '"$@" & trap "kill $!" TERM; wait $!; status=$?; wait; exit $status'


@contextmanager
def start_inside(inside: Sequence[str], command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a command after what `build_sandbox` returned; its output and errors are one pipe.

    Ctrl-C, or an error of the caller, sends SIGTERM to the command itself and waits for its end,
    so that make deletes what it has half written. A signal to bwrap would kill it on the spot.
    """
    read_end, write_end = os.pipe()
    bwrap, *options = inside
    started = subprocess.Popen(
        [bwrap, "--as-pid-1", "--info-fd", str(write_end), *options]
        + ["sh", "-c", _WAIT, "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[write_end],
        start_new_session=True,
        text=True,
    )
    os.close(write_end)
    try:
        yield started
    except BaseException:
        info = read_info(read_end)
        while info and started.poll() is None:
            # Again each second: until the shell has set its trap, the signal is ignored.
            # The command may have ended, and bwrap not yet.
            with suppress(ProcessLookupError):
                os.kill(json.loads(info)["child-pid"], signal.SIGTERM)
            with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                started.communicate(timeout=1)
        raise
    finally:
        os.close(read_end)


def read_info(read_end: int) -> bytes:
    """Return what bwrap says of the command, which comes in parts; empty if it has not started."""
    info = b""
    while not info.endswith(b"}\n"):
        part = os.read(read_end, 4096)
        if not part:
            return b""
        info += part
    return info
