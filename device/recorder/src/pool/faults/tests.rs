// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests a recorder with each fault. The account is the oracle: received = buffered + written +
//! lost at any moment. Durable records are there after a power cut at that moment, and so are the
//! kept records of earlier recordings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Fault, Faults, How, When};
use crate::channel::Channel;
use crate::config::{
    ChannelConfig, EngineChoice, LateRoom, OnFailure, RamConfig, RecorderConfig, Retention,
    WriterConfig,
};
use crate::incident::KeptSegment;
use crate::ledger::Account;
use crate::mcap::files::recover_file;
use crate::mcap::names::is_segment;
use crate::mcap::reading::life;
use crate::pool::Recorder;
use crate::pool::flush::Flushed;
use crate::pool::meters::{Ended, Meters, RecordingState};

const RECORD_BYTES: usize = 1_000;
const EVER: u64 = u64::MAX;
const LONG: Duration = Duration::from_secs(60);
/// The number of power cuts at each moment, in addition to the one that loses all data that is not
/// durable.
const TORN_CUTS: u64 = 6;
const RAM: RamConfig = RamConfig {
    bytes: 4 << 20,
    before: LONG,
    after: Duration::from_millis(1),
    incidents_max: None,
};
const ENGINES: [EngineChoice; 2] = [EngineChoice::Best, EngineChoice::Pwrite];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn config(dir: &Path, engine: EngineChoice) -> RecorderConfig {
    RecorderConfig {
        loss_window: ms(20),
        late: LateRoom { channels: 5, definition_bytes: 1_000 },
        unit_bytes: 16 << 10,
        segment_bytes: 256 << 10,
        retention: Retention::Segments(6),
        writer: WriterConfig { engine, ..WriterConfig::default() },
        lock_memory: false,
        ..RecorderConfig::new(
            dir.into(),
            vec![ChannelConfig {
                ring_bytes: 4 << 20,
                ..ChannelConfig::new("/a", RECORD_BYTES as u64)
            }],
        )
    }
}

/// A pool that earlier recordings have filled, with records of log times from 1.
fn filled_pool(engine: EngineChoice) -> (tempfile::TempDir, RecorderConfig) {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), engine);
    let mut last = 0;
    // Another recording fills a segment that was prepared and not needed.
    while last == 0 || found(dir.path()).values().any(Vec::is_empty) {
        let more = if last == 0 { 2_000 } else { 10 };
        let (mut recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
        append(&mut channels, last + 1..last + 1 + more, Duration::ZERO);
        assert_eq!(recorder.finish().unwrap().not_durable, 0);
        last += more;
    }
    (dir, config)
}

fn record(log_time_ns: u64) -> Vec<u8> {
    let bytes = RECORD_BYTES - (log_time_ns % 500) as usize;
    (0..bytes).map(|at| (at as u64).wrapping_mul(log_time_ns) as u8).collect()
}

/// The first log time of this recording.
const OURS: u64 = 1_000_000;

fn append(channels: &mut [Channel], log_times_ns: std::ops::Range<u64>, every: Duration) {
    for log_time_ns in log_times_ns {
        // A loss is counted.
        let _ = channels[0].append(log_time_ns, &record(log_time_ns));
        if every.is_zero() && channels[0].account().buffered.bytes > 2_000_000 {
            thread::sleep(ms(1));
        }
        if !every.is_zero() {
            thread::sleep(every);
        }
    }
}

/// The log times by segment, after recovery. It checks that every record is unchanged.
fn found(dir: &Path) -> BTreeMap<PathBuf, Vec<u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().is_some_and(is_segment) {
            continue;
        }
        let recovered = recover_file(&path, true).unwrap();
        let times: &mut Vec<u64> =
            // The suffix depends on whether the segment has records.
            found.entry(PathBuf::from(path.file_stem().unwrap())).or_default();
        if recovered.found.contents.is_none() {
            continue;
        }
        for message in mcap::MessageStream::new(&fs::read(&path).unwrap()).unwrap() {
            let message = message.unwrap();
            assert_eq!(*message.data, record(message.log_time), "{}", message.log_time);
            times.push(message.log_time);
        }
        assert!(times.is_sorted_by(|a, b| a < b), "each once, in order");
    }
    found
}

fn ours(found: &BTreeMap<PathBuf, Vec<u64>>) -> u64 {
    found.values().flatten().filter(|time| **time >= OURS).count() as u64
}

/// The segments of the earlier recording that have lost records; one may have been continued.
fn kept_lost(before: &BTreeMap<PathBuf, Vec<u64>>, after: &BTreeMap<PathBuf, Vec<u64>>) -> usize {
    before.iter().filter(|(path, times)| !after[*path].starts_with(times)).count()
}

fn assert_consistent(account: &Account) {
    assert!(account.durable.records <= account.written.records, "{account:?}");
    let known = account.buffered.records + account.written.records + account.lost().records;
    assert_eq!(account.received.records, known + account.expired.records);
}

struct Run {
    dir: tempfile::TempDir,
    before: BTreeMap<PathBuf, Vec<u64>>,
    faults: Faults,
    recorder: Recorder,
    channels: Vec<Channel>,
    kept: Vec<KeptSegment>,
}

impl Run {
    /// Starts a recording over a pool that an earlier one has filled.
    fn start(engine: EngineChoice, faults: &[Fault]) -> Run {
        Run::start_with(engine, faults, false, OnFailure::Wait)
    }

    fn start_with(
        engine: EngineChoice,
        faults: &[Fault],
        page_cache: bool,
        on_failure: OnFailure,
    ) -> Run {
        let (dir, config) = filled_pool(engine);
        let config = RecorderConfig { on_failure, ..config };
        Run::begin(dir, &config, faults, page_cache)
    }

    /// Starts a recording that holds records in memory until an incident.
    fn start_ram(engine: EngineChoice, faults: &[Fault]) -> Run {
        let (dir, mut config) = filled_pool(engine);
        config.writer.ram = Some(RAM);
        Run::begin(dir, &config, faults, false)
    }

    fn begin(
        dir: tempfile::TempDir,
        config: &RecorderConfig,
        faults: &[Fault],
        page_cache: bool,
    ) -> Run {
        let before = found(dir.path());
        let faults = Faults::of_next_recorder(faults.to_vec(), page_cache);
        let (recorder, channels) = Recorder::start(config, &mut |_| ()).unwrap();
        Run { dir, before, faults, recorder, channels, kept: Vec::new() }
    }

    fn append(&mut self, records: std::ops::Range<u64>, every: Duration) {
        append(&mut self.channels, OURS + records.start..OURS + records.end, every);
    }

    /// Declares a channel. All later records are appended to it.
    fn add_channel(&mut self, topic: &str) {
        let mut config = config(self.dir.path(), EngineChoice::Best).channels.remove(0);
        config.topic = topic.into();
        self.channels[0] = self.recorder.add_channel(&config).unwrap();
    }

    /// Keeps the segment in use, if the device lets the writer thread get there and room is left.
    fn keep(&mut self, name: &str) {
        if let Ok(kept) = self.recorder.keeper().pin(name, Duration::from_nanos(1)) {
            self.kept.extend(kept.incident.segments);
        }
    }

    /// Checks that nothing has overwritten the kept segments.
    fn check_kept(&self, dir: &Path) {
        for kept in &self.kept {
            let names = ["mcap", "unused"].map(|end| dir.join(format!("{}.{end}", kept.file)));
            let path = names.into_iter().find(|path| path.exists());
            let life = life(&fs::File::open(path.unwrap()).unwrap()).unwrap().unwrap();
            assert!(kept.is(&life.identity), "{kept:?} is {:?}", life.identity);
        }
    }

    /// The sum of all channels.
    fn account(&self) -> Account {
        self.recorder.registry().total()
    }

    fn meter(&self, of: fn(&Meters) -> &AtomicU64) -> u64 {
        of(self.recorder.meters()).load(Ordering::Relaxed)
    }

    /// Checks that all durable records survive a power cut now, whichever sectors of other writes
    /// have arrived.
    fn check_crash(&self) -> BTreeMap<PathBuf, Vec<u64>> {
        (0..TORN_CUTS).for_each(|seed| drop(self.check_cut(Some(seed))));
        self.check_cut(None)
    }

    fn check_cut(&self, seed: Option<u64>) -> BTreeMap<PathBuf, Vec<u64>> {
        let account = self.account();
        assert_consistent(&account);
        let left = self.faults.crash(self.dir.path(), seed);
        let found = found(left.path());
        let ours = ours(&found);
        assert!(ours >= account.durable.records, "{ours} of {account:?}, seed {seed:?}");
        self.check_kept(left.path());
        found
    }

    fn wait_until(&self, what: impl Fn(&Run) -> bool) {
        let started = Instant::now();
        while !what(self) {
            assert!(started.elapsed() < LONG, "{:?}", self.account());
            thread::sleep(ms(1));
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self.recorder.meters().state(), RecordingState::Waiting { .. })
    }

    /// Ends the recording, and checks that each record is durable or lost and that durable ones are
    /// there. Returns the number of lost ones.
    fn finish(mut self, ended: Ended) -> (u64, BTreeMap<PathBuf, Vec<u64>>, Run) {
        let report = self.recorder.finish().unwrap();
        assert_eq!(report.ended, ended);
        let account = self.account();
        assert_eq!(report.not_durable, account.not_durable());
        let decided = account.durable.records + account.lost().records + account.expired.records;
        assert_eq!(account.received.records, decided);
        let found = self.check_crash();
        (account.lost().records, found, self)
    }
}

fn fault(when: When, how: How) -> Fault {
    Fault { when, how }
}

#[test]
fn a_flush_that_fails_for_good_costs_one_kept_segment_at_most() {
    for engine in ENGINES {
        let mut run = Run::start(engine, &[fault(When::Syncs(8..EVER), How::Fail(libc::EIO))]);
        run.append(0..500, ms(1));
        run.wait_until(Run::is_waiting);
        assert!(run.account().durable.records > 0);
        let before = run.before.clone();
        let (lost, found, run) = run.finish(Ended::Failed);
        assert!(lost > 0 && kept_lost(&before, &found) <= 1);
        let trouble = run.recorder.meters().trouble().unwrap();
        assert!(trouble.contains("Input/output error"), "{trouble}");
    }
}

#[test]
fn no_kept_segment_is_touched_before_a_sync_has_worked() {
    for engine in ENGINES {
        let mut run = Run::start(engine, &[fault(When::Syncs(0..EVER), How::Fail(libc::EIO))]);
        run.append(0..50, ms(1));
        run.wait_until(Run::is_waiting);
        let before = run.before.clone();
        let (lost, after_cut, run) = run.finish(Ended::Failed);
        assert_eq!((lost, kept_lost(&before, &after_cut)), (50, 0));
        assert_eq!(kept_lost(&before, &found(run.dir.path())), 0, "without a power cut");
    }
}

#[test]
fn writes_that_fail_for_a_while_cost_nothing() {
    for engine in ENGINES {
        let failing = When::Writes(3..8);
        let mut run = Run::start(engine, &[fault(failing, How::Fail(libc::EIO))]);
        run.append(0..600, ms(1));
        run.wait_until(|run| run.meter(|meters| &meters.failures) >= 5);
        assert_eq!(run.recorder.flush(LONG), Flushed::Durable);
        run.wait_until(|run| run.recorder.meters().state() == RecordingState::Recording);
        let (lost, found, _) = run.finish(Ended::Finished);
        assert_eq!((lost, ours(&found)), (0, 600));
    }
}

#[test]
fn what_a_failed_sync_has_dropped_is_written_again_or_counted_as_lost() {
    for (engine, page_cache) in [(ENGINES[0], false), (ENGINES[1], false), (ENGINES[1], true)] {
        // More data than the buffers hold is in the cache.
        let late = fault(When::Syncs(4..5), How::Late(ms(100)));
        let lost = fault(When::Syncs(5..6), How::LoseCache(libc::EIO));
        let mut run = Run::start_with(engine, &[late, lost], page_cache, OnFailure::Wait);
        run.append(0..400, ms(1));
        run.recorder.flush(LONG);
        run.check_crash();
        let (lost, found, _) = run.finish(Ended::Finished);
        // Records after a lost block count as lost, but are found if they are there.
        assert!(ours(&found) >= 400 - lost);
    }
}

#[test]
fn what_a_failed_write_has_dropped_is_written_again() {
    for (engine, page_cache) in [(ENGINES[0], false), (ENGINES[1], false), (ENGINES[1], true)] {
        let lost = fault(When::Writes(9..10), How::LoseCache(libc::EIO));
        // The blocks before it are only in the cache.
        let late = fault(When::Syncs(0..EVER), How::Late(ms(60)));
        let mut run = Run::start_with(engine, &[late, lost], page_cache, OnFailure::Wait);
        run.append(0..100, ms(1));
        assert_ne!(run.recorder.flush(LONG), Flushed::Timeout);
        run.check_crash();
        let (lost, found, _) = run.finish(Ended::Finished);
        assert!(ours(&found) >= 100 - lost);
    }
}

#[test]
fn a_write_that_was_not_done_is_found_when_a_sync_fails() {
    for engine in ENGINES {
        let lie = fault(When::Writes(5..6), How::Lie);
        let mut run = Run::start(engine, &[lie, fault(When::Syncs(2..3), How::Fail(libc::EIO))]);
        run.append(0..200, ms(1));
        let (_, found, run) = run.finish(Ended::Finished);
        assert!(ours(&found) >= run.account().durable.records);
    }
}

#[test]
fn a_place_that_cannot_be_written_costs_one_segment_and_what_was_on_its_way() {
    for engine in ENGINES {
        let bad = fault(When::Places(100_000..130_000), How::Fail(libc::EIO));
        let mut run = Run::start(engine, &[bad]);
        run.append(0..500, ms(1));
        run.recorder.flush(LONG);
        assert_eq!(run.meter(|meters| &meters.failed_segments), 1);
        let used = 3 + run.meter(|meters| &meters.rotations);
        let before = run.before.clone();
        let (lost, found, _) = run.finish(Ended::Finished);
        assert!(lost > 0 && lost < 100, "{lost}");
        assert!(kept_lost(&before, &found) as u64 <= used, "{used}");
        assert!(ours(&found) >= 500 - lost);
    }
}

/// Returns the number of failed segments. On a busy machine the failing sync may come before any
/// write to the bad place.
fn segments_that_a_bad_place_costs(engine: EngineChoice) -> u64 {
    let slow = fault(When::Syncs(0..EVER), How::Late(ms(30)));
    let bad = fault(When::Again(30_000..240_000, 1..EVER), How::Fail(libc::EIO));
    let sync = fault(When::Syncs(3..4), How::Fail(libc::EIO));
    let mut run = Run::start(engine, &[sync, slow, bad]);
    run.append(0..200, ms(1));
    assert_ne!(run.recorder.flush(LONG), Flushed::Timeout);
    let failed = run.meter(|meters| &meters.failed_segments);
    let (lost, found, _) = run.finish(Ended::Finished);
    assert_eq!(lost > 0, failed > 0, "{lost}");
    assert!(ours(&found) >= 200 - lost, "{lost}");
    failed
}

#[test]
fn a_place_that_goes_bad_before_a_sync_costs_one_segment() {
    for engine in ENGINES {
        let costs = (0..20).map(|_| segments_that_a_bad_place_costs(engine));
        assert_eq!(costs.into_iter().find(|failed| *failed > 0), Some(1));
    }
}

#[test]
fn a_next_segment_that_fails_early_is_tried_again_when_it_is_needed() {
    for engine in ENGINES {
        // The copy of the definitions in each segment: the next one fails twice, and then once
        // more.
        let bad = fault(When::Again(252 << 10..256 << 10, 0..3), How::Fail(libc::EIO));
        let mut run = Run::start(engine, &[bad]);
        run.append(0..400, ms(1));
        assert_eq!(run.recorder.flush(LONG), Flushed::Durable);
        assert!(run.meter(|meters| &meters.rotations) > 0);
        let (lost, found, _) = run.finish(Ended::Finished);
        assert_eq!((lost, ours(&found)), (0, 400));
    }
}

#[test]
fn on_failure_exit_ends_at_once_and_keeps_what_is_durable() {
    for engine in ENGINES {
        let failing = fault(When::Syncs(3..EVER), How::Fail(libc::EIO));
        let mut run = Run::start_with(engine, &[failing], false, OnFailure::Exit);
        run.append(0..100, ms(1));
        run.wait_until(|run| run.recorder.meters().state() == RecordingState::Ended(Ended::Failed));
        run.append(100..110, ms(0));
        assert!(matches!(run.recorder.flush(LONG), Flushed::Lost(_)));
        let (lost, found, _) = run.finish(Ended::Failed);
        assert!(lost >= 10 && ours(&found) >= 110 - lost);
    }
}

#[test]
fn completions_that_come_late_cost_nothing() {
    for engine in ENGINES {
        let late = fault(When::Writes(4..9), How::Late(ms(60)));
        let mut run = Run::start(engine, &[late, fault(When::Syncs(3..5), How::Late(ms(80)))]);
        run.append(0..200, ms(1));
        run.check_crash();
        let (lost, found, _) = run.finish(Ended::Finished);
        assert_eq!((lost, ours(&found)), (0, 200));
    }
}

#[test]
fn a_memory_writes_only_incidents_and_waits_for_a_failing_device() {
    for engine in ENGINES {
        let first_writes = fault(When::Writes(0..3), How::Fail(libc::EIO));
        let mut run = Run::start_ram(engine, &[first_writes]);
        run.append(0..500, Duration::ZERO);
        assert_eq!(run.check_crash(), run.before, "nothing was written");
        let kept = run.recorder.keeper().keep("a", LONG).unwrap();
        assert!(kept.durable && run.meter(|meters| &meters.failures) > 0, "{kept:?}");
        run.kept = kept.incident.segments;
        assert_eq!(run.account().durable.records, 500);
        run.check_crash();
        run.append(500..1_000, Duration::ZERO);
        let (lost, found, run) = run.finish(Ended::Finished);
        assert_eq!((lost, ours(&found)), (0, 500));
        assert_eq!(run.account().expired.records, 500);
    }
}

#[test]
fn an_incident_whose_device_fails_for_good_loses_its_records_and_no_others() {
    let ever = fault(When::Writes(0..EVER), How::Fail(libc::EIO));
    let (dir, mut config) = filled_pool(EngineChoice::Best);
    config.writer.ram = Some(RAM);
    config.on_failure = OnFailure::Exit;
    let mut run = Run::begin(dir, &config, &[ever], false);
    run.append(0..100, Duration::ZERO);
    let kept = run.recorder.keeper().keep("a", LONG).map_err(|error| error.to_string());
    assert_eq!(kept, Err("incident a: the recording has ended".into()));
    let (lost, ..) = run.finish(Ended::Failed);
    assert_eq!(lost, 100);
}

#[test]
fn a_recording_that_receives_nothing_costs_nothing() {
    let (dir, config) = filled_pool(EngineChoice::Best);
    let before = found(dir.path());
    for _ in 0..4 {
        let (mut recorder, _) = Recorder::start(&config, &mut |_| ()).unwrap();
        recorder.finish().unwrap();
    }
    assert_eq!(found(dir.path()), before);
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let numbers = (0u64..120, 1u64..12).prop_map(|(from, count)| from..from + count);
    let times = (0u64..300, 1u64..200).prop_map(|(from, for_ms)| ms(from)..ms(from + for_ms));
    let when = prop_oneof![
        numbers.clone().prop_map(When::Writes),
        numbers.prop_map(When::Syncs),
        times.clone().prop_map(When::WritesFor),
        times.prop_map(When::SyncsFor),
        (0u64..60).prop_map(|block| When::Places(block * 4096..(block + 2) * 4096)),
    ];
    let error = prop::sample::select(vec![libc::EIO, libc::ENOSPC, libc::EROFS, libc::ENODEV]);
    let how = prop_oneof![
        3 => error.clone().prop_map(How::Fail),
        2 => error.prop_map(How::LoseCache),
        2 => (1u64..80).prop_map(|late| How::Late(ms(late))),
    ];
    (when, how).prop_map(|(when, how)| match (when, how) {
        // Such a fault would last until the recording waits for another segment, too long for a
        // test.
        (When::Places(places), How::Fail(_) | How::LoseCache(_)) => {
            fault(When::Places(places), How::Late(ms(20)))
        }
        (when, how) => fault(when, how),
    })
}

/// Random schedules; `make soak` runs many more of them.
fn schedules() -> ProptestConfig {
    let cases = std::env::var("STEADY_FAULT_SCHEDULES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(6), max_shrink_iters: 20, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(schedules())]
    #[test]
    fn whatever_fails_the_account_is_true(
        faults in prop::collection::vec(any_fault(), 1..5),
        engine in prop::sample::select(ENGINES.to_vec()),
        page_cache in prop::bool::weighted(0.2),
        incidents in prop::collection::vec(any::<bool>(), 5),
    ) {
        let mut run = Run::start_with(engine, &faults, page_cache, OnFailure::Wait);
        for part in 0..5 {
            if incidents[part as usize] {
                run.keep(&part.to_string());
            }
            run.append(part * 80..(part + 1) * 80, ms(1));
            run.add_channel(&part.to_string());
            run.check_crash();
        }
        run.wait_until(|run| run.recorder.flush(Duration::ZERO) != Flushed::Timeout);
        let failed = run.meter(|meters| &meters.failed_segments);
        let rotations = run.meter(|meters| &meters.rotations);
        let before = run.before.clone();
        let (lost, found, run) = run.finish(Ended::Finished);
        run.check_kept(run.dir.path());
        prop_assert!(ours(&found) >= 400 - lost);
        // The first, one at each change of segment, and one that was prepared.
        let used = 2 + rotations + failed;
        prop_assert!(kept_lost(&before, &found) as u64 <= used, "{used}");
    }
}
