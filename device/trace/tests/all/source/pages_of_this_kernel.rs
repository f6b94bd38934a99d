// SPDX-License-Identifier: MIT OR Apache-2.0
//! The raw pages of this kernel, read here, against what the kernel itself prints of the same buffer.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;

use steadyio_trace::event::{Event, EventKind};
use steadyio_trace::source::decode::Decoder;
use steadyio_trace::source::detect::Format as Trace;
use steadyio_trace::source::format::{Format, PageFormat};
use steadyio_trace::source::pages::{CpuPages, Merged};
use steadyio_trace::source::table::wanted;
use steadyio_trace::source::text::Text;
use steadyio_trace::source::tracefs::Instance;

use crate::disk::{Disk, instance, read_block, traceable_disk, write_block};
use crate::samples::all_events;

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
    let page = PageFormat::parse(&instance.read("events/header_page").unwrap()).unwrap();
    let mut decoder = Decoder::new(page);
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
        let pages: Vec<_> = all.chunks(format.page_size).map(|page| Ok(page.to_vec())).collect();
        CpuPages { cpu, file: format!("cpu{cpu}"), pages: Box::new(pages.into_iter()) }
    });
    cpus.collect()
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
    let printed = all_events(Text::new(Trace::Ftrace, text.as_bytes(), "trace"));
    let said = |event: &Event, time_us| {
        format!("{} [{:03}] {time_us} {:?}", event.pid, event.cpu, event.what)
    };
    let mut expected: Vec<String> =
        printed.iter().map(|event| said(event, event.time_ns / 1000)).collect();
    let merged = Merged::new(pages(&instance, decoder.page), &decoder, HashMap::new());
    let events: Vec<Event> = merged.map(|event| event.unwrap()).collect();
    // The kernel rounds.
    let mut found: Vec<String> =
        events.iter().map(|event| said(event, (event.time_ns + 500) / 1000)).collect();

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
