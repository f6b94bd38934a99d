// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands behind the name of an event, as the kernel's own formats print it: the same for ftrace, trace-cmd and
//! perf. All of it must be understood; nothing is guessed from a part.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::pattern::Pattern;
use super::scan::{Parsed, Scan};
use super::syscall;
use crate::calls;
use crate::event::{Comm, EventKind};
use crate::source::fields::Fields;
use crate::source::wanted::{Decode, Wanted, wanted};

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    pub what: EventKind,
    /// The name of the thread in whose context it happened, if the event repeats it.
    pub comm: Comm,
}

impl From<EventKind> for Body {
    fn from(what: EventKind) -> Body {
        Body { what, comm: Comm::default() }
    }
}

/// One event of the table, as text.
struct Row {
    patterns: Vec<Pattern>,
    /// How many fields `decode` takes; behind them is the name of the thread.
    fields: usize,
    decode: Decode,
}

impl Row {
    fn of(wanted: &Wanted) -> Row {
        let fields = wanted.fields.len();
        let named = |field: &str, name: &str| field.trim_start_matches('?') == name;
        let slots_of = |name: &str| {
            let places = wanted.fields.iter().enumerate();
            let mut slots: Vec<usize> =
                places.filter(|(_, field)| named(field, name)).map(|(slot, _)| slot).collect();
            slots.extend(named(wanted.comm_field(), name).then_some(fields));
            if name.is_empty() { Vec::new() } else { slots }
        };
        let patterns = wanted.text.iter().map(|text| Pattern::new(text, slots_of)).collect();
        Row { patterns, fields, decode: wanted.decode }
    }

    fn read<'a>(&self, line: Scan<'a>) -> Parsed<'a, Body> {
        let mut wrong = None;
        for pattern in &self.patterns {
            let mut values = vec![None; self.fields + 1];
            match pattern.read(line, &mut values) {
                Ok(()) => {
                    let fields = Fields::of_text(&values);
                    let Some(what) = self.decode.take(&fields) else {
                        return line.wrong("values within their limits");
                    };
                    return Ok(Body { what, comm: fields.comm(self.fields).unwrap_or_default() });
                }
                Err(found) => wrong = Some(found),
            }
        }
        wrong.map_or_else(|| line.wrong("an event"), Err)
    }
}

fn rows() -> &'static HashMap<Vec<u8>, Row> {
    static ROWS: OnceLock<HashMap<Vec<u8>, Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = HashMap::new();
        for wanted in wanted().iter().filter(|wanted| !wanted.text.is_empty()) {
            for name in [Some(wanted.name.as_str()), wanted.old_name].into_iter().flatten() {
                rows.insert(name.as_bytes().to_vec(), Row::of(wanted));
            }
        }
        rows
    })
}

/// The event called `name`, without its system, whose values are `text`; `None` if nobody here needs it.
pub fn parse<'a>(name: &[u8], text: &'a [u8]) -> Option<Parsed<'a, Body>> {
    let mut scan = Scan::new(text.trim_ascii_start());
    if let Some(name) = name.strip_prefix(b"sys_enter_") {
        return calls::by_name(name).map(|events| syscall::enter(events, &mut scan));
    }
    if let Some(name) = name.strip_prefix(b"sys_exit_") {
        return calls::by_name(name).map(|events| syscall::exit(events, &mut scan));
    }
    rows().get(name).map(|row| row.read(scan))
}
