// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drivers' commands and the requests that they are for.

use steadyio_trace::event::{Call, Command, Dev, Driver, EventKind, Extent};
use steadyio_trace::io::{Mark, Spans};

use crate::events::{Script, extent};

fn command(driver: Driver, key: u64) -> Command {
    Command { driver, key, sector: None, bytes: None, opcode: None }
}

const NVME: Dev = Dev { major: 259, minor: 0 };
const LOOP: Dev = Dev { major: 7, minor: 0 };
const SCSI: Dev = Dev { major: 8, minor: 16 };

/// A read of 8 sectors.
fn read(dev: Dev, sector: u64) -> Extent {
    Extent { dev, ..extent("R", sector, 8) }
}

/// A read or write that the card gets at 30 and has done at 70.
fn card(letters: &str, opcode: u8) -> Script {
    let place = extent(letters, 64, 8);
    let start = Command {
        sector: Some(64),
        bytes: Some(4096),
        opcode: Some(opcode),
        ..command(Driver::Mmc, 1)
    };
    let poll = Command { bytes: Some(0), opcode: Some(13), ..command(Driver::Mmc, 2) };
    let mut script = Script::new();
    script.by(1).at(0).enter(Call::Read).at(10).block('Q', place).block('G', place);
    script.at(20).block('D', place).at(22).what(EventKind::HardwareStart(poll));
    script.at(24).what(EventKind::HardwareDone(poll)).at(30).what(EventKind::HardwareStart(start));
    script.at(70).by(0).what(EventKind::HardwareDone(Command { sector: None, ..start }));
    script.at(80).block('C', place).by(1).at(100).exit(Call::Read, 4096);
    script
}

#[test]
fn a_cards_read_is_found_by_its_sector() {
    let trace = card("R", 18).follow();
    let marks = &trace.requests[0].marks;
    assert_eq!(marks.get(Mark::HardwareStart), Some(30));
    assert_eq!(marks.get(Mark::HardwareDone), Some(70));
    let expected = Spans { submission_ns: 10, block_ns: 30, device_ns: 40, post_ns: 20 };
    assert_eq!(trace.ios[0].spans, expected);
}

#[test]
fn a_card_is_busy_after_a_write_command_is_done() {
    let trace = card("W", 25).follow();
    let marks = &trace.requests[0].marks;
    assert_eq!((marks.get(Mark::HardwareStart), marks.get(Mark::HardwareDone)), (Some(30), None));
    assert_eq!(trace.ios[0].spans.device_ns, 50, "up to the request's end");
}

#[test]
fn a_command_queue_ends_a_write_when_the_card_has_it() {
    let trace = card("W", 0).follow();
    assert_eq!(trace.requests[0].marks.get(Mark::HardwareDone), Some(70));
}

#[test]
fn nvme_prepares_a_command_before_the_issue() {
    let mut script = Script::new();
    for (nth, sector) in [(0, 0), (1, 8)] {
        let place = read(NVME, sector);
        script.by(1).at(10 + nth).block('Q', place).block('G', place);
        script.what(EventKind::HardwareStart(command(Driver::Nvme, nth))).block('D', place);
    }
    for (nth, sector) in [(1, 8), (0, 0)] {
        script.by(0).at(30 + nth).what(EventKind::HardwareDone(command(Driver::Nvme, nth)));
        script.at(40 + nth).block('C', read(NVME, sector));
    }
    let trace = script.follow();
    let done: Vec<_> =
        trace.requests.iter().map(|r| (r.sector, r.marks.get(Mark::HardwareDone))).collect();
    assert_eq!(done, [(8, Some(31)), (0, Some(30))]);
    assert_eq!(trace.requests[0].marks.get(Mark::HardwareStart), None, "its event is too early");
}

#[test]
fn scsi_starts_a_command_right_after_the_issue() {
    let mut script = Script::new();
    let place = read(SCSI, 0);
    let command = command(Driver::Scsi, 4);
    script.by(1).at(10).block('Q', place).block('G', place).at(20).block('D', place);
    script.at(21).what(EventKind::HardwareStart(command));
    script.by(0).at(30).what(EventKind::HardwareDone(command)).at(31).block('C', place);
    let marks = script.follow().requests[0].marks;
    assert_eq!(marks.get(Mark::HardwareStart), Some(21));
    assert_eq!(marks.get(Mark::HardwareDone), Some(30));
}

#[test]
fn two_scsi_commands_that_look_the_same_are_nobodys() {
    let mut script = Script::new();
    let command = command(Driver::Scsi, 4);
    let both = [read(SCSI, 0), read(SCSI, 8)];
    for place in both {
        script.by(1).at(20).block('Q', place).block('G', place).block('D', place);
        script.at(21).what(EventKind::HardwareStart(command));
    }
    for (ns, place) in [(30, both[0]), (40, both[1])] {
        script.by(0).at(ns).what(EventKind::HardwareDone(command)).block('C', place);
    }
    let trace = script.follow();
    assert_eq!(trace.requests.len(), 2);
    let hardware = [Mark::HardwareStart, Mark::HardwareDone];
    let known = trace.requests.iter().flat_map(|of| hardware.map(|mark| of.marks.get(mark)));
    assert_eq!(known.flatten().count(), 0, "{:#?}", trace.requests);
}

#[test]
fn a_command_of_a_device_that_is_not_traced_is_nobodys() {
    // The thread reads an NVMe disk, whose issue is not in the trace, then this one.
    let mut script = Script::new();
    let others = command(Driver::Nvme, 2);
    let place = read(LOOP, 0);
    script.by(1).at(10).what(EventKind::HardwareStart(others));
    script.at(20).block('Q', place).block('G', place).block('D', place);
    script.by(0).at(30).what(EventKind::HardwareDone(others)).at(41).block('C', place);
    assert_eq!(script.follow().requests[0].marks.get(Mark::HardwareDone), None);

    // It reads this NVMe disk, then a SCSI disk.
    let mut script = Script::new();
    let (ours, others) = (command(Driver::Nvme, 1), command(Driver::Scsi, 2));
    script.by(1).at(10).block('Q', read(NVME, 0)).block('G', read(NVME, 0));
    script.what(EventKind::HardwareStart(ours)).block('D', read(NVME, 0));
    script.at(20).what(EventKind::HardwareStart(others));
    script
        .by(0)
        .at(30)
        .what(EventKind::HardwareDone(others))
        .at(40)
        .what(EventKind::HardwareDone(ours));
    script.at(41).block('C', read(NVME, 0));
    let marks = script.follow().requests[0].marks;
    assert_eq!(marks.get(Mark::HardwareStart), None);
    assert_eq!(marks.get(Mark::HardwareDone), Some(40));
}

#[test]
fn each_piece_has_its_own_hardware_times() {
    let mut script = Script::new();
    let whole = extent("R", 0, 16);
    script.by(1).at(1).block('Q', whole).block('G', whole).block('I', whole);
    for (nth, sector, at_ns) in [(0, 0, 10), (1, 8, 50)] {
        let piece = extent("R", sector, 8);
        let start =
            Command { sector: Some(sector), bytes: Some(4096), ..command(Driver::Mmc, nth) };
        script.at(at_ns).block('D', piece).at(at_ns + 5).what(EventKind::HardwareStart(start));
        script.at(at_ns + 20).what(EventKind::HardwareDone(start));
        script.at(at_ns + 25).block('C', piece);
        if nth == 0 {
            script.at(at_ns + 26).block('R', extent("R", 8, 8));
        }
    }
    let trace = script.follow();
    let request = &trace.requests[0];
    let hardware: Vec<_> =
        request.pieces.iter().map(|p| (p.hardware_start_ns, p.hardware_done_ns)).collect();
    assert_eq!(hardware, [(Some(15), Some(30)), (Some(55), Some(70))]);
    assert_eq!(request.marks.get(Mark::HardwareStart), Some(15));
    assert_eq!(request.marks.get(Mark::HardwareDone), Some(70));
}

#[test]
fn of_two_reads_of_one_sector_the_one_whose_command_is_done_completes() {
    let place = read(NVME, 8);
    let mut script = Script::new();
    for thread in [1, 2] {
        script
            .by(thread)
            .at(u64::from(thread))
            .enter(Call::Read)
            .block('Q', place)
            .block('G', place);
        let start = command(Driver::Nvme, thread.into());
        script.what(EventKind::HardwareStart(start)).block('D', place);
    }
    for (thread, at) in [(2, 30), (1, 50)] {
        script.by(0).at(at).what(EventKind::HardwareDone(command(Driver::Nvme, thread)));
        script.at(at + 1).block('C', place);
    }
    script.by(1).at(60).exit(Call::Read, 4096).by(2).at(61).exit(Call::Read, 4096);
    let trace = script.follow();
    let of: Vec<_> = trace.requests.iter().map(|of| (of.pid, of.end_ns())).collect();
    assert_eq!((of, trace.ios.len()), (vec![(2, 31), (1, 51)], 2));
}

#[test]
fn of_two_reads_of_one_sector_with_both_commands_done_none_is_guessed() {
    let place = read(NVME, 8);
    let mut script = Script::new();
    for thread in [1, 2] {
        script.by(thread).at(u64::from(thread)).block('Q', place).block('G', place);
        let start = command(Driver::Nvme, thread.into());
        script.what(EventKind::HardwareStart(start)).block('D', place);
    }
    for key in [2, 1] {
        script.by(0).at(30).what(EventKind::HardwareDone(command(Driver::Nvme, key)));
    }
    let trace = script.at(31).block('C', place).at(32).block('C', place).follow();
    assert_eq!((trace.requests.len(), trace.account.unmatched_count), (0, 2));
}
