// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that answers requests on the socket. `steady record` and `capi` start it.
//!
//! A request is one line, and so is the answer; then the connection is closed. A client that sends
//! no line, or does not read, blocks one of a few connections for a while. The recorder never waits
//! for this thread.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};
use serde_json::Value;

use super::socket::ControlSocket;
use super::{Answer, Control};

/// The number of connections at a time. Further clients wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 16;
/// The longest line of a request.
const REQUEST_BYTES_MAX: usize = 4_096;
/// The time limit for the request, and again for sending the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval at which the thread checks whether to end.
const LOOK: Duration = Duration::from_millis(200);
/// The interval at which it checks for an answer.
const LOOK_FOR_ANSWER: Duration = Duration::from_millis(10);

/// The running server. Dropping it ends the thread.
#[derive(Debug)]
pub struct ControlServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Connection {
    stream: UnixStream,
    since: Instant,
    request: Vec<u8>,
    state: State,
}

enum State {
    Receiving,
    /// Another thread computes the answer.
    Waiting(Receiver<Value>),
    /// The unsent part of the answer.
    Sending(Vec<u8>),
}

impl State {
    fn send(answer: &Value) -> State {
        State::Sending(format!("{answer}\n").into_bytes())
    }
}

impl ControlServer {
    pub fn start(socket: ControlSocket, control: Control) -> io::Result<ControlServer> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Builder::new().name("steady-control".into());
        let thread = thread.spawn(move || serve(&socket, &control, &stopped))?;
        Ok(ControlServer { stop, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

fn serve(socket: &ControlSocket, control: &Control, stop: &AtomicBool) {
    let mut connections: Vec<Connection> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if wait(socket, &connections).is_err() {
            thread::sleep(LOOK);
        }
        if connections.len() < CONNECTIONS_MAX {
            connections.extend(accept(socket));
        }
        connections.retain_mut(|one| one.has_time() && one.go_on(control));
    }
}

/// Waits until something can be done, or until it is time to check whether to end.
fn wait(socket: &ControlSocket, connections: &[Connection]) -> io::Result<()> {
    let (mut fds, mut look) = (Vec::with_capacity(CONNECTIONS_MAX + 1), LOOK);
    for connection in connections {
        match connection.state {
            State::Receiving => fds.push(PollFd::new(&connection.stream, PollFlags::IN)),
            State::Sending(_) => fds.push(PollFd::new(&connection.stream, PollFlags::OUT)),
            State::Waiting(_) => look = LOOK_FOR_ANSWER,
        }
    }
    if connections.len() < CONNECTIONS_MAX {
        fds.push(PollFd::new(socket.listener(), PollFlags::IN));
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: look.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Accepts a connection; None without a client, or if too many files are open. Then it tries again
/// later.
fn accept(socket: &ControlSocket) -> Option<Connection> {
    match socket.listener().accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true).ok()?;
            let (since, state) = (Instant::now(), State::Receiving);
            Some(Connection { stream, since, request: Vec::new(), state })
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Err(_) => {
            thread::sleep(LOOK);
            None
        }
    }
}

impl Connection {
    /// Whether the time limit is not reached. Beyond it the connection is closed.
    fn has_time(&self) -> bool {
        matches!(self.state, State::Waiting(_)) || self.since.elapsed() < PATIENCE
    }

    /// Continues the connection; false when it is to be closed.
    fn go_on(&mut self, control: &Control) -> bool {
        if matches!(self.state, State::Receiving) {
            match self.receive() {
                Ok(true) => self.state = self.begin(control),
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        if let State::Waiting(answer) = &self.state {
            match answer.try_recv() {
                Ok(answer) => {
                    self.since = Instant::now();
                    self.state = State::send(&answer);
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        self.send().unwrap_or(false)
    }

    fn begin(&self, control: &Control) -> State {
        let line = self.request.split(|byte| *byte == b'\n').next();
        match control.answer(line.unwrap_or_default()) {
            Answer::Now(answer) => State::send(&answer),
            Answer::Later(answer) => State::Waiting(answer),
        }
    }

    /// Receives; returns whether the request is complete.
    fn receive(&mut self) -> io::Result<bool> {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        match self.stream.read(&mut bytes) {
            Ok(0) => Ok(true),
            Ok(count) => {
                self.request.extend(&bytes[..count]);
                if self.request.len() > REQUEST_BYTES_MAX {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok(self.request.contains(&b'\n'))
            }
            Err(error) => not_now(error).map(|()| false),
        }
    }

    /// Sends; returns whether some of the answer is left.
    fn send(&mut self) -> io::Result<bool> {
        let State::Sending(answer) = &mut self.state else { return Ok(true) };
        // A vanished client must not kill a C program that records.
        match send(&self.stream, answer, SendFlags::NOSIGNAL).map_err(io::Error::from) {
            Ok(count) => {
                answer.drain(..count);
                Ok(!answer.is_empty())
            }
            Err(error) => not_now(error).map(|()| true),
        }
    }
}

fn not_now(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
