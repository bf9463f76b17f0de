//! A relay between a client of somebody else's and the server, which sees what the client really sent.
//!
//! Owns the record of each visit: when it came and ended, its `Last-Event-ID`, what the server said. Refuses
//! to change a byte between the two. Invariant: every thread of it ends soon after the tap is dropped, because
//! its sockets are shut down.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::answer::find;

/// The page that a browser is sent to, and where.
const PAGE: &str = include_str!("../../conformance/page.html");
const PAGE_PATH: &str = "/conformance/page";
/// Where the page reports.
const REPORT_PATH: &str = "/conformance/report";
/// What is relayed.
const STREAM_PATH: &str = "/events";

/// Largest request that a client may send.
const LARGEST_REQUEST: usize = 1 << 20;

/// One visit of a client to `/events`.
#[derive(Debug, Clone)]
pub struct Visit {
    /// When its request had come.
    pub at: Instant,
    /// When it was over.
    pub ended: Option<Instant>,
    /// What it said it had seen last.
    pub last_event_id: Option<String>,
    /// What the server has sent so far.
    pub received: Vec<u8>,
}

/// What a client told, and when.
#[derive(Debug, Clone)]
pub struct Report {
    /// When it was read.
    pub at: Instant,
    /// One object.
    pub what: Value,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<SocketAddr>,
    visits: Mutex<Vec<Visit>>,
    links: Mutex<Vec<TcpStream>>,
    reports: Mutex<Vec<Report>>,
    over: AtomicBool,
}

/// A running relay.
#[derive(Debug)]
pub struct Tap {
    address: SocketAddr,
    shared: Arc<Shared>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tap {
    /// Listens on a port of its own and relays to `upstream`.
    pub fn open(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("a port for the relay")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            visits: Mutex::default(),
            links: Mutex::default(),
            reports: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if theirs.over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&theirs);
                // A client that leaves in the middle is no failure of the relay.
                thread::spawn(move || serve(&shared, client));
            }
        });
        Ok(Self { address, shared })
    }

    /// The address of a path behind the relay.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The address of the page whose EventSource reports here.
    pub fn page(&self) -> String {
        self.url(PAGE_PATH)
    }

    /// Relays later connections to another server.
    pub fn turn_to(&self, upstream: SocketAddr) {
        *locked(&self.shared.upstream) = upstream;
    }

    /// Ends every connection that is open now.
    pub fn cut(&self) {
        for link in locked(&self.shared.links).drain(..) {
            // One that has ended already is cut.
            let _ = link.shutdown(Shutdown::Both);
        }
    }

    /// Every visit so far.
    pub fn visits(&self) -> Vec<Visit> {
        locked(&self.shared.visits).clone()
    }

    /// Everything that was told so far.
    pub fn reports(&self) -> Vec<Report> {
        locked(&self.shared.reports).clone()
    }

    /// Something to report from another thread.
    pub fn reporter(&self) -> impl Fn(Value) + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move |what| note(&shared, what)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.cut();
        // Wakes the listener's thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn note(shared: &Shared, what: Value) {
    let at = Instant::now();
    locked(&shared.reports).push(Report { at, what });
}

/// Reads a request's head; the head and what came behind it.
fn head(client: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut block = [0; 4096];
    loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            return Ok((head, bytes));
        }
        let count = client.read(&mut block)?;
        anyhow::ensure!(count > 0 && bytes.len() < LARGEST_REQUEST, "no request");
        bytes.extend_from_slice(&block[..count]);
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (each, value) = line.split_once(':')?;
        each.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn serve(shared: &Arc<Shared>, mut client: TcpStream) -> Result<()> {
    let (head, bytes) = head(&mut client)?;
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path {
        PAGE_PATH => {
            write!(
                client,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{PAGE}",
                PAGE.len()
            )?;
        }
        REPORT_PATH => {
            let length: usize = field(&head, "content-length").unwrap_or("0").parse()?;
            let mut body = bytes[head.len() + 4..].to_vec();
            while body.len() < length {
                let mut block = [0; 4096];
                let count = client.read(&mut block)?;
                anyhow::ensure!(count > 0, "half a report");
                body.extend_from_slice(&block[..count]);
            }
            note(shared, serde_json::from_slice(&body)?);
            client.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")?;
        }
        STREAM_PATH => relay(shared, client, &head, &bytes)?,
        // What a browser asks for besides. Relayed, its connection would be kept and carry a report away.
        _ => client.write_all(
            b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        )?,
    }
    Ok(())
}

fn relay(shared: &Arc<Shared>, client: TcpStream, head: &str, bytes: &[u8]) -> Result<()> {
    let upstream = *locked(&shared.upstream);
    let mut server = TcpStream::connect(upstream)?;
    let number = {
        let mut visits = locked(&shared.visits);
        visits.push(Visit {
            at: Instant::now(),
            ended: None,
            last_event_id: field(head, "last-event-id").map(str::to_owned),
            received: Vec::new(),
        });
        visits.len() - 1
    };
    locked(&shared.links).extend([client.try_clone()?, server.try_clone()?]);
    server.write_all(bytes)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        // Either side may end at any moment: that is what is relayed.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut client = client;
    let mut block = [0; 16 * 1024];
    while let Ok(count) = server.read(&mut block) {
        if count == 0 {
            break;
        }
        locked(&shared.visits)[number]
            .received
            .extend_from_slice(&block[..count]);
        if client.write_all(&block[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    locked(&shared.visits)[number].ended = Some(Instant::now());
    Ok(())
}
