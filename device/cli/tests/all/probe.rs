// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `steady probe` refuses before it touches anything; what it finds is tested in the lab.

use std::ffi::OsStr;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs `steady probe`. Returns its exit status and its output.
fn probe<S: AsRef<OsStr>>(arguments: &[S]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady"));
    let output = command.current_dir(ROOT).arg("probe").args(arguments).output().unwrap();
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn profile() -> String {
    std::fs::read_to_string("../probe/tests/profile.toml").unwrap()
}

#[test]
fn what_is_no_block_device_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (status, said) = probe(&[file.path().as_os_str(), "--quick".as_ref()]);
    assert!(status == Some(2) && said.contains("a regular file"), "{said}");
}

fn compared(old: &str, new: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [("old.toml", old), ("new.toml", new)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let mut words: Vec<&OsStr> = vec!["--compare".as_ref(), one.as_ref(), other.as_ref()];
    words.extend(arguments.iter().map(OsStr::new));
    probe(&words)
}

#[test]
fn two_profiles_differ_where_a_time_has_changed() {
    let profile = profile();
    let aged = profile.replace("per_kib_ns = 15200", "per_kib_ns = 19000");
    assert_eq!(compared(&profile, &profile, &[]).0, Some(0));
    let (status, text) = compared(&profile, &aged, &[]);
    assert_eq!(status, Some(3));
    let line = text.lines().find(|line| line.starts_with("write.per_kib_ns")).unwrap();
    assert!(line.ends_with("differs") && text.ends_with("1 time differs\n"), "{text}");
    let (status, text) = compared(&profile, &aged, &["--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["differs"]), (Some(3), &true.into()));
    let (status, text) = compared(&profile, "schema = 1", &[]);
    assert!(status == Some(2) && text.contains("new.toml"), "{text}");
}

/// Exit status and output for a profile of this text.
fn judged(profile: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), profile).unwrap();
    let mut words: Vec<&OsStr> = vec!["--verdict".as_ref(), file.path().as_ref()];
    words.extend(arguments.iter().map(OsStr::new));
    probe(&words)
}

#[test]
fn a_verdict_says_whether_the_card_holds_a_rate() {
    let claiming = profile() + "\n[claims]\nkind = \"SD\"\nspeed_class = 10\n";
    let (status, page) = judged(&claiming, &["--rate", "50"]);
    assert_eq!(status, Some(0), "{page}");
    for part in
        ["holds 50 KiB/s with two blocks", "SD, class 10", "9765 KiB/s or more", "not tried"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (status, page) = judged(&claiming, &["--rate", "100000"]);
    assert!(status == Some(3) && page.contains("does not hold 100000 KiB/s, but "), "{page}");
    let (status, text) = judged(&claiming, &["--rate", "50", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["verdict"]["answer"]), (Some(0), &"holds".into()));
}

#[test]
fn a_page_says_that_the_times_of_some_sizes_are_too_long() {
    let with = |exact_kib: u64| {
        let keys = format!("[seen.write]\nexact_kib = {exact_kib}\nfaster_percent = 63\n");
        judged(&profile().replace("[seen.write]\n", &keys), &["--rate", "50"]).1
    };
    let larger = with(16);
    assert!(larger.contains("writes of more than 16 KiB take up to 63 % less"), "{larger}");
    let none = with(0);
    assert!(none.contains("on no line: some sizes take up to 63 % less"), "{none}");
    let page = judged(&profile(), &["--rate", "50"]).1;
    assert!(!page.contains("% less"), "{page}");
}

#[test]
fn a_rate_is_unknown_if_only_the_shortest_times_of_the_profile_hold_it() {
    let keys = "[seen.write]\nexact_kib = 16\nfaster_percent = 63\n";
    let striped = profile().replace("[seen.write]\n", keys);
    let (status, page) = judged(&striped, &["--rate", "50000"]);
    assert_eq!(status, Some(3), "{page}");
    for part in ["unknown for 50000 KiB/s: it writes ", "KiB/s or more in", "--block 16 or less"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (status, text) = judged(&striped, &["--rate", "50000", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["verdict"]["answer"]), (Some(3), &"unknown".into()));
    let (status, page) = judged(&striped, &["--rate", "1000000"]);
    assert!(status == Some(3) && page.contains("does not hold 1000000 KiB/s"), "{page}");
    let (status, page) = judged(&profile(), &["--rate", "50000"]);
    assert!(status == Some(3) && page.contains("does not hold 50000 KiB/s"), "{page}");
}

#[test]
fn a_page_asks_for_no_duration_that_a_probe_refuses() {
    let with = |seconds: u64, count: u64| {
        let seen = format!(
            "seconds = {seconds}\ndisturbed = 0\nbeyond_ns = 5_000_000\nbeyond_count = {count}\n\
             longer_ppm_max = 361.7\n"
        );
        let own = "seconds = 20\ndisturbed = 0\nbeyond_ns = 0\nbeyond_count = 0\nlonger_ppm_max = 361.7\n";
        assert!(profile().contains(own));
        judged(&profile().replace(own, &seen), &["--rate", "50"]).1
    };
    for (page, part) in [
        (with(20, 1), "; --duration 200s would meet enough of them to tell how often they come"),
        (with(43_200, 5), "; not even --duration 12h would meet enough of them"),
        (
            with(20, 50),
            "50 times in 20 s a write took up to 5 ms longer than these times allow, and a bound counts one of them",
        ),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_hostile_profile_has_no_verdict_but_an_error_with_line_and_range() {
    for (from, to, says) in [
        ("base_ns = 306700", "base_ns = 9_000_000_000_000_000_000", "line 19"),
        ("longest_ns = 10755800", "longest_ns = -1", "must be 0 to 600000000000"),
    ] {
        let (status, said) = judged(&profile().replace(from, to), &["--rate", "50"]);
        assert!(status == Some(2) && said.contains(says), "{said}");
    }
    let huge = "max_sectors_kb = 9_000_000_000_000_000";
    let huge = profile().replace("max_sectors_kb = 512", huge);
    let (status, page) = judged(&huge, &["--rate", "50"]);
    assert!(status == Some(0) && page.contains("holds 50 KiB/s with two blocks"), "{page}");
}

/// What a probe of a blank card adds to a profile.
const BLANK: &str = "
[full]
percent = 80

[deleting]
samples = 8192
deleted_kib = 524288
longest_ns = 912000000
kib_s = 21000

[verified]
written_kib = 62500000
right_kib = 62500000
";

#[test]
fn a_page_has_what_was_measured_on_a_blank_card() {
    let (status, page) = judged(&(profile() + BLANK), &["--rate", "10000"]);
    assert_eq!(status, Some(0), "{page}");
    for part in [
        "with a buffer of 92",
        "KiB/s if all pauses and deletions are as the worst ones",
        "10.8 ms for the longest of 8281 writes while 80 % of the card held data",
        "21000 KiB/s in blocks of 64 KiB, each durable, 912.0 ms for the longest of 8192, while 512 MiB",
        "all of 61035 MiB that were written",
        "not tried    a worn card, heat\n",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (_, text) = judged(&(profile() + BLANK), &["--rate", "10000", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["full"]["percent"], 80);
    assert_eq!(document["deleting"]["longest_ns"], 912_000_000);
    assert_eq!(document["verified"]["right_kib"], 62_500_000);
}

#[test]
fn a_card_that_lost_data_holds_no_rate() {
    let keys = "right_kib = 7864320\nwrong_at_kib = 0\nbelongs_at_kib = 55050240\n";
    let counterfeit = BLANK.replace("right_kib = 62500000\n", keys);
    let (status, page) = judged(&(profile() + &counterfeit), &["--rate", "50"]);
    assert_eq!(status, Some(3), "{page}");
    for part in [
        "loses data, and holds no rate",
        "only 7680 of 61035 MiB that were written: the card holds no more",
        "at 0 KiB, has what was written at 55050240 KiB",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn hostile_tables_of_a_blank_card_have_an_error_with_line_and_range() {
    for (from, to, line, says) in [
        ("percent = 80", "percent = 101", 69, "must be 1 to 100"),
        ("samples = 8192", "colour = 1", 72, "unknown field `colour`"),
        ("longest_ns = 912000000", "longest_ns = -1", 74, "must be 0 to 600000000000"),
        ("kib_s = 21000", "kib_s = 0", 75, "must be 1 to 1073741824"),
        ("right_kib = 62", "right_kib = 63", 79, "verified.right_kib = 63500000: must be 0 to"),
    ] {
        let (status, said) = judged(&(profile() + &BLANK.replace(from, to)), &["--rate", "50"]);
        let line = format!("line {line}");
        assert!(status == Some(2) && said.contains(says) && said.contains(&line), "{said}");
    }
}

#[test]
fn the_reference_page_shows_what_a_verdict_prints() {
    let page = std::fs::read_to_string(format!("{ROOT}/docs/reference/steady-probe.md")).unwrap();
    let (_, block) = page.split_once("```\n$ steady probe --verdict ").unwrap();
    let (arguments, rest) = block.split_once('\n').unwrap();
    let words: Vec<&str> = ["--verdict"].into_iter().chain(arguments.split(' ')).collect();
    let (_, said) = probe(&words);
    assert!(rest.starts_with(&(said.clone() + "```")), "{said}");
}

#[test]
fn without_measured_writes_there_is_no_verdict() {
    let mut profile: toml::Table = profile().parse().unwrap();
    profile.remove("write");
    let (status, text) = judged(&profile.to_string(), &["--rate", "50"]);
    assert!(status == Some(3) && text.contains("probe with --write"), "{text}");
}

#[test]
fn a_duration_has_limits() {
    let (status, said) = probe(&["/dev/null", "--duration", "13h"]);
    assert!(status == Some(2) && said.contains("must be 10s to 12h"), "{said}");
}
