//! Opening what lies beneath a directory, and nothing else.
//!
//! Owns the one rule: no path and no symbolic link leads out of the root. Refuses to know what is served or to whom.
//! Invariant: the kernel resolves the path in one call (`RESOLVE_BENEATH`, openat2(2)), so that nothing can be swapped
//! between a check and the open; where it cannot, each step is taken alone and no link is followed at all.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// A root's descriptor serves as the start of a path alone.
const ROOT: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(PATH);

#[cfg(target_os = "linux")]
const PATH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH: OFlags = OFlags::RDONLY;

/// For reading; what would make its opener wait (a pipe without a writer) does not.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// Opens the file or directory `inner` beneath the directory `root` for reading. `root` may be a link, and is looked
/// up anew each time; links beneath it are followed as long as they stay beneath it.
///
/// # Errors
/// `NotFound` for what is not there and for what leads out of the root, so that nobody learns which;
/// `InvalidInput` for a path that is absolute, goes up, or has a NUL; whatever else the system says.
///
/// ```
/// let file = m0_unix::beneath::open(std::path::Path::new("/proc"), std::path::Path::new("version")).expect("Linux");
/// let out = m0_unix::beneath::open(std::path::Path::new("/proc"), std::path::Path::new("self/root/etc"));
/// assert_eq!(out.expect_err("a link that leads out").kind(), std::io::ErrorKind::NotFound);
/// # drop(file);
/// ```
pub fn open(root: &Path, inner: &Path) -> io::Result<File> {
    let goes_down = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !inner.components().all(goes_down) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let root = openat(CWD, root, ROOT, Mode::empty())?;
    let inner = if inner.as_os_str().is_empty() {
        Path::new(".")
    } else {
        inner
    };
    resolve(&root, inner).map(File::from).map_err(hide_escape)
}

/// What leads out looks like what is not there.
fn hide_escape(error: Errno) -> io::Error {
    match error {
        // A link that leads out; a link where none is followed; a file where a directory should be.
        Errno::XDEV | Errno::LOOP | Errno::NOTDIR | Errno::NXIO => io::ErrorKind::NotFound.into(),
        error => error.into(),
    }
}

#[cfg(target_os = "linux")]
fn resolve(root: &OwnedFd, inner: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let rule = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // A rename anywhere in the system makes the kernel unsure now and then (EAGAIN).
    for _ in 0..64 {
        match openat2(root, inner, READ, Mode::empty(), rule) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Kernels before 5.6, and filters of system calls that do not know it.
            Err(Errno::NOSYS | Errno::PERM) => return walk(root, inner),
            done => return done,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn resolve(root: &OwnedFd, inner: &Path) -> rustix::io::Result<OwnedFd> {
    walk(root, inner)
}

/// Step by step, following no link.
fn walk(root: &OwnedFd, inner: &Path) -> rustix::io::Result<OwnedFd> {
    let mut at = None;
    let mut steps = inner.components().peekable();
    while let Some(step) = steps.next() {
        let kind = if steps.peek().is_some() { ROOT } else { READ };
        let from = at.as_ref().unwrap_or(root).as_fd();
        at = Some(openat(
            from,
            step.as_os_str(),
            kind | OFlags::NOFOLLOW,
            Mode::empty(),
        )?);
    }
    at.ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use m0_spec::row;
    use rustix::fs::{FileType, mknodat};

    use super::*;

    /// A root with a file, links inside and out, and a neighbour that must stay unseen.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("root/deep/er")).expect("made");
        fs::create_dir(at("outside")).expect("made");
        fs::write(at("root/deep/er/file"), "inside").expect("written");
        fs::write(at("outside/secret"), "secret").expect("written");
        for (target, link) in [
            ("deep/er", "root/inner"),
            ("../outside", "root/out"),
            ("../outside/secret", "root/secret"),
            ("../../../outside/secret", "root/deep/er/up"),
            ("loop", "root/loop"),
            ("root", "switch"),
        ] {
            symlink(target, at(link)).expect("linked");
        }
        symlink(at("outside/secret"), at("root/absolute")).expect("linked");
        symlink(at("root/deep"), at("root/absolute-inside")).expect("linked");
        let kind = FileType::Fifo;
        mknodat(CWD, at("root/pipe"), kind, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        dir
    }

    fn read(root: &Path, inner: &str) -> Result<String, io::ErrorKind> {
        let mut text = String::new();
        let mut file = open(root, Path::new(inner)).map_err(|error| error.kind())?;
        file.read_to_string(&mut text)
            .map_err(|error| error.kind())?;
        Ok(text)
    }

    #[row(E117)]
    #[test]
    fn no_link_and_no_step_leads_out_of_the_root() {
        let dir = tree();
        for root in ["root", "switch"] {
            let root = &dir.path().join(root);
            assert_eq!(read(root, "deep/er/file").as_deref(), Ok("inside"));
            assert_eq!(read(root, "./inner/file").as_deref(), Ok("inside"));
            for out in [
                "out/secret",
                "secret",
                "deep/er/up",
                "inner/up",
                "absolute",
                "absolute-inside/er/file",
                "loop",
                "nothing",
                "deep/er/file/more",
            ] {
                assert_eq!(read(root, out), Err(io::ErrorKind::NotFound), "{out}");
            }
            for wrong in [
                "../outside/secret",
                "deep/../../outside/secret",
                "/etc/passwd",
                "a\0b",
            ] {
                assert_eq!(
                    read(root, wrong),
                    Err(io::ErrorKind::InvalidInput),
                    "{wrong}"
                );
            }
        }
    }

    #[row(E117)]
    #[test]
    fn where_the_kernel_cannot_judge_no_link_is_followed() {
        let dir = tree();
        let root = openat(CWD, dir.path().join("root"), ROOT, Mode::empty()).expect("there");
        assert!(walk(&root, Path::new("./deep/er/file")).is_ok());
        for link in [
            "inner/file",
            "out/secret",
            "secret",
            "absolute",
            "deep/er/up",
        ] {
            let refused = walk(&root, Path::new(link)).map_err(hide_escape);
            let kind = refused.expect_err(link).kind();
            assert_eq!(kind, io::ErrorKind::NotFound, "{link}");
        }
    }

    #[row(E117)]
    #[test]
    fn a_pipe_that_nobody_writes_to_holds_nobody_up() {
        let dir = tree();
        let root = dir.path().join("root");
        let opened = open(&root, Path::new("pipe")).expect("opened without a writer");
        assert!(!opened.metadata().expect("known").is_file());
    }
}
