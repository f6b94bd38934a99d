// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that cannot be used are rejected; the error names the key, the value and the allowed
//! values.

use steadyio_bound::device::{Device, Op};
use steadyio_bound::tasks::TaskSet;

use super::with_k2;

const TASK: &str = "[[task]]\nname = \"a\"\nop = \"read\"\nkib = 4\nlevel = 0\nperiod_us = 1_000\n";

fn refused(text: &str) -> String {
    TaskSet::parse(&with_k2("inflight_max = 1", text)).unwrap_err().to_string()
}

#[test]
fn values_out_of_range_are_refused() {
    for (from, to, part) in [
        ("level = 0", "level = 8", "8 is out of range: must be 0 to 7"),
        ("kib = 4", "kib = 0", "0 is out of range: must be 1 to 65536"),
        (
            "period_us = 1_000",
            "period_us = 1_000\njitter_us = 501",
            "jitter_us = 501: must be at most half",
        ),
        ("kib = 4", "kib = 4\ndurable = true", "durable: only with op = \"write\""),
        ("name = \"a\"", "name = \"\"", "name of task = \"\": must be 1 to 64"),
        ("kib = 4", "kib = 4\nthread = \"0123456789abcdef\"", "must be 1 to 15 bytes"),
        ("kib = 4", "kib = 4\nthread = \"x\"\ncpu_us = 5", "cpu_us = 5 and thread = \"x\": only"),
        ("kib = 4", "kib = 4\ncolour = 1", "unknown field `colour`"),
        ("kib = 4", "kib = 4\nservice = \"../x.service\"", "service = \"../x.service\": must be"),
        ("kib = 4", "kib = 4_097\nlane = true", "kib = 4097: must be at most 4096 with lane"),
        (
            "kib = 4",
            "kib = 4\nlane = true\nios = 2\nat_once = 2",
            "at_once = 2: must be 1 with lane",
        ),
        ("kib = 4", "kib = 4\nlane = true\nblock_us = 400", "block_us: not with lane"),
    ] {
        let text = refused(&TASK.replace(from, to));
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_kernel_without_a_release_is_refused() {
    for kernel in ["banana", "", "v6.1", "6", "6."] {
        let text = refused(&format!("host = {{ kernel = \"{kernel}\" }}\n{TASK}"));
        assert!(text.contains("must be a release such as \"6.12\""), "{kernel}: {text}");
    }
}

#[test]
fn declarations_that_k2_rejects_are_refused() {
    let refused = |block_us: u64, text: &str| {
        let knobs = format!("inflight_max = 1\nrt_block_us = {block_us}");
        let set = TaskSet::parse(&with_k2(&knobs, text)).unwrap();
        super::card("").check(&set).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(116, TASK), "");
    let text = refused(115, TASK);
    assert!(text.contains("rt_block_us = 115: must be at least 116"), "{text}");
    let text = refused(400, &format!("{TASK}block_us = 100\n"));
    assert!(text.contains("task a: block_us = 100: must be at least 116"), "{text}");
    let text = refused(400, &format!("{TASK}jitter_us = 500\n"));
    assert!(text.contains("period_us = 1000: must be above 1001 with rt_block_us"), "{text}");
    let text = refused(400, &format!("{TASK}cpu_us = 334\n"));
    assert!(text.contains("2 jitter_us = 334 and think_us = 669"), "{text}");
    let task = |number: u64| TASK.replace("\"a\"", &format!("\"a{number}\""));
    let text = refused(400, &(0..33).map(task).collect::<String>());
    assert!(text.contains("33 tasks with rt_block_us: k2 takes at most 32"), "{text}");
    assert_eq!(refused(400, &(0..32).map(task).collect::<String>()), "");
}

#[test]
fn what_the_device_cannot_do_names_the_line_of_the_task_set() {
    let error = |knobs: &str, text: &str, card: &Device| {
        let text = with_k2(knobs, text);
        let set = TaskSet::parse(&text).unwrap();
        card.check_file(&set, &text).unwrap_err().to_string()
    };
    let cached = super::card("cache = { kib = 512 }");
    let durable = TASK.replace("op = \"read\"", "op = \"write\"\ndurable = true");
    let low = error("inflight_max = 1", &durable.replace("level = 0", "level = 3"), &cached);
    assert!(low.starts_with("line 8: task a: durable = true, level = 3: must be level 0"), "{low}");
    let several = error("inflight_max = 2", &durable, &cached);
    assert!(several.starts_with("line 14: task a: durable = true, inflight_max = 2"), "{several}");
    let short = error("inflight_max = 1\nrt_block_us = 115", TASK, &super::card(""));
    assert!(short.starts_with("line 14: task a: rt_block_us = 115: must be at least"), "{short}");
    let background = format!("background = {{ op = \"write\", kib = 4 }}\n{TASK}");
    let unknown = error("inflight_max = 1", &background, &cached);
    assert!(unknown.starts_with("line 3: background: durable = true: depends on"), "{unknown}");
}

#[test]
fn a_task_that_relies_on_a_trace_is_refused_with_its_line() {
    let text = with_k2("inflight_max = 1", &format!("{TASK}thread = \"x\"\n"));
    let error = TaskSet::parse(&text).unwrap().check_cpu_stated(&text).unwrap_err().to_string();
    assert!(error.starts_with("line 9: task a: thread = \"x\": needs --cpu-from"), "{error}");
}

#[test]
fn two_levels_of_one_service_are_refused() {
    let served = format!("{TASK}service = \"s.service\"\n");
    let other = served.replace("\"a\"", "\"b\"").replace("level = 0", "level = 1");
    let error = refused(&format!("{served}{other}"));
    let wanted =
        "line 14: task b: level = 1, but another task of s.service has 0: a service has one";
    assert_eq!(error, wanted);
}

#[test]
fn more_tags_than_a_queue_can_have_are_not_advised() {
    let batch = TASK.replace("kib = 4", "kib = 4\nios = 9_000\nat_once = 9_000");
    let error = refused(&format!("background = {{ op = \"read\", kib = 4 }}\n{batch}"));
    assert!(error.contains("may need 9000 at once: state a smaller at_once"), "{error}");
}

/// The fixture without a table.
fn profile_without(table: &str) -> Device {
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    let mut profile: toml::Table = profile.parse().unwrap();
    profile.remove(table);
    Device::parse(&profile.to_string()).unwrap()
}

#[test]
fn a_bound_counts_no_discard_or_flush_that_was_not_measured() {
    let refused = |device: &Device, background: &str| {
        let text = format!("background = {{ op = \"read\", kib = 4, {background} }}\n{TASK}");
        let set = TaskSet::parse(&with_k2("inflight_max = 1", &text)).unwrap();
        device.check(&set).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let (discards, flushes) = ("discard_kib = 64", "flush_distance_us_min = 9_000");
    let error = refused(&profile_without("erase"), discards);
    assert!(error.contains("discard_kib = 64: must be 0, as ncemad has no [erase]"), "{error}");
    assert_eq!(refused(&super::card(""), discards), "", "a spec has defaults");
    let error = refused(&profile_without("write"), flushes);
    assert!(error.contains("flush_distance_us_min = 9000: must be absent, as ncemad"), "{error}");
    assert_eq!(refused(&profile_without("erase"), flushes), "", "it has no volatile cache");
}

#[test]
fn a_pause_that_a_long_probe_met_a_few_times_has_a_bound() {
    // 7 s, each 1.75 h.
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    let rare = profile
        .replace(
            "pause_kib = 4101\npause_ns = 2292100",
            "pause_kib = 63_000_000\npause_ns = 7_000_000_000",
        )
        .replace(
            "pause_kib_min = 3580\npause_ns_max = 2297000",
            "pause_kib_min = 60_000_000\npause_ns_max = 7_000_000_000",
        );
    Device::parse(&rare).unwrap();
}

#[test]
fn two_tasks_of_one_name_are_refused() {
    assert!(refused(&format!("{TASK}{TASK}")).contains("task a: name appears twice"));
}

#[test]
fn tasks_that_may_find_no_tag_are_refused() {
    let text = format!(
        "background = {{ op = \"read\", kib = 4 }}\n{}",
        TASK.replace("kib = 4", "kib = 4608")
    );
    assert!(
        refused(&text)
            .contains("nr_requests = 64: keeps 8 tags for real-time, and the tasks may need 9")
    );
}

#[test]
fn a_card_that_stalls_or_gets_hot_has_no_bound_and_runs_change_none() {
    let card = std::fs::read_to_string("../../experiments/devices/test-slow-sd.toml").unwrap();
    for (table, text) in [
        ("stall", "[stall]\nperiod_us = 10_000_000\nlow_us = 1_000\nhigh_us = 2_000\n"),
        ("heat", "[heat]\nafter_us = 60_000_000\npercent = 200\n"),
    ] {
        let error = Device::parse(&format!("{card}{text}")).unwrap_err().to_string();
        assert!(
            error.contains(&format!("no bound is known for a device with [{table}]")),
            "{error}"
        );
    }
    assert!(Device::parse(&card.replace("pause_kib", "runs = 4\npause_kib")).is_ok());
    assert!(Device::parse(&card.replace("pause_kib", "runs = 17\npause_kib")).is_err());
}

#[test]
fn a_drive_whose_times_depend_on_its_past_has_no_bound() {
    let text = std::fs::read_to_string("../../experiments/devices/samsung-970-evo-plus-250gb.toml");
    let error = Device::parse(&text.unwrap()).unwrap_err().to_string();
    assert!(error.contains("kind = \"nvme\": no bound is known for an SSD"), "{error}");
    let card = std::fs::read_to_string("../../experiments/devices/foresee-ncemad9d-usb.toml");
    let profile = |disk: &str| {
        let text = card.as_ref().unwrap().replace("steadyio.device/1", "steadyio.profile/1");
        let limits = "[seen.write]\npause_kib_min = 4000\npause_ns_max = 3_000_000\n";
        Device::parse(&format!("{text}\n{limits}[probe]\ndisk = \"{disk}\"\n"))
    };
    profile("mmcblk0").unwrap();
    let error = profile("nvme0n1").unwrap_err().to_string();
    assert!(error.contains("probe.disk = \"nvme0n1\": no bound is known for an SSD"), "{error}");
}

#[test]
fn a_profile_needs_limits_where_its_times_are_usual_ones() {
    let text = |write: &str, seen: &str| {
        format!(
            "schema = \"steadyio.profile/1\"\nname = \"card\"\ncard = {{ capacity_mib = 256 }}\n\
             read = {{ base_ns = 100_000, per_kib_ns = 4_000 }}\nwrite = {{ {write}, per_kib_ns = 1 }}\n{seen}"
        )
    };
    let error = |text: &str| Device::parse(text).unwrap_err().to_string();
    let unmeasured = error(&text("base_ns = 0", ""));
    assert!(unmeasured.contains("line 5: write.base_ns = 0: was not measured"), "{unmeasured}");
    let paused = "base_ns = 1, pause_kib = 64, pause_ns = 9";
    let usual = error(&text(paused, ""));
    assert!(usual.contains("seen.write.pause_kib_min and pause_ns_max are missing"), "{usual}");
    Device::parse(&text(paused, "[seen.write]\npause_kib_min = 60\npause_ns_max = 10\n")).unwrap();
}

#[test]
fn a_durable_background_needs_a_kernel_that_shows_its_writes_to_k2() {
    let background = "background = { op = \"write\", kib = 4 }\n";
    let check = |kernel: &str| {
        let text = with_k2("inflight_max = 1", &format!("{background}{kernel}\n{TASK}"));
        let error = super::card("cache = { kib = 512 }").check(&TaskSet::parse(&text).unwrap());
        error.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(check("").contains("durable = true: depends on the kernel, state host.kernel"));
    assert!(
        check("host = { kernel = \"6.1.0-50-amd64\" }").contains("its writes with FUA bypass k2")
    );
    for old in ["6.6.1", "5.15", "4.19.0-rc1", "6.1+"] {
        let text = check(&format!("host = {{ kernel = \"{old}\" }}"));
        assert!(text.contains("its writes with FUA bypass k2"), "{old}: {text}");
    }
    for new in ["6.12", "6.12.3-rt", "7.0-rc1"] {
        assert_eq!(check(&format!("host = {{ kernel = \"{new}\" }}")), "");
    }
}

#[test]
fn durable_writes_beside_what_their_flushes_would_pass_are_refused() {
    let durable = TASK.replace("op = \"read\"", "op = \"write\"\ndurable = true");
    let reads = TASK.replace("\"a\"", "\"b\"");
    let flushes = "background = { op = \"write\", kib = 4, durable = false, \
                   flush_distance_us_min = 1_000 }\n";
    let several = with_k2("inflight_max = 2", &durable);
    let set = TaskSet::parse(&several).unwrap();
    let error = super::card("cache = { kib = 512 }").check(&set).unwrap_err().to_string();
    assert!(error.contains("task a: durable = true, inflight_max = 2: must be 1"), "{error}");
    for (text, part) in [
        (durable.replace("level = 0", "level = 3"), "task a: durable = true, level = 3: must be"),
        (format!("{durable}{reads}"), "task b: level = 0: must be 1 or more"),
        (format!("{flushes}{durable}"), "flush_distance_us_min = 1000: no bound is known"),
    ] {
        let set = TaskSet::parse(&with_k2("inflight_max = 1", &text)).unwrap();
        super::card("").check(&set).unwrap();
        let error = super::card("cache = { kib = 512 }").check(&set).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("card has a volatile cache"), "{error}");
    }
}

#[test]
fn every_card_of_the_lab_can_be_read() {
    let mut cards = 0;
    for entry in std::fs::read_dir("../../experiments/devices").unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if text.contains("kind = \"nvme\"") || text.contains("[[fault]]") {
            continue;
        }
        let device = Device::parse(&text);
        // No bound is known for those that stall or get hot.
        if let Some(key) =
            ["stall", "heat"].into_iter().find(|key| text.contains(&format!("[{key}]")))
        {
            assert!(device.err().unwrap().to_string().contains(&format!("with [{key}]")));
            continue;
        }
        device.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        cards += 1;
    }
    assert!(cards >= 8);
}

#[test]
fn a_disk_behind_a_scsi_host_has_the_bound_of_its_slots() {
    let card = |name: &str| {
        std::fs::read_to_string(format!("../../experiments/devices/{name}.toml")).unwrap()
    };
    let scsi = card("foresee-ncemad9d-scsi");
    let set = TaskSet::parse(&with_k2("inflight_max = 1", TASK)).unwrap();
    assert!(!Device::parse(&scsi).unwrap().overlaps_durable(&set));
    let several = scsi.replace("slots = 1", "slots = 8");
    assert!(Device::parse(&several).unwrap().overlaps_durable(&set), "they overlap");
    let error = Device::parse(&scsi.replace("slots = 1", "slots = 33")).unwrap_err().to_string();
    assert!(error.contains("33 is out of range: must be 1 to 32"), "{error}");
}

/// What a probe wrote, with one line replaced.
fn probed(from: &str, to: &str) -> Result<Device, String> {
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    assert!(profile.contains(from), "{from}");
    Device::parse(&profile.replacen(from, to, 1)).map_err(|error| error.to_string())
}

#[test]
fn a_profile_that_contradicts_itself_is_refused_with_line_key_and_range() {
    probed("schema", "schema").unwrap();
    for (from, to, parts) in [
        (
            "length_us = 49686",
            "length_us = 989212",
            ["line 29: slow.length_us = 989212", "must be 0 to 741906"],
        ),
        (
            "longest_ns = 6074880",
            "longest_ns = 5_000_000_000",
            ["line 33: seen.read.longest_ns = 5000000000", "must be at most 7"],
        ),
        (
            "longest_ns = 10755800",
            "longest_ns = 5_000_000_000",
            ["line 44: seen.write.longest_ns = 5000000000", "what [write] and beyond_ns = 0 allow"],
        ),
        ("jitter_ns = 6262", "jitter_ns = 113187", ["line 16", "must be at most base_ns = 113186"]),
        (
            "pause_kib = 4101",
            "pause_kib = 0",
            ["line 24: write.pause_kib = 0", "must be at least 1"],
        ),
        (
            "pause_kib_min = 3580",
            "pause_kib_min = 4102",
            ["line 52", "must be 0 to pause_kib = 4101"],
        ),
        ("pause_ns_max = 2297000", "pause_ns_max = 1", ["line 53", "must be at least pause_ns"]),
        ("base_ns = 113186", "base_ns = 0", ["line 12: read.base_ns = 0", "was not measured"]),
        ("samples = 12586", "samples = 0", ["line 32: seen.read.samples = 0", "at least 1"]),
        (
            "name = \"ncemad\"",
            "name = \"\\u001b[2J\"",
            ["line 3: name of the device", "must be 1 to 64"],
        ),
        ("beyond_ns = 0", "beyond_ns = -1", ["line 36", "must be 0 to 600000000000"]),
        ("base_ns = 113186", "base_ns = 1e5", ["line 12", "a whole number from 0 to"]),
        (
            "period_us = 989211",
            "period_us = 86_400_000_001",
            ["line 28", "must be 0 to 86400000000"],
        ),
        ("samples = 8281", "samples = -1", ["line 43", "-1 is out of range: must be 0 to 9223"]),
        ("size_bytes = 63", "size_bytes = -63", ["line 64", "must be 0 to 9223"]),
        ("capacity_mib = 61035", "units = 17", ["line 9", "17 is out of range: must be 0 to 16"]),
    ] {
        let error = probed(from, to).unwrap_err();
        let is_whole = parts.iter().all(|part| error.contains(part));
        assert!(is_whole, "{to}: {error}, not {parts:?}");
    }
}

#[test]
fn what_only_a_blank_card_shows_changes_no_bound() {
    let blank = "[full]\npercent = 80\n[deleting]\nsamples = 9\ndeleted_kib = 16384\nlongest_ns = \
                 9_000_000\nkib_s = 21000\n[verified]\nwritten_kib = 8\nright_kib = 4\n[probe]";
    let with = probed("[probe]", blank).unwrap();
    let without = probed("schema", "schema").unwrap();
    let command = |device: &Device| device.command(Op::Write, 512).ns;
    assert_eq!(command(&with), command(&without));
    let error = probed("[probe]", &blank.replace("= 4\n", "= 12\n")).unwrap_err();
    assert!(error.contains("verified.right_kib = 12: must be 0 to written_kib = 8"), "{error}");
}

#[test]
fn a_card_that_pauses_for_seven_seconds_has_a_bound() {
    let pauses = "pause_kib = 65536\npause_ns = 7_000_000_000";
    let seen = "pause_kib_min = 60000\npause_ns_max = 7_100_000_000";
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    let profile = profile
        .replace("pause_kib = 4101\npause_ns = 2292100", pauses)
        .replace("pause_kib_min = 3580\npause_ns_max = 2297000", seen)
        .replace("longest_ns = 10755800", "longest_ns = 7_110_000_000");
    let device = Device::parse(&profile).unwrap();
    let task = TASK.replace("read", "write").replace("1_000", "20_000_000");
    let set = TaskSet::parse(&with_k2("inflight_max = 1", &task)).unwrap();
    let bound_us = super::bounds_us(&device, &set)[0].unwrap();
    assert!((7_100_000..7_102_000).contains(&bound_us), "{bound_us}");
}

#[test]
fn a_contradiction_between_keys_of_a_task_names_its_line() {
    let second = TASK.replace("\"a\"", "\"b\"").replace("1_000", "1_000\njitter_us = 501");
    let error = refused(&format!("{TASK}{second}"));
    assert!(error.starts_with("line 15: task b: jitter_us = 501: must be at most half"), "{error}");
    let error = TaskSet::parse(&with_k2("inflight_max = 1", "task = []")).unwrap_err().to_string();
    assert_eq!(error, "line 3: 0 tasks: must be 1 to 256");
}

#[test]
fn a_profile_of_an_ssd_has_times_but_no_bound() {
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    let profile = profile.replace("disk = \"mmcblk0\"", "disk = \"nvme0n1\"");
    assert!(Device::parse_any(&profile).is_ok());
    let error = Device::parse(&profile).unwrap_err().to_string();
    assert!(error.starts_with("line 62: probe.disk = \"nvme0n1\": no bound is known"), "{error}");
}

#[test]
fn a_profile_may_have_the_claims_of_its_card() {
    let profile = std::fs::read_to_string("../probe/tests/profile.toml").unwrap();
    let claiming = profile + "\n[claims]\nkind = \"SD\"\nspeed_class = 10\n";
    assert!(Device::parse(&claiming).is_ok());
}
