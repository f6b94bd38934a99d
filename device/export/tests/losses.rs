// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever is damaged in a pool, what is gone is counted: by exports, by the recovery and by the
//! next start.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use steadyio_core::interrupt::Interrupt;
use steadyio_export::export::{Compression, Export, ExportError};
use steadyio_export::merge::HELD_BYTES_MAX;
use steadyio_export::selection::Selection;
use steadyio_export::survey::{Segment, Survey};
use steadyio_recorder::audit::{self, manifest};
use steadyio_recorder::config::{ChannelConfig, RECORD_KEY, RecorderConfig, Retention};
use steadyio_recorder::incident::{Incident, KeptSegment};
use steadyio_recorder::mcap::files::{audited, examine_file, recordings, recover_segment};
use steadyio_recorder::pool::Recorder;
use steadyio_testing::cases;
use steadyio_testing::recording::segments;
use tempfile::TempDir;

/// Records that become durable together in a live pool.
const BATCH: u64 = 10;
const SEGMENTS: u64 = 4;
const SEGMENT_BYTES: u64 = 256 << 10;

fn config(dir: &Path) -> RecorderConfig {
    let channel =
        |topic: &str| ChannelConfig { ring_bytes: 1 << 20, ..ChannelConfig::new(topic, 4_000) };
    RecorderConfig {
        loss_window: Duration::from_millis(20),
        unit_bytes: 16 << 10,
        segment_bytes: SEGMENT_BYTES,
        retention: Retention::Segments(SEGMENTS),
        lock_memory: false,
        ..RecorderConfig::new(dir.into(), vec![channel("/a"), channel("/b")])
    }
}

/// A pool after an earlier recording and so many records; a live one as a kill leaves it.
fn pool(live: bool, records: u64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    for (first, count) in [(0, 60), (1_000, records)] {
        let (mut recorder, mut channels) =
            Recorder::start(&config(dir.path()), &mut |_| ()).unwrap();
        for time in first..first + count {
            while recorder.stats().channels[0].account.buffered.bytes > 200_000 {
                thread::sleep(Duration::from_millis(1));
            }
            let bytes = 1_000 + (time * 37 % 2_500) as usize;
            channels[(time % 3 == 0) as usize].append(time, &vec![time as u8; bytes]).unwrap();
            if live && time % BATCH == 0 {
                recorder.flush(Duration::from_secs(60));
            }
        }
        recorder.flush(Duration::from_secs(60));
        if first > 0 && live {
            copy_files(dir.path(), copy.path());
            recorder.finish().unwrap();
            return copy;
        }
        assert_eq!(recorder.finish().unwrap().not_durable, 0);
    }
    dir
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = fs::copy(&path, to.join(path.file_name().unwrap()));
        if copied.is_err() {
            // It has got its first record.
            let path = path.with_extension("mcap");
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Zero(Index, Index, Index),
    Cut(Index, Index),
    Flip(Index, Index, u8),
    Delete(Index),
    Duplicate(Index),
    Swap(Index, Index),
    Rename(Index, bool),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), at(), at()).prop_map(|(file, from, to)| Damage::Zero(file, from, to)),
        2 => (at(), at()).prop_map(|(file, at)| Damage::Cut(file, at)),
        4 => (at(), at(), 0..8u8).prop_map(|(file, at, bit)| Damage::Flip(file, at, bit)),
        2 => at().prop_map(Damage::Delete),
        1 => at().prop_map(Damage::Duplicate),
        1 => (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
        1 => (at(), any::<bool>()).prop_map(|(file, away)| Damage::Rename(file, away)),
    ]
}

fn apply(dir: &Path, damage: &Damage) {
    let all: Vec<PathBuf> = segments(dir);
    if all.is_empty() {
        return;
    }
    let choose = |index: &Index| all[index.index(all.len())].clone();
    match damage {
        Damage::Zero(file, from, to) => {
            let path = choose(file);
            let sectors = (fs::metadata(&path).unwrap().len() / 512).max(1) as usize;
            let (from, to) = (from.index(sectors) as u64, to.index(sectors) as u64);
            let mut file = File::options().write(true).open(path).unwrap();
            file.seek(SeekFrom::Start(from.min(to) * 512)).unwrap();
            file.write_all(&vec![0; (from.abs_diff(to) as usize + 1) * 512]).unwrap();
        }
        Damage::Cut(file, at) => {
            let path = choose(file);
            let bytes = fs::metadata(&path).unwrap().len() as usize;
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(at.index(bytes.max(1)) as u64).unwrap();
        }
        Damage::Flip(file, at, bit) => {
            let path = choose(file);
            let mut bytes = fs::read(&path).unwrap();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            fs::write(path, bytes).unwrap();
        }
        Damage::Delete(file) => fs::remove_file(choose(file)).unwrap(),
        Damage::Duplicate(file) => {
            fs::copy(choose(file), dir.join("segment-00077.mcap")).map(drop).unwrap();
        }
        Damage::Swap(one, other) => {
            let (one, other) = (choose(one), choose(other));
            fs::rename(&one, dir.join("between")).unwrap();
            if one != other {
                fs::rename(&other, &one).unwrap();
            }
            fs::rename(dir.join("between"), &other).unwrap();
        }
        Damage::Rename(file, away) => {
            let to = if *away { "elsewhere" } else { "segment-00099.mcap" };
            fs::rename(choose(file), dir.join(to)).unwrap();
        }
    }
}

/// Log times of the exported messages, the number of those that the export counts as missing, and
/// whether it says that any are.
fn exported(dir: &Path) -> (BTreeSet<u64>, u64, bool) {
    export_of(&[dir.into()])
}

fn export_of(paths: &[PathBuf]) -> (BTreeSet<u64>, u64, bool) {
    let survey = Survey::of(paths, &Interrupt::default(), &mut |_, _| ()).unwrap();
    let mut out = Cursor::new(Vec::new());
    let export = Export {
        survey: &survey,
        selection: &Selection { topics: Vec::new(), times_ns: 0..u64::MAX },
        compression: Compression::None,
        profile: None,
        held_bytes_max: HELD_BYTES_MAX,
        stop: &Interrupt::default(),
        progress: &mut |_, _| (),
    };
    let summary = match export.write(&mut out) {
        Err(ExportError::Nothing) => return (BTreeSet::new(), 0, false),
        Err(ExportError::NothingLeft(damage)) => {
            return (BTreeSet::new(), damage.missing.messages, true);
        }
        summary => summary.unwrap(),
    };
    let messages = mcap::MessageStream::new(out.get_ref()).unwrap();
    let times = messages.map(|message| message.unwrap().log_time).collect();
    (times, summary.damage.missing.messages, summary.damage.is_any())
}

/// What the recovery counts, with all blocks read, and whether anything is damaged.
fn recovered(dir: &Path, changes: bool) -> (u64, bool) {
    let mut found = Vec::new();
    let mut flawed = false;
    for path in recordings(dir).unwrap_or_default() {
        let recovered = match changes {
            true => recover_segment(&path, true),
            false => examine_file(&path, true).map(|found| (path.clone(), found)),
        };
        let named = recovered.as_ref().map_or(&path, |(named, _)| named).clone();
        flawed |= recovered.as_ref().map_or(true, |(_, recovered)| recovered.found.damaged);
        found.extend(audited(&named, recovered.as_ref().map(|(_, recovered)| recovered)));
    }
    let losses = audit::losses(&found, manifest::read(dir).as_ref());
    let counted = losses.iter().map(|loss| loss.messages).sum();
    (counted, flawed || counted > 0)
}

/// What a start counts.
fn started(dir: &Path) -> u64 {
    let (mut recorder, channels) = Recorder::start(&config(dir), &mut |_| ()).unwrap();
    drop(channels);
    let missing = recorder.meters().missing_messages.load(Relaxed);
    recorder.finish().unwrap();
    missing
}

/// Log times of the segment that a kill left open, which is the last one.
fn left_open(dir: &Path) -> BTreeSet<u64> {
    let times = |path: PathBuf| {
        let survey = Survey::of(&[path], &Interrupt::default(), &mut |_, _| ()).unwrap();
        let segment = survey.segments.first()?;
        Some((segment.life.identity.sequence, segment.times_ns))
    };
    let last = segments(dir).into_iter().filter_map(times).max();
    let (_, (start_ns, end_ns)) = last.unwrap();
    exported(dir).0.range(start_ns..=end_ns).copied().collect()
}

static POOLS: LazyLock<Vec<(TempDir, bool)>> = LazyLock::new(|| {
    let pools = [(false, 40), (false, 700), (true, 40), (true, 230), (true, 700)];
    pools.into_iter().map(|(live, records)| (pool(live, records), live)).collect()
});

#[test]
fn whole_pools_lack_nothing() {
    for (pool, _) in &*POOLS {
        assert_eq!(exported(pool.path()).1, 0);
        assert_eq!(recovered(pool.path(), false).0, 0);
        let copy = tempfile::tempdir().unwrap();
        copy_files(pool.path(), copy.path());
        assert_eq!(started(copy.path()), 0);
    }
}

#[test]
fn a_segment_of_which_only_the_head_is_left_is_counted() {
    let (whole, _) = &POOLS[1];
    let before = exported(whole.path()).0.len() as u64;
    for (segment, to_the_end) in (0..SEGMENTS as usize).flat_map(|at| [(at, false), (at, true)]) {
        let dir = tempfile::tempdir().unwrap();
        copy_files(whole.path(), dir.path());
        let file = File::options().write(true).open(&segments(dir.path())[segment]).unwrap();
        file.set_len(4_096).unwrap();
        if to_the_end {
            file.set_len(SEGMENT_BYTES).unwrap();
        }
        // The list of segments is no help.
        fs::remove_file(dir.path().join("pool.json")).unwrap();
        let (after, counted, is_damaged) = exported(dir.path());
        let gone = before - after.len() as u64;
        assert!(counted >= gone && (is_damaged || gone == 0), "export: {counted} of {gone}");
        assert!(recovered(dir.path(), false).0 >= gone);
    }
}

#[test]
fn a_segment_that_is_gone_counts_after_a_start_has_made_it_again() {
    let (whole, _) = &POOLS[1];
    let before = exported(whole.path()).0.len() as u64;
    // Without the oldest one, which the start would have overwritten.
    for at in 1..SEGMENTS as usize {
        let dir = tempfile::tempdir().unwrap();
        copy_files(whole.path(), dir.path());
        fs::remove_file(&segments(dir.path())[at]).unwrap();
        let gone = before - exported(dir.path()).0.len() as u64;
        assert_eq!((started(dir.path()), started(dir.path())), (gone, 0));
        let (_, counted, is_damaged) = exported(dir.path());
        assert!(gone > 0 && counted == gone && is_damaged, "export: {counted} of {gone}");
    }
}

/// Overwrites a part of a segment, in eighths of it.
fn zero(path: &Path, (from, to): (u64, u64)) {
    let mut file = File::options().write(true).open(path).unwrap();
    let eighth = SEGMENT_BYTES / 8;
    file.seek(SeekFrom::Start(from * eighth)).unwrap();
    file.write_all(&vec![0; ((to - from) * eighth) as usize]).unwrap();
}

type Eighths = &'static [(u64, u64)];

/// Damages the segments of a copied pool and of one copy; the summary is in the last eighth.
const COPIES: [(Eighths, Eighths); 7] = [
    (&[(4, 8)], &[]),
    (&[(4, 8)], &[(2, 3)]),
    (&[(4, 8)], &[(4, 5)]),
    (&[(2, 3)], &[(2, 4)]),
    (&[(4, 8)], &[(7, 8)]),
    (&[(6, 8)], &[(3, 8)]),
    (&[(2, 3), (7, 8)], &[(4, 5), (7, 8)]),
];

#[test]
fn what_neither_a_segment_nor_its_copy_has_is_counted() {
    let (whole, _) = &POOLS[1];
    let before = exported(whole.path()).0;
    let names = ["segment-00001.mcap.damaged-1", "segment-00009.mcap", "elsewhere"];
    for (copy, (of_segment, of_copy)) in names.iter().flat_map(|name| COPIES.map(|one| (name, one)))
    {
        let dir = tempfile::tempdir().unwrap();
        copy_files(whole.path(), dir.path());
        let (segment, copy) = (&segments(dir.path())[1], dir.path().join(copy));
        fs::copy(segment, &copy).unwrap();
        of_segment.iter().for_each(|eighths| zero(segment, *eighths));
        of_copy.iter().for_each(|eighths| zero(&copy, *eighths));
        let mut paths = vec![dir.path().to_path_buf()];
        paths.extend(copy.ends_with("elsewhere").then_some(copy));
        let count = || {
            let (after, counted, _) = export_of(&paths);
            (counted, before.difference(&after).count() as u64)
        };
        let (counted, gone) = count();
        assert_eq!(counted, gone, "{of_segment:?} {of_copy:?} {paths:?}");
        // Without the list, a limit may be all that is known.
        fs::remove_file(dir.path().join("pool.json")).unwrap();
        let (counted, gone) = count();
        assert!(counted >= gone, "{counted} of {gone}: {of_segment:?} {of_copy:?} {paths:?}");
    }
}

#[test]
fn a_wiped_segment_counts_after_a_start_has_made_it_again() {
    let (whole, _) = &POOLS[4];
    let before = exported(whole.path()).0.len() as u64;
    for at in 0..SEGMENTS as usize {
        let dir = tempfile::tempdir().unwrap();
        copy_files(whole.path(), dir.path());
        let path = &segments(dir.path())[at];
        zero(path, (0, 8));
        let gone = before - exported(dir.path()).0.len() as u64;
        assert!(started(dir.path()) >= gone);
        let (_, counted, is_damaged) = exported(dir.path());
        assert!(
            counted >= gone && (is_damaged || gone == 0),
            "{}: {counted} of {gone}",
            path.display()
        );
    }
}

#[test]
fn a_kept_segment_that_is_gone_counts_in_an_export_of_its_incident() {
    let (whole, _) = &POOLS[1];
    let dir = tempfile::tempdir().unwrap();
    copy_files(whole.path(), dir.path());
    let survey =
        || Survey::of(&[dir.path().into()], &Interrupt::default(), &mut |_, _| ()).unwrap();
    let kept = |segment: &Segment| KeptSegment::new("any".into(), &segment.life.identity);
    let incident = |segments: &[Segment]| Incident {
        schema: "steadyio.incident/1".into(),
        name: "a".into(),
        asked_ns: 1,
        from_ns: 1,
        to_ns: 2,
        segments: segments.iter().map(kept).collect(),
    };
    let before = survey().segments;
    fs::remove_file(&before[1].path).unwrap();
    for (incident, is_there) in [(incident(&before[1..2]), false), (incident(&before[2..]), true)] {
        let (all, mut of_incident) = (survey(), survey());
        of_incident.only(&[incident]);
        assert_eq!((all.losses.len(), of_incident.losses.is_empty()), (1, is_there));
        assert!(is_there || of_incident.losses == all.losses);
    }
}

#[test]
fn a_segment_without_head_and_definitions_is_not_called_wiped() {
    let (whole, _) = &POOLS[1];
    let dir = tempfile::tempdir().unwrap();
    copy_files(whole.path(), dir.path());
    let path = &segments(dir.path())[1];
    let mut bytes = fs::read(path).unwrap();
    let end = bytes.len();
    bytes[..8_192].fill(0);
    bytes[end - 4_096..].fill(0);
    for (rest, says) in [(8_192, "head and definitions are damaged"), (end, "it was wiped")] {
        bytes[..rest].fill(0);
        fs::write(path, &bytes).unwrap();
        let paths = [dir.path().into()];
        let survey = Survey::of(&paths, &Interrupt::default(), &mut |_, _| ()).unwrap();
        assert!(survey.unreadable[0].why.contains(says), "{:?}", survey.unreadable);
    }
}

#[test]
fn a_damaged_list_of_segments_is_told() {
    let (whole, _) = &POOLS[1];
    let dir = tempfile::tempdir().unwrap();
    copy_files(whole.path(), dir.path());
    let list = dir.path().join("pool.json");
    let mut text = fs::read(&list).unwrap();
    let middle = text.len() / 2;
    text[middle] ^= 1;
    fs::write(&list, text).unwrap();
    let (_, counted, is_damaged) = exported(dir.path());
    assert_eq!((counted, is_damaged), (0, true));
    let mut notes = Vec::new();
    drop(Recorder::start(&config(dir.path()), &mut |note| notes.push(note)).unwrap());
    assert!(notes.iter().any(|note| note.contains("pool.json: is damaged")), "{notes:?}");
}

#[test]
fn a_message_that_should_be_metadata_and_is_not_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.channels[0].topic = "/mcap/metadata".into();
    config.channels[0].metadata = vec![(RECORD_KEY.into(), "metadata".into())];
    let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    channels[0].append(1, b"no metadata").unwrap();
    channels[1].append(2, b"message").unwrap();
    recorder.finish().unwrap();
    assert_eq!(exported(dir.path()), (BTreeSet::from([2]), 1, true));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(64), failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_gone_is_counted(
        which: Index,
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let (whole, live) = &POOLS[which.index(POOLS.len())];
        let (before, none, _) = exported(whole.path());
        prop_assert_eq!(none, 0);
        let dir = tempfile::tempdir().unwrap();
        copy_files(whole.path(), dir.path());
        damages.iter().for_each(|damage| apply(dir.path(), damage));
        let (after, counted, is_damaged) = exported(dir.path());
        prop_assert!(after.is_subset(&before));
        let mut gone: BTreeSet<u64> = before.difference(&after).copied().collect();
        let is_within =
            damages.iter().any(|one| matches!(one, Damage::Zero(..) | Damage::Flip(..)));
        if *live && is_within {
            // The last blocks of a segment without an end leave no trace, and only blocks that were
            // built later say that one was durable.
            let open = left_open(whole.path());
            let last = after.intersection(&open).last().copied().unwrap_or(0);
            gone.retain(|time| !open.contains(time) || time + 2 * BATCH < last);
        }
        let gone = gone.len() as u64;
        prop_assert!(counted >= gone, "export: {counted} of {gone}");
        prop_assert!(is_damaged || gone == 0, "export says nothing of {gone}");
        let (counted, is_flawed) = recovered(dir.path(), false);
        prop_assert!(counted >= gone, "dry run: {counted} of {gone}");
        let copy = tempfile::tempdir().unwrap();
        copy_files(dir.path(), copy.path());
        let counted = started(copy.path());
        prop_assert!(counted >= gone, "start: {counted} of {gone}");
        prop_assert!(is_flawed || gone == 0, "recovery says nothing of {gone}");
        let (counted, _) = recovered(dir.path(), true);
        prop_assert!(counted >= gone, "recovery: {counted} of {gone}");
        let (_, counted, is_damaged) = exported(dir.path());
        prop_assert!(counted >= gone, "export after recovery: {counted} of {gone}");
        prop_assert!(is_damaged || gone == 0, "export after recovery says nothing of {gone}");
    }
}
