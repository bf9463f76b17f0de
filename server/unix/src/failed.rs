//! The name of the operation in an error of the operating system.
//!
//! Owns the wrapping of an errno by the call that gave it. Refuses to know what the error means to the server.
//! Invariant: the kind of the error stays, and its number can be had back by [`errno`].
//!
//! Used where a function makes several calls, or runs while the server is set up. The calls of every request (accept,
//! read, write, ring, wait) give the bare error: their name is known to the caller and wrapping costs an allocation.

use std::fmt;
use std::io;

/// An error of one named operation; it sits inside an [`io::Error`] of the same kind.
#[derive(Debug)]
pub struct Failed {
    operation: &'static str,
    cause: io::Error,
}

impl Failed {
    /// What was tried, in the words of the manual page.
    pub fn operation(&self) -> &'static str {
        self.operation
    }
}

impl fmt::Display for Failed {
    // The cause is told here and not by `source`: whoever prints an io::Error expects the errno's text in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.cause)
    }
}

impl std::error::Error for Failed {}

/// The errno of an error that this crate (or std) gave, named or bare; `None` when the kernel was not asked.
///
/// ```
/// use m0_unix::{failed::errno, sockets::listen_tcp};
/// let first = listen_tcp("127.0.0.1:0".parse().unwrap(), 1)?;
/// let taken = first.local_addr()?.as_socket().unwrap();
/// let error = listen_tcp(taken, 1).unwrap_err();
/// assert!(error.to_string().starts_with("bind: "));
/// assert_eq!(errno(&error), Some(98)); // EADDRINUSE
/// # std::io::Result::Ok(())
/// ```
pub fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        error
            .get_ref()?
            .downcast_ref::<Failed>()?
            .cause
            .raw_os_error()
    })
}

/// Names the operation of a result.
pub(crate) trait During<T> {
    /// The same result; its error says that `operation` gave it.
    fn during(self, operation: &'static str) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, operation: &'static str) -> io::Result<T> {
        self.map_err(|cause| {
            let cause = cause.into();
            io::Error::new(cause.kind(), Failed { operation, cause })
        })
    }
}
