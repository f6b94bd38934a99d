# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line of steady-lab: names of devices, completions, and messages about wrong input."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from steady_lab.cli import main
from steady_lab.commands.arguments import device
from steady_lab.devices.names import DEVICES, device_file
from steady_lab.errors import SpecError
from steady_lab.paths import PROJECT

LAB = PROJECT / "build" / "bin" / "steady-lab"
PASSWD = "/etc/passwd"

# Words, exit status, and words of the message: option or file, value, remedy.
WRONG = [
    ("", 2, "required: COMMAND"),
    ("nonsense", 2, "'nonsense' choose from 'root', 'devices'"),
    ("devices --nonsense", 2, "--nonsense"),
    ("boot", 2, "CMD"),
    ("boot --device none -- true", 2, "--device none: devices: test-plain a path"),
    ("boot --device /dev/null -- true", 2, "--device /dev/null: devices:"),
    ("boot --device= -- true", 2, "--device devices: test-plain"),
    ("boot --cpus 0 -- true", 2, "--cpus 0: at least 1"),
    ("boot --cpus x -- true", 2, "--cpus 'x': a whole number of at least 1"),
    ("boot --cpus 1.5 -- true", 2, "--cpus '1.5': a whole number"),
    ("boot --kernel 5.0 -- true", 2, "--kernel '5.0' '6.1', '6.12'"),
    ("boot --flavour x -- true", 2, "--flavour 'x' 'base', 'debug'"),
    ("boot --random-seed -1 -- true", 2, "--random-seed -1: 0 to"),
    ("boot --random-seed x -- true", 2, "--random-seed 'x': 0 to"),
    ("boot --timeout x -- true", 2, "--timeout 'x': seconds, such as 1.5"),
    ("boot --timeout 0 -- true", 2, "--timeout 0: more than 0 s"),
    ("boot --timeout nan -- true", 2, "--timeout nan: more than 0 s"),
    ("boot --virtual-timeout -5 -- true", 2, "--virtual-timeout -5: at least 1"),
    (f"boot --work {PASSWD} -- true", 2, f"--work {PASSWD}: a directory"),
    ("boot --module nonsense -- true", 1, "nonsense lab/kernel/base.config"),
    ("boot --disk nvme -- true", 1, "--disk --target qemu"),
    ("boot --disk floppy --target qemu -- true", 2, "--disk 'floppy' 'emmc', 'null', 'nvme'"),
    ("boot --target vmware -- true", 2, "--target 'vmware' 'uml', 'qemu'"),
    ("boot --target qemu --instruction-ns 3 -- true", 1, "3 ns: 1, 2, 4"),
    ("boot --kernel 6.12-arm64 -- true", 1, "6.12-arm64 --target qemu"),
    ("boot --flavour kcsan -- true", 1, "--flavour kcsan --target qemu"),
    ("boot --source /etc -- true", 1, "--source /etc: Makefile"),
    ("boot --source /etc --kernel 6.1 -- true", 2, "--kernel not allowed with --source"),
    ("run", 2, "FIGURE"),
    ("run none", 1, "none.toml: figures: every-10-ms"),
    ("run every-10-ms --jobs 0", 2, "--jobs '0' 1 to 64"),
    ("run every-10-ms --jobs x", 2, "--jobs 'x' 1 to 64"),
    ("run every-10-ms --on nowhere", 2, "--on 'nowhere' dask://HOST:PORT"),
    ("run every-10-ms --only nonsense", 1, "--only nonsense: k2"),
    (f"run every-10-ms --build {PASSWD}", 2, f"--build {PASSWD}: a directory"),
    ("summary none", 1, "none.toml: figures: every-10-ms"),
    ("power-cut /none", 1, "/none: No such file"),
    (f"power-cut {PASSWD}", 1, f"{PASSWD}: not a write log"),
    ("power-cut x --cut 1:2 --image y", 2, "--cut 1:2: TIME:FATE:SEED lost, kept"),
    ("power-cut x --cut a:b:c --image y", 2, "--cut a:b:c: TIME:FATE:SEED"),
    ("power-cut x --cut 1:none:1 --image y", 2, "--cut 1:none:1: lost, kept, prefix"),
    ("power-cut x --cut 1:lost:1", 2, "--cut --image"),
    ("power-cut x --plan 0", 2, "--plan 0: at least 1"),
    ("report --trace /none", 1, "--trace /none: No such file"),
    ("report --trace-rows /none", 1, "--trace-rows /none: no record none: --trace"),
    (f"report --tune {PASSWD}", 1, f"--tune {PASSWD}: not JSON"),
    ("report --build /none", 1, "/none/results: steady-lab run"),
    ("search --replay x", 1, "--replay x: search"),
    ("search --cases 0", 2, "--cases 0: at least 1"),
    ("search --seconds 0", 2, "--seconds 0: more than 0 s"),
    ("prebuilt unpack /none", 1, "/none: No such file"),
    (f"prebuilt unpack {PASSWD}", 1, f"{PASSWD}: damaged, or not of steady-lab prebuilt"),
    ("prebuilt pack /none/file", 2, "/none/file: a directory that exists"),
    ("kernel source --source /none", 1, "--source /none: Makefile"),
    ("kernel build --jobs 0", 2, "--jobs 0: at least 1"),
    ("root build --for vax", 2, "--for 'vax' 'amd64', 'arm64'"),
    (f"device fit --device {PASSWD}", 1, f"{PASSWD}: not valid TOML"),
    ("device fit --device none", 2, "--device none: devices: test-plain"),
    ("device fit --published /none", 1, "/none: cannot be read"),
    ("device fit /none", 1, "/none: cannot be read"),
    (f"device fit {PASSWD}", 1, f"{PASSWD}: not valid TOML"),
    (f"device fit {PASSWD} --ssd x", 1, "--ssd x: only without FILE"),
    ("device fit --out x.toml", 1, "--out x.toml: only with FILE"),
    ("completions tcsh", 2, "'tcsh' 'bash', 'zsh', 'fish'"),
    ("devices test-plain", 2, "test-plain"),
]


def run(
    words: Sequence[str | Path], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*words], env=os.environ | (environment or {}), timeout=60,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("line", "status", "says"), WRONG, ids=[line for line, _, _ in WRONG])
def test_wrong_usage_names_option_value_and_remedy(
    line: str, status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended = main(line.split())
    except SystemExit as exit_:
        ended = exit_.code if isinstance(exit_.code, int) else 1
    said = capsys.readouterr().err
    assert ended == status, said
    assert [word for word in says.split() if word not in said] == []
    # argparse's own words for a type that raises nothing better.
    assert "invalid positive_int" not in said
    assert "_cut value" not in said


def test_a_device_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    spec = DEVICES / "test-plain.toml"
    own = tmp_path / "own.toml"
    own.write_text(spec.read_text())
    assert device("test-plain") == spec
    assert device("experiments/devices/test-plain.toml").samefile(spec)
    assert device(str(own)) == own
    with pytest.raises(SpecError, match="none: no such device or file .*test-plain"):
        device_file("none")


def test_every_device_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(path.stem for path in DEVICES.glob("*.toml"))
    assert main(["devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["test-nvme"]["kind"] == "nvme"


def completed(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    main(["completions", "bash"])
    script = capsys.readouterr().out
    line = " ".join(f"'{word}'" for word in words)
    script += f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _steady_lab\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    return run(["bash", "-c", script]).stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["steady-lab", "dev"], ["device", "devices"]),
        (["steady-lab", "boot", "--device", "test-nv"], ["test-nvme", "test-nvme-slow"]),
        (["steady-lab", "boot", "--target", ""], ["uml", "qemu"]),
        (["steady-lab", "boot", "--device", "x", "--work", "y", "--flav"], ["--flavour"]),
        (["steady-lab", "kernel", "bu"], ["build"]),
        (["steady-lab", "device", "fit", "--device", "test-p"], ["test-plain"]),
        (["steady-lab", "completions", "z"], ["zsh"]),
    ],
)
def test_bash_completes_commands_options_and_devices(
    words: list[str], wanted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(words, capsys) == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_devices(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completions", shell]) == 0
    assert "test-nvme-slow" in capsys.readouterr().out


@pytest.mark.parametrize("cache", ["/etc/passwd", "/proc/none", "/sys/none"])
def test_an_unusable_cache_is_named_with_the_remedy(cache: str) -> None:
    done = run([LAB, "kernel", "source"], {"STEADYIO_CACHE": cache})
    assert done.returncode == 1
    assert done.stderr.startswith(f"steady-lab: {cache}"), done.stderr
    assert "set STEADYIO_CACHE to a directory that you can write to" in done.stderr


def in_a_namespace(script: str) -> subprocess.CompletedProcess[str]:
    done = run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script])
    if "unshare failed" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no namespace to test in: {done.stderr.strip()}")
    return done


def test_a_read_only_clone_is_named_with_the_remedy() -> None:
    mount = f"mount --bind {PROJECT} {PROJECT}; mount -o remount,ro,bind {PROJECT} {PROJECT}"
    done = in_a_namespace(f"{mount}; exec {LAB} kernel modules")
    assert done.returncode == 1
    assert "Read-only file system (this clone must be writable" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_a_system_without_namespaces_is_named_with_the_remedy() -> None:
    forbid = "echo 0 >/proc/sys/user/max_user_namespaces"
    drop = "setpriv --bounding-set=-all --inh-caps=-all"
    done = in_a_namespace(f"{forbid}; exec {drop} {LAB} boot -- true")
    assert done.returncode == 1
    for part in ("the lab needs new namespaces", "user.max_user_namespaces", "--privileged"):
        assert part in done.stderr, done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    keys = [str(LAB), "device", "keys", "nvme"]
    done = subprocess.run(keys, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
