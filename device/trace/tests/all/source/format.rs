// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's descriptions of its records, and records that fit them or not.

use proptest::prelude::*;
use steadyio_trace::event::{Class, Comm, Dev, EventKind, Extent, Op, OpKind, Priority};
use steadyio_trace::source::decode::Decoder;
use steadyio_trace::source::format::{Field, Format, PageFormat};
use steadyio_trace::source::table::{Wanted, wanted};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

";

/// `block_rq_issue` of 6.1: no priority, eight letters.
const ISSUE_6_1: &str = "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;
\tfield:char rwbs[8];\toffset:32;\tsize:8;\tsigned:1;
\tfield:char comm[16];\toffset:40;\tsize:16;\tsigned:1;
\tfield:__data_loc char[] cmd;\toffset:56;\tsize:4;\tsigned:1;
";

/// The same event of 6.18.
const ISSUE_6_18: &str = "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;
\tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;
";

pub fn format_text(name: &str, id: u16, fields: &str) -> String {
    format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"%d\", REC->dev\n")
}

pub fn wanted_named(name: &str) -> &'static Wanted {
    wanted().iter().find(|row| row.name == name).expect("in the table")
}

fn decoder(name: &str, fields: &str) -> Result<Decoder, String> {
    let mut decoder = Decoder::default();
    decoder.add(wanted_named(name), &Format::parse(&format_text(name, 1000, fields)).unwrap())?;
    Ok(decoder)
}

pub fn put(data: &mut [u8], offset: usize, bytes: &[u8]) {
    data[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// A record of `block_rq_issue` by a thread 4321, `letters_at` and `comm_at` as its kernel has them.
fn issue(letters_at: usize, comm_at: usize) -> Vec<u8> {
    let mut data = vec![0; comm_at + 20];
    put(&mut data, 0, &1000u16.to_le_bytes());
    put(&mut data, 4, &4321u32.to_le_bytes());
    put(&mut data, 8, &(8u32 << 20 | 3).to_le_bytes());
    put(&mut data, 16, &123_456u64.to_le_bytes());
    put(&mut data, 24, &16u32.to_le_bytes());
    put(&mut data, letters_at, b"WFS");
    put(&mut data, comm_at, b"writer");
    data
}

#[test]
fn a_field_has_name_place_and_kind() {
    let fields = "\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] rel;\toffset:64;\tsize:4;\tsigned:0;
\tfield:const char *name;\toffset:72;\tsize:8;\tsigned:0;
\tfield:u8 cdw10[24];\toffset:80;\tsize:24;\tsigned:0;\tlater:7;
";
    let format = Format::parse(&format_text("thing", 17, fields)).unwrap();
    assert_eq!(format.id, 17);
    let field = |name: &str, offset, size, elsewhere_from| Field {
        name: name.into(),
        offset,
        size,
        signed: false,
        elsewhere_from,
    };
    let expected = [
        field("cmd", 60, 4, Some(0)),
        field("rel", 64, 4, Some(68)),
        field("name", 72, 8, None),
        field("cdw10", 80, 24, None),
    ];
    assert_eq!(format.fields[4..], expected);
    assert!(format.fields[3].signed);
}

#[test]
fn a_bad_format_is_an_error_that_has_its_line() {
    let cases = [
        ("", "ID:"),
        ("name: a\n", "ID:"),
        ("name: a\nID: 70000\n", "70000"),
        ("name: a\nID: 7\nformat:\n", "field:"),
        ("name: a\nID: 7\n\tfield:int x;\tsize:4;\n", "field:int x;\\tsize:4"),
        ("name: a\nID: 7\n\tfield:int x;\toffset:-4;\tsize:4;\n", "-4"),
        ("name: a\nID: 7\n\tfield:;\toffset:4;\tsize:4;\n", "field:;"),
    ];
    for (text, names) in cases {
        let error = Format::parse(text).unwrap_err();
        assert!(error.contains(names), "{text:?}: {error}");
    }
}

#[test]
fn the_page_header_of_64_and_32_bits_is_read() {
    let header = |commit, at, size| {
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:{at};\tsize:{size};\tsigned:0;\n"
        )
    };
    let format = PageFormat::parse(&header(8, 16, 4080)).unwrap();
    assert_eq!(format, PageFormat { commit_size: 8, data_offset: 16, page_size: 4096 });
    let format = PageFormat::parse(&header(4, 12, 65524)).unwrap();
    assert_eq!(format, PageFormat { commit_size: 4, data_offset: 12, page_size: 65536 });
    assert!(PageFormat::parse(&header(2, 16, 4080)).is_err());
    assert!(PageFormat::parse("").is_err());
}

#[test]
fn the_same_event_of_two_kernels_differs_only_in_what_one_does_not_say() {
    let extent = Extent {
        dev: Dev { major: 8, minor: 3 },
        sector: 123_456,
        sectors: 16,
        op: Op { kind: OpKind::Write, fua: true, sync: true, ..Op::default() },
        priority: None,
    };
    let old = decoder("block_rq_issue", ISSUE_6_1)
        .unwrap()
        .decode(9, 1, &issue(32, 40))
        .unwrap()
        .unwrap();
    assert_eq!(
        (old.pid, old.comm, old.what),
        (4321, Comm::new(b"writer"), EventKind::Issue(extent))
    );

    let mut data = issue(34, 44);
    put(&mut data, 32, &(1u16 << 13 | 3).to_le_bytes());
    let new = decoder("block_rq_issue", ISSUE_6_18).unwrap().decode(9, 1, &data).unwrap().unwrap();
    let priority = Some(Priority { class: Class::Rt, level: 3 });
    assert_eq!((new.pid, new.what), (4321, EventKind::Issue(Extent { priority, ..extent })));
}

#[test]
fn an_event_without_a_needed_field_is_refused_by_its_name() {
    let fields = ISSUE_6_1.replace(" sector;", " place;");
    let error = decoder("block_rq_issue", &fields).unwrap_err();
    assert!(error.contains("\"sector\""), "{error}");
}

#[test]
fn a_record_that_contradicts_its_format_is_an_error_and_another_event_is_none() {
    let decoder = decoder("block_rq_issue", ISSUE_6_18).unwrap();
    assert!(decoder.decode(9, 1, &issue(34, 44)[..40]).is_err());
    assert!(decoder.decode(9, 1, &[1]).is_err());
    assert_eq!(decoder.decode(9, 1, &[7; 64]), Ok(None));
    // A thread cannot have a negative number.
    let mut data = issue(34, 44);
    put(&mut data, 4, &(-1i32).to_le_bytes());
    assert!(decoder.decode(9, 1, &data).unwrap_err().contains("block_rq_issue"));
}

#[test]
fn the_bytes_of_a_scsi_command_tell_two_with_one_tag_apart() {
    let fields = "\tfield:unsigned int host_no;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned int channel;\toffset:12;\tsize:4;\tsigned:0;
\tfield:unsigned int id;\toffset:16;\tsize:4;\tsigned:0;
\tfield:unsigned int lun;\toffset:20;\tsize:4;\tsigned:0;
\tfield:unsigned int opcode;\toffset:24;\tsize:4;\tsigned:0;
\tfield:int driver_tag;\toffset:28;\tsize:4;\tsigned:1;
\tfield:__data_loc unsigned char[] cmnd;\toffset:32;\tsize:4;\tsigned:0;
";
    let start = decoder("scsi_dispatch_cmd_start", fields).unwrap();
    let done = decoder("scsi_dispatch_cmd_done", fields).unwrap();
    let record = |command: &[u8]| {
        let mut data = vec![0; 36];
        put(&mut data, 0, &1000u16.to_le_bytes());
        put(&mut data, 24, &[command[0]]);
        put(&mut data, 32, &(u32::try_from(command.len()).unwrap() << 16 | 36).to_le_bytes());
        data.extend(command);
        data
    };
    let key = |decoder: &Decoder, command: &[u8]| match decoder
        .decode(9, 1, &record(command))
        .unwrap()
        .unwrap()
        .what
    {
        EventKind::HardwareStart(command) | EventKind::HardwareDone(command) => {
            (command.key, command.opcode)
        }
        what => panic!("{what:?}"),
    };
    let (read_1, read_2) = (&[0x28, 0, 0, 0, 0, 1, 0, 0, 8, 0], &[0x28, 0, 0, 0, 0, 9, 0, 0, 8, 0]);
    assert_eq!(key(&start, read_1), key(&done, read_1));
    assert_ne!(key(&start, read_1), key(&start, read_2));
    assert_eq!(key(&start, read_1).1, Some(0x28));
    // Bytes that lie behind the record's end are no command.
    let mut data = record(read_1);
    data.truncate(40);
    assert!(start.decode(9, 1, &data).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text: String, fields: String) {
        let _ = Format::parse(&text);
        let _ = PageFormat::parse(&text);
        let _ = Format::parse(&format!("name: a\nID: 7\n\tfield:{fields}\n"));
    }

    #[test]
    fn no_record_panics_by_any_event_with_any_layout(
        places in proptest::collection::vec((0usize..80, 0usize..20, any::<bool>()), 7),
        data in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let names = ["dev", "sector", "nr_sector", "rwbs", "host_no", "cmnd", "common_pid"];
        let fields = names.iter().zip(&places).map(|(name, (offset, size, moved))| {
            let kind = if *moved { "__data_loc char[]" } else { "int" };
            let size = if *moved { 4 } else { *size };
            format!("\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n")
        });
        let text = format!("name: x\nID: 0\n{}", fields.collect::<String>());
        let format = Format::parse(&text).unwrap();
        for row in wanted() {
            let mut decoder = Decoder::default();
            if decoder.add(row, &format).is_ok() {
                let _ = decoder.decode(9, 1, &[&[0, 0], &data[..]].concat());
            }
        }
    }
}
