// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the model takes of the record of a trace.

use steadyio_model::spans::{self, Span};
use steadyio_model::spans_file;
use steadyio_trace::event::OpKind;

use crate::made::{Made, STEPS_US, US, request, rich};

#[test]
fn the_model_takes_the_record_and_the_spans_file_alike() {
    let record = rich().record();
    let file = spans_file::of_groups(&record.ios).unwrap().to_string();
    let from_file = spans::parse(&file).unwrap();
    let from_record = spans::parse(&record.to_json().unwrap()).unwrap();
    assert_eq!(from_file, from_record);
    let names: Vec<&str> = from_record.entries.iter().map(|entry| &*entry.name).collect();
    assert_eq!(names, ["mmcblk0 read 4 KiB", "mmcblk0 write 128 KiB"], "no syncs");
    let write = &from_record.entries[1];
    assert_eq!((write.size_bytes, write.count), (131_072, Some(1)));
    let spans: Vec<(Span, u64)> = write.spans.iter().map(|(span, ns)| (span, ns / US)).collect();
    assert_eq!(
        spans,
        [(Span::Submission, 30), (Span::Block, 100), (Span::Device, 900), (Span::Post, 25)]
    );
}

#[test]
fn the_model_says_when_a_trace_has_no_spans() {
    let mut made = Made::default();
    made.request(request(OpKind::Read, 4096, 50, STEPS_US));
    let error = spans::parse(&made.record().to_json().unwrap()).unwrap_err().to_string();
    assert!(error.contains("record the events of system calls"), "{error}");
    let broken = spans::parse(r#"{"schema": "steadyio.trace/1", "ios": 3}"#).unwrap_err();
    assert!(broken.to_string().contains("not a steadyio.trace/1 record"), "{broken}");
}
