// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks, the load that runs with them, and the knobs of k2 (`docs/spec/tasks-1.md`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::Deserializer;
use steadyio_core::range::bounded;

use crate::BoundError;
use crate::fault::{Fault, fault};

/// The schema that this version reads.
pub const TASKS_SCHEMA: &str = "steadyio.tasks/1";
/// Real-time levels of k2, the first served first.
pub const LEVELS: u64 = 8;
const KIB_MAX: u64 = 65_536;
/// The longest command of chario.
const LANE_KIB_MAX: u64 = 4_096;
const MINUTE_US: u64 = 60_000_000;
const NR_REQUESTS_MAX: u64 = 65_536;
const NAME_CHARS_MAX: usize = 64;
const TASKS_MAX: usize = 256;
/// `TASK_COMM_LEN` without the byte that ends it.
const THREAD_BYTES_MAX: usize = 15;

/// A task set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSet {
    schema: String,
    pub name: String,
    pub k2: K2,
    #[serde(default)]
    pub host: Host,
    /// None: nothing but the tasks uses the device.
    pub background: Option<Background>,
    /// None: no partition of the card is a lane of chario.
    pub lane: Option<Lane>,
    #[serde(rename = "task")]
    pub tasks: Vec<Task>,
}

/// Knobs, with the names that they have in `/sys/block/DISK/queue/`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct K2 {
    #[serde(deserialize_with = "bounded::<_, 1, 1024>")]
    pub inflight_max: u64,
    /// None, as 0: background is not split.
    #[serde(default, deserialize_with = "split_kib")]
    pub split_kib: Option<u64>,
    /// Tasks are declared, and lower levels may block one of their requests for so long; 0: they are not.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_000_000>")]
    pub rt_block_us: u64,
    /// 0: background waits for real-time however long that takes.
    #[serde(default, deserialize_with = "bounded::<_, 0, 60_000>")]
    pub background_wait_ms_max: u64,
    /// The block layer cuts what is larger.
    #[serde(deserialize_with = "bounded::<_, 4, KIB_MAX>")]
    pub max_sectors_kb: u64,
    #[serde(deserialize_with = "bounded::<_, 4, NR_REQUESTS_MAX>")]
    pub nr_requests: u64,
}

/// The machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Added to each command: interrupt, driver, dispatch.
    #[serde(default, deserialize_with = "bounded::<_, 0, MINUTE_US>")]
    pub command_us: u64,
    /// Release of its kernel, such as "6.12"; None: that of the profile.
    pub kernel: Option<String>,
}

/// Everything that is not of the real-time class.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    pub op: BackgroundOp,
    /// Largest request, as submitted.
    #[serde(deserialize_with = "bounded::<_, 1, KIB_MAX>")]
    pub kib: u64,
    /// Some of it may lie side by side, so that k2 makes larger requests of it.
    #[serde(default = "yes")]
    pub merges: bool,
    /// Some of its writes are with FUA: past the device's cache.
    #[serde(default = "yes")]
    pub durable: bool,
    /// Least distance of two flushes; None: it sends none.
    #[serde(default, deserialize_with = "distance_us")]
    pub flush_distance_us_min: Option<u64>,
    /// Largest discard, which k2 does not split; 0: it sends none.
    #[serde(default, deserialize_with = "bounded::<_, 0, 1_073_741_824>")]
    pub discard_kib: u64,
}

/// Calls that go past k2, to a partition of the card that is a character device. k2 lets their commands
/// go by level, one at a time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    pub op: BackgroundOp,
    /// Longest command: `command_kib`, or `bg_kib` of calls that are not real-time.
    #[serde(deserialize_with = "bounded::<_, 1, LANE_KIB_MAX>")]
    pub kib: u64,
    /// The highest level of its calls; None: none is real-time.
    #[serde(default, deserialize_with = "lane_level")]
    pub level: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackgroundOp {
    Read,
    Write,
    ReadWrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOp {
    Read,
    Write,
}

/// A real-time thread: from time to time it does some I/Os, one after the other.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: String,
    pub op: TaskOp,
    #[serde(deserialize_with = "bounded::<_, 1, KIB_MAX>")]
    pub kib: u64,
    #[serde(deserialize_with = "bounded::<_, 0, 7>")]
    pub level: u64,
    /// Distance of its times, or the least distance of a sporadic task's.
    #[serde(deserialize_with = "bounded::<_, 1, MINUTE_US>")]
    pub period_us: u64,
    /// Each time is within ± this of its place.
    #[serde(default, deserialize_with = "bounded::<_, 0, MINUTE_US>")]
    pub jitter_us: u64,
    /// I/Os per time.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 10_000>")]
    pub ios: u64,
    /// I/Os that are submitted together, as by io_uring or libaio.
    #[serde(default = "one", deserialize_with = "bounded::<_, 1, 10_000>")]
    pub at_once: u64,
    /// From a time to the end of its last I/O; None: the period.
    #[serde(default, deserialize_with = "deadline_us")]
    deadline_us: Option<u64>,
    /// Computing before, between and after, per I/O; None: a trace tells, or none.
    #[serde(default, deserialize_with = "cpu_us")]
    pub cpu_us: Option<u64>,
    /// The kernel's name of its thread, by which a trace finds its computing time; None: the task's
    /// name.
    thread: Option<String>,
    /// Declared: lower levels may block a request of it for so long; None: `rt_block_us`.
    #[serde(default, deserialize_with = "block_us")]
    pub block_us: Option<u64>,
    /// With O_DSYNC.
    #[serde(default)]
    pub durable: bool,
    /// Its I/Os are calls of a lane, one command each, which k2 does not cut.
    #[serde(default)]
    pub lane: bool,
    /// The systemd service whose threads do this; None: some other program's.
    pub service: Option<String>,
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

fn distance_us<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, MINUTE_US>(de).map(Some)
}

fn lane_level<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 7>(de).map(Some)
}

fn deadline_us<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, MINUTE_US>(de).map(Some)
}

fn cpu_us<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 0, MINUTE_US>(de).map(Some)
}

fn split_kib<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 0, KIB_MAX>(de).map(Some)
}

fn block_us<'de, D: Deserializer<'de>>(de: D) -> Result<Option<u64>, D::Error> {
    bounded::<D, 1, 1_000_000>(de).map(Some)
}

impl Task {
    /// Of a declared task.
    pub fn block_us(&self, k2: &K2) -> u64 {
        self.block_us.unwrap_or(k2.rt_block_us)
    }

    pub fn cpu_us(&self) -> u64 {
        self.cpu_us.unwrap_or(0)
    }

    /// As the kernel has it, which cuts what is longer.
    pub fn thread(&self) -> &str {
        self.thread.as_deref().unwrap_or(&self.name[..self.name.len().min(THREAD_BYTES_MAX)])
    }

    pub fn deadline_us(&self) -> u64 {
        self.deadline_us.unwrap_or(self.period_us)
    }

    /// The jitter of a job's first request: what is computed before it delays it, too.
    pub fn declared_jitter_us(&self) -> u64 {
        self.jitter_us + (self.cpu_us() * self.at_once).div_ceil(2)
    }

    /// The longest time without a request inside a job, which computes after one I/O and before the
    /// next. The flush of a durable write is not a request that k2 sees.
    pub fn think_us(&self, flush_us: u64) -> u64 {
        1 + 2 * self.cpu_us() * self.at_once + flush_us
    }

    /// Rejects a period that k2 rejects; the error is the reason.
    pub(crate) fn check_period(&self, flush_us: u64) -> Result<(), String> {
        let (jitter_us, think_us) = (2 * self.declared_jitter_us(), self.think_us(flush_us));
        let least_us = jitter_us + think_us;
        if self.period_us > least_us {
            return Ok(());
        }
        Err(format!(
            "task {}: period_us = {}: must be above {least_us} with rt_block_us: the declaration has \
             2 jitter_us = {jitter_us} and think_us = {think_us}",
            self.name, self.period_us
        ))
    }

    /// How often its thread submits in a job, and then waits for all that it has submitted.
    pub fn batches(&self) -> u64 {
        self.ios.div_ceil(self.at_once)
    }

    /// Requests that the block layer makes of one I/O.
    pub fn parts(&self, k2: &K2) -> u64 {
        if self.lane { 1 } else { self.kib.div_ceil(k2.max_sectors_kb) }
    }
}

impl K2 {
    /// 0: background is not split.
    pub fn split_kib(&self) -> u64 {
        self.split_kib.unwrap_or(0)
    }

    /// Whether the file leaves open how background is cut for real-time.
    pub fn is_open(&self) -> bool {
        self.split_kib.is_none() && self.rt_block_us == 0
    }

    /// Tags that neither other background nor metadata may take (`k2_policy_tags()`).
    pub fn tags_kept(&self) -> u64 {
        (self.nr_requests / 8).max(1)
    }
}

impl TaskSet {
    /// Reads and checks a task set.
    pub fn parse(text: &str) -> Result<TaskSet, BoundError> {
        let set: TaskSet = toml::from_str(text).map_err(|error| BoundError(error.to_string()))?;
        set.check().map_err(|fault| fault.in_file(text))?;
        Ok(set)
    }

    /// The place in the file of something that writes.
    pub(crate) fn written_by(&self) -> Option<String> {
        let background =
            self.background.as_ref().map(|background| ("background/op", background.op));
        let lane = self.lane.as_ref().map(|lane| ("lane/op", lane.op));
        let mut others = background.into_iter().chain(lane);
        let task = self.tasks.iter().position(|task| task.op == TaskOp::Write);
        let other =
            || others.find(|(_, op)| *op != BackgroundOp::Read).map(|(place, _)| place.into());
        task.map(|number| format!("task/{number}/op")).or_else(other)
    }

    /// The tasks that are declared if `rt_block_us` is set, with their numbers.
    pub fn declared(&self) -> impl Iterator<Item = (usize, &Task)> {
        self.tasks.iter().enumerate().filter(|(_, task)| !task.lane)
    }

    /// Without a trace: that no task of this file relies on one.
    pub fn check_cpu_stated(&self, file: &str) -> Result<(), BoundError> {
        let Some(number) = self.tasks.iter().position(|task| task.thread.is_some()) else {
            return Ok(());
        };
        let (name, thread) = (&self.tasks[number].name, self.tasks[number].thread());
        let text = format!(
            "task {name}: thread = \"{}\": needs --cpu-from TRACE.json of steady bound, or cpu_us in \
             its place",
            thread.escape_debug()
        );
        let stated: Result<(), Fault> = fault(format!("task/{number}/thread"), text);
        stated.map_err(|fault| fault.in_file(file))
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.schema != TASKS_SCHEMA {
            let schema = self.schema.escape_debug();
            return fault("schema", format!("schema = \"{schema}\": must be \"{TASKS_SCHEMA}\""));
        }
        let count = self.tasks.len();
        if !(1..=TASKS_MAX).contains(&count) {
            return fault("task", format!("{count} tasks: must be 1 to {TASKS_MAX}"));
        }
        check_name("name", "the task set", &self.name)?;
        let mut names = BTreeSet::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let place = format!("task/{number}");
            check_name(&format!("{place}/name"), "task", &task.name)?;
            if !names.insert(&task.name) {
                let text = format!("task {}: name appears twice, names must differ", task.name);
                return fault(format!("{place}/name"), text);
            }
            check_task(&place, task)?;
        }
        self.check_services()?;
        self.check_declared()?;
        self.check_kernel()?;
        self.check_lane()?;
        self.check_tags()
    }

    /// `steady apply` gives a service one level.
    fn check_services(&self) -> Result<(), Fault> {
        let mut levels = BTreeMap::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let Some(service) = &task.service else { continue };
            let level = *levels.entry(service).or_insert(task.level);
            if level != task.level {
                let (name, own) = (&task.name, task.level);
                let text = format!(
                    "task {name}: level = {own}, but another task of {service} has {level}: a service \
                     has one"
                );
                return fault(format!("task/{number}/level"), text);
            }
        }
        Ok(())
    }

    fn check_kernel(&self) -> Result<(), Fault> {
        let Some(kernel) = &self.host.kernel else { return Ok(()) };
        if release(kernel).is_some() {
            return Ok(());
        }
        let text =
            format!("kernel = \"{}\": must be a release such as \"6.12\"", kernel.escape_debug());
        fault("host/kernel", text)
    }

    fn check_lane(&self) -> Result<(), Fault> {
        let has_lane = self.lane.is_some() || self.tasks.iter().any(|task| task.lane);
        if has_lane && self.k2.inflight_max > 1 {
            let inflight_max = self.k2.inflight_max;
            let text = format!(
                "inflight_max = {inflight_max}: must be 1 with a lane, which turns a command queue off \
                 and on again"
            );
            return fault("k2/inflight_max", text);
        }
        let Some(lane) = &self.lane else { return Ok(()) };
        let lowest = self.tasks.iter().map(|task| task.level).max().unwrap_or(0);
        let level = lane.level.unwrap_or(LEVELS);
        if level <= lowest {
            let text = format!(
                "level = {level} of [lane]: must be greater than that of every task, {lowest}; state \
                 calls of higher levels as tasks"
            );
            return fault("lane/level", text);
        }
        Ok(())
    }

    fn check_declared(&self) -> Result<(), Fault> {
        let rt_block_us = self.k2.rt_block_us;
        if rt_block_us == 0 {
            let stated = self.tasks.iter().position(|task| task.block_us.is_some());
            return stated.map_or(Ok(()), |number| {
                let name = &self.tasks[number].name;
                let text = format!("task {name}: block_us: needs rt_block_us in [k2]");
                fault(format!("task/{number}/block_us"), text)
            });
        }
        let split_kib = self.k2.split_kib();
        if split_kib > 0 {
            let text =
                format!("rt_block_us = {rt_block_us}, split_kib = {split_kib}: only one of them");
            return fault("k2/split_kib", text);
        }
        let discard_kib = self.background.as_ref().map_or(0, |background| background.discard_kib);
        if discard_kib > 0 {
            return fault(
                "background/discard_kib",
                format!(
                    "discard_kib = {discard_kib}: must be 0 with rt_block_us, as k2 does not split \
                     discards"
                ),
            );
        }
        Ok(())
    }

    /// A real-time request that finds no tag waits for one of the background's to end, which is
    /// not what the analysis counts.
    fn check_tags(&self) -> Result<(), Fault> {
        let needed: u64 = self.tasks.iter().map(|task| task.at_once * task.parts(&self.k2)).sum();
        if self.background.is_some() && needed > self.k2.tags_kept() {
            let (own, kept, least) = (self.k2.nr_requests, self.k2.tags_kept(), needed * 8);
            let help = match least {
                ..=NR_REQUESTS_MAX => format!("must be at least {least}"),
                _ => "state a smaller at_once, or a larger max_sectors_kb".into(),
            };
            let text = format!(
                "nr_requests = {own}: keeps {kept} tags for real-time, and the tasks may need {needed} \
                 at once: {help}"
            );
            return fault("k2/nr_requests", text);
        }
        Ok(())
    }
}

/// Major and minor number of a kernel's release. None: it has none.
pub(crate) fn release(kernel: &str) -> Option<(u32, u32)> {
    let (major, rest) = kernel.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest[..end].parse().ok()?))
}

pub(crate) fn check_name(place: &str, what: &str, name: &str) -> Result<(), Fault> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(is_fit) {
        return fault(
            place,
            format!(
                "name of {what} = \"{}\": must be 1 to {NAME_CHARS_MAX} of a-z A-Z 0-9 . - _",
                name.escape_debug()
            ),
        );
    }
    Ok(())
}

fn check_task(place: &str, task: &Task) -> Result<(), Fault> {
    let fail = |key: &str, text: String| {
        fault(format!("{place}/{key}"), format!("task {}: {text}", task.name))
    };
    if let Some(service) = &task.service {
        check_service(service).or_else(|text| fail("service", text))?;
    }
    if let Some(thread) = &task.thread {
        let shown = thread.escape_debug();
        if thread.is_empty() || thread.len() > THREAD_BYTES_MAX {
            let text = format!("thread = \"{shown}\": must be 1 to {THREAD_BYTES_MAX} bytes");
            return fail("thread", text);
        }
        if let Some(cpu_us) = task.cpu_us {
            let text = format!("cpu_us = {cpu_us} and thread = \"{shown}\": only one of them");
            return fail("thread", text);
        }
    }
    if task.durable && task.op == TaskOp::Read {
        return fail("durable", "durable: only with op = \"write\"".into());
    }
    if task.lane {
        check_lane_task(task).or_else(|(key, text)| fail(key, text))?;
    }
    if task.at_once > task.ios {
        let (at_once, ios) = (task.at_once, task.ios);
        return fail("at_once", format!("at_once = {at_once}: must be at most ios = {ios}"));
    }
    if task.jitter_us * 2 > task.period_us {
        let (jitter_us, period_us) = (task.jitter_us, task.period_us);
        return fail(
            "jitter_us",
            format!("jitter_us = {jitter_us}: must be at most half of period_us = {period_us}"),
        );
    }
    Ok(())
}

/// A call is one command, and nothing of it passes k2.
fn check_lane_task(task: &Task) -> Result<(), (&'static str, String)> {
    let Task { kib, at_once, .. } = task;
    if *kib > LANE_KIB_MAX {
        return Err(("kib", format!("kib = {kib}: must be at most {LANE_KIB_MAX} with lane")));
    }
    if *at_once > 1 {
        return Err(("at_once", format!("at_once = {at_once}: must be 1 with lane")));
    }
    let other = [("durable", task.durable), ("block_us", task.block_us.is_some())];
    match other.iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => Err((key, format!("{key}: not with lane"))),
        None => Ok(()),
    }
}

/// A name that systemd takes, and no path.
fn check_service(service: &str) -> Result<(), String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || ":-_.@\\".contains(c);
    let name = service.strip_suffix(".service");
    if name.is_some_and(|name| !name.is_empty() && name.chars().all(is_fit)) {
        return Ok(());
    }
    let shown = service.escape_debug();
    Err(format!("service = \"{shown}\": must be a name such as \"camera.service\""))
}
