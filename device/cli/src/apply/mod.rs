// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady apply`: set a disk up for a task set, and keep the settings.
//!
//! The settings are kept in files below /etc, which `files` makes and finds again. This file has
//! the arguments, the bound that must hold, and the knobs of the running system.

mod card;
mod discards;
mod disk;
mod files;
mod power;
mod running;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure};
use steadyio_bound::analysis::responses;
use steadyio_bound::declared;
use steadyio_bound::device::{Device as Times, Op};
use steadyio_bound::search;
use steadyio_bound::tasks::{Task, TaskSet};
use steadyio_core::device::Device;
use steadyio_core::diagnostic;
use steadyio_core::identity::Identity;
use steadyio_core::kernel::Kernel;
use steadyio_core::knob_guard::KnobGuard;
use steadyio_core::knobs::{Attributes, Queue, knob_attribute};
use steadyio_core::value::Value;

use crate::bound::{Progress, inputs, percent, read};
use crate::doctor::{self, discarding};
use crate::exit::{Failure, Status};
use crate::output::print;
use crate::power::power_states;
use crate::tune;
use disk::Disk;
use files::{Command, Files, Kept, Knobs, Service, Settings};

const HELP: &str = "Exit status: 0 success (applied or printed); 1 failure; 2 usage error or \
invalid file; 3 a task may miss its deadline (nothing was changed). After status 1, knobs and \
files are as before, or --remove can be repeated.";

type Services = BTreeMap<String, Service>;

/// Where packages install this program.
const STEADY: &str = "/usr/bin/steady";
/// The latency target of writeback throttling, which holds up synchronous writes of real-time, too.
const WBT: &str = "wbt_lat_usec";
/// The longest discard.
const DISCARD_MAX: &str = "discard_max_bytes";
/// Tags of which an eighth is more than one, and the number of them.
const TAGS: &str = "nr_requests";
const TAGS_MIN: u64 = 16;
const TAGS_WANTED: &str = "64";
/// Where udev names disks by what no other has.
const BY_ID: &str = "/dev/disk/by-id";
/// k2's limit (`K2_RT_BLOCK_US_LIMIT`).
const RT_BLOCK_US_MAX: i64 = 1_000_000;
/// Sizes whose times look-ahead gets: its line goes through both.
const MODEL_KIB: [u64; 2] = [4, 512];

/// Set up a disk for a task set: scheduler, knobs and service I/O priorities
///
/// Computes the bounds first, and changes nothing if a deadline may be missed. Prints the files
/// that make the settings permanent: a udev rule for the card, and a systemd drop-in for each
/// service of a task. With --yes, writes the files and sets the knobs. Refuses the profile of another
/// card. Also sets what steady doctor reports and a file of sysfs sets: power states and writeback
/// throttling off, tags, and discards no longer than TASKS states. If the k2 table of TASKS has
/// neither rt_block_us nor split_kib, declares the tasks.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Device profile (TOML) from `steady probe`
    #[arg(value_name = "PROFILE", required_unless_present = "remove")]
    profile: Option<PathBuf>,
    /// Tasks, background load and knobs (TOML)
    #[arg(value_name = "TASKS", required_unless_present_any = ["remove", "rt_block_us"])]
    tasks: Option<PathBuf>,
    /// Use k2's look-ahead instead of TASKS: background blocks real-time for at most US
    /// microseconds. k2 gets the device times of PROFILE, and uses them from the first request on
    #[arg(long, value_name = "US", conflicts_with_all = ["tasks", "remove"], value_parser = clap::value_parser!(u32).range(1..=RT_BLOCK_US_MAX))]
    rt_block_us: Option<u32>,
    /// Disk, for example mmcblk0; with --root, of the system that the image is for
    #[arg(long, visible_alias = "device", value_name = "NAME")]
    disk: Disk,
    /// Accept another card of the profile's model and size
    #[arg(long, conflicts_with = "remove")]
    same_model: bool,
    /// Apply the changes instead of only printing them
    #[arg(long)]
    yes: bool,
    /// Remove the files written for this disk, and restore its previous scheduler and knobs
    #[arg(long, conflicts_with_all = ["profile", "tasks"])]
    remove: bool,
    /// Write below DIR, for example into an image being built, and change nothing on the running
    /// system
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    if let Some(note) = &arguments.disk.note {
        diagnostic!("steady: {note}");
    }
    let files =
        Files::below(arguments.root.as_deref().unwrap_or(Path::new("/")), &arguments.disk.name);
    if arguments.remove {
        return remove(arguments, &files);
    }
    let Some((settings, services)) = settings(arguments)? else { return Ok(Status::Flawed) };
    if card::is_of_another(&files.rule_text(), &settings.conditions) {
        let name = &arguments.disk.name;
        return Err(Failure::with(Status::Usage)(anyhow!(
            "the rule for {name} is of another disk, which had this name before: remove it first \
             (steady apply --remove --disk {name} --yes)"
        )));
    }
    let wanted = files.wanted(&settings, &services, knobs_before(arguments, &settings.knobs));
    print(&files::shown(&wanted))?;
    if !arguments.yes {
        diagnostic!("steady: nothing was changed; --yes writes this{}", sets_too(arguments));
        return Ok(Status::Done);
    }
    apply(arguments, &settings, &wanted).map_err(Failure::with(Status::Failed))?;
    tell_running(arguments, !services.is_empty());
    for service in services.keys() {
        diagnostic!("steady: {service}: priority takes effect at its next start");
    }
    Ok(Status::Done)
}

/// Settings of the disk, and the levels of services; `None` if a deadline may be missed, which this
/// prints.
fn settings(arguments: &Arguments) -> Result<Option<(Settings, Services)>, Failure> {
    let usage = Failure::with(Status::Usage);
    let Some(profile) = &arguments.profile else {
        return Err(usage(anyhow!("a profile is needed")));
    };
    if let Some(rt_block_us) = arguments.rt_block_us {
        // It rests on usual times, which an SSD has, too.
        let times = read(profile, Times::parse_any).map_err(Failure::with(Status::Usage))?;
        let settings = of_disk(arguments, &times, look_ahead(&times, rt_block_us), None);
        return Ok(Some((settings.map_err(Failure::with(Status::Usage))?, Services::new())));
    }
    let Some(tasks) = &arguments.tasks else { return Err(usage(anyhow!("tasks are needed"))) };
    let (times, mut set) = inputs(profile, tasks, false)?;
    if arguments.root.is_none() {
        // The file, or the profile, may be of another kernel.
        set.host.kernel = Some(Kernel::running().release);
        times.check(&set).map_err(Failure::with(Status::Usage))?;
    }
    let mut services = services(&set);
    let set = with_knobs(&times, set);
    if let Some(text) = missed(&times, &set) {
        diagnostic!("steady: {text}; `steady bound` shows why. Nothing was changed");
        return Ok(None);
    }
    let mut knobs = knobs(&set);
    if set.k2.rt_block_us > 0 {
        let limits = declare(arguments, &times, &set, &mut services);
        let limits = limits.map_err(Failure::with(Status::Usage))?;
        knobs.insert("iosched/device_limits".into(), Value::from_text(&limits));
    }
    let settings = of_disk(arguments, &times, knobs, Some(&set));
    Ok(Some((settings.map_err(Failure::with(Status::Usage))?, services)))
}

/// The set, with declared tasks if they meet all deadlines and it states no other way to cut
/// background.
fn with_knobs(times: &Times, set: TaskSet) -> TaskSet {
    let mut progress = Progress::new();
    let tick = &mut || progress.next_choice();
    let best = set.k2.is_open().then(|| search::declared(times, &set, tick)).flatten();
    let Some(best) = best.filter(|best| best.missed == 0) else { return set };
    diagnostic!(
        "steady: [k2] has neither rt_block_us nor split_kib: tasks are declared ({}), and about {} \
         of the background's throughput is left",
        tune::bound::knobs(&best),
        percent(1.0 - best.loss)
    );
    best.set
}

/// For the disk of the profile, if it is that; of an image nothing is known.
fn of_disk(
    arguments: &Arguments,
    times: &Times,
    mut knobs: Knobs,
    set: Option<&TaskSet>,
) -> anyhow::Result<Settings> {
    let disk = &arguments.disk.name;
    let dir = Path::new("/sys/block").join(disk);
    if arguments.root.is_some() || !dir.exists() {
        knobs.insert(format!("queue/{WBT}"), Value::from_text("0"));
        let conditions = card::conditions(times, disk, None);
        let more_rules = power::rules_of_image(disk, times.probed().model);
        return Ok(Settings { knobs, conditions, power: Vec::new(), more_rules });
    }
    let paths = doctor::paths(disk);
    ensure!(
        paths.is_empty(),
        "{disk} passes its requests to {}, which udev does not see (nvme_core.multipath=N on the \
         kernel's command line makes a disk of a drive with one path)",
        paths.join(", ")
    );
    let found = Identity::read(&dir);
    card::check(times, disk, &found, arguments.same_model)?;
    let queue = dir.join("queue");
    card::check_limits(times, set.map(|set| set.k2.max_sectors_kb), &queue)?;
    add_findings(&mut knobs, disk, &queue, set)?;
    let conditions = card::conditions(times, disk, Some(&found));
    let power = power_states(Path::new("/sys"), disk);
    Ok(Settings { knobs, conditions, power, more_rules: String::new() })
}

/// Knobs that take findings of `steady doctor` away.
fn add_findings(
    knobs: &mut Knobs,
    disk: &str,
    queue: &Path,
    set: Option<&TaskSet>,
) -> anyhow::Result<()> {
    let read = |name: &str| std::fs::read_to_string(queue.join(name)).unwrap_or_default();
    if !["", "0"].contains(&read(WBT).trim()) {
        knobs.insert(format!("queue/{WBT}"), Value::from_text("0"));
    }
    if read(TAGS).trim().parse().is_ok_and(|tags: u64| tags < TAGS_MIN) {
        knobs.entry(format!("queue/{TAGS}")).or_insert(Value::from_text(TAGS_WANTED));
    }
    let stated_kib = set.and_then(|set| Some(set.background.as_ref()?.discard_kib)).unwrap_or(0);
    // Linux 6.12 takes no other limit after 0, so --remove could not restore it.
    if stated_kib > 0 && !discarding(disk).is_empty() {
        let bytes = discards::limit_bytes(queue, stated_kib)?;
        knobs.insert(format!("queue/{DISCARD_MAX}"), Value::from_text(&bytes.to_string()));
    }
    Ok(())
}

/// Has each service declare its task. Returns the limits of the device's times.
fn declare(
    arguments: &Arguments,
    times: &Times,
    set: &TaskSet,
    services: &mut Services,
) -> anyhow::Result<String> {
    let root = arguments.root.as_deref().unwrap_or(Path::new("/"));
    let own = files::drop_in_name(&arguments.disk.name);
    let steady = match arguments.root {
        Some(_) => STEADY.into(),
        None => std::env::current_exe()?,
    };
    let node = Path::new("/dev").join(&arguments.disk.name);
    let by_id = card::stable_node(Path::new(BY_ID), &node).filter(|_| arguments.root.is_none());
    let after = by_id.as_deref().map(unit::of_node);
    let node = by_id.unwrap_or(node);
    let declarations = declared::declarations(times, set, &responses(times, set))?;
    for (task, declaration) in set.tasks.iter().zip(declarations) {
        let Some(declaration) = declaration else { continue };
        let words = declaration.to_string().replace(' ', ",");
        let with = |node: &str| format!("with --device {node} --declare {words} --");
        let service = task.service.as_ref().and_then(|name| Some((name, services.get_mut(name)?)));
        let Some((name, service)) = service else {
            let with = with(&node.display().to_string());
            diagnostic!("steady: task {}: run it under `steady {with} PROGRAM`", task.name);
            continue;
        };
        ensure!(
            service.declares.is_none(),
            "task {}: {name} has another task, and a service declares one",
            task.name
        );
        let start = unit::exec_start(root, name, &own)?;
        let [steady, node] = [&steady, &node].map(|path| unit::word(&path.display().to_string()));
        let with = format!("{steady} {}", with(&node));
        service.declares = Some(Command { start, with, after: after.clone() });
    }
    Ok(declared::device_limits(times, set)?)
}

fn sets_too(arguments: &Arguments) -> &'static str {
    if arguments.root.is_some() { "" } else { " and sets the knobs" }
}

/// The first task that may be late.
fn missed(times: &Times, set: &TaskSet) -> Option<String> {
    let found = responses(times, set);
    let late = set.tasks.iter().zip(found).find(|(task, found)| !found.meets(task.deadline_us()));
    late.map(|(task, _)| format!("task {} may miss its deadline", task.name))
}

fn services(set: &TaskSet) -> Services {
    let of_task =
        |task: &Task| Some((task.service.clone()?, Service { level: task.level, declares: None }));
    set.tasks.iter().filter_map(of_task).collect()
}

/// Per level the shortest deadline of its tasks in us, or 0, as `iosched/rt_deadline_us` has them: a request that
/// takes longer has missed it.
fn deadlines_us(set: &TaskSet) -> String {
    let shortest = |level: u64| {
        let of_level = set.tasks.iter().filter(|task| task.level == level);
        of_level.map(Task::deadline_us).min().unwrap_or(0).to_string()
    };
    (0..8).map(shortest).collect::<Vec<_>>().join(" ")
}

fn knobs(set: &TaskSet) -> Knobs {
    let k2 = &set.k2;
    let mut knobs = Knobs::from([("scheduler".to_string(), Value::from_text("k2"))]);
    for (name, value) in [
        ("queue/nr_requests", k2.nr_requests),
        ("queue/max_sectors_kb", k2.max_sectors_kb),
        ("iosched/inflight_max", k2.inflight_max),
        ("iosched/split_kib", k2.split_kib()),
        ("iosched/rt_block_us", k2.rt_block_us),
        ("iosched/background_wait_ms_max", k2.background_wait_ms_max),
    ] {
        knobs.insert(name.into(), Value::from_text(&value.to_string()));
    }
    knobs.insert("iosched/rt_deadline_us".into(), Value::from_text(&deadlines_us(set)));
    knobs
}

/// Of a small and a large command of each operation, as `iosched/device_model` takes them.
fn device_model(times: &Times) -> String {
    let operations = [("read", Op::Read), ("write", Op::Write)];
    let commands = operations.iter().flat_map(|(name, op)| MODEL_KIB.map(|kib| (name, *op, kib)));
    let words = commands.filter_map(|(name, op, kib)| {
        let (usual_ns, longer_ns) = times.model_ns(op, kib)?;
        let [usual_us, longer_us] = [usual_ns, longer_ns].map(|ns| ns.div_ceil(1_000).max(1));
        Some(format!("{name} {kib} {usual_us} {longer_us}"))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn look_ahead(times: &Times, rt_block_us: u32) -> Knobs {
    let knobs = [
        ("scheduler", "k2".to_string()),
        ("iosched/device_model", device_model(times)),
        ("iosched/rt_block_us", rt_block_us.to_string()),
        ("iosched/split_kib", "0".into()),
    ];
    knobs.into_iter().map(|(name, value)| (name.into(), Value::from_text(&value))).collect()
}

fn device(disk: &str) -> anyhow::Result<Device> {
    let node = Path::new("/dev").join(disk);
    Ok(Device::open(&node)?)
}

/// What the running system has now, but for knobs of its scheduler, which go with it; that of an image
/// is not known.
fn knobs_before(arguments: &Arguments, knobs: &Knobs) -> Knobs {
    if arguments.root.is_some() {
        return Knobs::new();
    }
    let Ok(device) = device(&arguments.disk.name) else { return Knobs::new() };
    let queue = Queue::new(&device.queue, &device.disk);
    let keys = knobs.keys().filter(|key| !key.starts_with("iosched/"));
    let value_of = |key: &String| {
        let text = queue.read(&knob_attribute(key)?).ok()?;
        Some((key.clone(), Value::from_text(&text)))
    };
    keys.filter_map(value_of).collect()
}

/// Sets first, as that shows whether the kernel takes it; if a file cannot be written, the knobs are
/// restored.
fn apply(arguments: &Arguments, settings: &Settings, wanted: &[Kept]) -> anyhow::Result<()> {
    if arguments.root.is_some() {
        return files::write(wanted);
    }
    let device = device(&arguments.disk.name)?;
    let guard = KnobGuard::take(&device, &mut |text| diagnostic!("steady: {text}"))?;
    guard.queue().apply("apply", &settings.knobs, &BTreeSet::new())?;
    power::turn_off(&settings.power)?;
    if let Err(error) = files::write(wanted) {
        power::turn_on(&settings.power);
        return Err(error);
    }
    Ok(guard.leave()?)
}

fn tell_running(arguments: &Arguments, has_drop_in: bool) {
    if arguments.root.is_some() {
        return;
    }
    running::reload_rules();
    running::apply_rules_of_k2();
    if has_drop_in {
        running::reload_services();
    }
}

fn remove(arguments: &Arguments, files: &Files) -> Result<Status, Failure> {
    let failed = Failure::with(Status::Failed);
    let kept = files.kept().map_err(failed)?;
    if kept.is_empty() {
        diagnostic!("steady: {}: nothing was applied", arguments.disk.name);
        return Ok(Status::Done);
    }
    for path in &kept {
        print(&format!("{}\n", path.display()))?;
    }
    if !arguments.yes {
        diagnostic!("steady: nothing was changed; --yes removes this");
        return Ok(Status::Done);
    }
    // The files go last: they say what was before.
    let before = files.before();
    if arguments.root.is_none() {
        let rule = files.rule_text();
        let disk = card::disk_of(&rule, Path::new("/sys/block"), &arguments.disk.name);
        if let Some(disk) = disk.filter(|_| !before.is_empty()) {
            restore(&disk, &before).map_err(Failure::with(Status::Failed))?;
        }
        power::restore(&rule).map_err(Failure::with(Status::Failed))?;
    }
    files::remove(&kept).map_err(Failure::with(Status::Failed))?;
    tell_running(arguments, kept.iter().any(|path| files::is_drop_in(path)));
    Ok(Status::Done)
}

fn restore(disk: &str, before: &Knobs) -> anyhow::Result<()> {
    let device = device(disk)?;
    let attribute =
        |(key, value): (&String, &Value)| Some((knob_attribute(key)?, value.to_string()));
    let saved: Attributes = before.iter().filter_map(attribute).collect();
    let failed = Queue::new(&device.queue, &device.disk).restore(&saved);
    failed.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
}
