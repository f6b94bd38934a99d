// SPDX-License-Identifier: MIT OR Apache-2.0
//! `steady record`: records periodic data, or data from other programs.

mod account_log;
mod arguments;
mod encoding;
mod input;
mod live;
mod messages;
mod named;
mod notify;
mod peek;
mod pool;
mod rate;
mod signal;
mod sizing;
mod state;
mod viewer;

use std::cell::RefCell;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use steadyio_bench::recording::result::{End, RecordingResult};
use steadyio_bench::recording::session::{Live, Plan, Watch};
use steadyio_core::diagnostic;
use steadyio_core::interrupt::Interrupt;
use steadyio_recorder::control::server::ControlServer;
use steadyio_recorder::control::socket::ControlSocket;
use steadyio_recorder::ledger::Account;
use steadyio_recorder::pool::Recorder;
use steadyio_recorder::pool::meters::RecordingState;

use self::account_log::{AccountLog, LINE_EVERY};
pub use self::arguments::Arguments;
use self::arguments::Prepared;
use self::live::LiveLine;
use self::messages::{failure, note};
use self::notify::Notifier;
use self::rate::RateWatch;
use self::signal::IncidentSignal;
use self::state::StateTeller;
use crate::bench::record_file;
use crate::exit::{Failure, Status};
use crate::output::{print, print_done};

/// The interval between updates of the live line.
const LIVE_EVERY: Duration = Duration::from_millis(500);

pub fn run(arguments: &Arguments) -> Result<Status, Failure> {
    let stop = Interrupt::on_signals().map_err(Failure::with(Status::Failed))?;
    if arguments.sizing.plan {
        print(&arguments.size(&stop)?)?;
        return Ok(Status::Done);
    }
    if arguments.prepare {
        print_done(&pool::resize(&arguments.pool()?, arguments.json, &stop)?);
        return Ok(Status::Done);
    }
    arguments.check_outputs().map_err(Failure::with(Status::Usage))?;
    let mut incidents = IncidentSignal::new().map_err(Failure::with(Status::Failed))?;
    // Before anything is created: whether the socket can be bound.
    let control = arguments.control.as_deref().map(ControlSocket::bind).transpose();
    let mut control = control.context("--control").map_err(Failure::with(Status::Usage))?;
    // It may fail, too.
    let viewer = arguments.viewer(&stop)?;
    let Some(Prepared { plan, source, pool, rejected }) = arguments.prepare(&stop)? else {
        diagnostic!(
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
    let line = RefCell::new(LiveLine::new());
    let live = std::io::stderr().is_terminal() && !arguments.quiet;
    let every = if log.is_some() { LINE_EVERY } else { LIVE_EVERY };
    let mut tell = |now: &Live| {
        if let Some(log) = &mut log {
            log.line(&now.account);
        }
        if live {
            line.borrow_mut().show_every(LIVE_EVERY, now);
        }
    };
    let mut teller = StateTeller::new(Notifier::from_environment());
    let mut state = |now: &RecordingState, account: &Account| {
        line.borrow_mut().end();
        teller.tell(now, account);
    };
    let every = (live || arguments.account_log.is_some()).then_some(every);
    let (mut server, mut rates) = (None, None);
    let mut started = |recorder: &Recorder| {
        let serve = |socket| ControlServer::start(socket, recorder.control());
        server = control.take().map(serve).transpose()?;
        let (keeper, last) = (recorder.keeper(), arguments.incident_last());
        let registry = Arc::clone(recorder.registry());
        rates =
            Some(RateWatch::start(&arguments.incident_rate, registry, Arc::clone(keeper), last)?);
        incidents.serve(Arc::clone(keeper), last)
    };
    let mut watch = Watch { started: &mut started, every, tell: &mut tell, state: &mut state };
    let outcome = plan.record(source, pool, &stop, &mut note, Some(&mut watch));
    drop((server, incidents, rates, viewer));
    line.borrow_mut().end();
    let result = RecordingResult::new(&plan, &outcome.map_err(failure)?);
    if let Some(log) = log {
        let finished = log.finish(result.total());
        let context = || named_path("--account-log", arguments.account_log.as_deref());
        finished.with_context(context).map_err(Failure::with(Status::Failed))?;
    }
    let json = result.to_json().map_err(Failure::with(Status::Failed))?;
    if let Some(file) = out {
        let context = || named_path("--out", arguments.out.as_deref());
        file.finish(&json).with_context(context).map_err(Failure::with(Status::Failed))?;
    }
    print_done(&if arguments.json { json } else { result.to_text() });
    Ok(status(&plan, &result, rejected.load(Ordering::Relaxed)))
}

fn named_path(option: &str, path: Option<&Path>) -> String {
    format!("{option} {}", path.unwrap_or(Path::new("")).display())
}

fn status(plan: &Plan, result: &RecordingResult, rejected: u64) -> Status {
    let (total, not_durable) = (result.total(), result.not_durable());
    // A failure that ended without a loss was reported at the time.
    let is_over = result.end() != End::Failed && not_durable == 0 && !result.lacks_segments();
    if let Some(trouble) = result.trouble().filter(|_| !is_over) {
        diagnostic!("steady: {trouble}");
    }
    if not_durable > 0 {
        let (received, lost) = (total.received.records, total.lost().records);
        diagnostic!(
            "steady: {not_durable} of {received} records are not durable; {lost} were lost"
        );
        if total.lost_ram_full.records > 0 {
            diagnostic!(
                "steady: {} records of incidents had left the memory: --ram is too small",
                total.lost_ram_full.records
            );
        }
        if result.too_long() > 0 {
            diagnostic!("steady: {} records are longer than their topic allows", result.too_long());
        }
    }
    let missing = result.missing_messages();
    if missing > 0 {
        diagnostic!("steady: {missing} messages that were durable are missing");
    }
    match result.end() {
        End::Failed if result.device_failed() => Status::DeviceFailed,
        End::Failed => Status::Failed,
        End::Full => Status::Full,
        // A signal is the regular end of a recording that has no other.
        End::Interrupted if plan.total_bytes.is_some() => Status::Interrupted,
        _ if not_durable > 0 || rejected > 0 || missing > 0 => Status::Flawed,
        _ => Status::Done,
    }
}
