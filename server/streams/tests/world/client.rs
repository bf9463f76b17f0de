//! A client: what it read, and whether that is what it was promised.

use crate::model::{Counts, EPOCH, is_data_of};
use crate::reader::{interpret, unchunk};
use m0_framelog::{Reason, Replay};
use m0_streams::Wrote;

/// Bytes that the kernel takes before the peer reads.
const SOCKET_BYTES: usize = 300;

/// The way from a worker to a client.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    /// Sent and not read.
    in_flight: Vec<u8>,
    gone: bool,
}

impl Socket {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Wrote {
        if self.gone {
            return Wrote::Gone;
        }
        let count = bytes.len().min(SOCKET_BYTES - self.in_flight.len());
        self.in_flight.extend_from_slice(&bytes[..count]);
        Wrote::Bytes(count)
    }
}

/// One connection, while it lasts.
#[derive(Debug)]
struct Connection {
    number: usize,
    plan: Replay,
    /// The client sent the id that it really had.
    honest: bool,
    socket: Socket,
    received: Vec<u8>,
    /// The worker closed it in order.
    ended: bool,
}

#[derive(Debug)]
pub(crate) struct Client {
    http10: bool,
    connection: Option<Connection>,
    gone: Socket,
    connections: usize,
    /// The last frame that it got or was reset to, over its whole life.
    last: Option<u64>,
    pub(crate) counts: Counts,
}

impl Client {
    pub(crate) fn new(http10: bool) -> Self {
        let gone = Socket {
            gone: true,
            ..Socket::default()
        };
        Self {
            http10,
            connection: None,
            gone,
            connections: 0,
            last: None,
            counts: Counts::default(),
        }
    }

    pub(crate) fn http10(&self) -> bool {
        self.http10
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    pub(crate) fn last_event_id(&self) -> Option<String> {
        self.last.map(|seq| format!("{EPOCH:x}-{seq}"))
    }

    /// Begins a connection; its number tells it from those before.
    pub(crate) fn joins(&mut self, plan: Replay, honest: bool) -> usize {
        self.connections += 1;
        let number = self.connections;
        let socket = Socket::default();
        self.connection = Some(Connection {
            number,
            plan,
            honest,
            socket,
            received: Vec::new(),
            ended: false,
        });
        number
    }

    /// The socket of a connection; one that is gone once the client left it.
    pub(crate) fn socket(&mut self, number: usize) -> &mut Socket {
        match &mut self.connection {
            Some(connection) if connection.number == number => &mut connection.socket,
            _ => &mut self.gone,
        }
    }

    pub(crate) fn is_on(&self, number: usize) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| connection.number == number)
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| !connection.socket.in_flight.is_empty())
    }

    pub(crate) fn read(&mut self, bytes: usize) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let count = bytes.min(connection.socket.in_flight.len());
        connection
            .received
            .extend(connection.socket.in_flight.drain(..count));
        if connection.ended && connection.socket.in_flight.is_empty() {
            self.leave();
        }
    }

    /// The worker closed the stream in order: what is in flight still arrives.
    pub(crate) fn is_ended(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.ended = true;
        }
        self.read(0);
    }

    /// The worker died: what is in flight is lost.
    pub(crate) fn is_cut(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        connection.socket.in_flight.clear();
        self.leave();
    }

    /// Ends the connection and judges what was read on it.
    pub(crate) fn leave(&mut self) {
        if let Some(connection) = self.connection.take() {
            let whole = connection.ended && connection.socket.in_flight.is_empty();
            self.judge(&connection, whole);
        }
    }

    /// At the end of the world: a connection that still stands has had everything below `tail`.
    pub(crate) fn is_up_to_date(&mut self, tail: u64) {
        let Some(connection) = &self.connection else {
            return;
        };
        assert!(!connection.ended && connection.socket.in_flight.is_empty());
        let text = self.text(connection).0;
        let seen = interpret(&text);
        assert_eq!(
            seen.complete,
            text.len(),
            "half an event and nothing more to come"
        );
        let last = seen
            .last_event_id
            .rsplit('-')
            .next()
            .and_then(|seq| seq.parse::<u64>().ok());
        let expected = match connection.plan {
            Replay::From(next) | Replay::LiveFrom(next) => (next < tail).then_some(tail - 1),
            Replay::Reset(_) => Some(tail - 1),
        };
        assert_eq!(last, expected, "{:?}", connection.plan);
    }

    /// The text of the stream, and whether it was ended as it should be.
    fn text(&self, connection: &Connection) -> (Vec<u8>, bool) {
        if self.http10 {
            return (connection.received.clone(), connection.ended);
        }
        unchunk(&connection.received)
    }

    fn judge(&mut self, connection: &Connection, whole: bool) {
        let (text, last_chunk) = self.text(connection);
        let seen = interpret(&text);
        self.counts.heartbeats += seen.comments;
        let content = if self.http10 {
            seen.complete
        } else {
            text.len()
        };
        self.counts.cut_inside_a_chunk +=
            usize::from(content < connection.received.len() && self.http10);
        if whole {
            assert!(last_chunk, "a stream that ended has its last chunk");
            assert_eq!(
                seen.complete,
                text.len(),
                "a stream that ended has whole events"
            );
        }
        let mut events = seen.events.iter();
        let (mut next, expected_reset) = match connection.plan {
            Replay::From(next) | Replay::LiveFrom(next) => (Some(next), None),
            Replay::Reset(reason) => (None, Some(reason)),
        };
        if connection.honest {
            self.is_continued(connection.plan);
        }
        if let Some(reason) = expected_reset
            && let Some(event) = events.next()
        {
            let name = reason.name();
            if event.name == "reset" {
                assert_eq!(event.data, format!("{{\"reason\":\"{name}\"}}"));
                let at = seq_of(&event.last_event_id);
                (next, self.last) = (Some(at + 1), Some(at));
                self.counts.resets += 1;
            } else {
                // Overtaken before the reset went out: told of that instead.
                assert_eq!(event.name, "gap");
                self.counts.gaps += 1;
                assert!(events.next().is_none(), "nothing follows a gap");
            }
        }
        let mut told = false;
        for event in events {
            assert!(!told, "{} after the last word", event.name);
            match &event.name[..] {
                "beat" => {
                    let seq = seq_of(&event.last_event_id);
                    assert_eq!(Some(seq), next, "the frame after {:?}", self.last);
                    assert!(
                        is_data_of(seq, &event.data),
                        "frame {seq} says {}",
                        event.data
                    );
                    (next, self.last) = (Some(seq + 1), Some(seq));
                    self.counts.frames += 1;
                }
                "gap" => {
                    told = true;
                    self.counts.gaps += 1;
                }
                "drain" => {
                    told = true;
                    self.counts.drains += 1;
                    assert_eq!(seen.retry, Some(5));
                }
                other => panic!("an event of no kind: {other}"),
            }
        }
        if whole {
            assert!(
                told || seen.events.last().is_some_and(|event| event.name == "gap"),
                "ended without a word"
            );
        }
    }

    /// A client that told the truth is continued after the last frame it had, or reset as too old.
    fn is_continued(&self, plan: Replay) {
        match (self.last, plan) {
            (Some(last), Replay::From(next)) => assert_eq!(next, last + 1),
            (Some(_), Replay::Reset(Reason::TooOld)) | (None, Replay::LiveFrom(_)) => {}
            other => panic!("{other:?} for a client that told the truth"),
        }
    }
}

fn seq_of(id: &str) -> u64 {
    let (epoch, seq) = id.split_once('-').expect("an id has two parts");
    assert_eq!(epoch, format!("{EPOCH:x}"));
    seq.parse().expect("a sequence number")
}
