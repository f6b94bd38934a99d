// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Unix socket with a name in the file system, which is removed with it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Its owner and its group may connect.
const MODE: u32 = 0o660;

/// See the module's head.
#[derive(Debug)]
pub struct ControlSocket {
    pub(super) listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Replaces a socket on which nobody listens, and nothing else.
    pub fn bind(path: &Path) -> io::Result<ControlSocket> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        if is_socket {
            if UnixStream::connect(path).is_ok() {
                return Err(named(io::Error::other("another program is listening there")));
            }
            // Left by a program that was killed.
            fs::remove_file(path).map_err(named)?;
        }
        let listener = UnixListener::bind(path).map_err(named)?;
        let socket = ControlSocket { listener, path: path.into() };
        fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(named)?;
        socket.listener.set_nonblocking(true).map_err(named)?;
        Ok(socket)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
