// SPDX-License-Identifier: MIT OR Apache-2.0
//! The examples of the manual pages, and the pages in "SEE ALSO".

/// The examples of a page: the purpose and the command line of each.
pub fn examples_of(page: &str) -> &'static [(&'static str, &'static str)] {
    match page {
        "steady-apply" => &[
            (
                "Show the files that would be written for a task set:",
                "steady apply card.toml robot.toml --disk mmcblk0",
            ),
            (
                "Write them and set the knobs:",
                "steady apply card.toml robot.toml --disk mmcblk0 --yes",
            ),
            ("Restore the previous settings:", "steady apply --remove --disk mmcblk0 --yes"),
        ],
        "steady-examples" => &[
            ("List the installed examples:", "steady examples"),
            ("Copy a task set to change it:", "steady examples robot >tasks.toml"),
        ],
        "steady-bench" => &[
            (
                "Measure a workload and keep the record:",
                "steady bench --device /dev/mmcblk0 load.toml --out record.json",
            ),
            (
                "Check device, workload and fio only:",
                "steady bench --device /dev/mmcblk0 load.toml --check",
            ),
        ],
        "steady-bound" => &[(
            "Compute whether the tasks of a robot meet their deadlines:",
            "steady bound card.toml robot.toml",
        )],
        "steady-cat" => &[
            (
                "Print the last ten seconds of a topic:",
                "steady cat /data/recording --topics /imu --from -10s",
            ),
            ("Print everything as JSON:", "steady cat --json /data/recording"),
        ],
        "steady-completions" => &[(
            "Install the completions for bash:",
            "steady completions bash >/etc/bash_completion.d/steady",
        )],
        "steady-direct" => &[
            ("Hand a card to chario:", "steady direct bind mmc0:0001"),
            ("Read its first MiB:", "steady direct read /dev/chardisk0 first.bin --bytes 1M"),
            ("Return it to the block layer:", "steady direct unbind /dev/chardisk0"),
        ],
        "steady-doctor" => {
            &[("Find settings that break a bound on a card:", "steady doctor /dev/mmcblk0")]
        }
        "steady-export" => &[
            (
                "Export the last ten minutes of two topics:",
                "steady export /data/recording -o last.mcap --from -10min --topics /imu /odom",
            ),
            (
                "Make a bag for ros2 bag play, in files of about 1 GiB:",
                "steady export /data/recording --ros2 run-7 --split 1GiB",
            ),
            (
                "Export into a pipe, such as that of ssh, if the disk is full:",
                "steady export /data/recording -o -",
            ),
        ],
        "steady-incidents" => &[
            (
                "Keep the last minute of a running recording:",
                "steady incidents keep crash-1 --control /run/recorder.sock --last 1min",
            ),
            ("List what is kept:", "steady incidents list /data/recording"),
            ("Release it:", "steady incidents release crash-1 --control /run/recorder.sock"),
        ],
        "steady-info" => {
            &[("Show the contents of a recording, and its losses:", "steady info /data/recording")]
        }
        "steady-model" => &[(
            "Compute the throughput of 64 KiB requests with 40 us of software and 300 us of device:",
            "steady model --size 64K --pre-us 30 --device-us 300 --post-us 10",
        )],
        "steady-probe" => &[
            (
                "Measure reads and writes of a card in a minute, with a temporary file on /data:",
                "steady probe /dev/mmcblk0 --quick --write /data/probe --out card.toml",
            ),
            (
                "Fill and read back a card that may be overwritten, and measure it 80 % full:",
                "steady probe /dev/mmcblk0 --write /dev/mmcblk0 --blank --out card.toml",
            ),
            (
                "Print which times have changed since an earlier probe:",
                "steady probe --compare old.toml card.toml",
            ),
            (
                "Say whether the card holds 50 KiB/s, and with which buffer:",
                "steady probe --verdict card.toml --rate 50",
            ),
        ],
        "steady-record" => &[
            (
                "Record lines from a program, at most 100 ms lost in a power cut:",
                "steady record --dir /data/recording --input - --loss-window 100ms",
            ),
            (
                "Record lines of JSON, so that viewers decode them:",
                "steady record --dir /data/recording --input - --topic /pose --encoding json",
            ),
            (
                "Write only what came around an incident, to spare a worn card:",
                "steady record --dir /data/recording --input - --ram 256MiB --incident-last 30s",
            ),
            (
                "Find the ring that this device needs:",
                "steady record --dir /data/recording --plan --size 16KiB --period 5ms",
            ),
        ],
        "steady-recover" => &[
            (
                "Show the state of a recording after a power cut:",
                "steady recover --dry-run /data/recording",
            ),
            ("Complete it:", "steady recover /data/recording"),
        ],
        "steady-status" => {
            &[("Show a running recording:", "steady status --control /run/recorder.sock")]
        }
        "steady-store" => &[
            ("Create a store on a partition:", "steady store create /dev/mmcblk0p3"),
            ("Replace an extent:", "steady store put /dev/mmcblk0p3 7 image.bin"),
            ("Read it:", "steady store get /dev/mmcblk0p3 7 copy.bin"),
            ("Verify everything:", "steady store check /dev/mmcblk0p3"),
        ],
        "steady-trace" => &[
            (
                "Trace a program, and show its five slowest I/Os:",
                "steady trace -- dd if=/dev/mmcblk0 of=/dev/null bs=64k count=100",
            ),
            (
                "Wait for a request of more than 20 ms and keep its trace:",
                "steady trace --device /dev/mmcblk0 --trigger-above 20ms --keep slow",
            ),
            ("Read a trace of trace-cmd:", "steady trace trace.dat"),
        ],
        "steady-tune" => &[(
            "Most throughput with half of the p99.9 without a scheduler:",
            "steady tune /dev/mmcblk0 load.toml --tail-max 50% --knob rt_block_us",
        )],
        "steady-watch" => &[
            ("Print latencies every 10 s:", "steady watch mmcblk0 --interval 10s"),
            (
                "Export metrics for the node exporter:",
                "steady watch --quiet --openmetrics /var/lib/node_exporter/steady.prom",
            ),
        ],
        "steady-with" => &[(
            "Run a program under k2:",
            "steady with --device /dev/mmcblk0 --knob scheduler=k2 -- ./robot",
        )],
        _ => &[],
    }
}

/// The pages for the same task as a page, with their sections.
pub fn related_to(page: &str) -> &'static [&'static str] {
    match page {
        "steady" => &["k2(4)", "ionice(1)", "fio(1)"],
        "steady-apply" | "steady-bound" | "steady-probe" => {
            &["steady-probe(1)", "steady-bound(1)", "steady-apply(1)", "steady-watch(1)", "k2(4)"]
        }
        "steady-bench" | "steady-tune" => &["steady-bench(1)", "steady-tune(1)", "k2(4)", "fio(1)"],
        "steady-doctor" | "steady-with" | "steady-watch" => &["k2(4)", "ionice(1)"],
        "steady-cat" | "steady-export" | "steady-incidents" | "steady-info" | "steady-record"
        | "steady-recover" | "steady-status" => &[
            "steady-record(1)",
            "steady-recover(1)",
            "steady-status(1)",
            "steady-incidents(1)",
            "steady-info(1)",
            "steady-cat(1)",
            "steady-export(1)",
        ],
        "steady-model" => &["steady-trace(1)"],
        "steady-trace" => &["steady-model(1)", "trace-cmd(1)", "perf(1)", "blktrace(8)"],
        _ => &[],
    }
}
