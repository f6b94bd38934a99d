// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of C programs are reported, and do no harm.

use std::ffi::{CStr, CString, c_int};
use std::mem::size_of;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use steadyio_capi::config::{CChannelConfig, CConfig, CPair};
use steadyio_capi::handle::{ChannelHandle, RecorderHandle};
use steadyio_capi::stats::{CAccount, CStats};
use steadyio_capi::status::Status;
use steadyio_capi::*;
use steadyio_recorder::control::client::ask;
use steadyio_testing::recording::messages;

fn said() -> String {
    // SAFETY: never NULL, ends with 0.
    unsafe { CStr::from_ptr(steadyio_error()) }.to_str().unwrap().to_string()
}

#[track_caller]
fn wrong(status: c_int, text: &str) {
    assert_eq!((status, said().as_str()), (Status::Invalid as c_int, text));
}

#[track_caller]
fn too_early_or_late(status: c_int, text: &str) {
    assert_eq!((status, said().as_str()), (Status::State as c_int, text));
}

fn config(dir: &CStr) -> CConfig {
    CConfig {
        struct_bytes: size_of::<CConfig>(),
        dir: dir.as_ptr(),
        loss_window_ms: 20,
        unit_bytes: 64 << 10,
        segment_bytes: 512 << 10,
        keep: 2,
        flags: 1, // STEADYIO_NO_LOCK
        // SAFETY: what is 0 has its default.
        ..unsafe { std::mem::zeroed() }
    }
}

fn channel_config() -> CChannelConfig {
    CChannelConfig {
        struct_bytes: size_of::<CChannelConfig>(),
        topic: c"/a".as_ptr(),
        record_bytes_max: 1_000,
        // SAFETY: what is 0 has its default.
        ..unsafe { std::mem::zeroed() }
    }
}

fn open(config: &CConfig) -> *mut RecorderHandle {
    let mut recorder = null_mut();
    // SAFETY: valid pointers.
    assert_eq!(unsafe { steadyio_open(config, &mut recorder) }, 0, "{}", said());
    recorder
}

fn add(recorder: *mut RecorderHandle, config: &CChannelConfig) -> *const ChannelHandle {
    let mut channel = null();
    // SAFETY: valid pointers.
    assert_eq!(unsafe { steadyio_add_channel(recorder, config, &mut channel) }, 0, "{}", said());
    channel
}

fn in_dir(test: impl FnOnce(&Path, &CStr)) {
    let dir = tempfile::tempdir().unwrap();
    let name = CString::new(dir.path().to_str().unwrap()).unwrap();
    test(dir.path(), &name);
}

#[test]
fn null_is_refused_by_name() {
    let need = "recorder = NULL: must be a recorder of steadyio_open()";
    let mut recorder = null_mut();
    let mut channel = null();
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        wrong(
            steadyio_open(null(), &mut recorder),
            "config = NULL: must be a struct steadyio_config",
        );
        let config = config(c"/nowhere");
        wrong(
            steadyio_open(&config, null_mut()),
            "recorder = NULL: must be where to store the result",
        );
        wrong(steadyio_add_channel(null(), &channel_config(), &mut channel), need);
        wrong(steadyio_start(null()), need);
        wrong(steadyio_flush(null(), 1), need);
        wrong(steadyio_finish(null()), need);
        wrong(steadyio_recorder_stats(null(), null_mut()), need);
        assert_eq!(steadyio_trouble(null(), null_mut(), 7), 0);
        let need = "channel = NULL: must be a channel of steadyio_add_channel()";
        wrong(steadyio_append(null(), 0, null(), 0), need);
        wrong(steadyio_channel_account(null(), null_mut()), need);
        steadyio_close(null_mut());
    }
}

#[test]
fn wrong_fields_are_named_with_what_is_allowed() {
    type Break = fn(&mut CConfig);
    let size = size_of::<CConfig>();
    let short = format!(
        "config->struct_bytes = 0: must be at least {size}: sizeof(struct steadyio_config)"
    );
    let cases: [(Break, &str); 8] = [
        (|c| c.struct_bytes = 0, &short),
        (|c| c.dir = null(), "config->dir = NULL: must be the directory of the recording"),
        (|c| c.keep_by = 4, "config->keep_by = 4: must be 0 to 3, see steadyio.h"),
        (|c| c.when_full = 2, "config->when_full = 2: must be 0 to 1, see steadyio.h"),
        (|c| c.engine = 3, "config->engine = 3: must be 0 to 2, see steadyio.h"),
        (|c| c.compression = 3, "config->compression = 3: must be 0 to 2, see steadyio.h"),
        (|c| c.flags = 9, "config->flags = 0x9: unknown flags 0x8 (see enum steadyio_flags)"),
        (|c| c.writer_io_class = 256, "config->writer_io_class = 256: must be at most 255"),
    ];
    for (break_it, text) in cases {
        let mut config = config(c"/nowhere");
        break_it(&mut config);
        let mut recorder = null_mut();
        // SAFETY: valid pointers.
        wrong(unsafe { steadyio_open(&config, &mut recorder) }, text);
        assert!(recorder.is_null());
    }
}

#[test]
fn wrong_channels_are_refused_and_the_recorder_stays_as_it_was() {
    in_dir(|path, dir| {
        let recorder = open(&config(dir));
        type Break = fn(&mut CChannelConfig);
        let cases: [(Break, &str); 4] = [
            (|c| c.topic = null(), "config->topic = NULL: must be the name of the channel"),
            (|c| c.topic = c"\xff".as_ptr(), "config->topic = \"\\xff\": must be UTF-8"),
            (
                |c| c.schema_bytes = 3,
                "config->schema_data = NULL: must be a pointer to data, since config->schema_bytes = 3",
            ),
            (
                |c| c.schema_encoding = c"json".as_ptr(),
                "config->schema_name = NULL: a schema has a name; without one the other schema fields must be 0",
            ),
        ];
        for (break_it, text) in cases {
            let mut config = channel_config();
            break_it(&mut config);
            let mut channel = null();
            // SAFETY: valid pointers.
            wrong(unsafe { steadyio_add_channel(recorder, &config, &mut channel) }, text);
            assert!(channel.is_null());
        }
        // SAFETY: valid pointers.
        unsafe {
            wrong(steadyio_start(recorder), "number of channels = 0: must be 1 to 10000");
            // The recorder's own limits, and nothing was created.
            add(recorder, &CChannelConfig { record_bytes_max: 0, ..channel_config() });
            wrong(
                steadyio_start(recorder),
                "channel \"/a\": record_bytes_max = 0: must be 1 to 67108864",
            );
            steadyio_close(recorder);
        }
        assert_eq!(path.read_dir().unwrap().count(), 0);
    });
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    in_dir(|_, dir| {
        let recorder = open(&config(dir));
        let channel = add(recorder, &channel_config());
        let append = || unsafe { steadyio_append(channel, 1, b"x".as_ptr().cast(), 1) };
        let mut stats = CStats { struct_bytes: size_of::<CStats>(), ..CStats::default() };
        let mut late = null();
        // SAFETY: valid pointers.
        unsafe {
            too_early_or_late(append(), "append before steadyio_start()");
            too_early_or_late(steadyio_finish(recorder), "nothing is being recorded");
            let early = "steadyio_start() was not called yet";
            too_early_or_late(steadyio_recorder_stats(recorder, &mut stats), early);
            assert_eq!(steadyio_start(recorder), 0, "{}", said());
            too_early_or_late(steadyio_start(recorder), "steadyio_start() was called before");
            let config = CChannelConfig { topic: c"/b".as_ptr(), ..channel_config() };
            let status = steadyio_add_channel(recorder, &config, &mut late);
            wrong(
                status,
                "late.channels = 0: all are taken; raise it, in steady record by --late-topics",
            );
            assert_eq!((append(), late), (0, null()));
            assert_eq!(steadyio_append(channel, 2, [0; 1_001].as_ptr().cast(), 1_001), 2);
            assert_eq!(steadyio_append(channel, 3, null(), 0), 0);
            wrong(
                steadyio_append(channel, 4, null(), 5),
                "data = NULL: must be a pointer to data, since bytes = 5",
            );
            // The record that was too long is lost: one flush tells it, and the end.
            let flush = || steadyio_flush(recorder, 600_000);
            assert_eq!((flush(), flush()), (Status::Lost as i32, 0));
            assert_eq!(steadyio_finish(recorder), Status::Lost as i32, "{}", said());
            too_early_or_late(append(), "append after steadyio_finish()");
            let status = steadyio_add_channel(recorder, &config, &mut late);
            too_early_or_late(status, "add channels before steadyio_finish()");
            too_early_or_late(steadyio_flush(recorder, 1), "nothing is being recorded");
            assert_eq!(steadyio_recorder_stats(recorder, &mut stats), 0);
            assert!(stats.device_bytes > 0);
        }
        let mut account = CAccount { struct_bytes: size_of::<CAccount>(), ..CAccount::default() };
        // SAFETY: valid pointers.
        unsafe {
            assert_eq!(steadyio_channel_account(channel, &mut account), 0);
            assert_eq!((account.received.records, account.durable.records), (3, 2));
            assert_eq!((account.lost_ring_full.records, account.last_lost_ns), (1, 2));
            steadyio_close(recorder);
        }
    });
}

#[test]
fn a_channel_that_is_added_while_recording_is_recorded() {
    in_dir(|path, dir| {
        let recorder = open(&CConfig { late_channels: 1, ..config(dir) });
        add(recorder, &channel_config());
        // SAFETY: valid pointers.
        assert_eq!(unsafe { steadyio_start(recorder) }, 0, "{}", said());
        let pair = |key: &'static CStr, value: &'static CStr| CPair {
            key: key.as_ptr(),
            value: value.as_ptr(),
        };
        let pairs = [pair(c"unit", c"m/s"), pair(c"steadyio.latched", c"true")];
        let late = CChannelConfig {
            topic: c"/late".as_ptr(),
            metadata: pairs.as_ptr(),
            metadata_pairs: pairs.len(),
            ..channel_config()
        };
        let channel = add(recorder, &late);
        let mut account = CAccount { struct_bytes: size_of::<CAccount>(), ..CAccount::default() };
        // SAFETY: valid pointers.
        unsafe {
            let data = b"x".as_ptr().cast();
            assert_eq!(steadyio_append_published(channel, 7, 5, data, 1), 0, "{}", said());
            assert_eq!(steadyio_flush(recorder, 600_000), 0);
            assert_eq!(steadyio_channel_account(channel, &mut account), 0);
            assert_eq!(account.durable.records, 1);
            assert_eq!(steadyio_finish(recorder), 0, "{}", said());
            let after = steadyio_append(channel, 7, b"x".as_ptr().cast(), 1);
            too_early_or_late(after, "append after steadyio_finish()");
            steadyio_close(recorder);
        }
        let found = messages(path);
        assert_eq!((found.len(), found[0].channel.topic.as_str()), (1, "/late"));
        assert_eq!((found[0].log_time, found[0].publish_time), (7, 5));
        assert_eq!(found[0].channel.metadata["unit"], "m/s");
        assert_eq!(found[0].channel.metadata["steadyio.latched"], "true");
    });
}

#[test]
fn a_control_socket_answers_from_start_to_finish() {
    in_dir(|path, dir| {
        let socket = path.join("control");
        let name = CString::new(socket.to_str().unwrap()).unwrap();
        let recorder = open(&CConfig { control_socket: name.as_ptr(), ..config(dir) });
        add(recorder, &channel_config());
        // SAFETY: valid pointers.
        unsafe {
            assert_eq!(steadyio_start(recorder), 0, "{}", said());
            let status = ask(&socket, &json!({ "do": "status" })).unwrap();
            assert_eq!(status["channels"][0]["topic"], "/a");
            assert_eq!(steadyio_finish(recorder), 0, "{}", said());
            assert!(!socket.exists());
            steadyio_close(recorder);
        }
        // A socket that cannot be made is reported before anything else is made.
        std::fs::write(&socket, "").unwrap();
        let inside = path.join("inside");
        let dir = CString::new(inside.to_str().unwrap()).unwrap();
        let recorder = open(&CConfig { control_socket: name.as_ptr(), ..config(&dir) });
        add(recorder, &channel_config());
        // SAFETY: valid pointers.
        unsafe {
            assert_eq!(steadyio_start(recorder), Status::Failed as c_int);
            assert!(said().contains("exists and is not a socket"), "{}", said());
            steadyio_close(recorder);
        }
        assert!(!inside.exists());
    });
}

#[test]
fn an_incident_is_kept_once_and_under_a_name_that_a_file_can_have() {
    in_dir(|path, dir| {
        let recorder = open(&CConfig { keep: 4, ..config(dir) });
        let channel = add(recorder, &channel_config());
        let (name, wrong) = (c"first".as_ptr(), c"../first".as_ptr());
        let mut covered_ms = u64::MAX;
        // SAFETY: valid pointers.
        unsafe {
            let keep = |name, last_ms| steadyio_keep_incident(recorder, name, last_ms, null_mut());
            assert_eq!(keep(name, 1), Status::State as c_int);
            assert_eq!(steadyio_start(recorder), 0, "{}", said());
            assert_eq!(keep(name, 1), Status::State as c_int);
            assert!(said().contains("nothing is recorded yet"), "{}", said());
            assert_eq!(steadyio_append(channel, 1, c"abc".as_ptr().cast(), 3), 0);
            assert_eq!(steadyio_flush(recorder, 60_000), 0);
            for (name, last_ms) in [(wrong, 1), (null(), 1), (name, 0)] {
                assert_eq!(keep(name, last_ms), Status::Invalid as c_int, "{}", said());
            }
            let kept = steadyio_keep_incident(recorder, name, 3_600_000, &raw mut covered_ms);
            assert_eq!(kept, 0, "{}", said());
            assert_eq!(keep(name, 1), Status::State as c_int);
            assert!(said().contains("name is taken"), "{}", said());
            assert_eq!(steadyio_finish(recorder), 0, "{}", said());
            assert_eq!(keep(c"late".as_ptr(), 1), Status::State as c_int);
            steadyio_close(recorder);
        }
        assert!(covered_ms < 3_600_000);
        assert!(path.join("incident-first.json").exists());
    });
}

#[test]
fn structs_of_a_later_version_work_if_what_is_new_is_zero() {
    #[repr(C)]
    struct Later<T> {
        known: T,
        new: u64,
    }
    in_dir(|_, dir| {
        let bytes = size_of::<Later<CConfig>>();
        let mut later = Later { known: config(dir), new: 0 };
        later.known.struct_bytes = bytes;
        let mut recorder = null_mut();
        // SAFETY: as long as it says.
        let status = unsafe { steadyio_open((&raw const later).cast(), &mut recorder) };
        assert_eq!(status, 0, "{}", said());
        let channel = add(recorder, &channel_config());
        later.new = 1;
        let mut other = null_mut();
        let account =
            CAccount { struct_bytes: size_of::<Later<CAccount>>(), ..CAccount::default() };
        let mut account = Later { known: account, new: 7 };
        // SAFETY: as long as they say.
        unsafe {
            let known = size_of::<CConfig>();
            let text = format!(
                "config->struct_bytes = {bytes}: the library knows {known} bytes of it, but later \
                 bytes are not 0 (the program needs a newer libsteadyio)"
            );
            wrong(steadyio_open((&raw const later).cast(), &mut other), &text);
            assert_eq!(steadyio_channel_account(channel, (&raw mut account).cast()), 0);
            assert_eq!(account.known.struct_bytes, size_of::<Later<CAccount>>());
            assert_eq!(account.new, 0);
            steadyio_close(recorder);
        }
    });
}

#[test]
fn two_threads_on_one_channel_are_told_and_lose_nothing_that_was_taken() {
    struct Shared(*const ChannelHandle);
    // SAFETY: the library must tolerate this.
    unsafe impl Sync for Shared {}

    in_dir(|_, dir| {
        let recorder = open(&config(dir));
        let shared = Shared(add(recorder, &channel_config()));
        // SAFETY: valid pointers.
        assert_eq!(unsafe { steadyio_start(recorder) }, 0, "{}", said());
        let stop = AtomicBool::new(false);
        let appends = |shared: &Shared| {
            let mut reached = 0;
            for _ in 0..200_000 {
                // SAFETY: valid pointers.
                let status = unsafe { steadyio_append(shared.0, 1, b"x".as_ptr().cast(), 1) };
                match status {
                    0 | 1 => reached += 1,
                    status => {
                        assert_eq!(status, Status::State as c_int);
                        assert!(said().contains("another thread is appending"), "{}", said());
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            }
            reached
        };
        let reached: u64 = thread::scope(|scope| {
            let other = scope.spawn(|| appends(&shared));
            appends(&shared) + other.join().unwrap()
        });
        let mut account = CAccount { struct_bytes: size_of::<CAccount>(), ..CAccount::default() };
        // SAFETY: valid pointers.
        unsafe {
            assert_eq!(steadyio_finish(recorder), 0, "{}", said());
            assert_eq!(steadyio_channel_account(shared.0, &mut account), 0);
            steadyio_close(recorder);
        }
        assert_eq!(account.received.records, reached);
        let lost = account.lost_ring_full.records;
        assert_eq!(account.durable.records, reached - lost);
    });
}

#[test]
fn a_task_that_cannot_be_declared() {
    let mut fd = 7;
    let mut declare = |device: &CStr, task: &CStr| {
        // SAFETY: all pointers are valid.
        unsafe { declared::steadyio_declare(device.as_ptr(), task.as_ptr(), &raw mut fd) }
    };
    let whole = c"level=0 period_us=10000 block_us=440";
    wrong(declare(c"/dev/null", c"level=0"), "task: period_us: missing");
    wrong(
        declare(c"/dev/null", c"level=9 period_us=1 block_us=1"),
        "task: level=9: must be 0 to 7",
    );
    assert_eq!(declare(c"/dev/null", whole), Status::Invalid as c_int);
    assert!(said().starts_with("device: /dev/null: is a character device"), "{}", said());
    assert_eq!(fd, -1);
    // SAFETY: NULL is an error.
    let status = unsafe { declared::steadyio_declare(null(), whole.as_ptr(), &raw mut fd) };
    wrong(status, "device = NULL: must be a string");
    // SAFETY: NULL is an error.
    let status =
        unsafe { declared::steadyio_declare(c"/dev/null".as_ptr(), whole.as_ptr(), null_mut()) };
    wrong(status, "fd = NULL: must be where to store the result");
}
