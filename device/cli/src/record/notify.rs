// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports the state to systemd with sd_notify(3): one datagram to the socket that systemd names.
//! `state` calls it.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The notifier; it does nothing without a socket.
pub struct Notifier(Option<UnixDatagram>);

impl Notifier {
    /// Connects to the socket in `$NOTIFY_SOCKET`.
    pub fn from_environment() -> Notifier {
        let name = env::var_os("NOTIFY_SOCKET");
        Notifier(name.and_then(|name| connect(name.as_bytes()).ok()))
    }

    /// Sends lines such as `READY=1`, without waiting.
    pub fn send(&self, lines: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(lines.as_bytes());
        }
    }
}

fn connect(name: &[u8]) -> std::io::Result<UnixDatagram> {
    let address = match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        name => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_goes_to_a_path_and_to_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("steadyio-test-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let sockets = [
            (path.as_os_str().as_bytes().to_vec(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{name}").into_bytes(), UnixDatagram::bind_addr(&abstract_name).unwrap()),
        ];
        for (name, socket) in sockets {
            Notifier(connect(&name).ok()).send("READY=1");
            let mut bytes = [0; 100];
            let length = socket.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"READY=1");
        }
    }
}
