// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds one late request in a trace, and its causes. `steady watch` calls it.

use std::collections::BTreeMap;

use steadyio_core::interrupt::Interrupt;
use steadyio_trace::event::{Class, Dev};
use steadyio_trace::report::question::Question;
use steadyio_trace::report::record::Record;
use steadyio_trace::report::shown::Shown;
use steadyio_trace::report::words::device_name;
use steadyio_trace::report::worst::Worst;
use steadyio_trace::source::capture::devices::names;
use steadyio_trace::source::capture::{Captured, Slow};

use super::reading::{Followed, Reading, options_of};
use super::words;

/// The number of longest requests among which it is searched.
const SEARCHED_MAX: usize = 1_000;

/// The request and its causes in one line. `late` is the I/O that ended the trace.
pub fn in_words(captured: &Captured, late: &Slow) -> String {
    let mut reading = Reading::new(None, options_of(captured));
    reading.take_all(captured.events(), &Interrupt::default());
    let Followed { trace, problems, .. } = reading.finish();
    let question = Question {
        worst: SEARCHED_MAX,
        worst_class: Some(Class::Rt),
        names: names(),
        problems,
        ..Question::default()
    };
    let record = Record::new(&Shown::of(&trace, &question));
    match found(&record, late, &question.names) {
        Some(worst) => format!("late: {}", words::in_one_line(worst)),
        None => format!("late: {late}; the trace does not have all of it"),
    }
}

/// The I/O or request that ends there. It is the last one, because it ended the trace.
fn found<'a>(record: &'a Record, late: &Slow, names: &BTreeMap<Dev, String>) -> Option<&'a Worst> {
    let (dev, sector) = late.place?;
    let device = device_name(names, dev);
    let is_it = |worst: &&Worst| {
        let end = worst.sector + worst.bytes.div_ceil(512).max(1);
        worst.device == device && (worst.sector..end).contains(&sector)
    };
    let all = record.worst_ios.iter().chain(&record.worst_requests);
    all.filter(is_it).max_by_key(|worst| worst.at_ns + worst.total_ns)
}
