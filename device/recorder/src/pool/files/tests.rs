// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use steadyio_testing::cases;

use super::*;
use crate::mcap::files::FilesError;

const BYTES: u64 = 64 << 10;

fn open(
    dir: &Path,
    count: usize,
    segment_bytes: u64,
    note: &mut dyn FnMut(String),
) -> Result<Pool, PoolError> {
    let wanted = Making {
        dir,
        count,
        segment_bytes,
        compressed: false,
        discard_damaged: false,
        keep_free_bytes: 0,
        shrink: false,
    };
    Pool::open(&wanted, note, &Interrupt::default())
}

#[test]
fn a_pool_is_made_once_and_used_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut notes = Vec::new();
    let mut pool = open(dir.path(), 3, BYTES, &mut |note| notes.push(note)).unwrap();
    assert_eq!(notes.len(), 3);
    let sequences = [1, 2, 3, 4].map(|_| pool.open_oldest().unwrap().1);
    assert_eq!(sequences, [1, 2, 3, 4]);
    assert!(matches!(
        open(dir.path(), 3, BYTES, &mut |_| ()),
        Err(PoolError::Recover(FilesError::Busy(_)))
    ));
    drop(pool);
    open(dir.path(), 3, BYTES, &mut |_| unreachable!("all are there")).unwrap();
}

#[test]
fn a_segment_that_cannot_be_read_is_kept_under_another_name_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap());
    let path = dir.path().join("segment-00001.mcap");
    for number in 1..3 {
        fs::remove_file(dir.path().join("segment-00001.unused")).unwrap();
        fs::write(&path, vec![number; BYTES as usize]).unwrap();
        let mut notes = Vec::new();
        let pool = open(dir.path(), 3, BYTES, &mut |note| notes.push(note)).unwrap();
        assert_eq!(pool.count(), 3);
        let aside = dir.path().join(format!("segment-00001.mcap.damaged-{number}"));
        assert!(notes[0].ends_with(&format!("; it is kept as {}", aside.display())));
        assert_eq!(fs::read(aside).unwrap(), vec![number; BYTES as usize]);
        assert!(dir.path().join("segment-00001.unused").exists());
    }
}

#[test]
fn an_error_names_the_file_and_the_cause_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open(&file, 2, BYTES, &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: not a directory", file.display()));
    // A program that prints the chain of causes must not print it twice.
    assert!(std::error::Error::source(&error).is_none());
}

#[test]
fn a_pool_of_other_sizes_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    // At least as large as the configuration allows.
    const BYTES: u64 = 256 << 10;
    drop(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap());
    let smaller = open(dir.path(), 2, BYTES, &mut |_| ()).unwrap_err().to_string();
    assert!(smaller.contains("holds 3 segments, but 2 are configured"), "{smaller}");
    let other = open(dir.path(), 3, 2 * BYTES, &mut |_| ()).unwrap_err().to_string();
    assert!(other.contains("has 262144 bytes, but segments must have 524288"), "{other}");
    let huge = open(dir.path(), 4_000, 1 << 60, &mut |_| ());
    assert!(huge.is_err());
}

#[test]
fn a_file_named_like_a_segment_is_no_reason_to_record_with_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("segment-00007.mcap");
    let says = || open(dir.path(), 2, BYTES, &mut |_| ()).unwrap_err().to_string();
    let said = format!("{}: not a regular file of 65536 bytes", path.display());
    fs::write(&path, "cut off").unwrap();
    assert!(says().starts_with(&said), "{}", says());
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/proc/self/exe", &path).unwrap();
    assert!(says().starts_with(&said), "{}", says());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(says().starts_with(&said), "{}", says());
}

#[test]
fn making_segments_stops_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let stop = Interrupt::default();
    let mut second = |note: String| {
        if note.starts_with("making segment 2") {
            stop.request();
        }
    };
    let dir_path = dir.path();
    let wanted = Making {
        keep_free_bytes: 0,
        dir: dir_path,
        count: 3,
        segment_bytes: BYTES,
        compressed: false,
        discard_damaged: false,
        shrink: false,
    };
    let stopped = Pool::open(&wanted, &mut second, &stop).unwrap_err();
    assert!(matches!(stopped, PoolError::Stopped));
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(Result::unwrap).collect();
    assert!(left.len() == 1 && left[0].file_name() == "segment-00000.unused", "{left:?}");
    assert_eq!(open(dir.path(), 3, BYTES, &mut |_| ()).unwrap().count(), 3);
}

fn begin(pool: &mut Pool, now_ns: u64) -> Identity {
    let sequence = pool.open_oldest().unwrap().1;
    let identity = Identity { recording_id: [7; 16], sequence };
    pool.begin(identity, now_ns);
    identity
}

fn moment(now_ns: u64) -> Moment {
    Moment { monotonic_ns: now_ns, wall_ns: 1_000_000 + now_ns }
}

#[test]
fn an_incident_keeps_what_reaches_into_its_time_and_leaves_two_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut pool = open(dir.path(), 5, BYTES, &mut |_| ()).unwrap();
    let ns = Duration::from_nanos;
    let nothing = pool.keep("a", ns(10), moment(0));
    assert!(matches!(nothing, Err(IncidentError::Nothing(_))));
    for now_ns in [100, 200, 300] {
        begin(&mut pool, now_ns);
    }
    // It is prepared and empty.
    pool.open_oldest().unwrap();
    let kept = pool.keep("a", ns(100), moment(310)).unwrap();
    let sequences: Vec<u64> = kept.incident.segments.iter().map(|one| one.sequence).collect();
    assert_eq!((sequences, kept.kept_segments, kept.free_segments), (vec![2, 3], 2, 3));
    assert_eq!((kept.incident.covered_ns(), kept.incident.to_ns), (100, 1_000_310));
    let same = pool.keep("a", ns(1), moment(310)).unwrap_err();
    assert!(matches!(same, IncidentError::Exists(_)));
    assert_eq!(pool.keep("b", ns(900), moment(310)).unwrap().incident.covered_ns(), 210);
    pool.release("a");
    assert_eq!(pool.kept(), (1, 3), "the other one has them, too");
    begin(&mut pool, 400);
    let error = pool.keep("c", ns(1), moment(400)).unwrap_err().to_string();
    let says = "are in 1 segments; keeping them leaves 1 of 5 to record in";
    assert!(error.contains(says), "{error}");
}

#[derive(Debug, Clone)]
enum Step {
    Begin,
    Keep(u8, u64),
    Release(u8),
    GiveUp,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Begin),
        2 => (0u8..4, 1u64..40).prop_map(|(name, last)| Step::Keep(name, last)),
        1 => (0u8..4).prop_map(Step::Release),
        1 => Just(Step::GiveUp),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]
    #[test]
    fn no_life_of_an_incident_is_overwritten_and_one_segment_is_always_free(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let mut pool = open(dir.path(), 6, BYTES, &mut |_| ()).unwrap();
        let mut incidents: BTreeMap<String, Incident> = BTreeMap::new();
        let mut last = begin(&mut pool, 0);
        for (now_ns, step) in (1u64..).zip(steps) {
            match step {
                Step::Begin => last = begin(&mut pool, now_ns * 10),
                Step::Keep(name, last_ns) => {
                    let (name, last) = (name.to_string(), Duration::from_nanos(last_ns));
                    if let Ok(kept) = pool.keep(&name, last, moment(now_ns * 10)) {
                        prop_assert!(kept.free_segments >= 2);
                        incidents.insert(name, kept.incident);
                    }
                }
                Step::Release(name) => {
                    pool.release(&name.to_string());
                    incidents.remove(&name.to_string());
                }
                Step::GiveUp => drop(pool.give_up(last.sequence)),
            }
            prop_assert!(pool.oldest().is_some());
            for kept in incidents.values().flat_map(|incident| &incident.segments) {
                let there = pool.segments.iter().filter_map(Segment::identity);
                prop_assert!(there.filter(|life| kept.is(life)).count() == 1, "{:?}", kept);
            }
        }
    }
}

/// The configured space stays free, even if other files take some while segments are made.
#[test]
fn fewer_segments_are_made_if_others_take_the_space() {
    let dir = tempfile::tempdir().unwrap();
    let stat = rustix::fs::statvfs(dir.path()).unwrap();
    // More than the file system has.
    let keep_free_bytes = (stat.f_blocks * stat.f_frsize).max(1);
    let wanted = Making {
        dir: dir.path(),
        count: 5,
        segment_bytes: BYTES,
        compressed: false,
        discard_damaged: false,
        keep_free_bytes,
        shrink: false,
    };
    let mut notes = Vec::new();
    let pool = Pool::open(&wanted, &mut |text| notes.push(text), &Interrupt::default()).unwrap();
    assert_eq!(pool.count(), 2);
    assert!(notes.iter().any(|note| note.contains("others have taken")), "{notes:?}");
}
