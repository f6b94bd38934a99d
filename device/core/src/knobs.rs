// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads, sets and restores the knobs of a device's request queue in sysfs. The bench, `tune` and
//! `knob_guard` use it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::diagnostic;
use crate::value::Value;

/// The attribute of the I/O scheduler. Changing it resets others, so it goes first.
const SCHEDULER: &str = "scheduler";
/// The length of the scheduler's queue. The kernel takes 4 or more, but chooses 2 for one tag.
const NR_REQUESTS: &str = "nr_requests";
/// The longest discard. The kernel may reject even the driver's own value.
const DISCARD_MAX: &str = "discard_max_bytes";
/// k2's model of the device. It changes by itself, and accepts measurements in another form than it
/// shows.
const DEVICE_MODEL: &str = "iosched/device_model";
/// The number of attempts while the kernel is busy, and their interval.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Values by attribute, relative to the queue's directory (`scheduler`, `iosched/quantum`).
pub type Attributes = BTreeMap<String, String>;

/// A knob that could not be set or restored.
#[derive(Debug, thiserror::Error)]
#[error("knob {knob} = {wanted} on {disk}: {reason}")]
pub struct KnobError {
    /// The key in the workload, or the attribute when restoring.
    pub knob: String,
    /// The requested value.
    pub wanted: String,
    pub disk: String,
    /// The kernel's error, and the values that it offers.
    pub reason: String,
}

/// A knob in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnobReading {
    /// The value in the workload.
    pub wanted: Value,
    /// The kernel's value; None if an optional knob is missing.
    pub read_back: Option<Value>,
}

/// An optional knob that the device lacks or rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// The variant with the knob.
    pub variant: String,
    /// The key in the workload.
    pub knob: String,
    /// The value in the workload.
    pub wanted: Value,
    /// The kernel's error.
    pub reason: String,
}

/// The knobs of one disk.
#[derive(Debug, Clone)]
pub struct Queue {
    dir: PathBuf,
    disk: String,
}

/// The sysfs attribute below `queue/` for a knob's key; None if it is not a knob.
pub fn knob_attribute(key: &str) -> Option<String> {
    match key.split_once('/') {
        None if key == "scheduler" => Some("scheduler".into()),
        Some(("iosched", name)) if plain(name) => Some(format!("iosched/{name}")),
        Some(("queue", name)) if plain(name) && name != "scheduler" => Some(name.to_string()),
        _ => None,
    }
}

/// The same for a character device's knob: an attribute in the device's own directory.
pub fn chardisk_attribute(key: &str) -> Option<String> {
    key.strip_prefix("chardisk/").filter(|name| plain(name)).map(str::to_string)
}

fn plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The knobs with their attributes, in an order in which none resets another. Other keys are left
/// out.
pub fn in_setting_order(knobs: &BTreeMap<String, Value>) -> Vec<(&String, String, &Value)> {
    let attribute = |key: &String| knob_attribute(key).or_else(|| chardisk_attribute(key));
    let mut wanted: Vec<(&String, String, &Value)> =
        knobs.iter().filter_map(|(key, value)| Some((key, attribute(key)?, value))).collect();
    wanted.sort_by_key(|(_, attribute, _)| setting_order(attribute));
    wanted
}

/// The position in the setting order: the scheduler, then the queue, then the scheduler's own
/// attributes.
fn setting_order(attribute: &str) -> u8 {
    match attribute {
        SCHEDULER => 0,
        _ if attribute.starts_with("iosched/") => 2,
        _ => 1,
    }
}

/// The selected word of `none [k2] bfq`; any other text is returned whole.
fn chosen(text: &str) -> &str {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

/// The multiples of `granularity` to try for a limit in bytes: the largest that fits below it and
/// into 32 bits, and the smallest that is not below it.
fn discard_multiples(limit: &str, granularity: u64) -> Option<(u64, u64)> {
    let limit: u64 = limit.parse().ok()?;
    let below = limit.min(u32::MAX.into()).checked_div(granularity)? * granularity;
    let above = limit.checked_next_multiple_of(granularity)?;
    // Zero would disable discards.
    (below != 0).then_some((below, above))
}

/// Retries while the kernel is busy: while a module is being loaded, and since 7.3 during any other
/// change of the disk's tags or scheduler.
fn while_busy(
    mut write: impl FnMut() -> io::Result<()>,
    mut pause: impl FnMut(),
) -> io::Result<()> {
    for _ in 1..BUSY_TRIES {
        match write() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => pause(),
            done => return done,
        }
    }
    write()
}

impl Queue {
    /// The queue with its attributes in `dir` (`/sys/block/DISK/queue`).
    pub fn new(dir: &Path, disk: &str) -> Queue {
        Queue { dir: dir.to_path_buf(), disk: disk.to_string() }
    }

    fn read_raw(&self, attribute: &str) -> io::Result<String> {
        Ok(fs::read_to_string(self.dir.join(attribute))?.trim().to_string())
    }

    /// The value of an attribute; for a list of choices, the selected one.
    pub fn read(&self, attribute: &str) -> io::Result<String> {
        self.read_raw(attribute).map(|text| chosen(&text).to_string())
    }

    /// The schedulers that the kernel offers for the disk.
    pub fn schedulers(&self) -> io::Result<Vec<String>> {
        let text = self.read_raw(SCHEDULER)?;
        Ok(text.split_whitespace().map(|word| chosen(word).to_string()).collect())
    }

    fn write(&self, attribute: &str, value: &str) -> io::Result<()> {
        // One write call, without O_CREAT: a missing attribute must be an error.
        let mut file = OpenOptions::new().write(true).open(self.dir.join(attribute))?;
        file.write_all(value.as_bytes())
    }

    fn writable_names(&self, subdir: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.dir.join(subdir)) else { return Vec::new() };
        let writable =
            |meta: fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o200 != 0;
        entries
            .flatten()
            .filter(|entry| entry.metadata().is_ok_and(writable))
            .map(|entry| format!("{subdir}{}", entry.file_name().to_string_lossy()))
            .collect()
    }

    /// Every attribute that can be read and written back, with its value.
    pub fn snapshot(&self) -> Attributes {
        let mut names = self.writable_names("");
        names.extend(self.writable_names("iosched/"));
        names.retain(|name| name != DEVICE_MODEL);
        // Write-only attributes, and those without a value in this driver, fail to read.
        names.into_iter().filter_map(|name| Some((name.clone(), self.read(&name).ok()?))).collect()
    }

    /// The values in force during a run: the scheduler, its attributes, and the queue's main
    /// limits.
    pub fn in_force(&self) -> BTreeMap<String, Value> {
        let mut names = vec![SCHEDULER.into(), NR_REQUESTS.into(), "max_sectors_kb".into()];
        names.extend(self.writable_names("iosched/"));
        let value = |name: &String| self.read(name).ok().map(|text| Value::from_text(&text));
        names.into_iter().filter_map(|name| Some((name.clone(), value(&name)?))).collect()
    }

    /// Writes back all values that differ from a snapshot. It tries everything, and returns the
    /// failures. A disk that is gone has no knobs to restore.
    pub fn restore(&self, saved: &Attributes) -> Vec<KnobError> {
        if !self.dir.is_dir() {
            return Vec::new();
        }
        let mut ordered: Vec<_> = saved.iter().collect();
        ordered.sort_by_key(|(attribute, _)| setting_order(attribute));
        let mut failed = Vec::new();
        for (attribute, value) in ordered {
            if self.read(attribute).is_ok_and(|now| now == *value) {
                continue;
            }
            if let Err(error) = self.put_back(attribute, value) {
                failed.push(self.error(attribute, value, error));
            }
        }
        failed
    }

    fn error(&self, knob: &str, wanted: &str, reason: String) -> KnobError {
        let (knob, wanted) = (knob.to_string(), wanted.to_string());
        KnobError { knob, wanted, disk: self.disk.clone(), reason }
    }

    /// Sets an attribute to a value that the kernel returned before.
    fn put_back(&self, attribute: &str, value: &str) -> Result<(), String> {
        match self.set(attribute, value) {
            Err(reason) if attribute == DISCARD_MAX => self.put_back_discard_max(value, reason),
            Err(reason) if attribute == NR_REQUESTS => self.put_back_nr_requests(value, reason),
            result => result,
        }
    }

    /// Restores a length that only the kernel sets, when a scheduler starts. Its own attributes are
    /// restored later.
    fn put_back_nr_requests(&self, value: &str, reason: String) -> Result<(), String> {
        let scheduler = self.read(SCHEDULER).map_err(|_| reason.clone())?;
        self.set(SCHEDULER, "none")?;
        self.set(SCHEDULER, &scheduler)?;
        if self.read(NR_REQUESTS).is_ok_and(|now| now == value) { Ok(()) } else { Err(reason) }
    }

    /// Restores a driver's own limit that the kernel rejected for `reason`.
    ///
    /// The kernel accepts only multiples of the granularity below 4 GiB, and clamps them to the
    /// driver's limit. The next multiple above therefore restores the exact value, if it is small
    /// enough; otherwise the largest accepted one is closest.
    fn put_back_discard_max(&self, value: &str, reason: String) -> Result<(), String> {
        let Some((below, above)) = discard_multiples(value, self.discard_granularity()) else {
            return Err(reason);
        };
        if self.set_to(DISCARD_MAX, &above.to_string(), value).is_ok() {
            return Ok(());
        }
        let below = below.to_string();
        let already = self.read(DISCARD_MAX).is_ok_and(|now| now == below);
        self.set(DISCARD_MAX, &below).map_err(|_| reason)?;
        if !already {
            diagnostic!(
                "steady: {}: {DISCARD_MAX} was {value}, which the kernel does not accept; it \
                 is now {below}, the most it takes",
                self.disk
            );
        }
        Ok(())
    }

    fn discard_granularity(&self) -> u64 {
        self.read("discard_granularity").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Sets one attribute and verifies it. The error is a reason for users.
    fn set(&self, attribute: &str, value: &str) -> Result<(), String> {
        self.set_to(attribute, value, value)
    }

    /// Writes a value and verifies that the kernel returns the expected one.
    fn set_to(&self, attribute: &str, value: &str, expected: &str) -> Result<(), String> {
        while_busy(|| self.write(attribute, value), || thread::sleep(BUSY_PAUSE))
            .map_err(|error| self.why_refused(attribute, &error))?;
        match self.read(attribute) {
            Ok(now) if now == expected || attribute == DEVICE_MODEL => Ok(()),
            // The kernel rounds to limits and clock ticks. A record must name the value in force.
            Ok(now) => Err(format!("the kernel changed it to {now}; choose a value that it keeps")),
            Err(error) => Err(format!("set, but cannot be read back: {error}")),
        }
    }

    fn why_refused(&self, attribute: &str, error: &io::Error) -> String {
        if error.kind() == io::ErrorKind::NotFound {
            return format!("no such knob; {}", self.offered(attribute));
        }
        if error.kind() == io::ErrorKind::PermissionDenied {
            return format!("{error}; setting knobs needs root, or CAP_DAC_OVERRIDE");
        }
        if error.kind() == io::ErrorKind::ResourceBusy {
            let waited = BUSY_PAUSE * (BUSY_TRIES - 1);
            return format!(
                "the kernel was busy with another change of this disk for {waited:?}; try again"
            );
        }
        match attribute {
            SCHEDULER => format!(
                "rejected by the kernel ({error}); offered: {}; if it is a module, load it first",
                self.read_raw(SCHEDULER).unwrap_or_else(|_| "nothing".into())
            ),
            DISCARD_MAX => format!(
                "rejected by the kernel ({error}); it takes multiples of discard_granularity, here {}",
                self.discard_granularity()
            ),
            _ => format!("rejected by the kernel ({error})"),
        }
    }

    fn offered(&self, attribute: &str) -> String {
        let (subdir, place) = if attribute.starts_with("iosched/") {
            ("iosched/", format!("scheduler {}", self.read(SCHEDULER).unwrap_or_default()))
        } else {
            ("", "queue".to_string())
        };
        let mut names = self.writable_names(subdir);
        names.sort();
        if names.is_empty() {
            format!("{place} has none at all")
        } else {
            format!("{place} has: {}", names.join(", "))
        }
    }

    /// Sets the knobs of a variant on top of those in force.
    ///
    /// A knob in `optional` that cannot be set is returned as unmet; any other is an error.
    pub fn apply(
        &self,
        variant: &str,
        knobs: &BTreeMap<String, Value>,
        optional: &BTreeSet<String>,
    ) -> Result<(BTreeMap<String, KnobReading>, Vec<Unmet>), KnobError> {
        let mut readings = BTreeMap::new();
        let mut unmet = Vec::new();
        for (key, attribute, value) in in_setting_order(knobs) {
            if let Err(reason) = self.set(&attribute, &value.to_string()) {
                if !optional.contains(key) {
                    return Err(self.error(key, &value.to_string(), reason));
                }
                let (variant, knob) = (variant.to_string(), key.clone());
                unmet.push(Unmet { variant, knob, wanted: value.clone(), reason });
            }
            let read_back = self.read(&attribute).ok().map(|text| Value::from_text(&text));
            readings.insert(key.clone(), KnobReading { wanted: value.clone(), read_back });
        }
        Ok((readings, unmet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of error and the number of pauses, if the kernel is busy for the first `busy`
    /// attempts.
    fn outcome(busy: u32, then: fn() -> io::Result<()>) -> (Option<io::ErrorKind>, u32) {
        let (mut tried, mut paused) = (0, 0);
        let write = || {
            tried += 1;
            if tried <= busy { Err(io::ErrorKind::ResourceBusy.into()) } else { then() }
        };
        let result = while_busy(write, || paused += 1);
        (result.err().map(|error| error.kind()), paused)
    }

    #[test]
    fn a_busy_kernel_is_asked_again() {
        assert_eq!(outcome(3, || Ok(())), (None, 3));
    }

    #[test]
    fn a_kernel_that_stays_busy_is_told() {
        let told = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(outcome(BUSY_TRIES, || Ok(())), (told, BUSY_TRIES - 1));
    }

    #[test]
    fn another_refusal_is_final() {
        let refused = || Err(io::ErrorKind::InvalidInput.into());
        assert_eq!(outcome(0, refused), (Some(io::ErrorKind::InvalidInput), 0));
    }
}
