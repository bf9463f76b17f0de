//! Scenes of waiting and of not waiting.

use std::time::{Duration, Instant};

use m0_unix::output::{Output, Written};
use m0_unix::poll::{Interest, Poller, wait_readable};

use crate::say;

/// Waits so long for something that never comes, and tells how long it took.
pub(crate) fn wait(how: &str, millis: u64) {
    let (nothing, _held) = m0_unix::fds::pipe().expect("descriptors are free");
    let timeout = Some(Duration::from_millis(millis));
    let poller = Poller::new().expect("a descriptor is free");
    poller
        .add(&nothing, 1, Interest::Level)
        .expect("a pipe can be watched");
    say("waiting");
    let start = Instant::now();
    let found = if how == "poller" {
        let mut ready = Vec::new();
        poller.wait(timeout, &mut ready).expect("epoll works");
        !ready.is_empty()
    } else {
        wait_readable(&nothing, timeout).expect("ppoll works")
    };
    say(format!("{} {found}", start.elapsed().as_millis()));
}

/// Writes to a standard output that nobody reads until it takes no more; tells so in a file.
pub(crate) fn shout(report: &str) {
    let output = Output::stdout().expect("standard output is open");
    let mut taken = 0;
    let end = loop {
        match output.try_write(&[b'x'; 1000]).expect("a pipe") {
            Written::Bytes(count) => taken += count,
            end => break end,
        }
    };
    std::fs::write(report, format!("{taken} {end:?}")).expect("the report can be written");
}
