// SPDX-License-Identifier: MIT OR Apache-2.0
//! `trace.dat`, the file of `trace-cmd record`, through `trace-cmd report`, which knows its formats.

use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use super::text::Text;
use super::{Position, Problem, ftrace_text};
use crate::event::Event;

/// How such a file begins.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// So much of what trace-cmd complains about is kept.
const COMPLAINT_BYTES: u64 = 4096;

const NOTHING: &str =
    "trace-cmd report prints nothing of it: it is damaged, or not all of it is there";

/// The events of a file, while trace-cmd runs. Dropping it ends trace-cmd.
pub struct TraceDat {
    text: Text<'static>,
    report: Report,
    file: String,
    ended: bool,
}

/// The running `trace-cmd report`.
struct Report {
    child: Child,
    complaint: Option<JoinHandle<String>>,
}

/// Starts `trace-cmd report` (found in `PATH`) on the file; the problem says why it could not be.
pub fn open(path: &Path) -> Result<TraceDat, Problem> {
    let file = path.display().to_string();
    let problem = |what| Problem { file: file.clone(), place: Position::Whole, what };
    // -t: all digits of the time. The locale must not change how numbers are printed.
    let mut command = Command::new("trace-cmd");
    command.args(["report", "-t", "-i"]).arg(path).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => problem(
            "is a file of trace-cmd, which is not in PATH: install it (its package is called trace-cmd), or read \
             the output of `trace-cmd report -t` instead"
                .to_owned(),
        ),
        _ => problem(format!("trace-cmd cannot be started: {error}")),
    })?;
    let out = child.stdout.take();
    // Somebody must read it: a full pipe would make trace-cmd wait for ever.
    let complaint = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let _ = (&mut pipe).take(COMPLAINT_BYTES).read_to_end(&mut kept);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
            String::from_utf8_lossy(&kept).into_owned()
        })
    });
    let report = Report { child, complaint };
    let Some(out) = out else { return Err(problem("trace-cmd has no output".to_owned())) };
    let text = ftrace_text::read(
        BufReader::with_capacity(1 << 16, out),
        &format!("{file} (trace-cmd report)"),
    );
    Ok(TraceDat { text, report, file, ended: false })
}

impl TraceDat {
    /// How many events were read that are not needed, so far.
    pub fn skipped(&self) -> u64 {
        self.text.skipped()
    }
}

impl Iterator for TraceDat {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.text.next() {
            return Some(item);
        }
        if self.ended {
            return None;
        }
        self.ended = true;
        // Of a damaged file, it may print nothing and call that a success.
        let nothing = || (self.text.lines_read() == 0).then(|| NOTHING.to_owned());
        let what = self.report.failure().or_else(nothing)?;
        Some(Err(Problem { file: self.file.clone(), place: Position::Whole, what }))
    }
}

impl Report {
    /// Waits for the end; why it failed, if it did.
    fn failure(&mut self) -> Option<String> {
        let complaint =
            self.complaint.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let complaint: Vec<&str> =
            complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match self.child.wait() {
            Ok(status) if status.success() => None,
            Ok(status) => {
                Some(format!("trace-cmd report failed ({status}): {}", complaint.join("; ")))
            }
            Err(error) => Some(format!("trace-cmd report cannot be waited for: {error}")),
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
