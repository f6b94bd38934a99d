# SPDX-License-Identifier: MIT OR Apache-2.0
"""What integrations/rosbag2 records through libsteadyio, without ROS: drive.cpp is in its place.

Its translation of ROS types, plugin.cpp, is compiled where the headers of rosbag2 are
(scripts/lint), and runs nowhere.
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from steady_lab.paths import BUILD, PROJECT

pytestmark = pytest.mark.waits_for_cargo

STEADY = str(BUILD / "bin" / "steady")
SOURCES = PROJECT / "integrations" / "rosbag2" / "src"
WITHOUT_ROS = ("recording", "reference", "settings", "topic")
STRICT = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
# One may wait for the Rust tests, which hold cargo's lock.
BUILD_TIMEOUT_S = 1800

SMALL = (
    "lock_memory: false\nsegment_bytes: 524288\nunit_bytes: 16384\nkeep: 3\n"
    "late_channels: 4\nlate_definition_bytes: 16384\nrecord_bytes_max: 8192\n"
)
TYPE = "geometry_msgs/msg/Point"
DEFINITION = "float64 x\nfloat64 y\nfloat64 z\n"
QOS = (
    "- history: 1\n  depth: 10\n  reliability: 1\n  durability: 2\n"
    "  deadline:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n  liveliness: 1\n"
    "  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n"
    "  avoid_ros_namespace_conventions: false\n"
)


def cdr(number: int) -> bytes:
    return b"\x00\x01\x00\x00" + struct.pack("<ddd", number, 0.5, -number)


def topic(name: str, **other: str) -> str:
    said = {"type": TYPE, "encoding": "cdr", "schema": "ros2msg", "latched": "no", **other}
    words = ("topic", name, said["type"], said["encoding"], said["schema"])
    texts = (DEFINITION.encode().hex(), QOS.encode().hex(), "RIHS01_0")
    return "\t".join([*words, *texts, said["latched"]]) + "\n"


def message(name: str, received_ns: int, data: bytes, sent_ns: int = 0) -> str:
    return f"message\t{name}\t{received_ns}\t{sent_ns}\t{data.hex()}\n"


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command, with a libsteadyio of this clone."""
    cargo = ["cargo", "build", "--quiet", "--locked", "--workspace", "--lib"]
    cargo += ["--manifest-path", str(PROJECT / "device" / "Cargo.toml")]
    cargo += ["--target-dir", str(BUILD / "cargo")]
    subprocess.run(cargo, check=True, timeout=BUILD_TIMEOUT_S)
    prefix = tmp_path_factory.mktemp("prefix")
    install = [str(PROJECT / "scripts" / "install-capi"), "--built", str(BUILD / "cargo" / "debug")]
    subprocess.run([*install, "--prefix", str(prefix)], check=True)
    program = prefix / "drive"
    sources = [Path(__file__).parent / "drive.cpp", *(SOURCES / f"{n}.cpp" for n in WITHOUT_ROS)]
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "steadyio", "yaml-cpp"],
        env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    compiler = ["c++", *STRICT, f"-I{SOURCES}", *map(str, sources), *flags.stdout.split()]
    rpath = f"-Wl,-rpath,{prefix / 'lib'}"
    subprocess.run([*compiler, rpath, "-o", str(program)], check=True)
    return [str(program)]


class Plugin:
    """Records as the plugin would, with this storage config."""

    def __init__(self, drive: list[str], work: Path, config: str = "") -> None:
        self.config = work / "config.yaml"
        self.config.write_text(SMALL + config)
        self.dir = work / "bag_0"
        self.command = [*drive, str(self.config), str(self.dir)]

    def run(self, *lines: str) -> list[str]:
        """Return the lines of the output."""
        done = subprocess.run(
            self.command, input="".join(lines), stdout=subprocess.PIPE, text=True, check=False
        )
        assert done.returncode in (0, 1), done
        return done.stdout.splitlines()


@pytest.fixture
def plugin(drive: list[str], work: Path) -> Plugin:
    return Plugin(drive, work)


def only(lines: list[str], begin: str) -> list[str]:
    return [line for line in lines if line.startswith(begin)]


def messages_in(recording: Path, work: Path) -> list[Any]:
    """Return schema, channel and message of each, from an export."""
    from mcap.reader import make_reader

    file = work / "export.mcap"
    subprocess.run([STEADY, "export", recording, "-o", file], check=True)
    with file.open("rb") as stream:
        return list(make_reader(stream).iter_messages())


def test_an_exported_bag_has_the_topics_types_qos_and_messages(plugin: Plugin, work: Path) -> None:
    from rosbags.interfaces import ConnectionExtRosbag2
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    batch = [message("/a", 10**9 + number, cdr(number)) for number in range(20)]
    said = plugin.run(topic("/a"), *batch, "write\n", "counts\n")
    assert only(said, "lost:") == ["lost:"]
    # The device may not have written anything yet.
    assert len(only(said, "counts: 20 ")) == 1
    assert "20 messages of 1 topics are durable" in said[-1]
    bag = work / "bag"
    subprocess.run([STEADY, "export", plugin.dir, "--ros2", bag], check=True)
    store = get_typestore(Stores.ROS2_HUMBLE)
    with Reader(bag) as reader:
        [connection] = reader.connections
        assert (connection.topic, connection.msgtype) == ("/a", TYPE)
        assert isinstance(connection.ext, ConnectionExtRosbag2)
        assert connection.ext.offered_qos_profiles[0].depth == 10
        found: list[Any] = [
            (time, store.deserialize_cdr(data, TYPE)) for _, time, data in reader.messages()
        ]
    assert [(time, point.x) for time, point in found] == [(10**9 + n, n) for n in range(20)]


def test_a_message_keeps_its_send_time_its_schema_and_the_hash(plugin: Plugin, work: Path) -> None:
    lines = (message("/a", 30, cdr(1), 20), message("/a", 31, cdr(2)), "write\n")
    plugin.run(topic("/a"), *lines)
    found = messages_in(plugin.dir, work)
    times = [(one.log_time, one.publish_time) for _, _, one in found]
    assert times == [(30, 20), (31, 31)]
    schema, channel, _ = found[0]
    assert (schema.name, schema.encoding, schema.data) == (TYPE, "ros2msg", DEFINITION.encode())
    assert channel.message_encoding == "cdr"
    assert channel.metadata == {"offered_qos_profiles": QOS, "topic_type_hash": "RIHS01_0"}


def test_the_metadata_of_a_bag_is_a_record_of_the_export(plugin: Plugin, work: Path) -> None:
    from mcap.reader import make_reader

    text = "version: 9\ncustom_data: {}\n"
    metadata = f"metadata\trosbag2\tserialized_metadata\t{text.encode().hex()}\n"
    plugin.run(topic("/a"), message("/a", 1, cdr(1)), "write\n", metadata)
    messages_in(plugin.dir, work)
    with (work / "export.mcap").open("rb") as stream:
        records = [one for one in make_reader(stream).iter_metadata() if one.name == "rosbag2"]
    assert [one.metadata for one in records] == [{"serialized_metadata": text}]


def test_a_latched_message_outlives_its_segment(drive: list[str], work: Path) -> None:
    # The ring holds all, which are more than the segments.
    plugin = Plugin(drive, work, "topics:\n  /a: {ring_bytes: 4194304}\n")
    batch = [message("/a", 10 + number, bytes(8_000)) for number in range(300)]
    lines = (message("/map", 1, b"map"), *batch, "write\n")
    said = plugin.run(topic("/map", latched="yes"), topic("/a"), *lines)
    assert only(said, "failure:") == []
    names = [channel.topic for _, channel, _ in messages_in(plugin.dir, work)]
    assert names.count("/map") == 1
    assert 0 < names.count("/a") < 300


def test_the_storage_config_decides_whether_a_topic_is_latched(
    drive: list[str], work: Path
) -> None:
    plugin = Plugin(drive, work, "topics:\n  /a: {latched: false}\n  /b: {latched: true}\n")
    lines = (message("/a", 1, b"a"), message("/b", 2, b"b"), "write\n")
    plugin.run(topic("/a", latched="yes"), topic("/b"), *lines)
    found = messages_in(plugin.dir, work)
    assert {c.topic: c.metadata.get("steadyio.latched") for _, c, _ in found} == {
        "/a": None,
        "/b": "true",
    }


def test_a_durable_write_survives_a_kill(drive: list[str], work: Path) -> None:
    # Without it the first sync comes after half a loss window.
    plugin = Plugin(drive, work, "durable_writes: true\nloss_window_ms: 2000\n")
    with subprocess.Popen(
        plugin.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin and running.stdout
        running.stdin.write(topic("/a") + message("/a", 1, cdr(1)) + "write\n")
        running.stdin.flush()
        while not running.stdout.readline().startswith("lost:"):
            pass
        running.kill()
    assert len(messages_in(plugin.dir, work)) == 1


def test_losses_are_returned_and_reported_at_the_end(drive: list[str], work: Path) -> None:
    plugin = Plugin(drive, work, "topics:\n  /a: {record_bytes_max: 100}\n")
    lines = (message("/a", 1, bytes(100)), message("/a", 2, bytes(101)), "write\n")
    said = plugin.run(topic("/a"), *lines)
    assert only(said, "lost:") == ["lost: 1"]
    [warning] = only(said, "warning:")
    assert "/a: a message of 101 bytes is lost: the longest may have 100; raise" in warning
    [failure] = only(said, "failure:")
    assert "/a: 1 of 2 messages are lost: 0 as its ring was full, 1 too long, 0 in" in failure


def test_a_full_ring_is_reported_with_its_key(drive: list[str], work: Path) -> None:
    plugin = Plugin(drive, work, "topics:\n  /a: {ring_bytes: 65536}\n")
    batch = [message("/a", number, bytes(8_000)) for number in range(400)]
    said = plugin.run(topic("/a"), *batch, "write\n")
    assert len(only(said, "lost:")[0].split()) > 1
    [warning] = only(said, "warning:")
    assert "raise the topic's ring_bytes in the storage config" in warning


def test_a_rejected_topic_stops_no_other(plugin: Plugin, work: Path) -> None:
    topics = [topic(f"/{number}") for number in range(5)]
    lines = [message(f"/{number}", number, cdr(number)) for number in (0, 4)]
    said = plugin.run(*topics, *lines, "write\n")
    [error] = only(said, "error:")
    assert "topic /4: late.channels = 4: all are taken" in error
    assert only(said, "lost:") == ["lost: 1"]
    [failure] = only(said, "failure:")
    assert "/4: 1 of 1 messages are lost" in failure and "1 as the topic was rejected" in failure
    assert [channel.topic for _, channel, _ in messages_in(plugin.dir, work)] == ["/0"]


def test_a_topic_may_be_added_again_with_the_same_type_only(plugin: Plugin) -> None:
    said = plugin.run(topic("/a"), topic("/a"), topic("/a", type="std_msgs/msg/Empty"))
    [error] = only(said, "error:")
    assert f"topic /a: it was {TYPE}, and is std_msgs/msg/Empty now" in error


def test_a_message_needs_its_topic(plugin: Plugin) -> None:
    said = plugin.run(message("/a", 1, cdr(1)), "write\n")
    assert only(said, "error:") == ["error: topic /a: a message before its create_topic()"]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"encoding": "json"}, 'its encoding is "json"'),
        ({"schema": "unknown"}, f"rosbag2 has no definition of {TYPE}"),
        ({"type": "Point"}, 'its type is "Point"'),
    ],
)
def test_a_topic_that_no_bag_can_have_is_recorded_with_a_warning(
    plugin: Plugin, work: Path, other: dict[str, str], why: str
) -> None:
    said = plugin.run(topic("/a", **other), message("/a", 1, cdr(1)), "write\n")
    [warning] = only(said, "warning:")
    assert f"'steady export --ros2' rejects it: {why}" in warning
    assert len(messages_in(plugin.dir, work)) == 1
    refused = subprocess.run(
        [STEADY, "export", plugin.dir, "--ros2", work / "bag"], stderr=subprocess.PIPE, check=False
    )
    assert refused.returncode != 0


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("segments: 8\n", "config.yaml:8: segments = 8: this key is unknown; the keys are comp"),
        ("keep: 4\n", "config.yaml:8: keep = 4: the key is there twice"),
        ("loss_window_ms: -1\n", "loss_window_ms = -1: must be a whole number, 0 or more"),
        ("loss_window_ms: 1s\n", "loss_window_ms = 1s: must be a whole number, 0 or more"),
        ("writer_cpu: 4294967296\n", "writer_cpu = 4294967296: must be at most 4294967295"),
        ("keep_by: ms\n", "keep_by = ms: must be segments or bytes or free_bytes"),
        ("durable_writes: 2\n", "durable_writes = 2: must be true or false"),
        ("dir:\n", "dir: must be a path"),
        ("topics: 3\n", 'topics = 3: must have a line "/TOPIC:"'),
        ("topics: {a: {}}\n", "topics: a: the name of a topic must begin with '/'"),
        ("topics: {/a: {}, /a: {}}\n", "topics: /a: the topic is there twice"),
        ("topics: {/a: {hz: 3}}\n", "topics: /a: hz = 3: this key is unknown; the keys are lat"),
        ("topics: {/a: 3}\n", 'topics: /a = 3: must have lines such as "KEY: VALUE"'),
        ("a: [\n", "config.yaml: is not YAML: "),
        ("compression: gzip\n", "compression = gzip: must be none or lz4 or zstd"),
        ("loss_window_ms: 1\n", "loss_window (ms) = 1: must be 2 to 3600000"),
    ],
)
def test_a_wrong_storage_config_is_an_error_that_names_the_key(
    drive: list[str], work: Path, config: str, error: str
) -> None:
    plugin = Plugin(drive, work, config)
    [said] = plugin.run()
    assert said.startswith("error: ") and error in said
    assert not plugin.dir.exists()


def test_a_missing_storage_config_is_an_error(plugin: Plugin) -> None:
    plugin.config.unlink()
    [said] = plugin.run()
    assert said.endswith("config.yaml: cannot be read: name a YAML file with --storage-config-file")


def test_the_segments_go_where_the_storage_config_says(drive: list[str], work: Path) -> None:
    plugin = Plugin(drive, work, f"dir: {work / 'pool'}\n")
    plugin.run(topic("/a"), message("/a", 1, cdr(1)), "write\n")
    assert not plugin.dir.exists()
    assert len(messages_in(work / "pool", work)) == 1


def test_a_longer_message_of_one_topic_raises_the_longest_record(
    drive: list[str], work: Path
) -> None:
    plugin = Plugin(drive, work, "topics:\n  /image: {record_bytes_max: 100000}\n")
    lines = (message("/image", 1, bytes(100_000)), "write\n")
    assert only(plugin.run(topic("/image"), *lines), "lost:") == ["lost:"]


def test_a_reference_names_a_directory_of_the_bag_so_that_the_bag_may_move(
    plugin: Plugin, work: Path
) -> None:
    file, moved = work / "bag_0.steadyio", work / "moved" / "bag_0.steadyio"
    moved.parent.mkdir()
    moved.write_text("bag_0\n")
    said = plugin.run(f"reference\t{file}\t{plugin.dir}\t{moved}\n")
    assert only(said, "reference:") == [f"reference: {moved.parent / 'bag_0'}"]
    assert file.read_text() == "bag_0\n"
    said = plugin.run(f"reference\t{file}\t/data/pool\t{file}\n")
    assert only(said, "reference:") == ["reference: /data/pool"]
