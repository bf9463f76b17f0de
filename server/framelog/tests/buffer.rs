//! The buffer that frames are written into before they are appended: it is kept, unless one frame made it large.

#![cfg(not(loom))]

use m0_framelog::{AppendError, FrameLog, sync, words_needed};

/// What `append` hands out before anything is written, and what is left of it in the end.
fn room(log: FrameLog<'_>, bytes: usize) -> (usize, Result<(), AppendError>) {
    let mut room = 0;
    let said = log.append(7, |_, frame| {
        room = frame.capacity();
        // `reserve_exact` alone may not take more than it is asked for.
        frame.reserve_exact(bytes);
        frame.resize(bytes, 1);
    });
    (room, said.map(|_| ()))
}

#[m0_spec::row(F12)]
#[test]
fn the_buffer_of_a_thread_stays_within_twice_the_largest_frame() {
    let ids = sync::AtomicU64::new(0);
    let words = sync::words(words_needed(4096));
    let log = FrameLog::format(&words, &ids, 0xe);
    let limit = log.frame_limit_bytes();
    let too_large = |bytes| Err(AppendError::TooLarge { bytes, limit });
    assert_eq!(room(log, limit), (0, Ok(())), "nothing was written yet");
    assert_eq!(room(log, 2 * limit), (limit, too_large(2 * limit)), "kept");
    let more = 2 * limit + 1;
    assert_eq!(
        room(log, more),
        (2 * limit, too_large(more)),
        "kept as well"
    );
    assert_eq!(room(log, 1), (0, Ok(())), "given back");
}
