# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings as the official Python reader sees them, before and after `steady recover`.

The recordings come from the encoder's example, which defines their contents.
"""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rust_examples import rust_example
from steady_lab.paths import BUILD

pytestmark = pytest.mark.waits_for_cargo

CHANNELS = 3
FINISHED = "segment-00000.mcap"
CUT = "segment-00001.mcap"
BLANK = "segment-00002.mcap"
GROWING = "growing.mcap"
COMPRESSED = ("compressed-lz4.mcap", "compressed-zstd.mcap")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("written")
    subprocess.run([rust_example("segments"), directory], check=True)
    return directory


@pytest.fixture
def recordings(written: Path, work: Path) -> Path:
    shutil.copytree(written, work, dirs_exist_ok=True)
    return work


def recover(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [BUILD / "bin" / "steady", "recover", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


Read = tuple[str, int, int, int, bytes]


def linear(path: Path) -> list[Read]:
    """From the first byte to the last."""
    from mcap.reader import NonSeekingReader

    with path.open("rb") as stream:
        return list(messages(NonSeekingReader(stream, validate_crcs=True)))


def indexed(path: Path) -> list[Read]:
    """Through the summary."""
    from mcap.reader import SeekingReader

    with path.open("rb") as stream:
        return list(messages(SeekingReader(stream, validate_crcs=True)))


def messages(reader: Any) -> Iterator[Read]:
    for _, channel, message in reader.iter_messages():
        times = (message.log_time, message.publish_time)
        yield (channel.topic, message.sequence, *times, message.data)


def expected(count: int) -> list[Read]:
    def message(number: int) -> Read:
        time_ns = 1_000_000_000 + number * 1_000_000
        payload = bytes([number % 251]) * (number * 37 % 4_000)
        return (f"/bytes/{number % CHANNELS}", number // CHANNELS, time_ns, time_ns, payload)

    return [message(number) for number in range(count)]


def summary(path: Path) -> Any:
    from mcap.reader import make_reader

    with path.open("rb") as stream:
        return make_reader(stream).get_summary()


def metadata(path: Path) -> dict[str, dict[str, str]]:
    from mcap.reader import make_reader

    with path.open("rb") as stream:
        return {record.name: record.metadata for record in make_reader(stream).iter_metadata()}


def test_a_finished_segment_reads_the_same_in_both_ways(recordings: Path) -> None:
    path = recordings / FINISHED
    found = linear(path)
    assert found == indexed(path) == expected(len(found))
    assert len(found) > 400
    statistics = summary(path).statistics
    assert statistics.message_count == len(found)
    assert sum(statistics.channel_message_counts.values()) == len(found)
    assert {schema.name for schema in summary(path).schemas.values()} == {"steadyio.Bytes"}


def test_a_time_range_of_one_topic_comes_out_of_the_index(recordings: Path) -> None:
    from mcap.reader import make_reader

    start, end = 1_100_000_000, 1_200_000_000
    with (recordings / FINISHED).open("rb") as stream:
        reader = make_reader(stream)
        found = reader.iter_messages(topics=["/bytes/1"], starting_at=start, ending_before=end)
        numbers = [(message.log_time - 1_000_000_000) // 1_000_000 for _, _, message in found]
    assert numbers == list(range(100, 200, CHANNELS))


@pytest.mark.parametrize("name", [CUT, BLANK, *COMPRESSED])
def test_an_unfinished_segment_shows_nothing_of_its_former_life(
    recordings: Path, name: str
) -> None:
    from mcap.exceptions import McapError

    for read in (linear, indexed):
        with pytest.raises(McapError):
            read(recordings / name)


def test_recovered_files_hold_all_blocks_before_the_cut(recordings: Path) -> None:
    done = recover(recordings)
    assert done.returncode == 0, done.stderr
    for name in (CUT, GROWING, *COMPRESSED):
        found = linear(recordings / name)
        assert found == indexed(recordings / name) == expected(len(found))
        assert 150 < len(found) < 200, "all but the torn block"
        ledger = metadata(recordings / name)["steadyio.ledger"]
        assert ledger["completed_by"] == "recovery"
    assert metadata(recordings / CUT)["steadyio.segment"]["sequence"] == "2"
    for name in COMPRESSED:
        chunks = summary(recordings / name).chunk_indexes
        assert {chunk.compression for chunk in chunks} == {name[len("compressed-") : -len(".mcap")]}
    # Nothing is recorded in it, so nobody who reads all MCAP files meets it.
    assert not (recordings / BLANK).exists()
    assert (recordings / BLANK).with_suffix(".unused").exists()
    for path in recordings.glob("*.mcap"):
        assert linear(path), path


def test_recovering_again_changes_nothing(recordings: Path) -> None:
    recover(recordings)
    before = {path.name: path.read_bytes() for path in recordings.iterdir()}
    assert recover("--verify", recordings).returncode == 0
    assert {path.name: path.read_bytes() for path in recordings.iterdir()} == before


def test_dry_run_says_what_is_to_do_and_changes_nothing(recordings: Path) -> None:
    before = {path.name: path.read_bytes() for path in recordings.iterdir()}
    told = recover("--dry-run", recordings)
    assert told.returncode == 3
    states = {line.split()[0]: line.split()[1] for line in told.stdout.splitlines()[1:]}
    assert {Path(path).name: state for path, state in states.items()} == {
        FINISHED: "finished",
        CUT: "unfinished",
        BLANK: "blank",
        GROWING: "unfinished",
        **dict.fromkeys(COMPRESSED, "unfinished"),
    }
    assert {path.name: path.read_bytes() for path in recordings.iterdir()} == before


def test_json_has_counts_digests_and_why_the_data_ends(recordings: Path) -> None:
    document = json.loads(recover("--json", recordings / CUT).stdout)
    assert document["schema"] == "steadyio.recover/1"
    (file,) = document["files"]
    assert (file["before"], file["after"], file["completed"]) == ("unfinished", "finished", True)
    assert file["data_ends_at"] == "torn block"
    sent = expected(file["contents"]["messages"])
    for channel in file["contents"]["channels"]:
        payloads = [message[4] for message in sent if message[0] == channel["topic"]]
        assert channel["messages"] == len(payloads)
        assert channel["digest"]["payload_bytes"] == sum(map(len, payloads))
        assert channel["digest"]["sequence_last"] == len(payloads) - 1
        assert channel["digest"]["sequence_gaps"] == 0


def test_finished_files_of_a_read_only_mount_are_read(recordings: Path) -> None:
    """A card that was locked, for example."""
    command = f"""
        cd '{recordings}' && mount --bind . . && mount -o remount,bind,ro '{recordings}' || exit 77
        exec '{BUILD}/bin/steady' recover --verify '{recordings}/{FINISHED}'
    """
    own_mounts = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command]
    if os.geteuid() == 0:
        own_mounts = ["unshare", "--mount", "sh", "-c", command]
    done = subprocess.run(own_mounts, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount of its own: {done.stderr}")
    assert (done.returncode, " finished " in done.stdout) == (0, True), done.stderr


def test_a_damaged_block_costs_itself_only(recordings: Path) -> None:
    path = recordings / CUT
    # In the second block of data.
    with path.open("r+b") as file:
        file.seek(100_000)
        byte = file.read(1)
        file.seek(100_000)
        file.write(bytes([byte[0] ^ 1]))
    done = recover("--json", path)
    missing = json.loads(done.stdout)["files"][0]["missing"]
    found = linear(path)
    assert found == indexed(path)
    sent = expected(200)
    assert set(found) < set(sent)
    assert len(found) > 100
    assert missing["blocks"] == 1
    assert metadata(path)["steadyio.gaps"]["bytes"] == str(missing["bytes"])


def test_a_directory_in_use_is_left_alone(recordings: Path) -> None:
    lock = os.open(recordings, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    refused = recover(recordings)
    os.close(lock)
    assert refused.returncode == 1
    assert f"{recordings}: in use by a recorder or another recovery" in refused.stderr


def test_wrong_paths_are_told(work: Path) -> None:
    empty = recover(work)
    assert empty.returncode == 2
    assert f"{work}: has no *.mcap file and no segment" in empty.stderr
    other = work / "photo.mcap"
    other.write_bytes(b"\xff\xd8\xff\xe0 a photo")
    refused = recover(work)
    assert refused.returncode == 1
    assert f"{other}: not an MCAP file" in refused.stderr


def test_a_flipped_bit_in_a_finished_segment_is_found_by_verify(recordings: Path) -> None:
    path = recordings / FINISHED
    with path.open("r+b") as file:
        file.seek(200_000)
        byte = file.read(1)
        file.seek(200_000)
        file.write(bytes([byte[0] ^ 1]))
    damaged = recover("--verify", path)
    assert (damaged.returncode, "damaged" in damaged.stdout) == (3, True)


def test_a_cut_file_of_the_official_writer_is_left_as_it_is(work: Path) -> None:
    from mcap.writer import Writer

    path = work / "official.mcap"
    with path.open("wb") as stream:
        writer: Any = Writer(stream)
        writer.start()
        channel = writer.register_channel("/a", "bytes", schema_id=0)
        for number in range(100):
            writer.add_message(channel, log_time=number, data=b"data", publish_time=number)
        writer.finish()
    whole = path.read_bytes()
    assert recover(work).returncode == 0
    path.write_bytes(whole[:-200])
    refused = recover(work)
    assert refused.returncode == 1
    assert f"{path}: was not written by a steadyio recorder, and has no end" in refused.stderr
    assert path.read_bytes() == whole[:-200]
