//! The log when nobody reads: nothing waits, whole lines are dropped, and the loss is counted.

use std::io::Read;
use std::os::fd::AsFd;

use m0_spec::row;
use m0_unix::fds::pipe;
use m0_unix::output::Output;

use crate::log::Sink;

const LINE: &[u8] = b"{\"event\":\"a line of the log that is about a hundred bytes long, to fill the pipe a little sooner\"}\n";

#[row(E75)]
#[test]
fn an_unread_pipe_drops_whole_lines_and_counts_them() {
    let (reader, writer) = pipe().expect("a pipe");
    let mut sink = Sink::new(Some(Output::of(writer.as_fd()).expect("an output")));
    let pushed = 20_000_u64;
    for _ in 0..pushed {
        sink.push(LINE);
        sink.flush();
    }
    assert!(sink.dropped() > 0, "twenty thousand lines fit nowhere");
    // Read it all, letting the sink write what it kept.
    let mut seen = Vec::new();
    let mut file = std::fs::File::from(reader);
    let mut piece = vec![0; 65_536];
    loop {
        sink.flush();
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => seen.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("reading: {error}"),
        }
    }
    assert_eq!(sink.pending_bytes(), 0);
    assert_eq!(seen.len() % LINE.len(), 0, "a line was cut");
    assert!(
        seen.chunks(LINE.len()).all(|line| line == LINE),
        "a line was torn"
    );
    assert_eq!(
        (seen.len() / LINE.len()) as u64 + sink.dropped(),
        pushed,
        "a line was lost uncounted"
    );
}

#[row(E75)]
#[test]
fn a_reader_that_is_gone_costs_the_lines_and_nothing_else() {
    let (reader, writer) = pipe().expect("a pipe");
    let mut sink = Sink::new(Some(Output::of(writer.as_fd()).expect("an output")));
    drop(reader);
    for _ in 0..3 {
        sink.push(LINE);
        sink.flush();
    }
    assert_eq!(sink.dropped(), 3);
    assert_eq!(sink.pending_bytes(), 0);
}

#[row(E81)]
#[test]
fn a_time_of_the_log_is_rfc_3339_to_the_millisecond() {
    let now = crate::log::now();
    assert_eq!(now.len(), "2026-11-29T18:00:00.000Z".len(), "{now}");
    assert!(
        now.ends_with('Z') && now.as_bytes()[10] == b'T' && now.as_bytes()[19] == b'.',
        "{now}"
    );
}

#[row(E74)]
#[test]
fn the_time_of_many_lines_is_the_time_of_one() {
    let mut clock = crate::log::TimeOfDay::default();
    for ms in [
        0, 5, 999, 1_000, 1_001, 61_000, 61_010, 86_400_123, 86_400_124, 86_399_999,
    ] {
        let ms = 1_764_500_000_000 + ms;
        let time = jiff::Timestamp::from_millisecond(ms).expect("a time");
        assert_eq!(clock.at(ms), format!("{time:.3}"));
    }
}
