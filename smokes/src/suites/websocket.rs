//! WebSockets as their clients meet them: well-behaved ones of another implementation, and rude ones.
//!
//! Knows the sessions of the check: an echo, one that dawdles, one that floods.
//! Invariant: the server that was rude to still echoes afterwards.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use m0_spec::{K1, K3, K4, K5, K7, K8, K11, K12, K13, K14, K15, K16, K22, K26};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket, client::client_with_config};

use super::beat::NEVER_MS;
use super::drain::AT_ONCE;
use crate::audience::one_connection_each;
use crate::ends::Ending;
use crate::launch::Launch;
use crate::peer::{Closing, PATIENCE, Peer, request};
use crate::phase::{Phase, alone, beside};
use crate::run::{Run, Witness, millis};
use crate::server::{Server, sum};
use crate::socket::{BINARY, CLOSE, HANDSHAKE, PING, PONG, Socket, TEXT, close, masked};
use crate::until::{holds, until};

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("ws-echo", 40, &[K1, K12, K22], echo),
    beside("ws-handshakes", 20, &[K7, K8, K15], handshakes),
    beside("ws-wrong-frames", 30, &[K3, K4, K5, K26], wrong_frames),
    alone("ws-drain", 30, &[K13], drain),
    beside("ws-drain-silent-peers", 30, &[K11, K14], drain_silent_peers),
    beside("ws-close-handshake", 20, &[K16], close_handshake),
];

/// How early a bound of the server may seem to be over: its clock for them counts whole milliseconds and is up
/// to one timer tick, 10 ms, behind (`CLOCK_MONOTONIC_COARSE`, clock_gettime(2)).
pub(super) const CLOCK_MS: f64 = 11.0;

pub(super) fn launch(run: &Run) -> Launch<'_> {
    Server::launch(run).env("M0_HOSTCHECK_PERIOD_MS", NEVER_MS)
}

/// One message there and back.
pub(super) fn echoes(server: &Server<'_>) -> Result<()> {
    let mut socket = Socket::open(server.addr(), "/ws")?;
    socket.send(TEXT, b"still there?")?;
    let frame = socket.frame()?;
    ensure!(frame.payload == b"still there?", "{frame:?}");
    socket.close(1000)
}

fn polite(to: SocketAddr, path: &str) -> Result<WebSocket<TcpStream>> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let config = WebSocketConfig::default().max_frame_size(Some(64 << 20));
    let url = format!("ws://{to}{path}");
    let (socket, answer) = client_with_config(url, stream, Some(config))
        .map_err(|error| anyhow::anyhow!("handshake: {error}"))?;
    ensure!(answer.status() == 101, "status {}", answer.status());
    Ok(socket)
}

fn echo(run: &Run) -> Result<Witness> {
    const LIMIT: usize = 4 << 20;
    let server = launch(run)
        .workers(2)
        .env("M0_WS_MAX_MESSAGE_BYTES", LIMIT)
        .env("M0_WS_MAX_FRAME_BYTES", LIMIT)
        .env("M0_ACCESS_LOG", 1)
        .start()?;
    let mut messages = Vec::new();
    for size in [0, 1, 125, 126, 127, 65_535, 65_536, LIMIT] {
        messages.push(Message::text("ü".repeat(size / 2)));
        messages.push(Message::binary(vec![0xff; size]));
    }
    let mut client = polite(server.addr(), "/ws")?;
    for message in &messages {
        client.send(message.clone())?;
        let answer = client.read()?;
        ensure!(
            answer == *message,
            "{} bytes came back as {} ({} for {})",
            message.len(),
            answer.len(),
            if answer.is_text() { "text" } else { "no text" },
            if message.is_text() { "text" } else { "no text" },
        );
    }
    client.send(Message::Ping(b"are you there".as_slice().into()))?;
    ensure!(
        client.read()? == Message::Pong(b"are you there".as_slice().into()),
        "no pong"
    );
    // While it is held it is a stream like others.
    let stats = server.stats()?;
    ensure!(sum(&stats, "streams")? == 1, "streams in {stats}");
    client.close(None)?;
    while client.read().is_ok() {}

    // A message in fragments, with a ping between them, in one packet with the handshake.
    let mut peer = Peer::connect(server.addr())?;
    let eager = [
        request("GET", "/ws", &HANDSHAKE, b""),
        masked(0x01, "gr".as_bytes()),
        masked(PING, b"ping"),
        masked(0x00, &"ü".as_bytes()[..1]),
        masked(0x80, &[&"ü".as_bytes()[1..], b"n"].concat()),
    ];
    peer.send(eager.concat())?;
    ensure!(peer.head(PATIENCE)?.status == 101, "an eager client");
    let mut socket = Socket::adopt(peer);
    let pong = socket.frame()?;
    ensure!(
        (pong.first, &pong.payload[..]) == (PONG, b"ping"),
        "{pong:?}"
    );
    let whole = socket.frame()?;
    ensure!(whole.first == TEXT && whole.text()? == "grün", "{whole:?}");
    socket.close(1000)?;
    let held = until("no stream to be held", PATIENCE, || {
        let stats = server.stats().map_err(|error| format!("{error:#}"))?;
        let held = sum(&stats, "streams").map_err(|error| format!("{error:#}"))?;
        holds(held == 0, || format!("{held} streams"))
            .and_then(|()| sum(&stats, "streams_opened").map_err(|error| format!("{error:#}")))
    })?;
    ensure!(held == 2, "{held} streams were opened");
    let out = server.out().clone();
    server.stop()?;
    let lines: Vec<_> = out
        .objects()
        .into_iter()
        .filter(|line| line["path"] == "/ws" && line["status"] == 101)
        .collect();
    ensure!(lines.len() == 2, "the access log: {lines:?}");
    let bytes = lines.iter().filter_map(|line| line["bytes"].as_u64()).max();
    ensure!(bytes > Some(2 * LIMIT as u64), "{bytes:?} bytes in the log");
    Ok(Witness::of("messages", messages.len()).and("fragments", 3))
}

fn handshakes(run: &Run) -> Result<Witness> {
    let server = launch(run)
        .env("M0_WS_ORIGINS", "https://friend.example")
        .start()?;
    let with = |name: &str, value: &'static str| -> Vec<(&str, &str)> {
        let changed = HANDSHAKE.map(|(n, v)| if n == name { (n, value) } else { (n, v) });
        changed.to_vec()
    };
    let cases = [
        ("Upgrade", "h2c", 426),
        ("Connection", "keep-alive", 400),
        ("Sec-WebSocket-Version", "8", 426),
        ("Sec-WebSocket-Key", "short", 400),
    ];
    for (name, value, status) in cases {
        let answer = Socket::refused(server.addr(), "/ws", &with(name, value))?;
        ensure!(
            answer.status() == status,
            "{name}: {value} is answered {} instead of {status}",
            answer.status()
        );
        ensure!(
            status != 426
                || answer.head.field("sec-websocket-version") == Some("13")
                    && answer.head.field("upgrade") == Some("websocket"),
            "426 without what to ask for: {:?}",
            answer.head
        );
    }
    // The connection of a refused handshake serves on.
    let mut peer = Peer::connect(server.addr())?;
    peer.send(request(
        "GET",
        "/ws",
        &with("Sec-WebSocket-Version", "8"),
        b"",
    ))?;
    peer.answer()?.expect(426)?;
    peer.get("/")?.expect(200)?;

    let from = |origin| [&HANDSHAKE[..], &[("Origin", origin)]].concat();
    for origin in ["https://evil.example", "http://friend.example", "null"] {
        let answer = Socket::refused(server.addr(), "/ws", &from(origin))?;
        ensure!(answer.status() == 403, "{origin}: {}", answer.status());
    }
    for origin in ["https://friend.example", "http://smokes"] {
        let peer = Peer::connect(server.addr())?;
        Socket::over(peer, "/ws", &[("Origin", origin)])?.close(1000)?;
    }
    // An offer is not taken up: the answer says so, and a compressed frame is a wrong one.
    let offer = ("Sec-WebSocket-Extensions", "permessage-deflate");
    let mut socket = Socket::over(Peer::connect(server.addr())?, "/ws", &[offer])?;
    socket.send(0xc1, b"\xf2\x48\xcd\xc9\xc9\x07\x00")?;
    let (_, frame) = socket.until_close()?;
    ensure!(frame.close_code()? == 1002, "{frame:?}");
    echoes(&server)?;
    server.stop()?;
    Ok(Witness::of("refused handshakes", cases.len() + 3).and("offers", 1))
}

fn wrong_frames(run: &Run) -> Result<Witness> {
    let server = launch(run)
        .env("M0_WS_MAX_MESSAGE_BYTES", 3000)
        .env("M0_WS_MAX_FRAME_BYTES", 2000)
        .env("M0_WS_MAX_FRAGMENTS", 4)
        .start()?;
    let fragments = |first: u8, payload: &[u8], count: usize| {
        let mut bytes = masked(first, payload);
        (1..count).for_each(|_| bytes.extend(masked(0x00, payload)));
        bytes
    };
    let cases: Vec<(&str, u16, Vec<u8>)> = vec![
        ("not masked", 1002, b"\x81\x02hi".to_vec()),
        ("a reserved opcode", 1002, masked(0x83, b"")),
        ("a continuation of nothing", 1002, masked(0x80, b"a")),
        ("a ping of 126 bytes", 1002, masked(PING, &[0; 126])),
        ("code 1005", 1002, close(1005)),
        ("no UTF-8", 1007, masked(TEXT, b"\xff")),
        ("half a character", 1007, masked(TEXT, b"\xe2\x82")),
        ("a frame of 2001 bytes", 1009, masked(BINARY, &[0; 2001])),
        (
            "a message of 3001 bytes",
            1009,
            fragments(0x02, &[0; 1500], 3),
        ),
        ("five fragments", 1009, fragments(0x01, b"a", 5)),
        (
            "a head that promises all memory",
            1009,
            b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff1234".to_vec(),
        ),
    ];
    for (what, code, bytes) in &cases {
        let mut socket = Socket::open(server.addr(), "/ws")?;
        socket.send(TEXT, b"right")?;
        ensure!(socket.frame()?.payload == b"right", "before {what}");
        socket.peer.send(bytes)?;
        let frame = socket.frame().with_context(|| what.to_string())?;
        ensure!(
            frame.first == CLOSE && frame.close_code()? == *code,
            "{what} is answered {frame:?} instead of {code}"
        );
        let how = socket.peer.closed(PATIENCE)?;
        ensure!(
            how == Closing::Fin,
            "{what}: reset before the code was read"
        );
    }
    // A client that writes its whole message before it reads learns the code all the same.
    let mut large = polite(server.addr(), "/ws")?;
    large.send(Message::binary(vec![0; 16 << 20]))?;
    let Message::Close(Some(told)) = large.read()? else {
        bail!("a message of 16 MiB is not answered with a close");
    };
    ensure!(u16::from(told.code) == 1009, "{told:?}");
    while large.read().is_ok() {}
    let told = server.log().events("cut").len();
    ensure!(
        told == cases.len() + 1,
        "{told} lines about {}",
        cases.len()
    );
    echoes(&server)?;
    server.stop()?;
    Ok(Witness::of("wrong frames", cases.len()))
}

fn drain(run: &Run) -> Result<Witness> {
    let server = launch(run).workers(2).start()?;
    let mut held = Vec::new();
    for _ in 0..3 {
        for peer in one_connection_each(&server)?.into_values() {
            held.push(Socket::over(peer, "/ws", &[])?);
        }
    }
    for socket in &mut held {
        socket.send(TEXT, b"in time")?;
        ensure!(socket.frame()?.payload == b"in time", "no echo");
    }
    let log = server.log().clone();
    server.check_running()?;
    server.signal(nix::sys::signal::Signal::SIGTERM)?;
    let asked = Instant::now();
    for socket in &mut held {
        let frame = socket.frame()?;
        ensure!(frame.close_code()? == 1001, "{frame:?}");
        // Not before we have answered.
        ensure!(
            socket.peer.is_open_and_silent(Duration::from_millis(10))?,
            "closed before the answer"
        );
    }
    for socket in &mut held {
        socket.peer.send(close(1001))?;
    }
    for socket in &mut held {
        let how = socket.peer.closed(PATIENCE)?;
        ensure!(how == Closing::Fin, "reset behind the close");
    }
    let count = held.len();
    // Nor is it waited for that they close their sides.
    let ended = server.finish(&Ending::clean())?;
    drop(held);
    run.within("exit after all have answered", ended.after, AT_ONCE)?;
    run.within("whole drain", asked.elapsed(), Duration::from_secs(2))?;
    let told: u64 = log
        .events("drained")
        .iter()
        .filter_map(|line| line["streams_told"].as_u64())
        .sum();
    ensure!(told == count as u64, "told {told} of {count}");
    Ok(Witness::of("WebSockets told", count))
}

fn drain_silent_peers(run: &Run) -> Result<Witness> {
    const CLOSE_MS: u64 = 300;
    let server = launch(run)
        .env("M0_WS_CLOSE_TIMEOUT_MS", CLOSE_MS)
        .start()?;
    let silent = Socket::open(server.addr(), "/ws")?;
    // This one does not even read: its session waits for room.
    let narrow = Peer::connect_narrow(server.addr(), 4096)?;
    let deaf = Socket::over(narrow, "/ws/flood?bytes=4000", &[])?;
    let log = server.log().clone();
    let asked = Instant::now();
    let ended = server.stop()?;
    run.at_least(
        "exit",
        millis(asked.elapsed()),
        "ms",
        CLOSE_MS as f64 - CLOCK_MS,
    )?;
    run.within(
        "exit",
        ended.after,
        Duration::from_millis(CLOSE_MS) + Duration::from_secs(1),
    )?;
    let cut = log.events("cut");
    ensure!(cut.len() == 2, "{} lines about two: {cut:?}", cut.len());
    drop((silent, deaf));
    Ok(Witness::of("silent peers cut", cut.len()))
}

fn close_handshake(run: &Run) -> Result<Witness> {
    let server = launch(run).env("M0_WS_CLOSE_TIMEOUT_MS", 400).start()?;
    // The application says close: behind its words, and FIN only behind our answer.
    let mut socket = Socket::open(server.addr(), "/ws/close?code=4321")?;
    let (words, frame) = socket.until_close()?;
    ensure!(words == 3, "{words} words before the close");
    ensure!(
        frame.close_code()? == 4321 && frame.close_reason() == "as asked",
        "{frame:?}"
    );
    ensure!(
        socket.peer.is_open_and_silent(Duration::from_millis(50))?,
        "FIN before our close frame"
    );
    socket.peer.send(close(4321))?;
    let how = socket.peer.closed(PATIENCE)?;
    ensure!(how == Closing::Fin, "reset behind both close frames");
    // Our close is answered with its code, also with none, and nothing follows.
    for payload in [&b""[..], &1000_u16.to_be_bytes(), &3999_u16.to_be_bytes()] {
        let mut socket = Socket::open(server.addr(), "/ws")?;
        socket.send(CLOSE, payload)?;
        let frame = socket.frame()?;
        ensure!(
            frame.first == CLOSE && frame.payload == payload,
            "{frame:?}"
        );
        ensure!(socket.peer.closed(PATIENCE)? == Closing::Fin, "reset");
    }
    // A close that nobody answers is waited for, but not for ever.
    let opened = Instant::now();
    let mut socket = Socket::open(server.addr(), "/ws/close?code=1000")?;
    let (_, frame) = socket.until_close()?;
    let said = Instant::now();
    ensure!(frame.close_code()? == 1000, "{frame:?}");
    socket.peer.closed(PATIENCE)?;
    run.at_least("cut", millis(opened.elapsed()), "ms", 400.0 - CLOCK_MS)?;
    run.within("cut", said.elapsed(), Duration::from_millis(1500))?;
    echoes(&server)?;
    server.stop()?;
    Ok(Witness::of("closing handshakes", 4).and("closes not answered", 1))
}
