# SPDX-License-Identifier: MIT OR Apache-2.0
"""A bag of `steady export --ros2`, read by rosbags, an independent reader of rosbag2's bags."""

import struct
import subprocess
from pathlib import Path
from typing import Any

from steady_lab.paths import BUILD

STEADY = str(BUILD / "bin" / "steady")
TOPIC, TYPE = "/pose", "geometry_msgs/msg/Point"
DEFINITION = b"float64 x\nfloat64 y\nfloat64 z\n"
QOS = (
    "- history: 1\n  depth: 10\n  reliability: 1\n  durability: 1\n"
    "  deadline: {sec: 9223372036, nsec: 854775807}\n"
    "  lifespan: {sec: 9223372036, nsec: 854775807}\n  liveliness: 1\n"
    "  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}\n"
    "  avoid_ros_namespace_conventions: false\n"
)
MESSAGES = 200


def frame(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def texts(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<H", len(part)) + part for part in parts)


def cdr(number: int) -> bytes:
    return b"\x00\x01\x00\x00" + struct.pack("<ddd", number, 0.5, -number)


def record(directory: Path) -> None:
    stream = b"\x89STEADY\x01"
    stream += frame(struct.pack("<BH", 5, 1) + texts(b"offered_qos_profiles", QOS.encode()))
    names = texts(TOPIC.encode(), b"cdr", TYPE.encode(), b"ros2msg")
    stream += frame(struct.pack("<BHIQ", 1, 1, 100, 0) + names + DEFINITION)
    stream += frame(b"\x02")
    for number in range(MESSAGES):
        stream += frame(struct.pack("<BHQ", 3, 1, 10**9 + number) + cdr(number))
    small = ["--segment-size", "512K", "--unit", "64K", "--segments", "4", "--no-lock", "--block"]
    source = ["--input", "-", "--framing", "frames", "--quiet", "--dir", str(directory)]
    subprocess.run([STEADY, "record", *small, *source], input=stream, check=True)


def test_rosbags_reads_messages_types_and_qos_of_a_split_bag(work: Path) -> None:
    from rosbags.interfaces import ConnectionExtRosbag2
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    record(work / "recording")
    bag = work / "bag"
    command = [STEADY, "export", str(work / "recording"), "--ros2", str(bag), "--split", "2000"]
    subprocess.run(command, check=True)
    assert len(list(bag.glob("bag_*.mcap"))) == 3
    store = get_typestore(Stores.ROS2_HUMBLE)
    with Reader(bag) as reader:
        assert (reader.message_count, reader.start_time) == (MESSAGES, 10**9)
        [connection] = reader.connections
        assert (connection.topic, connection.msgtype) == (TOPIC, TYPE)
        assert isinstance(connection.ext, ConnectionExtRosbag2)
        [profile] = connection.ext.offered_qos_profiles
        assert profile.depth == 10
        found: list[tuple[int, Any]] = [
            (time, store.deserialize_cdr(data, TYPE)) for _, time, data in reader.messages()
        ]
    assert [(time, point.x, point.z) for time, point in found] == [
        (10**9 + number, number, -number) for number in range(MESSAGES)
    ]
