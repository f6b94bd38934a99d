// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread behind the socket.
//!
//! A request is a line, the answer another one; then the connection is closed. Who sends no line or
//! does not read holds one of a few places for a while, and nothing else: nothing that the recorder
//! does waits for this thread.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use super::Control;
use super::socket::ControlSocket;

/// At the same time; more wait until the kernel lets them in.
const CONNECTIONS_MAX: usize = 16;
/// Longest line of a request.
const REQUEST_BYTES_MAX: usize = 4_096;
/// From connecting to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is checked whether to end.
const LOOK: Duration = Duration::from_millis(200);

/// Answers until it is dropped.
#[derive(Debug)]
pub struct ControlServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Connection {
    stream: UnixStream,
    since: Instant,
    request: Vec<u8>,
    /// What is left of it; None before the request is complete.
    answer: Option<Vec<u8>>,
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
            // Its panic has been printed, and nobody needs it any more.
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
        connections.retain_mut(|one| one.since.elapsed() < PATIENCE && one.go_on(control));
    }
}

/// For anything that can be done, or until it is time to look whether to end.
fn wait(socket: &ControlSocket, connections: &[Connection]) -> io::Result<()> {
    let mut fds = Vec::with_capacity(CONNECTIONS_MAX + 1);
    for connection in connections {
        let wanted = if connection.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
        fds.push(PollFd::new(&connection.stream, wanted));
    }
    if connections.len() < CONNECTIONS_MAX {
        fds.push(PollFd::new(&socket.listener, PollFlags::IN));
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// None if nobody is there; or if too many files are open, and then later.
fn accept(socket: &ControlSocket) -> Option<Connection> {
    match socket.listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true).ok()?;
            Some(Connection { stream, since: Instant::now(), request: Vec::new(), answer: None })
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Err(_) => {
            thread::sleep(LOOK);
            None
        }
    }
}

impl Connection {
    /// False when it is to be closed.
    fn go_on(&mut self, control: &Control) -> bool {
        if self.answer.is_none() {
            match self.receive() {
                Ok(true) => {
                    let line = self.request.split(|byte| *byte == b'\n').next();
                    let answer = control.answer(line.unwrap_or_default());
                    self.answer = Some(format!("{answer}\n").into_bytes());
                }
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        self.send().unwrap_or(false)
    }

    /// Whether the request is complete.
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

    /// Whether some of the answer is left.
    fn send(&mut self) -> io::Result<bool> {
        let Some(answer) = &mut self.answer else { return Ok(true) };
        // A client that is gone must not kill a program that records from C.
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
