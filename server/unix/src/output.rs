//! Standard output and standard error, written so that nobody ever waits.
//!
//! Owns how bytes reach descriptors 1 and 2. Refuses to know what a line is and what to do with one that did not fit.
//! Invariant: a write never waits for a reader, and no flag of an open file that others share is changed.
//!
//! `O_NONBLOCK` is a property of the open file, not of the descriptor. Setting it on an inherited pipe or terminal would
//! change it for the shell, the service manager and every other process that writes there, so each kind of file gets its
//! own way: a pipe or terminal is opened anew, a socket is told in each call, a regular file never makes anyone wait.

use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::stat::{SFlag, fstat};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::failed::During;
use crate::fds::PIPE_BUF;

/// What became of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// So many from the front were taken, perhaps not all.
    Bytes(usize),
    /// None were: the reader is behind.
    WouldBlock,
    /// None ever will be: the reader is gone.
    Closed,
}

/// A writer to standard output or standard error that never blocks.
#[derive(Debug)]
pub struct Output {
    fd: OwnedFd,
    way: Way,
}

/// How this kind of file is written without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A pipe or terminal as an open file of our own, with `O_NONBLOCK`.
    Own,
    /// A regular file, which never makes anyone wait for a reader.
    File,
    /// A socket: each send says that it must not wait.
    Socket,
    /// An open file shared with others, which could not be opened anew: each write says that it must not wait, or is
    /// polled for where the kernel knows no such write.
    Asked,
}

impl Output {
    /// A writer to descriptor 1.
    ///
    /// # Errors
    /// Whatever looking at it or copying it gives: `EBADF` when it is closed, `EMFILE`.
    pub fn stdout() -> io::Result<Output> {
        Output::of(io::stdout().as_fd())
    }

    /// A writer to descriptor 2.
    ///
    /// # Errors
    /// As [`Output::stdout`].
    pub fn stderr() -> io::Result<Output> {
        Output::of(io::stderr().as_fd())
    }

    /// A writer to any descriptor; a pipe or terminal must be open for writing.
    ///
    /// # Errors
    /// As [`Output::stdout`].
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Output> {
        let kind = SFlag::from_bits_truncate(fstat(fd).during("fstat")?.st_mode) & SFlag::S_IFMT;
        if (kind == SFlag::S_IFIFO || kind == SFlag::S_IFCHR)
            && let Ok(own) = open_anew(fd)
        {
            return Ok(Output {
                fd: own,
                way: Way::Own,
            });
        }
        let way = match kind {
            SFlag::S_IFSOCK => Way::Socket,
            SFlag::S_IFREG => Way::File,
            _ => Way::Asked,
        };
        Ok(Output {
            fd: fd.try_clone_to_owned().during("fcntl(F_DUPFD_CLOEXEC)")?,
            way,
        })
    }

    /// Another writer to the same open file.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn try_clone(&self) -> io::Result<Output> {
        let fd = self.fd.try_clone().during("fcntl(F_DUPFD_CLOEXEC)")?;
        Ok(Output { fd, way: self.way })
    }

    /// Writes what can be written now.
    ///
    /// Up to [`PIPE_BUF`] bytes to a pipe go whole or not at all and are not mixed with another writer's.
    ///
    /// # Errors
    /// What is neither "not now" nor "never": `StorageFull` on a full disk, for one.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<Written> {
        if bytes.is_empty() {
            return Ok(Written::Bytes(0));
        }
        loop {
            let result = match self.way {
                Way::Own | Way::File => {
                    nix::unistd::write(&self.fd, bytes).map_err(io::Error::from)
                }
                Way::Socket => send(self.fd.as_fd(), bytes),
                Way::Asked => write_asked(self.fd.as_fd(), bytes),
            };
            return match result {
                Ok(count) => Ok(Written::Bytes(count)),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => Ok(Written::WouldBlock),
                    io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::NotConnected => Ok(Written::Closed),
                    // A terminal that hung up; on a regular file it is the disk, and worth an error.
                    _ if self.way != Way::File
                        && Errno::from_io_error(&error) == Some(Errno::IO) =>
                    {
                        Ok(Written::Closed)
                    }
                    _ => Err(error),
                },
            };
        }
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens the file behind a descriptor again: an open file of our own, with flags of our own.
///
/// Fails for a pipe without a reader (`ENXIO`), without `/proc`, and where permissions were dropped since.
fn open_anew(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // std adds O_CLOEXEC itself.
    Ok(OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path)?
        .into())
}

fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    let flags = rustix::net::SendFlags::DONTWAIT;
    Ok(rustix::net::send(fd, bytes, flags)?)
}

/// The first part of `bytes` that one write to a pipe keeps together.
fn part(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(PIPE_BUF)]
}

/// Writes at most `PIPE_BUF` bytes by a call that must not wait (`pwritev2(2)`, `RWF_NOWAIT`): pipes know it since
/// Linux 6.4. Anything that does not is polled.
fn write_asked(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    {
        // The offset -1 means "where the file stands".
        let here = u64::MAX;
        match rustix::io::pwritev2(
            fd,
            &[IoSlice::new(part(bytes))],
            here,
            rustix::io::ReadWriteFlags::NOWAIT,
        ) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            result => return Ok(result?),
        }
    }
    write_polled(fd, bytes)
}

/// Writes at most `PIPE_BUF` bytes if the file polls writable, as a pipe does that has room for them.
///
/// Another writer may take that room between the poll and the write; then the write waits for the reader. It is the last
/// resort for that reason.
fn write_polled(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&now))? == 0 {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(nix::unistd::write(fd, part(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::{AsFd, Output, PIPE_BUF, Way, Written, io, write_asked, write_polled};
    use std::io::Read;

    #[m0_spec::row(U18)]
    #[test]
    fn a_shared_pipe_is_written_without_waiting_and_without_changing_it() {
        for write in [write_asked, write_polled] {
            let (mut reader, writer) = io::pipe().expect("descriptors are free");
            let mut taken = 0;
            let end = loop {
                match write(writer.as_fd(), &[b'x'; 3 * PIPE_BUF]) {
                    Ok(count) => {
                        assert!((1..=PIPE_BUF).contains(&count), "{count}");
                        taken += count;
                    }
                    Err(error) => break error,
                }
            };
            assert_eq!(end.kind(), io::ErrorKind::WouldBlock);
            let flags = nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_GETFL).expect("open");
            assert_eq!(
                flags & nix::libc::O_NONBLOCK,
                0,
                "the shared file still blocks"
            );
            reader
                .read_exact(&mut vec![0; taken])
                .expect("all of it is there");
            assert_eq!(write(writer.as_fd(), b"room again").expect("a reader"), 10);
            drop(reader);
            let end = write(writer.as_fd(), b"nobody").expect_err("no reader");
            assert_eq!(end.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    #[m0_spec::row(U18)]
    #[test]
    fn an_output_that_could_not_be_opened_anew_tells_full_from_closed() {
        let (reader, writer) = io::pipe().expect("descriptors are free");
        let output = Output {
            fd: writer.into(),
            way: Way::Asked,
        };
        let mut taken = 0;
        while let Written::Bytes(count) = output.try_write(&[b'x'; 1000]).expect("no error is due")
        {
            taken += count;
        }
        assert!(taken > 0);
        assert_eq!(
            output.try_write(&[b'x'; 1000]).expect("no error is due"),
            Written::WouldBlock
        );
        drop(reader);
        assert_eq!(
            output.try_write(b"x").expect("no error is due"),
            Written::Closed
        );
    }
}
