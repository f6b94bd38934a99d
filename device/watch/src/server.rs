// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves `GET /metrics` for Prometheus. One thread answers one client after the other. Each client
//! has one second for everything, so it can delay only other clients. `steady watch` starts it.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{SocketFlags, accept_with};
use steadyio_recorder::named_socket::NamedSocket;

use crate::metrics;
use crate::watch::Snapshot;

const REQUEST_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval of checks whether to end.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The mode of a Unix socket: its owner and its group may connect.
const MODE: u32 = 0o660;

/// The address: `HOST:PORT`, or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(String),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("the path is missing: must be unix:PATH".into()),
            Some(path) => Ok(Address::Unix(path.into())),
            None => match text.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    Ok(Address::Tcp(text.into()))
                }
                _ => Err("must be HOST:PORT, such as 127.0.0.1:9617, or unix:PATH".into()),
            },
        }
    }
}

/// The latest snapshot, for all clients.
#[derive(Debug, Clone, Default)]
pub struct Latest(Arc<Mutex<Arc<Snapshot>>>);

impl Latest {
    pub fn set(&self, snapshot: Arc<Snapshot>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn get(&self) -> Arc<Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(NamedSocket),
}

/// The running server. Dropping it ends the thread, and removes its socket.
#[derive(Debug)]
pub struct Server {
    /// The address; None for a Unix socket.
    pub address: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the server. The error does not name the address.
    pub fn start(address: &Address, latest: Latest) -> io::Result<Server> {
        let listener = Listener::bind(address)?;
        let address = match &listener {
            Listener::Tcp(listener) => Some(listener.local_addr()?),
            Listener::Unix(_) => None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("metrics".into()).spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                listener.serve_next(&latest);
            }
        })?;
        Ok(Server { address, stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Listener {
    fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            Address::Unix(path) => unix(path).map(Listener::Unix),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(socket) => UnixListener::as_fd(&socket.listener),
        }
    }

    /// Answers the next client, if one comes soon. Its errors are ignored.
    fn serve_next(&self, latest: &Latest) {
        let mut ready = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&LOOK_EVERY)), Ok(ready) if ready > 0) {
            return;
        }
        let _ = accept_with(self.as_fd(), SocketFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(|stream| answer(&mut File::from(stream), latest));
    }
}

fn unix(path: &Path) -> io::Result<NamedSocket> {
    let socket = NamedSocket::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok(socket)
}

fn answer(stream: &mut File, latest: &Latest) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    set_socket_timeout(&*stream, Timeout::Send, Some(PATIENCE))?;
    let mut bytes = Vec::new();
    let reply = loop {
        if let Some(reply) = reply_to(&bytes, latest) {
            break reply;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        set_socket_timeout(&*stream, Timeout::Recv, Some(left))?;
        let mut part = [0; 1024];
        match stream.read(&mut part)? {
            0 => return Ok(()),
            length => bytes.extend_from_slice(&part[..length]),
        }
    };
    stream.write_all(&reply)
}

/// The reply; None while the request is incomplete.
fn reply_to(bytes: &[u8], latest: &Latest) -> Option<Vec<u8>> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() <= REQUEST_BYTES_MAX => return None,
        Ok(httparse::Status::Complete(_)) => {}
        _ => return Some(response("400 Bad Request", PLAIN, "not an HTTP request\n", true)),
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    let with_body = request.method != Some("HEAD");
    Some(match (request.method, path) {
        (Some("GET" | "HEAD"), "/metrics") => {
            let text = metrics::openmetrics(latest.get());
            response("200 OK", metrics::CONTENT_TYPE, &text, with_body)
        }
        (Some("GET" | "HEAD"), _) => {
            response("404 Not Found", PLAIN, "the metrics are at /metrics\n", with_body)
        }
        _ => response("405 Method Not Allowed", PLAIN, "only GET and HEAD\n", true),
    })
}

fn response(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), if with_body { body.as_bytes() } else { &[] }].concat()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn reply(request: &str) -> Option<String> {
        let reply = reply_to(request.as_bytes(), &Latest::default())?;
        Some(String::from_utf8(reply).unwrap())
    }

    #[test]
    fn addresses_are_tcp_or_unix() {
        assert_eq!("[::1]:80".parse(), Ok(Address::Tcp("[::1]:80".into())));
        assert_eq!("unix:/run/w".parse(), Ok(Address::Unix("/run/w".into())));
        for wrong in ["", "unix:", "80", ":80", "localhost", "localhost:99999"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_is_answered_when_it_is_complete() {
        assert_eq!(reply("GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
        let reply = reply("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"));
        assert!(reply.ends_with("# EOF\n"));
    }

    #[test]
    fn a_head_request_gets_no_body() {
        assert!(reply("HEAD /metrics HTTP/1.1\r\n\r\n").unwrap().ends_with("\r\n\r\n"));
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        let status = |request: &str| reply(request).unwrap()[9..12].to_string();
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "405");
        assert_eq!(status("\0\0\0\r\n\r\n"), "400");
        assert_eq!(status(&format!("GET /{}", "a".repeat(REQUEST_BYTES_MAX))), "400");
    }
}
