// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the account over time to a file. Durability tests compare it with the recovered records.
//! `steady record --account-log` writes it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use steadyio_recorder::ledger::Account;
use steadyio_recorder::source::now_ns;

/// The interval between two lines.
pub const LINE_EVERY: Duration = Duration::from_millis(1);

/// The file. Each line has the monotonic time in ns, then records received, written, durable and
/// lost.
pub struct AccountLog {
    file: File,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl AccountLog {
    /// Creates the file, or truncates it.
    pub fn create(path: &Path) -> io::Result<AccountLog> {
        Ok(AccountLog { file: File::create(path)?, failed: None })
    }

    /// Writes a line. The time is read after the account, so the counts were true at that time.
    pub fn line(&mut self, account: &Account) {
        if self.failed.is_some() {
            return;
        }
        let line = format!(
            "{} {} {} {} {}\n",
            now_ns(),
            account.received.records,
            account.written.records,
            account.durable.records,
            account.lost().records,
        );
        self.failed = self.file.write_all(line.as_bytes()).err();
    }

    /// Writes the last line. Returns the first error of any line.
    pub fn finish(mut self, account: &Account) -> io::Result<()> {
        self.line(account);
        self.failed.map_or(Ok(()), Err)
    }
}
