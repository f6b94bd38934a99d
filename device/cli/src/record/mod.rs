// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record`: record periodic data, or what other programs send.

mod account_log;
mod arguments;
mod input;
mod live;
mod named;
mod sizing;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use steadyio_bench::recording::recipes::flusher::FlusherError;
use steadyio_bench::recording::result::{End, RecordingResult};
use steadyio_bench::recording::session::{Live, Plan, SessionError};
use steadyio_core::interrupt::Interrupt;

use self::account_log::{AccountLog, LINE_EVERY};
pub use self::arguments::Arguments;
use self::arguments::Prepared;
use self::live::LiveLine;
use crate::bench::record_file;
use crate::exit::{Failure, Status};
use crate::output::print;

/// Between two updates of the live line.
const LIVE_EVERY: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    if arguments.sizing.plan {
        print(&arguments.size(&stop)?)?;
        return Ok(Status::Done);
    }
    let Some(Prepared { plan, source, rejected }) = arguments.prepare(&stop)? else {
        eprintln!(
            "steady: interrupted before the producers had declared their topics; nothing was recorded"
        );
        return Ok(Status::Interrupted);
    };
    let out = arguments.out.as_deref().map(record_file).transpose()?;
    let create = |path: &Path| {
        AccountLog::create(path).with_context(|| format!("--account-log {}", path.display()))
    };
    let log = arguments.account_log.as_deref().map(create).transpose();
    let mut log = log.map_err(Failure::with(Status::Failed))?;
    let mut note = |text| eprintln!("steady: {text}");
    let mut line = LiveLine::new();
    let live = std::io::stderr().is_terminal() && !arguments.quiet;
    let every = if log.is_some() { LINE_EVERY } else { LIVE_EVERY };
    let mut tell = |now: &Live| {
        if let Some(log) = &mut log {
            log.line(&now.account);
        }
        if live {
            line.show_every(LIVE_EVERY, now);
        }
    };
    let watch = (live || arguments.account_log.is_some())
        .then_some((every, &mut tell as &mut dyn FnMut(&Live)));
    let outcome = plan.record(source, &stop, &mut note, watch);
    line.end();
    let result = RecordingResult::new(&plan, &outcome.map_err(failure)?);
    if let Some(log) = log {
        let finished = log.finish(result.total());
        finished.context("--account-log").map_err(Failure::with(Status::Failed))?;
    }
    let json = result.to_json().map_err(Failure::with(Status::Failed))?;
    if let Some(file) = out {
        file.finish(&json).context("--out").map_err(Failure::with(Status::Failed))?;
    }
    print(&if arguments.json { json } else { result.to_text() })?;
    Ok(status(&plan, &result, rejected.load(Ordering::Relaxed)))
}

fn failure(error: SessionError) -> Failure {
    use steadyio_recorder::pool::StartError;
    use steadyio_recorder::pool::files::PoolError;
    let status = match &error {
        SessionError::Start(StartError::Config(_) | StartError::Layout(_))
        | SessionError::Endless(_)
        | SessionError::Flusher(FlusherError::Refused { .. }) => Status::Usage,
        SessionError::Start(StartError::Pool(PoolError::Stopped)) => Status::Interrupted,
        _ => Status::Failed,
    };
    Failure { status, source: error.into() }
}

fn status(plan: &Plan, result: &RecordingResult, rejected: u64) -> Status {
    if let Some(trouble) = result.trouble() {
        eprintln!("steady: {trouble}");
    }
    let lost = result.total().lost().records;
    if lost > 0 {
        eprintln!("steady: {lost} records were lost");
    }
    match result.end() {
        End::Failed => Status::Failed,
        // Without an end of its own, a signal is how a recording ends.
        End::Interrupted if plan.total_bytes.is_some() => Status::Interrupted,
        _ if lost > 0 || rejected > 0 => Status::Flawed,
        _ => Status::Done,
    }
}
