// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Unix socket with a name in the file system, which is removed with the socket. `control` and
//! `stream` use it.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The limit of `sockaddr_un`, without the zero at the end.
const PATH_BYTES_MAX: usize = 107;

/// The socket; dropping it removes the name.
#[derive(Debug)]
pub struct NamedSocket {
    /// The listener, in non-blocking mode.
    pub listener: UnixListener,
    path: PathBuf,
}

impl NamedSocket {
    /// Creates the socket. It replaces a socket without a listener, but no other file.
    pub fn bind(path: &Path) -> io::Result<NamedSocket> {
        check(path)?;
        if fs::symlink_metadata(path).is_ok() {
            // The leftover of a killed program.
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        let socket = NamedSocket { listener, path: path.into() };
        socket.listener.set_nonblocking(true)?;
        Ok(socket)
    }
}

impl Drop for NamedSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Checks that a socket can be created or replaced there. The error does not name the path.
pub fn check(path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        return Err(io::Error::other(format!(
            "{bytes} bytes are too many for the path of a socket: must be at most {PATH_BYTES_MAX}"
        )));
    }
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    if let Err(error) = fs::metadata(parent.unwrap_or(Path::new("."))) {
        return Err(io::Error::new(error.kind(), format!("its directory: {error}")));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Err(io::Error::other("exists and is not a socket (give another path, or remove it)"))
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(io::Error::other("another program is listening there"))
        }
        _ => Ok(()),
    }
}
