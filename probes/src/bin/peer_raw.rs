//! The least that any server can do with the probes' questions: one thread, epoll, and answers that stand ready.
//!
//! Owns the floor of the comparison: what is above it is what a server adds to the system calls. Refuses HTTP: a request
//! is what ends with an empty line, and its first bytes choose the answer; nothing is parsed that need not be.
//! Its one argument is the time between beats in milliseconds.
//! Invariant: the bytes of an answer are as many as host_check's, and each event goes out with one write a stream.

use std::collections::HashMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Token of the listener; a connection's is its number, from 1.
const LISTENER: u64 = 0;
/// Connections told of by one wait.
const READY_AT_ONCE: usize = 512;
/// Largest single read; every request of the probes fits.
const READ_BYTES: usize = 8192;

const HELLO: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nx-worker: 0\r\n\
    content-length: 14\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\nm0 host_check\n";
const JSON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\
    date: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n[\"a\",\"b\"]";
const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-worker: 0\r\n\
    transfer-encoding: chunked\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n";
const TAKEN: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ndate: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n";

fn main() -> Result<()> {
    let period = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let listener = TcpListener::bind("127.0.0.1:0").context("a port")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let mut raw = Raw::new(&listener, Duration::from_millis(period.unwrap_or(100)))?;
    eprintln!("{{\"event\":\"listening\",\"address\":\"http://{address}\"}}");
    let mut events = [EpollEvent::empty(); READY_AT_ONCE];
    loop {
        let wait = raw.next_beat.saturating_duration_since(Instant::now());
        let wait = EpollTimeout::try_from(wait.as_millis().min(60_000) as u32).context("a wait")?;
        let ready = raw.epoll.wait(&mut events, wait).context("epoll_wait")?;
        for event in &events[..ready] {
            match event.data() {
                LISTENER => raw.accept(&listener)?,
                key => raw.answer(key),
            }
        }
        raw.beat();
    }
}

struct Raw {
    epoll: Epoll,
    sockets: HashMap<u64, TcpStream>,
    streams: Vec<u64>,
    next_key: u64,
    beats: u64,
    period: Duration,
    next_beat: Instant,
    /// What was read last, of all connections: one buffer, which is never cleared.
    bytes: Box<[u8; READ_BYTES]>,
}

impl Raw {
    fn new(listener: &TcpListener, period: Duration) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("epoll_create1")?;
        let interest = EpollEvent::new(EpollFlags::EPOLLIN, LISTENER);
        epoll.add(listener, interest).context("epoll_ctl")?;
        Ok(Self {
            epoll,
            sockets: HashMap::new(),
            streams: Vec::new(),
            next_key: 1,
            beats: 0,
            period,
            next_beat: Instant::now() + period,
            bytes: Box::new([0; READ_BYTES]),
        })
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<()> {
        loop {
            match listener.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(true)?;
                    socket.set_nodelay(true)?;
                    let interest = EpollEvent::new(EpollFlags::EPOLLIN, self.next_key);
                    self.epoll.add(&socket, interest).context("epoll_ctl")?;
                    self.sockets.insert(self.next_key, socket);
                    self.next_key += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("accept"),
            }
        }
    }

    /// Reads what is there; the loads of the probes send one whole request at a time.
    fn answer(&mut self, key: u64) {
        let Some(mut socket) = self.sockets.get(&key) else {
            return;
        };
        let asked = match socket.read(&mut self.bytes[..]) {
            Ok(count) if count > 0 => &self.bytes[..count],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Ok(_) | Err(_) => {
                self.streams.retain(|&stream| stream != key);
                self.sockets.remove(&key);
                return;
            }
        };
        let answer = match asked {
            [b'G', b'E', b'T', b' ', b'/', b' ', ..] => HELLO,
            [b'G', b'E', b'T', b' ', b'/', b'j', ..] => JSON,
            [b'P', ..] => TAKEN,
            _ => STREAM,
        };
        // A peer that does not read an answer of this size is none of the probes' loads.
        let _ = socket.write_all(answer);
        if answer == STREAM {
            self.streams.push(key);
        } else if answer == TAKEN {
            let start = asked.windows(4).position(|four| four == b"\r\n\r\n");
            let data = String::from_utf8_lossy(&asked[start.map_or(0, |at| at + 4)..]).into_owned();
            self.publish(&format!("id: a-1\nevent: note\ndata: {data}\n\n"));
        }
    }

    fn publish(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        for stream in &self.streams {
            if let Some(mut socket) = self.sockets.get(stream) {
                // What a full socket does not take is lost; the count of the probe shows it.
                let _ = socket.write(chunk.as_bytes());
            }
        }
    }

    fn beat(&mut self) {
        if Instant::now() < self.next_beat {
            return;
        }
        self.next_beat += self.period;
        self.beats += 1;
        let (count, pid) = (self.beats, std::process::id());
        let id = format!("198f2a6b3c0-{count}");
        let data = format!("{{\"n\":{count},\"pid\":{pid},\"slot\":0,\"id\":\"{id}\"}}");
        self.publish(&format!("id: {id}\nevent: beat\ndata: {data}\n\n"));
    }
}
