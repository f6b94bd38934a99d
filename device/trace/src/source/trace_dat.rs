// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `trace.dat`, the file of `trace-cmd record`, as the text that `trace-cmd report` makes of
//! it. `files` calls it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

/// The first bytes of such a file.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The number of bytes of trace-cmd's error output that are kept.
const COMPLAINT_BYTES: u64 = 4096;

const ABSENT: &str = "is a file of trace-cmd, which is not in PATH: install it (its package is called trace-cmd), \
    or read the output of `trace-cmd report -t` instead";
const NOTHING: &str = "trace-cmd report prints nothing: the file is damaged or incomplete";

/// The output of a running `trace-cmd report`. If it fails, the last read returns the error.
/// Dropping the value ends trace-cmd.
pub struct Report {
    child: Child,
    out: ChildStdout,
    complaint: File,
    is_empty: bool,
}

impl Report {
    /// Starts `trace-cmd report` (found in `PATH`) on the file.
    pub fn of(path: &Path) -> io::Result<Report> {
        // -t: print all digits of the time. The locale must not change the format of numbers.
        let mut command = Command::new("trace-cmd");
        // Standard input of this process is not that of trace-cmd.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        command.args(["report", "-t", "-i"]).arg(path).env("LC_ALL", "C");
        // A file in memory: a full pipe would block trace-cmd until it is read.
        let complaint: File = memfd_create("trace-cmd", MemfdFlags::CLOEXEC)?.into();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(complaint.try_clone()?);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => io::Error::other(ABSENT),
            _ => io::Error::other(format!("trace-cmd cannot be started: {error}")),
        })?;
        let out = child.stdout.take().ok_or_else(|| io::Error::other("trace-cmd has no output"))?;
        Ok(Report { child, out, complaint, is_empty: true })
    }

    fn end(&mut self) -> io::Result<usize> {
        let status = self.child.wait()?;
        self.complaint.rewind()?;
        let mut complaint = Vec::new();
        (&self.complaint).take(COMPLAINT_BYTES).read_to_end(&mut complaint)?;
        let complaint = String::from_utf8_lossy(&complaint);
        let lines: Vec<&str> =
            complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let failed = || format!("trace-cmd report failed ({status}): {}", lines.join("; "));
        match (status.success(), self.is_empty) {
            (true, false) => Ok(0),
            // trace-cmd may print nothing for a damaged file, and report success.
            (true, true) => Err(io::Error::other(NOTHING)),
            (false, _) => Err(io::Error::other(failed())),
        }
    }
}

impl Read for Report {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.out.read(buffer)? {
            0 => self.end(),
            bytes => {
                self.is_empty = false;
                Ok(bytes)
            }
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
