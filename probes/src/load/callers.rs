//! Keep-alive connections that send the same request in turn.
//!
//! Owns the pace: one request on each connection, then one answer from each, so that a server sees many
//! connections ready at once, as under load, and is never asked for more than it was asked before.
//! Invariant: every answer is as long as the first and begins with 200, or the round is an error.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};

use super::head::{Head, connect};

/// What a browser sends beside the request line and `Host`: thirteen fields.
pub const BROWSER_FIELDS: [(&str, &str); 13] = [
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    ),
    (
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ),
    ("Accept-Language", "en-GB,en;q=0.7,de;q=0.3"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    (
        "Referer",
        "http://127.0.0.1:8080/a/page/before?with=a&longer=query",
    ),
    ("Connection", "keep-alive"),
    (
        "Cookie",
        "session=7f3a9c1e5b2d4f6089a1b3c5d7e9f012; theme=dark; seen=1",
    ),
    ("Upgrade-Insecure-Requests", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-User", "?1"),
    ("Priority", "u=0, i"),
];

/// The request that callers send.
pub fn request(path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    for (name, value) in fields {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// Connections that are open and have been answered once.
#[derive(Debug)]
pub struct Callers {
    sockets: Vec<TcpStream>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Callers {
    /// Opens `count` connections and lets each ask once, which tells how long an answer is.
    pub fn open(to: SocketAddr, count: usize, request: Vec<u8>) -> Result<Self> {
        ensure!(count > 0, "no caller asks nothing");
        let mut sockets = Vec::with_capacity(count);
        let mut longest = 0;
        for _ in 0..count {
            let mut socket = connect(to)?;
            socket.write_all(&request)?;
            let head = Head::read(&mut socket)?.ok()?;
            let body = head.body_bytes()?;
            let mut rest = vec![0; body.saturating_sub(head.behind.len())];
            socket
                .read_exact(&mut rest)
                .context("a body that ends early")?;
            let bytes = head.text.len() + body;
            ensure!(
                longest == 0 || longest == bytes,
                "answers of {longest} and of {bytes} bytes"
            );
            longest = bytes;
            sockets.push(socket);
        }
        Ok(Self {
            sockets,
            request,
            answer: vec![0; longest],
        })
    }

    /// Every connection asks `times` times. Answers how many answers came, which is never zero.
    pub fn ask(&mut self, times: usize) -> Result<u64> {
        let mut answers = 0_u64;
        for _ in 0..times {
            for socket in &mut self.sockets {
                socket.write_all(&self.request).context("a request")?;
            }
            for socket in &mut self.sockets {
                socket.read_exact(&mut self.answer).context("an answer")?;
                ensure!(
                    self.answer.starts_with(b"HTTP/1.1 200"),
                    "an answer begins with {:?}",
                    String::from_utf8_lossy(&self.answer[..12.min(self.answer.len())])
                );
                answers += 1;
            }
        }
        ensure!(answers > 0, "nothing was measured: no request was sent");
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::{BROWSER_FIELDS, Callers, request};
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};

    /// Answers each connection's requests with these texts in turn, then closes it.
    fn server(answers: &'static [&'static str], connections: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for _ in 0..connections {
                let (mut socket, _) = listener.accept().expect("a caller");
                std::thread::spawn(move || {
                    for answer in answers {
                        if socket.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                            socket
                                .write_all(answer.as_bytes())
                                .expect("the caller reads");
                        }
                    }
                });
            }
        });
        address
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    const BAD: &str = "HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nhi";

    #[m0_spec::row(H38)]
    #[test]
    fn every_answer_is_counted() {
        let address = server(&[OK, OK, OK, OK], 3);
        let mut callers = Callers::open(address, 3, request("/", &[])).expect("answers");
        assert_eq!(callers.ask(2).expect("answers"), 6);
        assert_eq!(callers.ask(1).expect("answers"), 3);
    }

    #[m0_spec::row(H37)]
    #[test]
    fn no_request_no_answer_and_another_status_are_errors() {
        let ask = |answers: &'static [&'static str], times| {
            let mut callers = Callers::open(server(answers, 1), 1, request("/", &[]))?;
            callers.ask(times)
        };
        assert!(ask(&[OK, OK], 1).is_ok());
        assert!(ask(&[OK, OK], 0).is_err(), "no request");
        assert!(ask(&[OK], 1).is_err(), "no second answer");
        assert!(ask(&[BAD], 1).is_err(), "503 at first");
        assert!(ask(&[OK, BAD], 1).is_err(), "503 later");
        assert!(
            Callers::open(server(&[], 1), 0, request("/", &[])).is_err(),
            "no caller"
        );
    }

    #[m0_spec::row(H38)]
    #[test]
    fn the_browser_sends_thirteen_fields_beside_host() {
        let text = String::from_utf8(request("/a", &BROWSER_FIELDS)).expect("it is text");
        assert!(
            text.starts_with("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n"),
            "{text}"
        );
        assert_eq!(text.matches("\r\n").count(), 1 + 1 + 13 + 1, "{text}");
        assert!(text.ends_with("\r\n\r\n"), "{text}");
    }
}
