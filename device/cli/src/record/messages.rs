// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of `steady record` while it prepares, and the exit status of an error.

use steadyio_bench::recording::session::SessionError;
use steadyio_core::diagnostic;
use steadyio_recorder::pool::StartError;
use steadyio_recorder::pool::segment::PoolError;

use crate::exit::{Failure, Status};

/// Prints a message about a long operation.
pub(super) fn note(text: String) {
    diagnostic!("steady: {text}");
}

/// The failure of the command for an error of a session.
pub(super) fn failure(error: SessionError) -> Failure {
    let status = match &error {
        SessionError::Start(StartError::Config(_) | StartError::Layout(_)) => Status::Usage,
        SessionError::Start(StartError::Pool(PoolError::Stopped)) => Status::Interrupted,
        _ => Status::Failed,
    };
    Failure { status, source: error.into() }
}
