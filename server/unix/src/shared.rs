//! Words that several processes share.
//!
//! Owns the memory file behind them and its mapping. Refuses to know what a word means.
//! Invariant: once mapped, the words stay mapped at one address until the process ends, and the file under them cannot
//! shrink, so no access can ever fault.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;

use memmap2::MmapOptions;

use crate::failed::During;

/// Bytes of one word.
const WORD: usize = size_of::<AtomicU64>();

/// A run of 64-bit words in memory shared with every process that maps the same file.
///
/// Inherited over fork; over exec by [`SharedWords::export`] and [`SharedWords::adopt`]. New words are zero. Memory
/// is taken a page at a time, when a word in it is first written.
#[derive(Debug)]
pub struct SharedWords {
    file: OwnedFd,
    words: &'static [AtomicU64],
}

impl SharedWords {
    /// `words` new words, all zero. `name` is shown in `/proc/PID/maps` and need not be unique.
    ///
    /// # Errors
    /// `InvalidInput` for 0 words or more than an address can count, or a name with a NUL or above 249 bytes;
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    ///
    /// ```
    /// use std::sync::atomic::Ordering;
    /// let page = m0_unix::shared::SharedWords::create("page", 8)?;
    /// page.words()[7].store(1, Ordering::Release);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn create(name: &str, words: usize) -> io::Result<SharedWords> {
        let bytes = words
            .checked_mul(WORD)
            .and_then(|bytes| i64::try_from(bytes).ok())
            .filter(|bytes| *bytes > 0);
        let Some(bytes) = bytes else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("cannot share {words} words"),
            ));
        };
        let file = memory_file(name)?;
        nix::unistd::ftruncate(&file, bytes).during("ftruncate")?;
        seal(&file)?;
        SharedWords::map(file, words)
    }

    /// The words of a file that another process created, from its inherited descriptor. Sets it to close on exec.
    ///
    /// # Errors
    /// `InvalidData` when the size is 0 or no multiple of 8, or when the file could be shrunk under the mapping (it
    /// is not one that [`SharedWords::create`] made).
    pub fn adopt(fd: OwnedFd) -> io::Result<SharedWords> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let bytes = nix::sys::stat::fstat(&fd).during("fstat")?.st_size;
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes > 0 && bytes % WORD == 0);
        let Some(bytes) = bytes else {
            return Err(invalid(
                "the shared file's size is not a positive multiple of 8 bytes".to_owned(),
            ));
        };
        check_sealed(&fd).map_err(invalid)?;
        crate::fds::close_on_exec(&fd)?;
        SharedWords::map(fd, bytes / WORD)
    }

    /// Maps a file that holds at least `words` words and cannot shrink.
    fn map(file: OwnedFd, words: usize) -> io::Result<SharedWords> {
        // Leaked on purpose: a thread that is left behind at the end of `main` may still touch the words.
        let mapping = Box::leak(Box::new(
            MmapOptions::new()
                .len(words * WORD)
                .map_raw(&file)
                .during("mmap")?,
        ));
        let start: *const AtomicU64 = mapping.as_ptr().cast();
        // SAFETY: from_raw_parts needs, for `words` values from `start`:
        // - non-null and aligned to 8: mmap(2) returned it, on a page boundary;
        // - one allocation of words * 8 bytes, at most isize::MAX: that length was mapped just above, and `create` and
        //   `adopt` bound it by the file's size, an i64;
        // - initialised values: the file's bytes are zero or were written by another process, and every bit pattern
        //   is an AtomicU64;
        // - valid for 'static: the mapping was leaked, nothing unmaps it, and the file under it cannot shrink: it was
        //   sealed by `create` or its seal was seen by `adopt` (off Linux: POSIX shared memory is sized once);
        // - no mutation except inside UnsafeCell: AtomicU64 is one, and other processes reach the words only through
        //   this type.
        let words = unsafe { std::slice::from_raw_parts(start, words) };
        Ok(SharedWords { file, words })
    }

    /// The words, for the life of the process: dropping `self` closes the descriptor and leaves them mapped.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.words
    }

    /// The file behind the words.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Lets the file survive an exec and returns its number, for the next program to [`SharedWords::adopt`].
    ///
    /// # Errors
    /// None for a descriptor that is open.
    pub fn export(&self) -> io::Result<RawFd> {
        crate::fds::keep_on_exec(&self.file)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::{During, OwnedFd, io};
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};

    /// A file that lives in memory and has no name in any directory (`memfd_create(2)`).
    pub(super) fn memory_file(name: &str) -> io::Result<OwnedFd> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        // Never executable: where the sysctl vm.memfd_noexec is 2, nothing else is allowed. Kernels before 6.3 do not
        // know the flag and answer EINVAL, as they do for a bad name, which the second call then tells.
        let no_exec = MFdFlags::from_bits_retain(nix::libc::MFD_NOEXEC_SEAL);
        match memfd_create(name, flags | no_exec) {
            Err(Errno::EINVAL) => memfd_create(name, flags).during("memfd_create"),
            made => made.during("memfd_create"),
        }
    }

    /// Fixes its size for good. `F_SEAL_SHRINK` is what soundness needs; growing is refused too, to keep one size.
    pub(super) fn seal(file: &OwnedFd) -> io::Result<()> {
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(file, FcntlArg::F_ADD_SEALS(seals)).during("fcntl(F_ADD_SEALS)")?;
        Ok(())
    }

    /// Whether its size is fixed.
    pub(super) fn check_sealed(file: &OwnedFd) -> Result<(), String> {
        let seals =
            fcntl(file, FcntlArg::F_GET_SEALS).map_err(|_| "not a memory file".to_owned())?;
        if SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK) {
            Ok(())
        } else {
            Err("the memory file could be shrunk under its mapping".to_owned())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{OwnedFd, io};

    /// Not offered off Linux yet.
    pub(super) fn memory_file(_name: &str) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn seal(_file: &OwnedFd) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn check_sealed(_file: &OwnedFd) -> Result<(), String> {
        Err("shared words are not offered on this system".to_owned())
    }
}

use system::{check_sealed, memory_file, seal};
