# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plants each fault of faults.toml in a clone, and shows that the test it names finds it.

The test has to pass without the fault. Then the fault is written into the clone, what the test
needs is built, and the test has to fail by itself: a fault that cannot be built is not found.

The clone is build/mutations/clone, at HEAD of this one. It keeps its objects from run to run, and
has the cache and the virtual environment of this one. build/mutations/logs has what the tests said.

Called by `make soak`, as `build/venv/bin/python tests/mutations/run.py [NAME...]`. --list names the
faults; --tree takes this tree as it is, with uncommitted changes.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

PROJECT = Path(__file__).resolve().parents[2]
FAULTS = Path(__file__).with_name("faults.toml")
HOME = PROJECT / "build" / "mutations"
CLONE, LOGS = HOME / "clone", HOME / "logs"
CARGO = ("cargo", "test", "--locked", "--manifest-path", "device/Cargo.toml")
PYTEST = ("-m", "pytest", "-c", "lab/pyproject.toml", "--rootdir", ".", "-p", "no:cacheprovider")
KERNEL = ("-m", "steady_lab.cli", "kernel", "modules", "--flavour", "debug", "--kernel", "6.12")
# Where the lab looks for `steady`.
STEADY_BUILD = (
    "cargo build --locked --manifest-path device/Cargo.toml --package steady "
    "--package steadyio-command && "
    "install -D -t build/bin build/cargo/debug/steady build/cargo/debug/steady-guest "
    "build/cargo/debug/steady-recipe"
)
STEADY = ("sh", "-c", STEADY_BUILD)
RUFF = ("-m", "ruff", "check", "--config", "lab/pyproject.toml")
# A test that a fault keeps from ending has not found it. A build may take longer.
TEST_TIMEOUT_S = 1200
BUILD_TIMEOUT_S = 7200
INTERRUPTED = 130


class MutationError(Exception):
    """A fault that was not found, with the reason."""


@dataclass(frozen=True)
class Test:
    """How a test is built and run, and its output when it passes, or fails by itself."""

    build: Sequence[str]
    run: Sequence[str]
    passed: str
    failed: str


@dataclass(frozen=True)
class Fault:
    """One of faults.toml, which says what its fields are."""

    name: str
    why: str
    file: str
    old: str
    new: str
    test: str

    def planted(self, text: str) -> str:
        """Return the file's text with the fault; raises MutationError unless it fits."""
        found = text.count(self.old)
        if found != 1:
            raise MutationError(f"{self.file}: `old` is there {found} times, expected once")
        return text.replace(self.old, self.new)

    def how(self) -> Test:
        """Return how the test is run; raises MutationError if it cannot be told."""
        match self.test.split():
            case ["policy", name]:
                program = f"build/tests/policy/{name}"
                build = ["make", "-C", "tests/policy", f"../../{program}"]
                return Test(build, [program], r"^ok ", r"^FAIL ")
            case ["cargo", package, target, name]:
                build = [*CARGO, "--package", package, "--test", target]
                run = [*build, "--", "--exact", name]
                said = rf"^test {re.escape(name)} (- [a-z ]+)?\.\.\. "
                return Test([*build, "--no-run"], run, f"{said}ok$", f"{said}FAILED$")
            case ["simulated", name]:
                path = "tests/bound/test_simulated.py"
                run = [sys.executable, *PYTEST, path, "-k", name]
                return Test(STEADY, run, r"^=+ 1 passed\b", r"^=+ 1 failed\b(?!.*error)")
            case ["pytest", path, *words] if not words or words[0] == "-k" and len(words) > 1:
                chosen = ["-k", " ".join(words[1:])] if words else []
                of_lab = self.file.endswith(".py")
                build = [sys.executable, *((*RUFF, self.file) if of_lab else KERNEL)]
                run = [sys.executable, *PYTEST, path, *chosen]
                return Test(build, run, r"^=+ 1 passed\b", r"^=+ 1 failed\b(?!.*error)")
        raise MutationError(f"test = {self.test!r}: expected policy, cargo, simulated or pytest")


def read_faults() -> list[Fault]:
    """Return all faults; raises TypeError if one has other keys than Fault."""
    tables = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]
    return [Fault(**table) for table in tables]


def chosen_faults(names: Sequence[str]) -> list[Fault]:
    """Return the faults with these names, or all; raises MutationError for an unknown name."""
    faults = read_faults()
    known = [fault.name for fault in faults]
    for name in names:
        if name not in known:
            raise MutationError(f"{name}: no such fault, expected one of {', '.join(known)}")
    return [fault for fault in faults if not names or fault.name in names]


def environment() -> dict[str, str]:
    """Return the environment of builds and tests: nothing is replayed, the lab is the clone's."""
    return {
        **os.environ,
        "STEADYIO_TEST_CACHE": "0",
        "PYTHONPATH": str(CLONE / "lab"),
        # A compiled file is taken for that of another text that is as long, in the same second.
        "PYTHONDONTWRITEBYTECODE": "1",
        # As scripts/test has it; and a warning is an error, as elsewhere.
        "PROPTEST_RNG_SEED": "1",
        "RUSTFLAGS": "-D warnings",
    }


def call(command: Sequence[str], log: TextIO, timeout_s: float) -> int:
    """Run a command in the clone, in a process group of its own, and return its status.

    Raises TimeoutExpired, and KeyboardInterrupt on Ctrl-C, when all of the group has ended.
    """
    log.write(f"$ {shlex.join(command)}\n")
    log.flush()
    child = subprocess.Popen(
        command,
        cwd=CLONE,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return child.wait(timeout_s)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        # As Ctrl-C: pytest ends its guests.
        os.killpg(child.pid, signal.SIGINT)
        with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            child.wait(30)
        raise
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def git(*arguments: str, at: Path = CLONE, stdin: bytes | None = None) -> bytes:
    """Run git and return its output; raises CalledProcessError."""
    done = subprocess.run(
        ["git", "-C", str(at), *arguments], input=stdin, stdout=subprocess.PIPE, check=True
    )
    return done.stdout


def update_clone(with_tree: bool) -> None:
    """Bring the clone to HEAD, or to the working tree; what is built there stays."""
    if not (CLONE / ".git").is_dir():
        shutil.rmtree(CLONE, ignore_errors=True)
        git("clone", "--quiet", "--no-checkout", str(PROJECT), str(CLONE), at=PROJECT)
    git("fetch", "--quiet", str(PROJECT), "HEAD")
    git("checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
    git("clean", "-fdq")
    if not with_tree:
        return
    changes = git("diff", "--binary", "HEAD", at=PROJECT)
    if changes:
        git("apply", "--whitespace=nowarn", "-", stdin=changes)
    untracked = git("ls-files", "-z", "--others", "--exclude-standard", at=PROJECT)
    for name in filter(None, untracked.decode().split("\0")):
        (CLONE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / name, CLONE / name)


def outcome(test: Test, log_file: Path) -> tuple[int, str]:
    """Build and run a test; return its status and output. Raises MutationError if not built."""
    with log_file.open("w+", encoding="utf-8", errors="replace") as log:
        try:
            if call(test.build, log, BUILD_TIMEOUT_S) != 0:
                raise MutationError(f"not built: {log_file}")
            begin = log.tell() if log.seek(0, os.SEEK_END) else 0
            status = call(test.run, log, TEST_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise MutationError(f"no end in {error.timeout:.0f} s: {log_file}") from error
        log.seek(begin)
        return status, log.read()


def find(fault: Fault) -> None:
    """Run the test without the fault and with it; raises MutationError unless it is found."""
    test, path = fault.how(), CLONE / fault.file
    if not path.is_file():
        raise MutationError(f"{fault.file}: no such file")
    sound = path.read_text(encoding="utf-8")
    faulty = fault.planted(sound)
    log = LOGS / f"{fault.name}-without.log"
    status, said = outcome(test, log)
    if status != 0 or not re.search(test.passed, said, re.MULTILINE):
        raise MutationError(f"without the fault the test does not pass: {log}")
    log = LOGS / f"{fault.name}.log"
    try:
        path.write_text(faulty, encoding="utf-8")
        status, said = outcome(test, log)
    finally:
        path.write_text(sound, encoding="utf-8")
    if status == 0:
        raise MutationError(f"NOT FOUND, the test passes: {fault.test}")
    if not re.search(test.failed, said, re.MULTILINE):
        raise MutationError(f"status {status}, but no test that failed: {log}")


def find_all(faults: Sequence[Fault]) -> list[str]:
    """Try each fault and say how it went; return the names of those that were not found."""
    missed = []
    for number, fault in enumerate(faults, start=1):
        where = f"mutations: {number} of {len(faults)}: {fault.name}"
        begin_s = time.monotonic()
        try:
            find(fault)
            print(f"{where}: found by {fault.test} in {time.monotonic() - begin_s:.0f} s")
        except (MutationError, OSError) as error:
            missed.append(fault.name)
            print(f"{where}: {error}", file=sys.stderr)
        sys.stdout.flush()
    return missed


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Show that the tests find the faults they name.")
    parser.add_argument("name", nargs="*", help="of a fault; without names, all")
    parser.add_argument("--list", action="store_true", help="only say which faults there are")
    parser.add_argument("--tree", action="store_true", help="with what is not committed")
    return parser.parse_args()


def main() -> int:
    """Return the exit status."""
    wanted = arguments()
    # As a Ctrl-C, so that nothing goes on; a shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        faults = chosen_faults(wanted.name)
        if wanted.list:
            for fault in faults:
                print(f"{fault.name}: {fault.file}: {fault.why}\n    {fault.test}")
            return 0
        LOGS.mkdir(parents=True, exist_ok=True)
        with (HOME / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            update_clone(wanted.tree)
            missed = find_all(faults)
    except (MutationError, subprocess.CalledProcessError) as error:
        print(f"mutations: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mutations: interrupted", file=sys.stderr)
        return INTERRUPTED
    if missed:
        replay = f"build/venv/bin/python tests/mutations/run.py {' '.join(missed)}"
        print(f"mutations: FAILED: {len(missed)} of {len(faults)}: {replay}", file=sys.stderr)
        return 1
    print(f"mutations: all {len(faults)} faults found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
