//! A doorbell loses no ring and is silent once answered; the report pipe is written whole or not at all.

use std::io::ErrorKind;
use std::time::Duration;

use m0_unix::fds::{
    ByteRead, Doorbell, PIPE_BUF, pipe, read_byte, write_all_nonblocking, write_byte,
};
use m0_unix::poll::wait_readable;

use crate::process::{Actor, PATIENCE};

fn rings(bell: &Doorbell) -> bool {
    wait_readable(bell, Some(Duration::ZERO)).expect("ppoll works")
}

#[m0_spec::row(U10)]
#[test]
fn rings_add_up_until_they_are_answered() {
    let bell = Doorbell::new().expect("a descriptor is free");
    assert!(!rings(&bell));
    assert_eq!(bell.answer().expect("open"), 0, "nobody rang");
    let copy = bell.try_clone().expect("a descriptor is free");
    for _ in 0..1000 {
        assert!(copy.ring().expect("open"));
    }
    assert!(rings(&bell));
    assert_eq!(bell.answer().expect("open"), 1000);
    assert!(!rings(&bell) && !rings(&copy));
    assert_eq!(bell.answer().expect("open"), 0);
}

#[m0_spec::row(U10)]
#[test]
fn a_child_rings_its_parents_bell() {
    assert_eq!(Actor::lines(&["ring-child"]), ["3 0"]);
}

#[m0_spec::row(U10)]
#[test]
fn a_bell_that_takes_no_more_still_rings() {
    let bell = Doorbell::new().expect("a descriptor is free");
    // The most an eventfd holds is 2^64 - 2 (eventfd(2)).
    nix::unistd::write(&bell, &(u64::MAX - 1).to_ne_bytes()).expect("it holds that many");
    assert!(!bell.ring().expect("open"));
    assert!(rings(&bell));
    assert_eq!(bell.answer().expect("open"), u64::MAX - 1);
}

#[m0_spec::row(U10)]
#[test]
fn every_waiter_is_woken_at_least_once_for_a_burst() {
    let bell = Doorbell::new().expect("a descriptor is free");
    let ringer = bell.try_clone().expect("a descriptor is free");
    let total = 10_000;
    let ringing =
        std::thread::spawn(move || (0..total).try_for_each(|_| ringer.ring().map(|_| ())));
    let mut heard = 0;
    while heard < total {
        assert!(
            wait_readable(&bell, Some(PATIENCE)).expect("ppoll works"),
            "lost a ring after {heard}"
        );
        heard += bell.answer().expect("open");
    }
    assert_eq!(heard, total);
    ringing.join().expect("no panic").expect("open");
}

#[m0_spec::row(U26, U14)]
#[test]
fn a_byte_through_a_pipe_is_told_from_nothing_and_from_the_end() {
    let (reader, writer) = pipe().expect("descriptors are free");
    assert_eq!(read_byte(&reader).expect("open"), ByteRead::Nothing);
    write_byte(&writer, b'r').expect("room");
    assert_eq!(read_byte(&reader).expect("open"), ByteRead::Byte(b'r'));
    drop(writer);
    assert_eq!(read_byte(&reader).expect("open"), ByteRead::Closed);
    let (reader, writer) = pipe().expect("descriptors are free");
    drop(reader);
    assert_eq!(
        write_byte(&writer, b'r').expect_err("no reader").kind(),
        ErrorKind::BrokenPipe
    );
}

#[m0_spec::row(U26)]
#[test]
fn a_write_to_a_full_pipe_takes_nothing_and_does_not_wait() {
    let (reader, writer) = pipe().expect("descriptors are free");
    let part = [b'x'; 1000];
    let mut held = 0;
    let full = loop {
        match write_all_nonblocking(&writer, &part) {
            Ok(()) => held += part.len(),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    drop(writer);
    let mut read = 0;
    while let ByteRead::Byte(byte) = read_byte(&reader).expect("open") {
        assert_eq!(byte, b'x');
        read += 1;
    }
    assert_eq!(read, held, "whole parts only");
}

#[m0_spec::row(U26)]
#[test]
fn more_than_one_write_keeps_together_is_refused() {
    let (_reader, writer) = pipe().expect("descriptors are free");
    write_all_nonblocking(&writer, &[0; PIPE_BUF]).expect("room");
    let error = write_all_nonblocking(&writer, &[0; PIPE_BUF + 1]).expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
