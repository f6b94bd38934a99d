// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the declared tasks of a disk in k2's `iosched/rt_declared`. docs/reference/k2.md has
//! keys, states and counts. `k2` and `steady doctor` call it.

use std::collections::HashMap;

use crate::unclear::{Unclear, number, unclear};

/// The names in the order of the file.
const FAULTS: [&str; 4] = ["early", "late", "foreign", "interrupted"];
const OVER: &str = "over_";
/// The state of a task that k2 guards.
pub const ARMED: &str = "armed";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    pub level: u64,
    /// The process of its owner.
    pub pid: u64,
    /// `armed`, or the reason why it is not.
    pub state: String,
    pub jobs: u64,
    /// The longest wait for lower levels that were in the device.
    pub waited_ns_max: u64,
    /// The violations of the declaration or the bound, by name in the file.
    pub faults: Vec<(String, u64)>,
}

impl Task {
    pub fn is_armed(&self) -> bool {
        self.state == ARMED
    }

    /// The count of a fault; 0 if the file does not have the name.
    pub fn fault(&self, name: &str) -> u64 {
        self.faults.iter().find(|fault| fault.0 == name).map_or(0, |fault| fault.1)
    }
}

/// One line per task.
pub fn parse(text: &str) -> Result<Vec<Task>, Unclear> {
    text.lines().map(parse_task).collect()
}

fn parse_task(line: &str) -> Result<Task, Unclear> {
    let pairs: Vec<(&str, &str)> =
        line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let values: HashMap<&str, &str> = pairs.iter().copied().collect();
    let count = |key: &str| number(values.get(key).unwrap_or(&""), key, line);
    let over = pairs.iter().map(|(key, _)| *key).filter(|key| key.starts_with(OVER));
    let faults = FAULTS.into_iter().chain(over);
    Ok(Task {
        level: count("level")?,
        pid: count("pid")?,
        state: values.get("state").ok_or_else(|| unclear(line, "state"))?.to_string(),
        jobs: count("jobs")?,
        waited_ns_max: count("waited_ns_max")?,
        faults: faults.map(|key| Ok((key.into(), count(key)?))).collect::<Result<_, Unclear>>()?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LINE: &str = "dev=179:0 level=2 period_us=10000 block_us=440 owner=process pid=71 \
        state=armed jobs=500 early=1 late=2 foreign=3 interrupted=0 waited_ns_max=431000 \
        over_k2=0 over_device=4 over_bypass=5 over_forced=0";

    #[test]
    fn a_line_is_a_task_with_all_its_faults() {
        let task = parse(LINE).unwrap().remove(0);
        assert_eq!((task.level, task.pid, task.jobs), (2, 71, 500));
        assert!(task.is_armed());
        assert_eq!((task.waited_ns_max, task.fault("late"), task.fault("none")), (431_000, 2, 0));
        let counted: Vec<&str> =
            task.faults.iter().filter(|(_, n)| *n > 0).map(|(name, _)| name.as_str()).collect();
        assert_eq!(counted, ["early", "late", "foreign", "over_device", "over_bypass"]);
    }

    #[test]
    fn no_task_is_no_line() {
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_a_line_lacks_is_named() {
        let error = parse(&LINE.replace(" late=2", "")).unwrap_err().to_string();
        assert!(error.contains("has no late"), "{error}");
        let error = parse(&LINE.replace("jobs=500", "jobs=many")).unwrap_err().to_string();
        assert!(error.contains("has no jobs"), "{error}");
    }
}
