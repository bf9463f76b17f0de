//! Nobody waits for a reader, and nobody else's open file changes.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;

use m0_unix::output::{Output, Written};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::process::{Actor, PATIENCE};

fn nonblocking(fd: BorrowedFd<'_>) -> bool {
    OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).expect("open")).contains(OFlag::O_NONBLOCK)
}

/// Writes until no more is taken; how much was, and what it said then. A write that waits is caught waiting.
fn fill(output: &Output) -> (usize, Written) {
    // More than any buffer here holds: without the bound a file would be filled for ever.
    const MOST: usize = 64 << 20;
    let own = output.try_clone().expect("a descriptor is free");
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut taken = 0;
        let end = loop {
            match own.try_write(&[b'x'; 1000]) {
                Ok(Written::Bytes(count)) if taken < MOST => taken += count,
                end => break end,
            }
        };
        // Nobody listens any more when the test has given up on this thread.
        let _ = tell.send((taken, end));
    });
    let (taken, end) = told
        .recv_timeout(PATIENCE)
        .expect("a write waited for the reader");
    (taken, end.expect("no error is due"))
}

#[m0_spec::row(U18)]
#[test]
fn a_full_pipe_takes_no_more_and_its_other_holder_still_blocks() {
    let (mut reader, writer) = std::io::pipe().expect("descriptors are free");
    let output = Output::of(writer.as_fd()).expect("a pipe");
    let (taken, end) = fill(&output);
    assert_eq!(end, Written::WouldBlock);
    assert!(taken > 0);
    assert!(
        !nonblocking(writer.as_fd()),
        "the inherited end is still blocking"
    );
    assert!(nonblocking(output.as_fd()), "ours is not");
    reader
        .read_exact(&mut vec![0; taken])
        .expect("all of it is there");
    assert_eq!(
        output.try_write(b"room again").expect("a reader"),
        Written::Bytes(10)
    );
    drop(reader);
    assert_eq!(
        output.try_write(b"nobody").expect("no error"),
        Written::Closed
    );
}

#[m0_spec::row(U18)]
#[test]
fn a_pipe_without_a_reader_is_closed_from_the_start() {
    let (reader, writer) = std::io::pipe().expect("descriptors are free");
    drop(reader);
    let output = Output::of(writer.as_fd()).expect("a pipe");
    assert_eq!(
        output.try_write(b"nobody").expect("no error"),
        Written::Closed
    );
    assert_eq!(output.try_write(b"").expect("no error"), Written::Bytes(0));
}

#[m0_spec::row(U18)]
#[test]
fn a_socket_that_nobody_reads_takes_no_more() {
    let (mut reader, writer) = UnixStream::pair().expect("descriptors are free");
    let output = Output::of(writer.as_fd()).expect("a socket");
    let (taken, end) = fill(&output);
    assert_eq!(end, Written::WouldBlock);
    assert!(
        !nonblocking(writer.as_fd()),
        "the inherited end is still blocking"
    );
    reader
        .read_exact(&mut vec![0; taken])
        .expect("all of it is there");
    assert_eq!(
        output.try_write(b"room again").expect("a reader"),
        Written::Bytes(10)
    );
    drop(reader);
    assert_eq!(
        output.try_write(b"nobody").expect("no error"),
        Written::Closed
    );
}

/// A terminal: the end of the terminal program, and the end that a process writes to.
fn terminal() -> (OwnedFd, fs::File) {
    let program =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("/dev/ptmx");
    grantpt(&program).expect("ours");
    unlockpt(&program).expect("ours");
    let name = ptsname(&program, Vec::new()).expect("it has a name");
    let shared = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().expect("UTF-8"));
    (program, shared.expect("it is unlocked"))
}

#[m0_spec::row(U18)]
#[test]
fn a_terminal_that_stands_still_takes_no_more_and_keeps_its_flags() {
    let (program, shared) = terminal();
    let output = Output::of(shared.as_fd()).expect("a terminal");
    let (taken, end) = fill(&output);
    assert_eq!(end, Written::WouldBlock);
    assert!(taken > 0);
    assert!(
        !nonblocking(shared.as_fd()),
        "the shell's open file is as it was"
    );
    drop(program);
    assert_eq!(
        output.try_write(b"hung up").expect("no error"),
        Written::Closed
    );
}

#[m0_spec::row(U18)]
#[test]
fn a_file_is_written_where_its_other_holders_stand() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("log");
    let mut file = fs::File::create(&path).expect("room");
    file.write_all(b"one ").expect("room");
    let output = Output::of(file.as_fd()).expect("a file");
    assert_eq!(output.try_write(b"two ").expect("room"), Written::Bytes(4));
    file.write_all(b"three").expect("room");
    assert_eq!(
        fs::read_to_string(&path).expect("just written"),
        "one two three"
    );
}

#[m0_spec::row(U18)]
#[test]
fn a_full_disk_is_an_error_and_not_a_reader_that_left() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("every Linux has it");
    let error = Output::of(full.as_fd())
        .expect("a device")
        .try_write(b"x")
        .expect_err("it is full");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[m0_spec::row(U18)]
#[test]
fn standard_output_that_nobody_reads_does_not_hold_the_process() {
    // The actor writes to our pipe until it is full, then tells how much it was in a file: nothing is read meanwhile.
    let report = tempfile::NamedTempFile::new().expect("a temporary directory");
    let mut actor = Actor::play(&["shout", report.path().to_str().expect("UTF-8")]);
    assert!(actor.end().success());
    let told = fs::read_to_string(report.path()).expect("the actor wrote it");
    let (taken, end) = told.split_once(' ').expect("two words");
    assert_eq!(end, "WouldBlock");
    assert_eq!(
        actor.unread().len().to_string(),
        taken,
        "what was taken is there"
    );
}
