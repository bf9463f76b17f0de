//! Many held event streams, read by one thread.
//!
//! Owns the counting: an event is one `data:` line, wherever the reads and the chunks cut it. Refuses to parse more: its
//! own work must stay small beside the server's.
//! Invariant: a stream that ends while it is counted is an error.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::callers::request;
use super::head::{Head, connect};

/// Streams told of by one wait.
const READY_AT_ONCE: usize = 512;
/// What begins the line that makes an event.
const MARK: &[u8; 5] = b"data:";

/// Counts events in bytes that come in pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCount {
    /// Events so far.
    pub events: u64,
    matched: usize,
}

impl EventCount {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == MARK[self.matched] {
                self.matched += 1;
                if self.matched == MARK.len() {
                    self.events += 1;
                    self.matched = 0;
                }
            } else {
                // The mark's first letter stands nowhere else in it, so nothing longer can have begun.
                self.matched = usize::from(byte == MARK[0]);
            }
        }
    }
}

#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    count: EventCount,
    slot: Option<usize>,
}

/// Streams that are held open.
#[derive(Debug)]
pub struct Audience {
    epoll: Epoll,
    streams: Vec<Stream>,
    total: u64,
    buffer: Vec<u8>,
}

impl Audience {
    /// Opens `count` streams of `/events`, one after the other; each head has come.
    pub fn open(to: SocketAddr, count: usize) -> Result<Self> {
        ensure!(count > 0, "nobody listens to nothing");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("epoll_create1")?;
        let mut audience = Self {
            epoll,
            streams: Vec::with_capacity(count),
            total: 0,
            buffer: vec![0; 64 << 10],
        };
        for key in 0..count {
            let opened = audience.add(to, key);
            opened.with_context(|| format!("stream {} of {count}", key + 1))?;
        }
        Ok(audience)
    }

    fn add(&mut self, to: SocketAddr, key: usize) -> Result<()> {
        let mut socket = connect(to)?;
        socket.write_all(&request("/events", &[("Accept", "text/event-stream")]))?;
        let head = Head::read(&mut socket)?.ok()?;
        let kind = head.field("content-type").unwrap_or_default();
        ensure!(
            kind.starts_with("text/event-stream"),
            "content type {kind:?}"
        );
        socket.set_nonblocking(true)?;
        let interest = EpollEvent::new(EpollFlags::EPOLLIN, key as u64);
        self.epoll.add(&socket, interest).context("epoll_ctl")?;
        let mut count = EventCount::default();
        count.feed(&head.behind);
        self.total += count.events;
        self.streams.push(Stream {
            socket,
            count,
            slot: head.slot().ok(),
        });
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Never: an audience has at least one stream.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Events so far, over all streams.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Events so far, of each stream.
    pub fn counts(&self) -> Vec<u64> {
        self.streams
            .iter()
            .map(|stream| stream.count.events)
            .collect()
    }

    /// How many streams each of `workers` workers holds, by the answers' `x-worker`.
    pub fn shares(&self, workers: usize) -> Result<Vec<u64>> {
        let mut shares = vec![0; workers];
        for stream in &self.streams {
            let slot = stream.slot.context("an answer without x-worker")?;
            *shares
                .get_mut(slot)
                .with_context(|| format!("{slot} of {workers} workers"))? += 1;
        }
        Ok(shares)
    }

    /// Reads until `done` says so of this audience; an error when it does not within the bound.
    pub fn listen_until(&mut self, bound: Duration, done: impl Fn(&Self) -> bool) -> Result<()> {
        let end = Instant::now() + bound;
        while !done(self) {
            let left = end.saturating_duration_since(Instant::now());
            ensure!(
                !left.is_zero(),
                "{} events on {} streams within {bound:?}, waiting for more",
                self.total,
                self.streams.len()
            );
            self.listen_once(left)?;
        }
        Ok(())
    }

    /// Reads whatever comes for so long.
    pub fn listen_for(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.listen_once(left)?;
        }
    }

    fn listen_once(&mut self, longest: Duration) -> Result<()> {
        let mut ready = [EpollEvent::empty(); READY_AT_ONCE];
        let longest = longest.as_millis().clamp(1, 1000);
        let longest = EpollTimeout::from(u16::try_from(longest).expect("at most 1000"));
        let count = match self.epoll.wait(&mut ready, longest) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error).context("epoll_wait"),
        };
        for event in &ready[..count] {
            let key = event.data() as usize;
            let stream = &mut self.streams[key];
            match stream.socket.read(&mut self.buffer) {
                Ok(0) => bail!("stream {key} ended after {} events", stream.count.events),
                Ok(bytes) => {
                    let before = stream.count.events;
                    stream.count.feed(&self.buffer[..bytes]);
                    self.total += stream.count.events - before;
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error).with_context(|| format!("stream {key}")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Audience, EventCount};
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};
    use std::time::Duration;

    const BODY: &str = "d5\r\nid: a-1\nevent: beat\ndata: {\"n\":1,\"note\":\"dada\"}\n\n\r\n\
        da\r\n: hb\n\n\r\n1f\r\nid: a-2\ndata: 2\n\n\r\ndddata: 3\n\n";

    #[m0_spec::row(H38)]
    #[test]
    fn events_are_counted_however_the_bytes_are_cut() {
        for at in 0..BODY.len() {
            let mut count = EventCount::default();
            count.feed(&BODY.as_bytes()[..at]);
            count.feed(&BODY.as_bytes()[at..]);
            assert_eq!(count.events, 3, "cut at {at}");
        }
        let mut count = EventCount::default();
        BODY.bytes().for_each(|byte| count.feed(&[byte]));
        assert_eq!(count.events, 3, "byte by byte");
    }

    /// Answers each stream with a head and `events` events, and holds it open, or closes it.
    fn server(streams: usize, events: usize, holds: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for slot in 0..streams {
                let (mut socket, _) = listener.accept().expect("a stream");
                let asked = socket.read(&mut [0; 1024]).expect("a request");
                assert!(asked > 0, "a request has bytes");
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-worker: {}\r\n\r\n",
                    slot % 2
                );
                let text = head + "data: x\n\n".repeat(events).as_str();
                socket
                    .write_all(text.as_bytes())
                    .expect("the audience reads");
                if holds {
                    held.push(socket);
                }
            }
            // Held until the test's process ends.
            if holds {
                std::thread::park();
            }
        });
        address
    }

    #[m0_spec::row(H38)]
    #[test]
    fn each_stream_is_counted_and_its_worker_is_known() {
        let mut audience = Audience::open(server(4, 3, true), 4).expect("four streams");
        let all = |audience: &Audience| audience.total() == 12;
        audience
            .listen_until(Duration::from_secs(10), all)
            .expect("twelve events");
        assert_eq!(audience.counts(), [3, 3, 3, 3]);
        assert_eq!(audience.shares(2).expect("two workers"), [2, 2]);
        assert!(
            audience.shares(1).is_err(),
            "a worker beyond those that are told of"
        );
        assert_eq!((audience.len(), audience.is_empty()), (4, false));
    }

    #[m0_spec::row(H37)]
    #[test]
    fn silence_an_end_and_no_stream_are_errors() {
        let more = |audience: &Audience| audience.total() > 1;
        let mut silent = Audience::open(server(1, 1, true), 1).expect("a stream");
        let message = silent
            .listen_until(Duration::from_millis(50), more)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("1 events on 1 streams"), "{message}");
        let mut cut = Audience::open(server(1, 1, false), 1).expect("a stream");
        let message = cut
            .listen_until(Duration::from_secs(10), more)
            .unwrap_err()
            .to_string();
        assert!(message.contains("ended after 1 events"), "{message}");
        assert!(Audience::open(server(0, 0, false), 0).is_err());
    }
}
