//! The one listener of a host.
//!
//! Owns where it comes from: bound here, or adopted from systemd (sd_listen_fds(3)). Refuses to know
//! who accepts. Invariant: there is one listening socket, made before the fork and shared by all
//! workers: no queue dies with a worker.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use m0_unix::process;
use m0_unix::sockets;
use socket2::Socket;

use crate::refusal::Refusal;
use crate::settings::{Bind, Settings};

/// A listening socket and the name it goes by.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    address: String,
    /// Removed at the end by the process that bound it.
    file: Option<SocketFile>,
}

/// The file of a unix socket that this host bound.
#[derive(Debug, Clone)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: what is at the path later may be another's.
    made: Option<(u64, u64)>,
}

impl SocketFile {
    fn new(path: PathBuf) -> Self {
        let made = identity(&path);
        SocketFile { path, made }
    }

    /// Removes the file, once nobody serves it any more; one that another process put there stays.
    pub(crate) fn remove(&self) {
        if self.made.is_some() && identity(&self.path) == self.made {
            // Someone else may have removed it since: then there is nothing to do.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Removes the socket file however the scope is left: by a stop, by a refusal, by a panic.
pub(crate) struct RemovedAtEnd(Option<SocketFile>);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            file.remove();
        }
    }
}

/// Why there is no listener.
#[derive(Debug)]
pub(crate) enum ListenError {
    /// The configuration is at fault: exit 78.
    Refused(Refusal),
    /// The operating system said no: exit 71.
    Os { address: String, error: io::Error },
}

/// The sockets that systemd handed over, as far as this host can serve them.
pub(crate) fn adopt(settings: &Settings) -> Result<Option<Socket>, Refusal> {
    let inherited = m0_unix::fds::inherited_listeners().map_err(|error| {
        Refusal::of(
            "LISTEN_FDS",
            "",
            format!("its sockets cannot be served: {error}"),
        )
    })?;
    let count = inherited.len();
    let mut sockets = inherited.into_iter().map(Socket::from);
    match (sockets.next(), count) {
        (None, _) => Ok(None),
        (Some(_), 2..) => Err(Refusal::of(
            "LISTEN_FDS",
            count.to_string(),
            "this build serves one listener; hand over one socket",
        )),
        (Some(_), _) if settings.bind_given => Err(Refusal::of(
            "M0_BIND",
            "",
            "contradicts LISTEN_FDS, which hands over a socket; unset one of them",
        )),
        (Some(socket), _) => Ok(Some(socket)),
    }
}

impl Listener {
    /// Listens where the settings say, or takes the adopted socket.
    pub(crate) fn open(settings: &Settings, adopted: Option<Socket>) -> Result<Self, ListenError> {
        if let Some(socket) = adopted {
            socket
                .set_nonblocking(true)
                .map_err(|error| ListenError::Os {
                    address: "LISTEN_FDS".to_owned(),
                    error,
                })?;
            let address = name_of(&socket);
            return Ok(Listener {
                socket,
                address,
                file: None,
            });
        }
        match &settings.bind {
            Bind::Tcp(wanted) => {
                let socket = sockets::listen_tcp(*wanted, settings.backlog).map_err(|error| {
                    ListenError::Os {
                        address: wanted.to_string(),
                        error,
                    }
                })?;
                let address = name_of(&socket);
                Ok(Listener {
                    socket,
                    address,
                    file: None,
                })
            }
            Bind::Unix(path) => {
                let address = format!("unix:{}", path.display());
                let socket = sockets::listen_unix(path, settings.backlog).map_err(|error| {
                    match error.kind() {
                        io::ErrorKind::InvalidInput => ListenError::Refused(Refusal::of(
                            "M0_BIND",
                            address.clone(),
                            format!("is no path of a unix socket: {error}"),
                        )),
                        _ => ListenError::Os {
                            address: address.clone(),
                            error,
                        },
                    }
                })?;
                Ok(Listener {
                    socket,
                    address,
                    file: Some(SocketFile::new(path.clone())),
                })
            }
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// As the banner shows it: the port that the system chose, or `unix:` and the path.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The socket file, where there is one.
    pub(crate) fn file(&self) -> Option<SocketFile> {
        self.file.clone()
    }

    /// Has the socket file removed at the end of a scope: of the process that bound it, in no other.
    pub(crate) fn removed_at_end(&self) -> RemovedAtEnd {
        RemovedAtEnd(self.file())
    }
}

fn name_of(socket: &Socket) -> String {
    match socket.local_addr() {
        Ok(address) => match (address.as_socket(), address.as_pathname()) {
            (Some(tcp), _) => tcp.to_string(),
            (_, Some(path)) => format!("unix:{}", path.display()),
            _ => "unnamed".to_owned(),
        },
        Err(_) => format!("descriptor of process {}", process::pid()),
    }
}
