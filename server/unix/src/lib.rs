//! System calls behind a safe interface: the only crate of this project with `unsafe`.
//!
//! Owns every call that the server makes to the operating system beyond what `std` offers: time, processes,
//! signals, descriptors, shared memory, readiness, sockets and output that never blocks.
//! Refuses to know what a worker, a slot, a frame or a request is; it decides nothing and logs nothing.
//! Invariant: every public item is safe to call, whatever its arguments; each `unsafe` block holds one call and
//! lists what establishes each of that call's preconditions.
//!
//! Linux is the target that is built and tested. Elsewhere `poll`, `SignalFd` and `Doorbell` do not exist, shared words
//! cannot be made and no fork is allowed (its threads cannot be counted): each stands behind one `cfg`, to be filled in.

pub mod beneath;
pub mod clock;
pub mod failed;
pub mod fds;
pub mod fork;
pub mod output;
#[cfg(target_os = "linux")]
pub mod poll;
pub mod process;
pub mod reap;
pub mod shared;
pub mod signals;
pub mod sockets;

/// A process id, as the kernel names it in this process's pid namespace.
pub type Pid = nix::unistd::Pid;

pub use signals::Signal;
