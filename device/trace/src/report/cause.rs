// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why one I/O or request took so long, from evidence in the trace only.
//!
//! A cause is a fact with the time that it accounts for: which other requests were in flight while this one waited,
//! how long a flush was in flight, how much slower than usual the device was. Facts overlap, so their times do not
//! add up. A fact that accounts for less than a tenth of the whole time is omitted; without any, the cause is unknown.
//!
//! What each means is in the record's schema; `case` and `own_time` find them.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::words::us;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// How much it accounts for, in ns.
    pub ns: u64,
    pub cause: &'static str,
    #[serde(flatten)]
    pub facts: Facts,
    /// For people: the terminal and the lab's report print it as it is. It begins with the time in us, and has no
    /// semicolon, so that a page can list several in one line.
    pub text: String,
}

impl Cause {
    pub fn new(ns: u64, cause: &'static str, facts: Facts, text: &str) -> Cause {
        Cause { ns, cause, facts, text: format!("{} us {text}", us(ns)) }
    }
}

/// What is known of a cause, for programs: by name, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(Vec<(&'static str, Fact)>);

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Fact {
    Value(Value),
    Facts(Option<Facts>),
}

impl Facts {
    pub fn of(name: &'static str, value: impl Into<Value>) -> Facts {
        Facts::default().and(name, value)
    }

    pub fn and(mut self, name: &'static str, value: impl Into<Value>) -> Facts {
        self.0.push((name, Fact::Value(value.into())));
        self
    }

    /// `None` if they are not known.
    pub fn and_all(mut self, name: &'static str, facts: impl Into<Option<Facts>>) -> Facts {
        self.0.push((name, Fact::Facts(facts.into())));
        self
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|(name, fact)| (name, fact)))
    }
}
