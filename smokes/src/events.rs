//! Server-sent events as a strict client sees them (WHATWG HTML, 9.2).
//!
//! Owns the event parser and the beat of host_check. Knows nothing of how many streams a phase holds.
//! Invariant: a stream's last chunk is [`Item::End`], any other end of the connection is [`Item::Cut`].

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::answer::{Chunk, Framing, Head, slot_of};
use crate::peer::{Arrival, Closing, PATIENCE, Peer, request};

/// `EPOCH-SEQ`: the hexadecimal epoch of one life of the host and a decimal sequence number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Differs between two lives of the host.
    pub epoch: String,
    /// Grows by one a frame.
    pub seq: u64,
}

impl Id {
    /// Reads the wire form.
    pub fn parse(text: &str) -> Result<Self> {
        let (epoch, seq) = text
            .split_once('-')
            .with_context(|| format!("an id {text:?}"))?;
        let hex = !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(hex, "an epoch {epoch:?}");
        Ok(Self {
            epoch: epoch.to_owned(),
            seq: seq
                .parse()
                .with_context(|| format!("a sequence number {seq:?}"))?,
        })
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{}", self.epoch, self.seq)
    }
}

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// `event:`, or empty.
    pub name: String,
    /// `id:` of this very event.
    pub id: Option<String>,
    /// `data:` lines joined by line feeds.
    pub data: String,
    /// `retry:` in milliseconds.
    pub retry: Option<u64>,
}

/// What a stream brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// A comment line without its colon.
    Comment(String),
    /// The last chunk: the server ended the stream in order.
    End,
    /// The connection ended without it.
    Cut(Closing),
}

/// A beat of host_check's producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// When we had read it.
    pub at: Instant,
    /// Its frame id; the same in the `id:` line and in the data.
    pub id: Id,
    /// The producer's own count.
    pub n: u64,
    /// The process that produced it.
    pub pid: i32,
    /// The slot of that process.
    pub slot: u32,
}

impl Beat {
    /// Reads a beat out of an event named `beat`; `None` for any other event.
    pub fn of(at: Instant, event: &Event) -> Result<Option<Self>> {
        if event.name != "beat" {
            return Ok(None);
        }
        let data: serde_json::Value =
            serde_json::from_str(&event.data).with_context(|| format!("beat {:?}", event.data))?;
        let number = |name: &str| {
            data[name]
                .as_u64()
                .with_context(|| format!("no {name} in beat {:?}", event.data))
        };
        let line = event.id.as_deref().context("a beat without an id line")?;
        ensure!(
            data["id"] == line,
            "a beat whose id line {line} is not its data {:?}",
            event.data
        );
        Ok(Some(Self {
            at,
            id: Id::parse(line)?,
            n: number("n")?,
            pid: i32::try_from(number("pid")?)?,
            slot: u32::try_from(number("slot")?)?,
        }))
    }
}

/// One open event stream.
#[derive(Debug)]
pub struct EventStream {
    peer: Peer,
    head: Head,
    text: Vec<u8>,
    building: Event,
    has_data: bool,
    ready: VecDeque<Item>,
}

impl EventStream {
    /// Opens `/events` and reads the head, which must be 200 and chunked.
    pub fn open(to: SocketAddr, last_id: Option<&str>) -> Result<Self> {
        Self::over(Peer::connect(to)?, last_id)
    }

    /// Opens `/events` over a connection that exists.
    pub fn over(mut peer: Peer, last_id: Option<&str>) -> Result<Self> {
        let mut fields = vec![("Accept", "text/event-stream")];
        if let Some(id) = last_id {
            fields.push(("Last-Event-ID", id));
        }
        peer.send(request("GET", "/events", &fields, b""))?;
        let head = peer.head(PATIENCE).context("head of an event stream")?;
        ensure!(
            head.status == 200,
            "status {} for an event stream",
            head.status
        );
        let kind = head.field("content-type").unwrap_or_default();
        ensure!(
            kind.starts_with("text/event-stream"),
            "content type {kind:?} of an event stream"
        );
        ensure!(
            head.framing(false)? == Framing::Chunked,
            "an event stream that is not chunked"
        );
        Ok(Self {
            peer,
            head,
            text: Vec::new(),
            building: Event::default(),
            has_data: false,
            ready: VecDeque::new(),
        })
    }

    /// The head that opened the stream.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The slot of the worker that holds the stream.
    pub fn slot(&self) -> Result<u32> {
        slot_of(&self.head)
    }

    /// Gives the connection back, for rudeness.
    pub fn into_peer(self) -> Peer {
        self.peer
    }

    /// The next item within `bound`, or `None` when there was none.
    pub fn next(&mut self, bound: Duration) -> Result<Option<Item>> {
        let deadline = Instant::now() + bound;
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            match self.peer.chunk_or(deadline)? {
                Ok(Chunk::Data(data)) => self.feed(&data)?,
                Ok(Chunk::Last) => return Ok(Some(Item::End)),
                Err(Arrival::Closed(how)) => return Ok(Some(Item::Cut(how))),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Reads items until a beat comes.
    pub fn beat(&mut self, bound: Duration) -> Result<Beat> {
        let deadline = Instant::now() + bound;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let item = self.next(left)?.with_context(|| {
                format!(
                    "no beat within {} ms on slot {:?}",
                    bound.as_millis(),
                    self.slot().ok()
                )
            })?;
            match item {
                Item::Event(event) => {
                    if let Some(beat) = Beat::of(Instant::now(), &event)? {
                        return Ok(beat);
                    }
                }
                Item::Comment(_) => {}
                end => anyhow::bail!("{end:?} instead of a beat"),
            }
        }
    }

    fn feed(&mut self, data: &[u8]) -> Result<()> {
        self.text.extend_from_slice(data);
        while let Some(end) = self.text.iter().position(|&byte| byte == b'\n') {
            let raw: Vec<u8> = self.text.drain(..=end).collect();
            let line =
                std::str::from_utf8(&raw[..end]).context("an event line that is not UTF-8")?;
            self.line(line.strip_suffix('\r').unwrap_or(line))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.building);
            if std::mem::take(&mut self.has_data) || event != Event::default() {
                self.ready.push_back(Item::Event(event));
            }
            return Ok(());
        }
        if let Some(comment) = line.strip_prefix(':') {
            self.ready
                .push_back(Item::Comment(comment.trim_start().to_owned()));
            return Ok(());
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.building.name),
            "id" => self.building.id = Some(value.to_owned()),
            "retry" => self.building.retry = Some(value.parse().context("retry")?),
            "data" => {
                if self.has_data {
                    self.building.data.push('\n');
                }
                self.has_data = true;
                self.building.data.push_str(value);
            }
            other => anyhow::bail!("a field {other:?} in an event stream"),
        }
        Ok(())
    }
}

/// Checks that ids are of one epoch and each the successor of the one before.
pub fn consecutive(ids: &[Id]) -> Result<()> {
    for pair in ids.windows(2) {
        ensure!(
            pair[0].epoch == pair[1].epoch,
            "the epoch changed between {} and {}",
            pair[0],
            pair[1]
        );
        ensure!(
            pair[1].seq == pair[0].seq + 1,
            "{} follows {}: {}",
            pair[1],
            pair[0],
            if pair[1].seq > pair[0].seq {
                "a gap"
            } else {
                "a repeat or a reorder"
            }
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Tape;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Serves one event stream with this body, in chunks as given, and closes.
    fn stream_of(chunks: &'static [&'static str], last: bool) -> Result<EventStream> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("the test connects");
            let taken = socket.read(&mut [0; 1024]).expect("a request");
            assert!(taken > 0, "a request has bytes");
            let mut out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Transfer-Encoding: chunked\r\nx-worker: 1\r\n\r\n"
                .to_owned();
            for chunk in chunks {
                out = format!("{out}{:x}\r\n{chunk}\r\n", chunk.len());
            }
            if last {
                out += "0\r\n\r\n";
            }
            socket.write_all(out.as_bytes()).expect("the test reads");
        });
        EventStream::open(addr, None)
    }

    const BEAT: &str =
        "id: a1-7\nevent: beat\ndata: {\"n\":3,\"id\":\"a1-7\",\"pid\":42,\"slot\":0}\n\n";

    #[m0_spec::row(H42)]
    #[test]
    fn events_comments_and_both_ends_are_told_apart() -> Result<()> {
        let mut stream = stream_of(
            &[": hb\n\n", BEAT, "data: a\ndata: b\n", "retry: 9\n\n"],
            true,
        )?;
        assert_eq!(stream.slot()?, 1);
        assert_eq!(stream.next(PATIENCE)?, Some(Item::Comment("hb".into())));
        let beat = stream.beat(PATIENCE)?;
        assert_eq!(
            (beat.n, beat.pid, beat.slot, beat.id.to_string().as_str()),
            (3, 42, 0, "a1-7")
        );
        let Some(Item::Event(event)) = stream.next(PATIENCE)? else {
            panic!("an event")
        };
        assert_eq!((event.data.as_str(), event.retry), ("a\nb", Some(9)));
        assert_eq!(stream.next(PATIENCE)?, Some(Item::End));
        let mut cut = stream_of(&[BEAT], false)?;
        cut.beat(PATIENCE)?;
        assert_eq!(cut.next(PATIENCE)?, Some(Item::Cut(Closing::Fin)));
        Ok(())
    }

    #[m0_spec::row(H42)]
    #[test]
    fn a_tape_holds_what_came_and_how_it_ended() -> Result<()> {
        let tape = Tape::of(stream_of(&[BEAT, BEAT], true)?)?;
        assert_eq!(tape.await_beats(2, PATIENCE)?.len(), 2);
        assert_eq!(tape.await_end(PATIENCE)?.item, Item::End);
        assert!(consecutive(&tape.ids()?).is_err(), "the same id twice");
        assert_eq!(tape.finish()?.len(), 3);
        Ok(())
    }

    #[m0_spec::row(H42)]
    #[test]
    fn a_beat_whose_two_ids_differ_is_an_error() -> Result<()> {
        let mut stream = stream_of(
            &["id: a1-8\nevent: beat\ndata: {\"n\":3,\"id\":\"a1-7\",\"pid\":42,\"slot\":0}\n\n"],
            true,
        )?;
        assert!(stream.beat(PATIENCE).is_err());
        Ok(())
    }

    #[m0_spec::row(H42)]
    #[test]
    fn gaps_repeats_reorders_and_epochs_are_noticed() {
        let id = |text| Id::parse(text).expect("well-formed");
        assert!(consecutive(&[id("a-1"), id("a-2"), id("a-3")]).is_ok());
        for wrong in [
            ["a-1", "a-3"],
            ["a-1", "a-1"],
            ["a-2", "a-1"],
            ["a-1", "b-2"],
        ] {
            assert!(consecutive(&wrong.map(id)).is_err(), "{wrong:?}");
        }
        assert!(Id::parse("a1").is_err() && Id::parse("-1").is_err() && Id::parse("a-x").is_err());
    }
}
