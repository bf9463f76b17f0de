//! Scenes of words that several processes share.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Release};

use m0_unix::fds::take_inherited;
use m0_unix::fork::{Forked, fork};
use m0_unix::process::exit_now;
use m0_unix::shared::SharedWords;
use nix::sys::wait::waitpid;

use crate::{become_scene, say};

fn values(words: &SharedWords) -> Vec<u64> {
    words
        .words()
        .iter()
        .map(|word| word.load(Acquire))
        .collect()
}

/// A child writes what the parent reads, and the other way round.
pub(crate) fn share_fork() {
    let shared = SharedWords::create("scene", 4).expect("memory is free");
    say(format!("{:?}", values(&shared)));
    shared.words()[0].store(1, Release);
    match fork().expect("one thread") {
        Forked::Child => {
            let seen = shared.words()[0].load(Acquire);
            shared.words()[3].store(seen + 40, Release);
            exit_now(0)
        }
        Forked::Parent(child) => {
            waitpid(child, None).expect("the child is ours");
        }
    }
    say(format!("{:?}", values(&shared)));
}
/// Writes a word, exports the file and becomes the program that adopts it.
pub(crate) fn share_exec() {
    let shared = SharedWords::create("scene", 3).expect("memory is free");
    shared.words()[2].store(42, Release);
    let fd = shared.export().expect("an open descriptor");
    become_scene(&["share-adopt", &fd.to_string()]);
}

/// Adopts the words at a descriptor that came over exec; a second time it must not.
pub(crate) fn share_adopt(fd: RawFd) {
    let words = SharedWords::adopt(take_inherited(fd).expect("it came over exec"))
        .expect("a file of words");
    say(format!("{:?}", values(&words)));
    say(format!(
        "again {:?}",
        take_inherited(fd).map_err(|error| error.to_string())
    ));
}
