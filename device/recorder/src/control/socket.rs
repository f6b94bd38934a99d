// SPDX-License-Identifier: MIT OR Apache-2.0
//! The socket on which a recorder answers requests. [`super::server`] serves it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::named_socket::NamedSocket;

/// The owner and the group may connect.
const MODE: u32 = 0o660;

/// The bound socket. Dropping it removes its name.
#[derive(Debug)]
pub struct ControlSocket(NamedSocket);

impl ControlSocket {
    /// Creates the socket. It replaces a socket without a listener, but no other file. Errors name
    /// the path.
    pub fn bind(path: &Path) -> io::Result<ControlSocket> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let socket = NamedSocket::bind(path).map_err(named)?;
        fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(named)?;
        Ok(ControlSocket(socket))
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.0.listener
    }
}
