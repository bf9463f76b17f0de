//! Words shared by processes: the same, zero at first, nameless, lazy, and never to be shrunk under a reader.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Release};

use m0_unix::shared::SharedWords;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;

use crate::process::Actor;

#[m0_spec::row(U7)]
#[test]
fn parent_and_child_see_the_same_words_which_start_at_zero() {
    assert_eq!(
        Actor::lines(&["share-fork"]),
        ["[0, 0, 0, 0]", "[1, 0, 0, 41]"]
    );
}

#[m0_spec::row(U7, U21)]
#[test]
fn the_next_program_adopts_the_same_words_once() {
    let lines = Actor::lines(&["share-exec"]);
    assert_eq!(lines[0], "[0, 0, 42]");
    assert!(
        lines[1].starts_with("again Err(\"opened by this process"),
        "{lines:?}"
    );
}

#[m0_spec::row(U7)]
#[test]
fn adopting_in_the_same_process_maps_the_same_words_at_another_address() {
    let made = SharedWords::create("twice", 512).expect("memory is free");
    let adopted =
        SharedWords::adopt(made.fd().try_clone_to_owned().expect("a descriptor")).expect("words");
    assert_ne!(made.words().as_ptr(), adopted.words().as_ptr());
    assert_eq!(adopted.words().len(), 512);
    made.words()[511].store(u64::MAX, Release);
    assert_eq!(adopted.words()[511].load(Acquire), u64::MAX);
}

#[m0_spec::row(U7)]
#[test]
fn the_memory_has_no_name_in_any_directory() {
    let words = SharedWords::create("nameless", 1).expect("memory is free");
    let link = std::fs::read_link(format!("/proc/self/fd/{}", words.fd().as_raw_fd()))
        .expect("/proc is mounted");
    assert_eq!(link.to_str(), Some("/memfd:nameless (deleted)"));
    assert_eq!(fstat(words.fd()).expect("open").st_nlink, 0);
}

/// A memory file of so many bytes that nobody sealed.
fn unsealed(bytes: i64) -> OwnedFd {
    let file = memfd_create(
        "unsealed",
        MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
    )
    .expect("memory is free");
    nix::unistd::ftruncate(&file, bytes).expect("memory is free");
    file
}

#[m0_spec::row(U8)]
#[test]
fn a_file_that_holds_no_whole_words_or_could_shrink_is_refused() {
    for (file, why) in [
        (unsealed(0), "positive multiple of 8"),
        (unsealed(7), "positive multiple of 8"),
        (unsealed(4097), "positive multiple of 8"),
        (unsealed(4096), "could be shrunk"),
        (ordinary(), "not a memory file"),
    ] {
        let error = SharedWords::adopt(file).expect_err(why);
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let (reader, _writer) = m0_unix::fds::pipe().expect("descriptors are free");
    assert_eq!(
        SharedWords::adopt(reader).expect_err("a pipe").kind(),
        ErrorKind::InvalidData
    );
}

/// A file on a disk, of a size that would do.
fn ordinary() -> OwnedFd {
    let file = tempfile::tempfile().expect("a temporary directory");
    file.set_len(4096).expect("room");
    file.into()
}

#[m0_spec::row(U8)]
#[test]
fn nobody_can_shrink_or_grow_the_file_under_its_readers() {
    let words = SharedWords::create("fixed", 1024).expect("memory is free");
    for bytes in [0, 8, 1 << 20] {
        let error = nix::unistd::ftruncate(words.fd(), bytes).expect_err("sealed");
        assert_eq!(error, nix::errno::Errno::EPERM, "to {bytes} bytes");
    }
    assert_eq!(words.words()[1023].load(Acquire), 0);
}

#[m0_spec::row(U8, U12)]
#[test]
fn no_words_or_too_many_or_a_bad_name_are_errors() {
    for (words, kind) in [
        (0, ErrorKind::InvalidInput),
        (usize::MAX, ErrorKind::InvalidInput),
    ] {
        assert_eq!(
            SharedWords::create("size", words)
                .expect_err("no such size")
                .kind(),
            kind
        );
    }
    let error = SharedWords::create(&"n".repeat(300), 1).expect_err("a name too long");
    assert!(error.to_string().starts_with("memfd_create: "), "{error}");
    assert_eq!(m0_unix::failed::errno(&error), Some(nix::libc::EINVAL));
}

#[m0_spec::row(U19)]
#[test]
fn memory_is_taken_when_a_word_is_first_written() {
    let words = SharedWords::create("lazy", 8 << 20).expect("memory is free");
    let taken = || fstat(words.fd()).expect("open").st_blocks * 512;
    assert_eq!(fstat(words.fd()).expect("open").st_size, 64 << 20);
    assert_eq!(taken(), 0, "before anything was written");
    words.words()[4 << 20].store(1, Release);
    let first = taken();
    assert!(
        (1..=2 << 20).contains(&first),
        "one page, perhaps a huge one: {first}"
    );
}

#[m0_spec::row(U32)]
#[test]
fn the_words_outlive_their_handle() {
    let (words, number) = {
        let handle = SharedWords::create("kept", 2).expect("memory is free");
        handle.words()[1].store(7, Release);
        (handle.words(), handle.fd().as_raw_fd())
    };
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
    assert!(maps.contains("/memfd:kept (deleted)"), "still mapped");
    let link = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
    assert!(
        !link.to_string_lossy().contains("memfd:kept"),
        "the descriptor is closed"
    );
    assert_eq!(words[1].load(Acquire), 7);
}

#[m0_spec::row(U3)]
#[test]
fn the_descriptor_crosses_an_exec_only_when_exported() {
    let words = SharedWords::create("exported", 1).expect("memory is free");
    let flags =
        || nix::fcntl::fcntl(words.fd().as_fd(), nix::fcntl::FcntlArg::F_GETFD).expect("open");
    assert_eq!(flags(), nix::libc::FD_CLOEXEC);
    assert_eq!(words.export().expect("open"), words.fd().as_raw_fd());
    assert_eq!(flags(), 0);
}
