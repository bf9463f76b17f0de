//! Plays one case on one connection and says what came instead of what must.
//!
//! Owns the comparison. Refuses to know the table's files. Invariant: a case passes only if every answer came
//! in its order, nothing came behind the last one, and the connection went on or ended as the case says.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::cases::{Case, End, Expected, Framing};
use crate::answer::{self, Head};
use crate::peer::{Arrival, Closing, PATIENCE, Peer};

/// How the bytes of a case are cut into writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// One write for all.
    Whole,
    /// One write for each byte.
    Bytes,
}

impl Cut {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Bytes];

    /// How it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Bytes => "byte by byte",
        }
    }
}

/// A case that did not come out as it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// What must come, in the table's notation.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// Longest case that is also sent byte by byte.
const LONGEST_IN_BYTES: usize = 2_000;
/// What shows that a connection goes on, and its answer.
const SENTINEL: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: sentinel\r\n\r\n";
const SENTINEL_BODY: &[u8] = b"ok\n";

/// Plays `case` against the server at `to`; `None` when all came as it must.
///
/// # Errors
/// The connection could not be made at all.
pub fn play(to: SocketAddr, case: &Case, cut: Cut) -> Result<Option<Miss>> {
    if cut == Cut::Bytes && (case.whole || case.send.len() > LONGEST_IN_BYTES) {
        return Ok(None);
    }
    let mut peer = Peer::connect(to)?;
    let mut got = String::new();
    let judged = converse(&mut peer, case, cut, &mut got);
    Ok(judged.err().map(|why| {
        // What an answer was compared with stands in the reason, what came before it in `got`.
        let pending = match peer.pending() {
            [] => String::new(),
            bytes => format!("; pending {:?}", answer::lossy(bytes)),
        };
        Miss {
            expected: expectation(case),
            got: format!("{got}{why:#}{pending}"),
        }
    }))
}

fn converse(peer: &mut Peer, case: &Case, cut: Cut, got: &mut String) -> Result<()> {
    send(peer, &case.send, cut)?;
    let mut waiting = !case.after_continue.is_empty();
    if case.half_close && !waiting {
        peer.half_close()?;
    }
    let mut last = None;
    for wanted in &case.answers {
        let head = peer.head(PATIENCE)?;
        let answer = read(peer, &head, wanted.framing == Framing::Head)?;
        let _ = write!(
            got,
            "{} {}, then ",
            head.status,
            framing_name(answer.framing)
        );
        compare(&head, &answer, wanted)?;
        if case.refused && Some(wanted) == case.answers.last() {
            own_refusal(&head, &answer)?;
        }
        if waiting && head.status == 100 {
            waiting = false;
            send(peer, &case.after_continue, cut)?;
            if case.half_close {
                peer.half_close()?;
            }
        }
        last = Some(head);
    }
    end(peer, case, last.as_ref())
}

fn send(peer: &mut Peer, bytes: &[u8], cut: Cut) -> Result<()> {
    match cut {
        Cut::Whole => peer.send(bytes),
        Cut::Bytes => bytes.chunks(1).try_for_each(|byte| peer.send(byte)),
    }
}

struct Answer {
    framing: Framing,
    body: Vec<u8>,
}

fn read(peer: &mut Peer, head: &Head, to_head: bool) -> Result<Answer> {
    let parsed = head.framing(to_head)?;
    let framing = match parsed {
        answer::Framing::Empty if to_head => Framing::Head,
        answer::Framing::Empty => Framing::None,
        answer::Framing::Length(_) => Framing::Length,
        answer::Framing::Chunked => Framing::Chunked,
        answer::Framing::Close => Framing::Close,
    };
    Ok(Answer {
        framing,
        body: peer.body(parsed, Instant::now() + PATIENCE)?,
    })
}

fn compare(head: &Head, answer: &Answer, wanted: &Expected) -> Result<()> {
    ensure!(
        head.status == wanted.status,
        "status {} for {}: {:?}",
        head.status,
        wanted.status,
        answer::lossy(&answer.body)
    );
    ensure!(
        answer.framing == wanted.framing,
        "framing {} for {}",
        framing_name(answer.framing),
        framing_name(wanted.framing)
    );
    if answer.framing == Framing::None {
        // RFC 9110 8.6: no Content-Length in a 1xx or 204; RFC 9112 6.1: no Transfer-Encoding either.
        let framed = head.count("transfer-encoding") > 0
            || (head.status != 304 && head.count("content-length") > 0);
        ensure!(!framed, "a {} that frames a body", head.status);
    }
    if let Some(body) = &wanted.body {
        ensure!(
            answer.body == *body,
            "body \"{}\"",
            answer.body.escape_ascii()
        );
    }
    Ok(())
}

/// The refusal is the host's own, which names its reason, and not one of whatever stands behind its gate.
fn own_refusal(head: &Head, answer: &Answer) -> Result<()> {
    let begins = format!("{} ", head.status);
    ensure!(
        answer.body.starts_with(begins.as_bytes()),
        "a {} that names no reason: {:?}",
        head.status,
        answer::lossy(&answer.body)
    );
    Ok(())
}

fn end(peer: &mut Peer, case: &Case, last: Option<&Head>) -> Result<()> {
    let says_close = last.is_some_and(Head::closes);
    match case.end {
        End::Open => {
            ensure!(!says_close, "an answer that says close");
            sentinel(peer)
        }
        End::Close => {
            let framed_by_close =
                case.answers.last().map(|last| last.framing) == Some(Framing::Close);
            ensure!(
                says_close || framed_by_close,
                "an answer that does not say close"
            );
            fin(peer, framed_by_close)
        }
        End::Fin => fin(peer, false),
        End::Either if says_close => fin(peer, false),
        End::Either => either(peer),
    }
}

/// Whatever the server does, it must take nothing of the body for a request.
fn either(peer: &mut Peer) -> Result<()> {
    if peer.send(SENTINEL).is_ok()
        && matches!(peer.fill(Instant::now() + PATIENCE)?, Arrival::Bytes(_))
    {
        return answered(peer);
    }
    ensure!(peer.pending().is_empty(), "bytes behind the last answer");
    Ok(())
}

fn fin(peer: &mut Peer, seen: bool) -> Result<()> {
    if seen {
        return Ok(());
    }
    match peer.closed(PATIENCE).context("no end in order")? {
        Closing::Fin => Ok(()),
        how => bail!("{how:?} where the connection ends"),
    }
}

/// Asks for something whose answer is known: whatever stands in front of it is one answer too many.
fn sentinel(peer: &mut Peer) -> Result<()> {
    ensure!(peer.pending().is_empty(), "bytes behind the last answer");
    peer.send(SENTINEL).context("the connection has ended")?;
    answered(peer)
}

fn answered(peer: &mut Peer) -> Result<()> {
    let answer = peer.answer().context("the connection does not go on")?;
    ensure!(
        answer.status() == 200 && answer.body == SENTINEL_BODY,
        "the next request of the connection was answered {}: {:?}",
        answer.status(),
        answer.text()
    );
    let silent = peer.fill(Instant::now())?;
    ensure!(
        peer.pending().is_empty() && silent == Arrival::Silence,
        "{silent:?} behind the next answer"
    );
    Ok(())
}

fn expectation(case: &Case) -> String {
    let answers: Vec<String> = case.answers.iter().map(Expected::to_string).collect();
    let end = match case.end {
        End::Open => "open",
        End::Close => "close",
        End::Either => "either",
        End::Fin => "fin",
    };
    format!("[{}] and {end}", answers.join(", "))
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, framing_name(self.framing))?;
        match &self.body {
            Some(body) => write!(f, " = {}", body.escape_ascii()),
            None => Ok(()),
        }
    }
}

fn framing_name(framing: Framing) -> &'static str {
    match framing {
        Framing::Length => "length",
        Framing::Chunked => "chunked",
        Framing::Close => "close",
        Framing::None => "none",
        Framing::Head => "head",
    }
}
