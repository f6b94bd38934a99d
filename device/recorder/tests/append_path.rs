// SPDX-License-Identifier: MIT OR Apache-2.0
//! append() makes no system call, allocates nothing, and waits for nobody.
//!
//! Each proof comes with canaries: appends that do what they must not, which the same check has to
//! find. Alone in its program: its allocator counts.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel as sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use steadyio_recorder::channel::{Channel, Consumer, Lost, open};
use steadyio_recorder::config::{ChannelConfig, RecorderConfig, Retention, WriterConfig};
use steadyio_recorder::mcap::compression::Compression;
use steadyio_recorder::pool::Recorder;
use steadyio_testing::CountingAllocator;

const RECORD_BYTES_MAX: usize = 10_000;
/// Each round meets every case: taken in one piece, wrapped, too long, ring full.
const ROUNDS: u64 = 300;

fn config(ring_bytes: u64) -> ChannelConfig {
    ChannelConfig { ring_bytes, ..ChannelConfig::new("a", RECORD_BYTES_MAX as u64) }
}

fn pair() -> (Channel, Consumer) {
    open(&config(65_536), 0, false).unwrap()
}

/// Appends all kinds of records with `append`, and empties the ring now and then.
fn exercise(
    channel: &mut Channel,
    consumer: &mut Consumer,
    mut append: impl FnMut(&mut Channel, &[u8]),
) {
    let data = [7; RECORD_BYTES_MAX + 1];
    for round in 0..ROUNDS {
        for bytes in [0, 1, 100, 9_999, RECORD_BYTES_MAX, RECORD_BYTES_MAX + 1] {
            append(channel, &data[..bytes]);
        }
        if round % 4 == 3 {
            while consumer.ring.next(|_, _| true).is_some() {}
        }
    }
}

fn plain(channel: &mut Channel, data: &[u8]) {
    let _ = channel.append(1, data);
}

#[test]
fn the_exercise_meets_every_case() {
    let (mut channel, mut consumer) = pair();
    let (mut taken, mut full, mut long) = (0, 0, 0);
    exercise(&mut channel, &mut consumer, |channel, data| match channel.append(1, data) {
        Ok(()) => taken += 1,
        Err(Lost::RingFull) => full += 1,
        Err(Lost::TooLong) => long += 1,
    });
    assert!(taken > 1_000 && full > 100 && long == ROUNDS, "{taken} {full} {long}");
}

// Allocations, counted for the calling thread.

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn allocations(append: impl FnMut(&mut Channel, &[u8])) -> u64 {
    let (mut channel, mut consumer) = pair();
    let before = CountingAllocator::calls();
    exercise(&mut channel, &mut consumer, append);
    CountingAllocator::calls() - before
}

#[test]
fn append_allocates_nothing() {
    assert_eq!(allocations(plain), 0);
}

#[test]
fn canary_of_an_append_that_allocates() {
    let found = allocations(|channel, data| plain(channel, &[data, &[]].concat()));
    assert!(found >= ROUNDS, "{found}");
}

// System calls: a child forbids itself all but its exit; the kernel kills it at the first other.

const CHILD: &str = "STEADYIO_TEST_APPEND_PATH_CHILD";
const CHILD_TEST: &str = "child_of_the_system_call_tests";

#[test]
fn append_makes_no_system_call() {
    let status = run_forbidden(CHILD_TEST, "plain");
    assert!(status.success(), "{status}");
}

#[test]
fn canaries_of_appends_that_make_system_calls() {
    for canary in ["clock", "yield", "contended-lock", "wake"] {
        let status = run_forbidden(CHILD_TEST, canary);
        assert_eq!(status.signal(), Some(libc::SIGSYS), "{canary}: {status}");
    }
}

fn run_forbidden(test: &str, append: &str) -> ExitStatus {
    // A killed child leaves its files there.
    let dir = tempfile::tempdir().unwrap();
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, append)
        .env("TMPDIR", dir.path())
        .status()
        .unwrap()
}

/// Does something only as a child of the tests above.
#[test]
fn child_of_the_system_call_tests() {
    let Ok(append) = env::var(CHILD) else { return };
    let (mut channel, mut consumer) = pair();
    let held = Arc::new(Mutex::new(()));
    let holder = Arc::clone(&held);
    let (locked, is_locked) = sync_channel();
    let (wake, woken) = sync_channel::<()>();
    thread::spawn(move || {
        let _guard = holder.lock().unwrap();
        // SAFETY: no memory involved.
        locked.send(unsafe { libc::gettid() }).unwrap();
        // Asleep for as long as the child lives.
        let _ = woken.recv();
        thread::sleep(Duration::from_secs(3_600));
    });
    wait_until_asleep(is_locked.recv().unwrap());
    forbid_system_calls();
    exercise(&mut channel, &mut consumer, |channel, data| {
        match append.as_str() {
            // SAFETY: no memory involved.
            "clock" => drop(unsafe { libc::syscall(libc::SYS_getppid) }),
            "yield" => thread::yield_now(),
            "contended-lock" => drop(held.lock()),
            "wake" => drop(wake.send(())),
            _ => {}
        }
        plain(channel, data);
    });
    // SAFETY: ends the process; the only system call that is left.
    unsafe { libc::syscall(libc::SYS_exit_group, 0) };
}

/// From then on it takes a system call to wake this thread.
fn wait_until_asleep(thread: libc::pid_t) {
    let stat = format!("/proc/self/task/{thread}/stat");
    while !fs::read_to_string(&stat).unwrap().contains(") S ") {
        thread::sleep(Duration::from_millis(1));
    }
}

/// For the calling thread; any call but exit_group kills the process with SIGSYS.
fn forbid_system_calls() {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The number of the call.
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_exit_group as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program lives through the call, which copies it.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    assert!(set, "no seccomp: {}", std::io::Error::last_os_error());
}

// Waiting: the other side hangs in the middle of an operation.

/// Whether `append` returns within this time while the reader is inside the ring, for ever.
fn returns_beside_a_stuck_reader<C: Send + 'static>(
    within: Duration,
    mut channel: C,
    append: impl Fn(&mut C) + Send + 'static,
    inside: impl FnOnce(Box<dyn FnOnce()>) + Send + 'static,
) -> bool {
    let (entered, is_inside) = sync_channel();
    let (leave, may_leave) = sync_channel::<()>();
    let reader = thread::spawn(move || {
        inside(Box::new(move || {
            entered.send(()).unwrap();
            let _ = may_leave.recv();
        }));
    });
    is_inside.recv().unwrap();
    let (done, is_done) = sync_channel();
    let caller = thread::spawn(move || {
        append(&mut channel);
        done.send(()).unwrap();
    });
    let returned = is_done.recv_timeout(within).is_ok();
    drop(leave);
    reader.join().unwrap();
    caller.join().unwrap();
    returned
}

#[test]
fn append_does_not_wait_for_a_reader_that_stands_still() {
    let (mut channel, mut consumer) = pair();
    channel.append(1, b"first").unwrap();
    let append_many = |channel: &mut Channel| (0..100).for_each(|_| plain(channel, &[0; 1_000]));
    let long = Duration::from_secs(60);
    let returned = returns_beside_a_stuck_reader(long, channel, append_many, move |stand_still| {
        consumer.ring.next(|_, _| {
            stand_still();
            true
        });
    });
    assert!(returned);
}

#[test]
fn canary_of_an_append_that_shares_a_lock_with_the_reader() {
    let (mut channel, mut consumer) = pair();
    channel.append(1, b"first").unwrap();
    let lock = Arc::new(Mutex::new(()));
    let locking = (channel, Arc::clone(&lock));
    let append = |(channel, lock): &mut (Channel, Arc<Mutex<()>>)| {
        let _guard = lock.lock().unwrap();
        plain(channel, &[0; 1_000]);
    };
    let short = Duration::from_secs(1);
    let returned = returns_beside_a_stuck_reader(short, locking, append, move |stand_still| {
        let _guard = lock.lock().unwrap();
        consumer.ring.next(|_, _| {
            stand_still();
            true
        });
    });
    assert!(!returned);
}

// A recorder that compresses does so in its own thread.

const COMPRESSIONS: [Compression; 2] = [Compression::Lz4, Compression::Zstd];

fn compressing(dir: &Path, compression: Compression) -> (Recorder, Channel) {
    let config = RecorderConfig {
        loss_window: Duration::from_millis(20),
        unit_bytes: 256 << 10,
        segment_bytes: 2 << 20,
        retention: Retention::Segments(3),
        writer: WriterConfig { compression: Some(compression), ..WriterConfig::default() },
        lock_memory: false,
        ..RecorderConfig::new(dir.into(), vec![config(1 << 20)])
    };
    let (recorder, mut channels) = Recorder::start(&config, &mut |_| ()).unwrap();
    (recorder, channels.remove(0))
}

/// A record that compresses, but not to nothing.
fn compressible() -> Vec<u8> {
    (0..RECORD_BYTES_MAX).map(|at| (at * at / 97 % 13) as u8).collect()
}

#[test]
fn append_beside_a_compressor_allocates_nothing_and_counts_what_that_is_too_slow_for() {
    let data = compressible();
    for compression in COMPRESSIONS {
        let dir = tempfile::tempdir().unwrap();
        let (mut recorder, mut channel) = compressing(dir.path(), compression);
        let (mut appended, mut lost) = (0, 0);
        let before = CountingAllocator::calls();
        while lost < 100 && appended < 100_000 {
            lost += u64::from(channel.append(appended, &data).is_err());
            appended += 1;
        }
        assert_eq!(CountingAllocator::calls() - before, 0, "{compression:?}");
        recorder.finish().unwrap();
        let account = channel.account();
        assert_eq!((lost, account.lost_ring_full.records), (100, lost), "{compression:?}");
        assert_eq!(account.durable.records, appended - lost);
        let device_bytes = recorder.meters().device_bytes.load(Ordering::Relaxed);
        assert!(device_bytes < account.durable.bytes / 2, "{compression:?}: {device_bytes}");
    }
}

#[test]
fn append_beside_a_compressor_makes_no_system_call() {
    for compression in COMPRESSIONS {
        let status = run_forbidden("child_beside_a_compressor", compression.name());
        assert!(status.success(), "{compression:?}: {status}");
    }
    let status = run_forbidden("child_beside_a_compressor", "clock");
    assert_eq!(status.signal(), Some(libc::SIGSYS), "{status}");
}

/// Does something only as a child of the test above. Its filter holds for this thread only.
#[test]
fn child_beside_a_compressor() {
    let Ok(append) = env::var(CHILD) else { return };
    let dir = tempfile::tempdir().unwrap();
    let named = COMPRESSIONS.into_iter().find(|one| one.name() == append);
    let (_recorder, mut channel) = compressing(dir.path(), named.unwrap_or(Compression::Lz4));
    let data = compressible();
    forbid_system_calls();
    for _ in 0..1_000 {
        if named.is_none() {
            // SAFETY: no memory involved.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        plain(&mut channel, &data);
    }
    // SAFETY: ends the process; the only system call that is left.
    unsafe { libc::syscall(libc::SYS_exit_group, 0) };
}
