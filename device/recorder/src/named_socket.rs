// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Unix socket with a name in the file system, which is removed with it.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Of `sockaddr_un`, without the zero at the end.
const PATH_BYTES_MAX: usize = 107;

/// See the module's head.
#[derive(Debug)]
pub struct NamedSocket {
    /// Does not block.
    pub listener: UnixListener,
    path: PathBuf,
}

impl NamedSocket {
    /// Replaces a socket on which nobody listens, and nothing else.
    pub fn bind(path: &Path) -> io::Result<NamedSocket> {
        check(path)?;
        if fs::symlink_metadata(path).is_ok() {
            // Left by a program that was killed.
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

/// Whether a socket can be made there, or replaced. An error does not name the path.
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
