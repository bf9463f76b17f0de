//! One event stream whose beats are read as they are: who made them and when they came.
//!
//! Owns the reading of host_check's beat. Refuses ids and order: the smokes check those.
//! Invariant: the time of a beat is taken before anything is parsed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::callers::request;
use super::head::{Head, connect};

/// A stream of beats.
#[derive(Debug)]
pub struct Beats {
    socket: TcpStream,
    slot: usize,
    text: Vec<u8>,
    at: Instant,
}

impl Beats {
    /// Opens `/events`.
    pub fn open(to: SocketAddr) -> Result<Self> {
        let mut socket = connect(to)?;
        socket.write_all(&request("/events", &[("Accept", "text/event-stream")]))?;
        let head = Head::read(&mut socket)?.ok()?;
        Ok(Self {
            socket,
            slot: head.slot()?,
            text: head.behind,
            at: Instant::now(),
        })
    }

    /// The slot of the worker that holds the stream.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The process that made the next beat, and when the beat had come.
    pub fn next_beat(&mut self) -> Result<(u32, Instant)> {
        loop {
            if let Some(pid) = take_beat(&mut self.text)? {
                return Ok((pid, self.at));
            }
            ensure!(self.text.len() < 1 << 20, "a MiB without a beat");
            let mut piece = [0; 4096];
            let count = self.socket.read(&mut piece).context("no beat")?;
            self.at = Instant::now();
            if count == 0 {
                bail!("the stream on worker {} ended", self.slot);
            }
            self.text.extend_from_slice(&piece[..count]);
        }
    }
}

/// Takes everything up to the end of the first beat, and answers its producer's process.
fn take_beat(text: &mut Vec<u8>) -> Result<Option<u32>> {
    while let Some(end) = text.windows(2).position(|window| window == b"\n\n") {
        let event: Vec<u8> = text.drain(..end + 2).collect();
        let event = String::from_utf8(event).context("an event that is not UTF-8")?;
        if !event.contains("event: beat\n") {
            continue;
        }
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        let data: Value = serde_json::from_str(data.context("a beat without data")?)
            .with_context(|| format!("the beat {event:?}"))?;
        let pid = data["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        return Ok(Some(
            pid.with_context(|| format!("no pid in the beat {event:?}"))?,
        ));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::take_beat;

    #[m0_spec::row(S20)]
    #[test]
    fn beats_name_their_producer_and_other_events_are_passed_over() {
        let mut text = b"5f\r\n: hb\n\n\r\n40\r\nid: a-7\nevent: beat\ndata: {\"pid\":42}\n\n\r\n\
            30\r\nid: a-8\nevent: note\ndata: x\n\n\r\n40\r\nid: a-9\nevent: beat\ndata: {\"pid\":43}\n"
            .to_vec();
        assert_eq!(take_beat(&mut text).expect("a beat"), Some(42));
        assert_eq!(take_beat(&mut text).expect("half a beat"), None);
        text.extend_from_slice(b"\n");
        assert_eq!(take_beat(&mut text).expect("a beat"), Some(43));
        assert_eq!(take_beat(&mut text).expect("nothing"), None);
    }

    #[m0_spec::row(S20, H37)]
    #[test]
    fn a_beat_without_a_producer_is_an_error() {
        for beat in [
            "event: beat\n\n",
            "event: beat\ndata: {}\n\n",
            "event: beat\ndata: x\n\n",
        ] {
            assert!(
                take_beat(&mut beat.as_bytes().to_vec()).is_err(),
                "{beat:?}"
            );
        }
    }
}
