//! The hub: every published frame to every WebSocket that asked for them, on every worker.
//!
//! Knows the frames by their ids, as the event streams beside it have them.
//! Invariant: what is said of a WebSocket here is said of an event stream of the same server elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use m0_spec::{K21, K24, K25};

use super::websocket::launch;
use crate::audience::one_connection_each;
use crate::ends::Ending;
use crate::events::{EventStream, Id, Item, consecutive};
use crate::peer::{Closing, PATIENCE, Peer};
use crate::phase::{Phase, alone, beside};
use crate::proc;
use crate::run::{Run, Witness};
use crate::socket::{CLOSE, Frame, Socket, TEXT, close};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("ws-hub-carries-every-frame", 40, &[K21, K24], every_frame),
    alone("ws-hub-slow-reader", 40, &[K25], slow_reader),
];

/// The value of one line of an event's text.
fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn id(frame: &Frame) -> Result<Id> {
    ensure!(frame.first == TEXT, "{frame:?} where a frame should come");
    let text = frame.text()?;
    let whole = text.ends_with("\n\n") && text.matches("\n\n").count() == 1;
    ensure!(whole, "a message that is not one event: {text:?}");
    Id::parse(line(text, "id").with_context(|| format!("no id in {text:?}"))?)
}

fn every_frame(run: &Run) -> Result<Witness> {
    const FRAMES: usize = 40;
    let server = launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 20)
        .start()?;
    let mut hubs = Vec::new();
    for _ in 0..2 {
        for peer in one_connection_each(&server)?.into_values() {
            hubs.push(Socket::over(peer, "/ws/events", &[])?);
        }
    }
    // The event stream beside them has the same events.
    let mut stream = EventStream::open(server.addr(), None)?;
    let Some(Item::Event(event)) = stream.next(PATIENCE)? else {
        bail!("no event on the stream");
    };
    let wanted = Id::parse(event.id.as_deref().context("an id")?)?;
    let mut seen: Vec<Vec<Id>> = Vec::new();
    for hub in &mut hubs {
        let mut ids = Vec::new();
        let mut same = false;
        while ids.len() < FRAMES || !same {
            let frame = hub.frame()?;
            let found = id(&frame)?;
            if found == wanted {
                let data = line(frame.text()?, "data").unwrap_or_default();
                ensure!(data == event.data, "{data:?} here, {:?} there", event.data);
                same = true;
            }
            ensure!(same || found < wanted, "{wanted} never came");
            ids.push(found);
        }
        seen.push(ids);
    }
    for ids in &seen {
        consecutive(ids)?;
    }
    // A hub that comes back goes on behind the last id it had, on whichever worker.
    let last = &seen[1][FRAMES / 2];
    for peer in one_connection_each(&server)?.into_values() {
        let path = format!("/ws/events?last={last}");
        let mut again = Socket::over(peer, &path, &[])?;
        let ids: Result<Vec<Id>> = (0..FRAMES).map(|_| id(&again.frame()?)).collect();
        consecutive(&[&[last.clone()][..], &ids?].concat())?;
        again.close(1000)?;
    }
    let mut lost = Socket::open(server.addr(), "/ws/events?last=nonsense")?;
    let reset = lost.frame()?;
    ensure!(line(reset.text()?, "event") == Some("reset"), "{reset:?}");
    lost.close(1000)?;

    // What is published once the head has come is not missed.
    let mut publisher = Peer::connect(server.addr())?;
    for number in 0..50 {
        let mut hub = Socket::open(server.addr(), "/ws/events")?;
        let note = number.to_string();
        publisher.post("/publish", note.as_bytes())?.expect(200)?;
        loop {
            let frame = hub.frame()?;
            let text = frame.text()?;
            if line(text, "event") == Some("note") {
                ensure!(line(text, "data") == Some(&note), "{text:?}");
                break;
            }
        }
        hub.close(1000)?;
    }
    server.check_running()?;
    server.signal(nix::sys::signal::Signal::SIGTERM)?;
    for hub in &mut hubs {
        let (_, frame) = hub.until_close()?;
        ensure!(frame.close_code()? == 1001, "{frame:?}");
        hub.peer.send(close(1001))?;
        ensure!(hub.peer.closed(PATIENCE)? == Closing::Fin, "reset");
    }
    let count = hubs.len();
    drop((hubs, stream));
    server.finish(&Ending::clean())?;
    Ok(Witness::of("hubs told", count).and("frames each", FRAMES))
}

/// The ids of a socket's frames up to its close frame, and that frame.
fn read_to_close(socket: &mut Socket) -> Result<(Vec<Id>, Frame)> {
    let mut had = Vec::new();
    loop {
        let frame = socket.frame()?;
        if frame.first == CLOSE {
            return Ok((had, frame));
        }
        had.push(id(&frame)?);
    }
}

fn slow_reader(run: &Run) -> Result<Witness> {
    const WINDOW: usize = 65_536;
    const BEATS: usize = 300;
    let server = launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 5)
        .env("M0_HOSTCHECK_BEAT_BYTES", 65_536)
        .env("M0_WS_WINDOW_BYTES", WINDOW)
        .env("M0_REPLAY_BYTES", 1 << 20)
        .start()?;
    let mut quick = Socket::open(server.addr(), "/ws/events")?;
    let narrow = Peer::connect_narrow(server.addr(), 4096)?;
    let mut slow = Socket::over(narrow, "/ws/events", &[])?;
    let worker = server.pid_of_slot(slow.slot())?;
    let memory = || proc::anonymous_bytes(worker).context("the worker's memory");
    let before = memory()?;
    // Many times what the kernels, the window and the log hold.
    let mut ids = Vec::new();
    let mut pauses = Vec::new();
    while ids.len() < BEATS {
        let asked = Instant::now();
        ids.push(id(&quick.frame()?)?);
        pauses.push(asked.elapsed());
    }
    consecutive(&ids)?;
    pauses.sort();
    let median = pauses[pauses.len() / 2];
    run.within(
        "pause of the other, median",
        median,
        Duration::from_millis(40),
    )?;
    let grown = memory()?.saturating_sub(before);
    run.at_most("growth", grown as f64, "bytes", (WINDOW * 32) as f64)?;
    // The slow one reads at last: what it was sent is in order, then it is told. The other reads on meanwhile:
    // one that paused for as long as this takes would be a slow reader, too.
    let over = AtomicBool::new(false);
    let (had, told, more) = thread::scope(|scope| -> Result<_> {
        let reader = scope.spawn(|| -> Result<Vec<Id>> {
            let mut more = Vec::new();
            while !over.load(Ordering::Acquire) || more.is_empty() {
                more.push(id(&quick.frame()?)?);
            }
            Ok(more)
        });
        let read = read_to_close(&mut slow);
        over.store(true, Ordering::Release);
        let more = reader
            .join()
            .map_err(|_| anyhow!("the other's reader panicked"))??;
        let (had, told) = read?;
        Ok((had, told, more))
    })?;
    consecutive(&had)?;
    ensure!(had.len() < BEATS, "it had all of its {} beats", had.len());
    ensure!(told.close_code()? == 1008, "{told:?}");
    slow.peer.send(close(1008))?;
    ensure!(slow.peer.closed(PATIENCE)? == Closing::Fin, "reset");
    consecutive(&[&ids[..], &more].concat())?;
    drop(quick);
    server.stop()?;
    Ok(Witness::of("frames of the other", ids.len()).and("frames of the slow one", had.len()))
}
