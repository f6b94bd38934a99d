// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady trace` of files: traces recorded elsewhere, or kept earlier.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_trace::follow::Options;
use steadyio_trace::source::capture::threads::AskedFor;
use steadyio_trace::source::capture::{Captured, Meta};
use steadyio_trace::source::files::{self, Files};

use super::arguments::Arguments;
use super::reading::{Followed, Reading, options_of};
use crate::exit::{Failure, Status};

const ALONE: &str = "is a kept trace (--keep), which must be the only argument";

pub fn read(arguments: &Arguments, stop: &Interrupt) -> Result<(Followed, Status), Failure> {
    let input = Input::open(arguments).map_err(Failure::with(Status::Usage))?;
    let number = arguments.pid.map(AskedFor::of_number);
    let asked_for = number.or_else(|| input.asked_for());
    let options = match &input {
        Input::Captured(captured) => options_of(captured),
        Input::Files(_) => Options { shows_close: true, ..Options::default() },
    };
    let mut reading = Reading::new(asked_for, options);
    let (all, skipped) = match input {
        Input::Captured(captured) => (reading.take_all(captured.events(), stop), 0),
        Input::Files(mut files) => (reading.take_all(files.by_ref(), stop), files.skipped()),
    };
    if !all {
        diagnostic!("steady: interrupted; the part read so far follows");
    }
    let found = Followed { skipped, ..reading.finish() };
    match (found.trace.account.events, &found.problems.first[..]) {
        (0, [problem, ..]) => {
            Err(Failure::with(Status::Usage)(anyhow!("no event could be read: {problem}")))
        }
        _ => Ok((found, if all { Status::Done } else { Status::Interrupted })),
    }
}

/// The description of a kept trace, if the argument is one.
pub fn kept(arguments: &Arguments) -> anyhow::Result<Option<Meta>> {
    match arguments.files.as_slice() {
        [only] if Captured::is_folder(only) => Ok(Some(Captured::open(only)?.meta)),
        _ => Ok(None),
    }
}

enum Input {
    Captured(Box<Captured>),
    Files(Box<Files>),
}

impl Input {
    fn open(arguments: &Arguments) -> anyhow::Result<Input> {
        let is_folder = |path: &&PathBuf| Captured::is_folder(path);
        match (arguments.files.iter().find(is_folder), arguments.files.len()) {
            (Some(folder), 1) => Ok(Input::Captured(Box::new(Captured::open(folder)?))),
            (Some(folder), _) => bail!("{}: {ALONE}", folder.display()),
            (None, _) => {
                let said = arguments.format.map(Into::into);
                Ok(Input::Files(Box::new(files::open(&arguments.files, said)?)))
            }
        }
    }

    /// The threads that were requested when it was captured.
    fn asked_for(&self) -> Option<AskedFor> {
        match self {
            Input::Captured(captured) => captured.asked_for(),
            Input::Files(_) => None,
        }
    }
}
