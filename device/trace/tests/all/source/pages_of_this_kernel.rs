// SPDX-License-Identifier: MIT OR Apache-2.0
//! The raw pages of this kernel, read here, against what the kernel itself prints of the same buffer.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;

use steadyio_trace::event::{Call, Event, EventKind, Extent};
use steadyio_trace::source::decode::Decoder;
use steadyio_trace::source::format::{Format, PageFormat};
use steadyio_trace::source::pages::{CpuPages, Merged};
use steadyio_trace::source::table::wanted;
use steadyio_trace::source::tracefs::Instance;

use crate::disk::{Disk, instance, read_block, traceable_disk, write_block};

const EVENTS: &[&str] = &[
    "block_bio_queue",
    "block_getrq",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_complete",
    "sys_enter_pread64",
    "sys_exit_pread64",
];

/// Enables `EVENTS` and prepares to decode them.
fn enable(instance: &Instance) -> Decoder {
    let mut decoder = Decoder::default();
    for row in wanted().iter().filter(|row| EVENTS.contains(&row.name.as_str())) {
        let dir = format!("events/{}/{}", row.system, row.name);
        let format = Format::parse(&instance.read(&format!("{dir}/format")).unwrap()).unwrap();
        decoder.add(row, &format).unwrap();
        instance.write(&format!("{dir}/enable"), "1").unwrap();
    }
    decoder
}

/// All that is in the buffers, which this empties.
fn pages(instance: &Instance, format: PageFormat) -> Vec<CpuPages<'static>> {
    let cpus = instance.cpus().unwrap().into_iter().map(|cpu| {
        let path = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        let mut file =
            std::os::unix::fs::OpenOptionsExt::custom_flags(File::options().read(true), nonblock)
                .open(&path)
                .unwrap();
        let (mut all, mut page) = (Vec::new(), vec![0; format.page_size]);
        while let Ok(bytes @ 1..) = file.read(&mut page) {
            all.extend(&page[..bytes]);
        }
        CpuPages { cpu, file: format!("cpu{cpu}"), pages: Box::new(std::io::Cursor::new(all)) }
    });
    cpus.collect()
}

/// An event of the disk or a call, as the kernel prints it (which rounds) but for what it does not have.
fn printed(event: &Event) -> String {
    let extent = |name: &str, extent: &Extent| {
        let (major, minor) = (extent.dev.major, extent.dev.minor);
        format!("{name}: {major},{minor} {} + {}", extent.sector, extent.sectors)
    };
    let what = match event.what {
        EventKind::BioQueue(of) => extent("block_bio_queue", &of),
        EventKind::GetRequest(of) => extent("block_getrq", &of),
        EventKind::Insert(of) => extent("block_rq_insert", &of),
        EventKind::Issue(of) => extent("block_rq_issue", &of),
        EventKind::Complete { extent: of, .. } => extent("block_rq_complete", &of),
        EventKind::CallEnter { call: Call::Pread64, fd: Some(fd) } => {
            format!("sys_pread64(fd: {fd:x})")
        }
        EventKind::CallExit { call: Call::Pread64, result } => {
            format!("sys_pread64 -> 0x{result:x}")
        }
        other => panic!("{other:?}"),
    };
    format!("{} [{:03}] {} {what}", event.pid, event.cpu, (event.time_ns + 500) / 1000)
}

/// A line of `trace` in the same form: `comm-PID [CPU] flags seconds.micros: what`. The name may
/// hold anything, `: ` included, so what follows it is looked for from the CPU on.
fn canonical(line: &str) -> String {
    let is_cpu = |at: &usize| {
        line[*at..].find(']').is_some_and(|end| {
            end > 2 && line[at + 2..at + end].bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let at = line.match_indices(" [").map(|(at, _)| at).find(is_cpu).expect(line);
    let (thread, rest) = (&line[..at], &line[at + 2..]);
    let (head, what) = rest.split_once(": ").expect(line);
    let pid = thread.trim().rsplit('-').next().unwrap();
    let words: Vec<&str> = head.split_whitespace().collect();
    let (cpu, time) = (words[0].trim_end_matches(']'), words.last().unwrap().replace('.', ""));
    let what = match what.split_once(": ") {
        Some((name, rest)) if name.starts_with("block_") => {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let plus = words.iter().position(|word| *word == "+").unwrap();
            format!("{name}: {} {} + {}", words[0], words[plus - 1], words[plus + 1])
        }
        _ if what.starts_with("sys_pread64(") => {
            let words: Vec<&str> = what.split([' ', ',']).collect();
            let after = |key| words[words.iter().position(|word| word.ends_with(key)).unwrap() + 1];
            let hex = |key| after(key).trim_start_matches("0x").trim_start_matches('0');
            format!("sys_pread64(fd: {})", hex("fd:"))
        }
        _ => what.to_string(),
    };
    format!("{pid} [{cpu}] {time} {what}")
}

fn do_io(disk: &Disk) {
    let file = disk.open_direct();
    for number in 0..300 {
        write_block(&file, number * 2);
        read_block(&file, number * 2);
    }
    file.sync_all().unwrap();
}

#[test]
fn what_is_read_from_the_pages_is_what_the_kernel_prints() {
    let Some(disk) = traceable_disk() else { return };
    let instance = instance();
    instance.write("trace_clock", "mono").unwrap();
    instance.write("buffer_size_kb", "16384").unwrap();
    let decoder = enable(&instance);
    instance.write("tracing_on", "1").unwrap();
    do_io(&disk);
    instance.write("tracing_on", "0").unwrap();

    let text = instance.read("trace").unwrap();
    let mut expected: Vec<String> =
        text.lines().filter(|line| !line.starts_with('#')).map(canonical).collect();
    let format = PageFormat::parse(&instance.read("events/header_page").unwrap()).unwrap();
    let merged = Merged::new(pages(&instance, format), format, &decoder, HashMap::new());
    let events: Vec<Event> = merged.map(|event| event.unwrap()).collect();
    let mut found: Vec<String> = events.iter().map(printed).collect();

    assert!(events.is_sorted_by_key(|event| event.time_ns));
    assert!(found.len() > 300 * 2 * 4, "only {} events: {text}", found.len());
    // Events of two CPUs in one microsecond may be printed in another order.
    expected.sort();
    found.sort();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    let own = fs::read_to_string("/proc/thread-self/comm").unwrap();
    let pid = rustix::thread::gettid().as_raw_pid().unsigned_abs();
    let of_ours = |event: &&Event| event.pid == pid && matches!(event.what, EventKind::BioQueue(_));
    let named = events.iter().find(of_ours).unwrap().comm.to_string();
    assert_eq!(named, own.trim());
}
