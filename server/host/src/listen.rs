//! The listeners of a host.
//!
//! Owns where they come from: bound here, or adopted from systemd (sd_listen_fds(3)). Refuses to know
//! who accepts. Invariant: there is one listening socket for each address, made before the fork and shared by all
//! workers: no queue dies with a worker. Where one of them is not to be had there is none, and no file of one.

use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use m0_unix::process;
use m0_unix::sockets;
use socket2::Socket;

use crate::refusal::Refusal;
use crate::settings::{Bind, Settings};

/// A listening socket and the name it goes by.
#[derive(Debug)]
struct Listener {
    socket: Socket,
    address: String,
    /// What the service manager calls it.
    name: Option<String>,
    /// Removed at the end by the process that bound it.
    file: Option<SocketFile>,
}

/// All that a host listens at, at least one.
#[derive(Debug)]
pub(crate) struct Listeners {
    all: Vec<Listener>,
}

/// A socket that the service manager handed over, and what it calls it.
pub(crate) type Adopted = (Socket, Option<String>);

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

/// Removes the socket files however the scope is left: by a stop, by a refusal, by a panic.
pub(crate) struct RemovedAtEnd(Vec<SocketFile>);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        for file in &self.0 {
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

/// The sockets that systemd handed over.
pub(crate) fn adopt(settings: &Settings) -> Result<Vec<Adopted>, Refusal> {
    let inherited = m0_unix::fds::inherited_listeners().map_err(|error| {
        Refusal::of(
            "LISTEN_FDS",
            "",
            format!("its sockets cannot be served: {error}"),
        )
    })?;
    if inherited.is_empty() {
        return Ok(Vec::new());
    }
    if settings.bind_given {
        return Err(Refusal::of(
            "M0_BIND",
            "",
            "contradicts LISTEN_FDS, which hands over a socket; unset one of them",
        ));
    }
    let count = inherited.len();
    let names = names(std::env::var("LISTEN_FDNAMES").ok(), count)?;
    Ok(inherited.into_iter().map(Socket::from).zip(names).collect())
}

/// One name for each socket, where there are names.
fn names(text: Option<String>, count: usize) -> Result<Vec<Option<String>>, Refusal> {
    let Some(text) = text else {
        return Ok(vec![None; count]);
    };
    let names: Vec<_> = text.split(':').map(|name| Some(name.to_owned())).collect();
    if names.len() == count {
        return Ok(names);
    }
    let why = format!(
        "has {} names for the {count} sockets of LISTEN_FDS; want one for each, or none",
        names.len()
    );
    Err(Refusal::of("LISTEN_FDNAMES", text, why))
}

impl Listeners {
    /// Listens wherever the settings say, or takes the adopted sockets.
    pub(crate) fn open(settings: &Settings, adopted: Vec<Adopted>) -> Result<Self, ListenError> {
        let mut listeners = Listeners { all: Vec::new() };
        let opened = if adopted.is_empty() {
            listeners.bind(settings)
        } else {
            listeners.take(adopted)
        };
        if opened.is_err() {
            drop(listeners.removed_at_end());
        }
        opened.map(|()| {
            for socket in listeners.sockets() {
                // A Unix socket has no such bound and needs none: it holds what its own buffer does.
                let _ = sockets::bound_unsent(socket);
            }
            listeners
        })
    }

    fn take(&mut self, adopted: Vec<Adopted>) -> Result<(), ListenError> {
        for (socket, name) in adopted {
            socket
                .set_nonblocking(true)
                .map_err(|error| ListenError::Os {
                    address: "LISTEN_FDS".to_owned(),
                    error,
                })?;
            self.all.push(Listener {
                address: name_of(&socket),
                socket,
                name,
                file: None,
            });
        }
        Ok(())
    }

    fn bind(&mut self, settings: &Settings) -> Result<(), ListenError> {
        for wanted in &settings.bind {
            let (socket, file) =
                bind(wanted, settings).map_err(|error| match (wanted, error.kind()) {
                    (Bind::Unix(_), io::ErrorKind::InvalidInput) => {
                        ListenError::Refused(Refusal::of(
                            "M0_BIND",
                            wanted.to_string(),
                            format!("is no path of a unix socket: {error}"),
                        ))
                    }
                    _ => ListenError::Os {
                        address: wanted.to_string(),
                        error,
                    },
                })?;
            let address = match wanted {
                Bind::Tcp(_) => name_of(&socket),
                Bind::Unix(_) => wanted.to_string(),
            };
            self.all.push(Listener {
                socket,
                address,
                name: None,
                file,
            });
        }
        Ok(())
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.all.iter().map(|listener| &listener.socket)
    }

    /// Other descriptors of the same sockets.
    pub(crate) fn try_clone(&self) -> io::Result<Vec<Socket>> {
        self.sockets().map(Socket::try_clone).collect()
    }

    /// As the banner shows them and `M0_BIND` takes them: with the ports that the system chose, between commas.
    pub(crate) fn addresses(&self) -> String {
        let all: Vec<&str> = self.all.iter().map(|it| it.address.as_str()).collect();
        all.join(",")
    }

    /// What the service manager calls them, where it has names.
    pub(crate) fn names(&self) -> Option<Vec<&str>> {
        self.all.iter().map(|it| it.name.as_deref()).collect()
    }

    /// The socket files, where there are some.
    pub(crate) fn files(&self) -> Vec<SocketFile> {
        self.all.iter().filter_map(|it| it.file.clone()).collect()
    }

    /// Has the socket files removed at the end of a scope: of the process that bound them, in no other.
    pub(crate) fn removed_at_end(&self) -> RemovedAtEnd {
        RemovedAtEnd(self.files())
    }
}

/// One listener of the list.
fn bind(wanted: &Bind, settings: &Settings) -> io::Result<(Socket, Option<SocketFile>)> {
    let backlog = settings.backlog;
    match wanted {
        Bind::Tcp(SocketAddr::V6(v6)) if leaves_ipv4(*v6, &settings.bind) => {
            Ok((sockets::listen_tcp6_only(*v6, backlog)?, None))
        }
        Bind::Tcp(address) => Ok((sockets::listen_tcp(*address, backlog)?, None)),
        Bind::Unix(path) => {
            let socket = sockets::listen_unix(path, backlog)?;
            Ok((socket, Some(SocketFile::new(path.clone()))))
        }
    }
}

/// Whether the list gives the port of `[::]` to an IPv4 address of its own.
fn leaves_ipv4(address: SocketAddrV6, all: &[Bind]) -> bool {
    address.ip().is_unspecified()
        && all.iter().any(
            |other| matches!(other, Bind::Tcp(SocketAddr::V4(v4)) if v4.port() == address.port()),
        )
}

pub(crate) fn name_of(socket: &Socket) -> String {
    match socket.local_addr() {
        Ok(address) => match (address.as_socket(), address.as_pathname()) {
            (Some(tcp), _) => tcp.to_string(),
            (_, Some(path)) => format!("unix:{}", path.display()),
            _ => "unnamed".to_owned(),
        },
        Err(_) => format!("descriptor of process {}", process::pid()),
    }
}
