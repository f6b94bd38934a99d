// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that cannot be used are refused with key, value and what is allowed.

use steadyio_bound::device::Device;
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
    ] {
        let text = refused(&TASK.replace(from, to));
        assert!(text.contains(part), "{text}");
    }
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
    assert!(unmeasured.contains("write.base_ns = 0: was not measured"), "{unmeasured}");
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
    assert_eq!(check("host = { kernel = \"6.12\" }"), "");
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
        Device::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        cards += 1;
    }
    assert!(cards >= 8);
}
