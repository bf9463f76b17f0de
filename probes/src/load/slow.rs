//! Peers that are slow on purpose: in their heads, in their bodies, in reading a large answer.
//!
//! Owns the pace: one peer acts at a time and each once a second, so that neither the server nor this load meets all of
//! them at once. A peer that was cut is opened anew when its turn comes, so as many are there at the end as at the start.
//! Invariant: whatever ends a slow peer but its deadline is an error, and one that outlives its bound is counted.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::head::connect;

/// Time between two acts of one peer.
pub const PACE: Duration = Duration::from_secs(1);
/// Bytes that a slow reader takes at once.
const SIP: usize = 64;
/// Acts after which a slow body falls silent: one that goes on has no deadline to pass, for each byte moves it.
const BODY_BYTES: u32 = 3;
/// More than the kernel holds for one socket (tcp(7): 4 MiB to send, 6 MiB to receive by default).
const LARGE_BYTES: usize = 64 << 20;

/// What a peer is slow in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// A byte of a field each second, and never the end of the head.
    Head,
    /// Three bytes of a body, a second apart, and no more.
    Body,
    /// Sixty-four bytes a second of an answer of 64 MiB.
    Read,
}

impl Manner {
    /// Every manner.
    pub const ALL: [Self; 3] = [Self::Head, Self::Body, Self::Read];

    /// Peers of this manner, in words.
    ///
    /// ```
    /// use probes::load::slow::Manner;
    ///
    /// assert_eq!(Manner::ALL.map(Manner::name), ["slow heads", "slow bodies", "slow readers"]);
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Head => "slow heads",
            Self::Body => "slow bodies",
            Self::Read => "slow readers",
        }
    }

    fn opening(self) -> String {
        match self {
            Self::Head => "GET / HTTP/1.1\r\nHost: probe\r\nX-Slow: ".to_owned(),
            Self::Body => {
                "POST /echo HTTP/1.1\r\nHost: probe\r\nContent-Length: 1000\r\n\r\n".to_owned()
            }
            Self::Read => {
                format!("GET /big?bytes={LARGE_BYTES} HTTP/1.1\r\nHost: probe\r\n\r\n")
            }
        }
    }
}

/// What became of the peers of one manner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections that were opened.
    pub opened: u64,
    /// Those that the server ended, by 408 or, where an answer was under way, by a reset.
    pub cut: u64,
    /// Those that were still open at the turn that is the bound.
    pub overstayed: u64,
}

#[derive(Debug)]
struct Peer {
    manner: Manner,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    socket: TcpStream,
    turns: u32,
    acts: u32,
}

/// What an act met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Open,
    Cut,
}

/// The slow peers.
#[derive(Debug)]
pub struct Slow {
    to: SocketAddr,
    bound: u32,
    peers: Vec<Peer>,
    next: usize,
    tallies: [Tally; 3],
}

impl Slow {
    /// `each` peers of every manner, none of them open yet; one that is open at its turn `bound` has outlived its deadline.
    /// Turns are at least a second apart, and a machine that has no time for the server has none for turns either.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub fn of(to: SocketAddr, each: usize, bound: u32) -> Result<Self> {
        ensure!(each > 0, "nobody is slow");
        let peer = |at: usize| Peer {
            manner: Manner::ALL[at % Manner::ALL.len()],
            open: None,
        };
        Ok(Self {
            to,
            bound,
            peers: (0..each * Manner::ALL.len()).map(peer).collect(),
            next: 0,
            tallies: [Tally::default(); 3],
        })
    }

    /// What became of each manner's peers so far, in the order of [`Manner::ALL`].
    pub fn tallies(&self) -> [Tally; 3] {
        self.tallies
    }

    /// Lets the peers act in turn, each once a second, until `done` says so.
    ///
    /// # Errors
    ///
    /// When a peer cannot be opened, or is answered something that is no cut.
    pub fn run(&mut self, done: impl Fn() -> bool) -> Result<()> {
        let each = PACE / u32::try_from(self.peers.len()).context("so many peers")?;
        let mut due = Instant::now();
        while !done() {
            self.act()?;
            // A turn that was late is made up for by none that comes early.
            due = (due + each).max(Instant::now());
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    /// One act of the peer whose turn it is.
    fn act(&mut self) -> Result<()> {
        let at = self.next;
        self.next = (at + 1) % self.peers.len();
        let peer = &mut self.peers[at];
        let tally = &mut self.tallies[peer.manner as usize];
        let name = peer.manner.name();
        let Some(open) = &mut peer.open else {
            let mut socket = connect(self.to).with_context(|| format!("one of the {name}"))?;
            socket
                .write_all(peer.manner.opening().as_bytes())
                .with_context(|| format!("the request of one of the {name}"))?;
            socket.set_nonblocking(true)?;
            peer.open = Some(Open {
                socket,
                turns: 0,
                acts: 0,
            });
            tally.opened += 1;
            return Ok(());
        };
        open.turns += 1;
        let met = open.act(peer.manner);
        match met.with_context(|| format!("one of the {name} at its turn {}", open.turns))? {
            Met::Cut => tally.cut += 1,
            Met::Open if open.turns >= self.bound => tally.overstayed += 1,
            Met::Open => return Ok(()),
        }
        peer.open = None;
        Ok(())
    }
}

impl Open {
    fn act(&mut self, manner: Manner) -> Result<Met> {
        // A reader has much left to read before it would meet a reset.
        if let (Manner::Read, Some(error)) = (manner, self.socket.take_error()?) {
            return ended(error);
        }
        let mut bytes = [0; SIP];
        match self.socket.read(&mut bytes) {
            Ok(0) => return Ok(Met::Cut),
            Ok(count) if manner == Manner::Read => {
                let first = &bytes[..count];
                let head = self.acts > 0 || first.starts_with(b"HTTP/1.1 200");
                ensure!(head, "the answer begins with {}", first.escape_ascii());
                self.acts += 1;
                return Ok(Met::Open);
            }
            Ok(count) if bytes[..count].starts_with(b"HTTP/1.1 408") => return Ok(Met::Cut),
            Ok(count) => bail!("the answer begins with {}", bytes[..count].escape_ascii()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return ended(error),
        }
        let more = match manner {
            Manner::Head => true,
            Manner::Body => self.acts < BODY_BYTES,
            Manner::Read => false,
        };
        if more {
            self.acts += 1;
            if let Err(error) = self.socket.write(b"a") {
                return ended(error);
            }
        }
        Ok(Met::Open)
    }
}

/// A connection that was ended under a peer; any other error is not the server's doing.
fn ended(error: std::io::Error) -> Result<Met> {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Met::Cut),
        ErrorKind::WouldBlock => Ok(Met::Open),
        _ => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Manner, Slow, Tally};
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};
    use std::time::{Duration, Instant};

    /// Reads each connection's first bytes, says this to all but readers, and closes it or holds it.
    fn server(answer: &'static str, holds: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let mut held = Vec::new();
            loop {
                let (mut socket, _) = listener.accept().expect("a peer");
                let mut bytes = [0; 1024];
                let count = socket.peek(&mut bytes).expect("a request");
                if bytes[..count].starts_with(b"GET /big") {
                    // More than it takes before the close, which resets because the request was not read.
                    let text = "HTTP/1.1 200 OK\r\n\r\n".to_owned() + &"x".repeat(64 << 10);
                    socket
                        .write_all(text.as_bytes())
                        .expect("the peer is there");
                } else {
                    socket
                        .read_exact(&mut bytes[..count])
                        .expect("what was seen");
                    socket
                        .write_all(answer.as_bytes())
                        .expect("the peer is there");
                }
                if holds {
                    held.push(socket);
                }
            }
        });
        address
    }

    /// Acts until every peer has met this, or an error.
    fn until(slow: &mut Slow, met: impl Fn(&Tally) -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(20);
        while !slow.tallies().iter().all(&met) {
            assert!(Instant::now() < end, "{:?}", slow.tallies());
            slow.act()?;
        }
        Ok(())
    }

    const LATE: &str = "HTTP/1.1 408 Request Timeout\r\n\r\n";

    #[m0_spec::row(W48)]
    #[test]
    fn a_peer_that_is_cut_is_counted_and_opened_anew() {
        let mut slow = Slow::of(server(LATE, false), 2, 10_000_000).expect("six");
        until(&mut slow, |tally| tally.cut >= 3).expect("each is cut");
        for tally in slow.tallies() {
            assert!(
                tally.opened >= tally.cut && tally.opened <= tally.cut + 2,
                "{tally:?}"
            );
            assert_eq!(tally.overstayed, 0);
        }
    }

    #[m0_spec::row(W48)]
    #[test]
    fn a_peer_that_outlives_its_bound_is_counted_as_no_cut() {
        let mut slow = Slow::of(server("", true), 1, 0).expect("three");
        until(&mut slow, |tally| tally.overstayed >= 2).expect("each is left alone");
        assert!(
            slow.tallies().iter().all(|tally| tally.cut == 0),
            "{slow:?}"
        );
    }

    #[m0_spec::row(H37, W48)]
    #[test]
    fn another_answer_than_a_cut_and_nobody_are_errors() {
        let busy = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
        let mut slow = Slow::of(server(busy, false), 1, 10_000_000).expect("three");
        let error = until(&mut slow, |tally| tally.cut >= 2).expect_err("503 is no deadline");
        assert!(format!("{error:#}").contains("503"), "{error:#}");
        assert!(Slow::of(server(LATE, false), 0, 1).is_err());
        assert_eq!(Manner::ALL.map(|manner| manner as usize), [0, 1, 2]);
    }
}
