//! The peer against listeners of its own: rude, silent, closing and answering ones.

use super::*;
use socket2::SockRef;
use std::net::TcpListener;

/// A server in a thread that plays `script` on the first connection.
fn scripted(script: impl FnOnce(TcpStream) + Send + 'static) -> Result<Peer> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    std::thread::spawn(move || {
        if let Ok((socket, _)) = listener.accept() {
            script(socket);
        }
    });
    Peer::connect(addr)
}

fn saying(bytes: &'static [u8]) -> Result<Peer> {
    scripted(move |mut socket| socket.write_all(bytes).expect("the peer reads"))
}

#[m0_spec::row(H40, H41)]
#[test]
fn answers_in_every_framing_are_read_whole() -> Result<()> {
    let mut peer = saying(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nx-worker: 3\r\n\r\nhi\
          HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n\
          HTTP/1.1 200 OK\r\n\r\nuntil the end",
    )?;
    let first = peer.answer()?;
    assert_eq!(
        (first.text().as_str(), first.continued, first.slot()?),
        ("hi", true, 3)
    );
    assert_eq!(peer.answer()?.text(), "abc");
    assert_eq!(peer.answer()?.text(), "until the end");
    assert_eq!(peer.closed(PATIENCE)?, Closing::Fin);
    Ok(())
}

#[m0_spec::row(H40)]
#[test]
fn a_body_that_ends_too_soon_is_an_error() -> Result<()> {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nContent-",
    ] {
        assert!(saying(bytes)?.answer().is_err(), "{}", answer::lossy(bytes));
    }
    Ok(())
}

#[m0_spec::row(H41)]
#[test]
fn a_server_that_never_answers_is_a_time_out_with_its_name() -> Result<()> {
    let mut peer = scripted(|mut socket| {
        let mut rest = Vec::new();
        socket
            .read_to_end(&mut rest)
            .expect("until the peer leaves");
    })?;
    let failure = peer
        .answer_within(Duration::from_millis(30))
        .expect_err("no answer");
    assert!(
        failure.to_string().contains("no an answer's head within"),
        "{failure}"
    );
    assert!(peer.is_open_and_silent(Duration::from_millis(5))?);
    Ok(())
}

#[m0_spec::row(H41)]
#[test]
fn a_reset_and_a_fin_are_told_apart() -> Result<()> {
    let mut peer = scripted(|mut socket| {
        // Not before the peer stands: a reset during its connect is an error of the connect.
        socket.read_exact(&mut [0]).expect("a byte");
        SockRef::from(&socket)
            .set_linger(Some(Duration::ZERO))
            .expect("linger");
    })?;
    peer.send("x")?;
    assert_eq!(peer.closed(PATIENCE)?, Closing::Reset);
    assert_eq!(saying(b"")?.closed(PATIENCE)?, Closing::Fin);
    assert!(
        saying(b"x")?.closed(PATIENCE).is_err(),
        "a byte is not an end"
    );
    assert_eq!(saying(b"xyz")?.drained(PATIENCE)?, (3, Closing::Fin));
    Ok(())
}

#[m0_spec::row(H41)]
#[test]
fn our_own_reset_reaches_the_server() -> Result<()> {
    let (tell, told) = std::sync::mpsc::channel();
    let peer = scripted(move |mut socket| {
        let seen = socket.read(&mut [0; 8]).expect_err("a reset is an error");
        tell.send(seen.kind()).expect("the test waits");
    })?;
    peer.reset()?;
    assert_eq!(told.recv_timeout(PATIENCE)?, ErrorKind::ConnectionReset);
    Ok(())
}

#[m0_spec::row(H41)]
#[test]
fn stuffing_stops_where_the_reader_does() -> Result<()> {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let mut peer = scripted(move |socket| {
        let _held_unread = socket;
        wait.recv().expect("the test ends");
    })?;
    let sent = peer.stuff(b'x', 64 << 20, Duration::from_millis(100))?;
    assert!(sent > 0 && sent < 64 << 20, "{sent}");
    done.send(())?;
    Ok(())
}
