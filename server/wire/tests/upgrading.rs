//! Which request becomes a WebSocket, what the others are answered, and when a silent peer is given up.

use m0_wire::ws::handshake::{Head, Origins, judge};
use m0_wire::ws::{Due, Rhythm, Vitals};

const RIGHT: &[(&str, &str)] = &[
    ("Host", "a.example:8080"),
    ("Upgrade", "WebSocket"),
    ("Connection", "keep-alive, Upgrade"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", "13"),
];

/// The status that a handshake with these fields in the place of the right ones is answered; 101 for one
/// that is right. An empty value leaves the field out; a name that is not there is added.
fn status(method: &str, http11: bool, changes: &[(&str, &str)], allowed: &str) -> u16 {
    let mut fields: Vec<(&str, &[u8])> = RIGHT
        .iter()
        .filter(|(name, _)| !changes.iter().any(|(other, _)| other == name))
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    let kept = changes.iter().filter(|(_, value)| !value.is_empty());
    fields.extend(kept.map(|(name, value)| (*name, value.as_bytes())));
    let head = Head {
        method,
        http11,
        fields: &fields,
    };
    let origins = Origins::parse(allowed).expect("a list of origins");
    judge(&head, &origins).map_or_else(|refused| refused.status, |_| 101)
}

#[m0_spec::row(K7)]
#[test]
fn each_wrong_handshake_has_its_answer() {
    let get = |changes: &[(&str, &str)]| status("GET", true, changes, "");
    assert_eq!(get(&[]), 101);
    assert_eq!(get(&[("Connection", "upgrade")]), 101);
    assert_eq!(get(&[("Upgrade", "h2c, websocket")]), 101);
    // Offers are not answered, and are no reason to refuse (section 9.1).
    assert_eq!(
        get(&[("Sec-WebSocket-Extensions", "permessage-deflate")]),
        101
    );
    assert_eq!(status("POST", true, &[], ""), 405);
    assert_eq!(status("GET", false, &[], ""), 426);
    for (name, value, wanted) in [
        ("Upgrade", "", 426),
        ("Upgrade", "h2c", 426),
        ("Connection", "", 400),
        ("Connection", "keep-alive", 400),
        ("Sec-WebSocket-Version", "", 426),
        ("Sec-WebSocket-Version", "8", 426),
        ("Sec-WebSocket-Version", "13, 8", 426),
        ("Sec-WebSocket-Key", "", 400),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZQ==", 400),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ", 400),
        ("Sec-WebSocket-Key", "not base64 at all, 24 ch", 400),
    ] {
        assert_eq!(get(&[(name, value)]), wanted, "{name}: {value}");
    }
    // Its bytes would be taken for frames.
    assert_eq!(get(&[("Content-Length", "5")]), 400);
    assert_eq!(get(&[("Content-Length", "0")]), 101);
    assert_eq!(get(&[("Transfer-Encoding", "chunked")]), 400);
    let twice = |name, value| get(&[(name, value), (name, value)]);
    assert_eq!(twice("Sec-WebSocket-Version", "13"), 400);
    assert_eq!(twice("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), 400);
    assert_eq!(twice("Origin", "http://a.example:8080"), 400);
}

#[m0_spec::row(K8)]
#[test]
fn a_foreign_origin_is_answered_403() {
    let from = |origin: &str, allowed: &str| status("GET", true, &[("Origin", origin)], allowed);
    // Of the server itself, whichever scheme a proxy took off.
    assert_eq!(from("http://a.example:8080", ""), 101);
    assert_eq!(from("https://A.example:8080", ""), 101);
    for foreign in [
        "http://a.example",
        "http://a.example:8081",
        "http://b.a.example:8080",
        "http://evil.example?a.example:8080",
        "http://a.example:8080@evil.example",
        "file://a.example:8080",
        "null",
        "a.example:8080",
        "http://a.example:8080x",
    ] {
        assert_eq!(from(foreign, ""), 403, "{foreign}");
        let list = "https://c.example, http://d.example:90";
        assert_eq!(from(foreign, list), 403, "{foreign}");
        assert_eq!(from(foreign, "*"), 101, "{foreign}");
    }
    let list = "https://c.example, http://d.example:90";
    for (origin, wanted) in [
        ("https://c.example", 101),
        ("https://C.example:443", 101),
        ("http://c.example", 403),
        ("http://d.example:90", 101),
        ("http://d.example", 403),
    ] {
        assert_eq!(from(origin, list), wanted, "{origin}");
    }
    // A port that the scheme implies may be left out on one side.
    let host =
        |host: &str, origin: &str| status("GET", true, &[("Host", host), ("Origin", origin)], "");
    assert_eq!(host("a.example", "https://a.example:443"), 101);
    assert_eq!(host("a.example:443", "https://a.example"), 101);
    assert_eq!(host("[::1]:8080", "http://[::1]:8080"), 101);
    assert_eq!(host("[::1]", "http://[::1]"), 101);
    assert_eq!(host("a.example:443", "http://a.example"), 403);
    for wrong in [
        "c.example",
        "ftp://c.example",
        "http://",
        "https://c.example/",
    ] {
        assert_eq!(Origins::parse(wrong), None, "{wrong}");
    }
}

const RHYTHM: Rhythm = Rhythm {
    ping: 100,
    pong: 50,
    close: 30,
};

#[m0_spec::row(K9)]
#[test]
fn a_silent_peer_is_pinged_and_then_given_up() {
    let mut vitals = Vitals::new(1_000);
    assert_eq!(vitals.due(&RHYTHM, 1_099), None);
    vitals.heard(1_050);
    assert_eq!(vitals.due(&RHYTHM, 1_149), None);
    assert_eq!(vitals.due(&RHYTHM, 1_150), Some(Due::Ping));
    vitals.pinged(1_150);
    assert_eq!(vitals.due(&RHYTHM, 1_199), None);
    assert_eq!(
        vitals.due(&RHYTHM, 1_200),
        Some(Due::Cut("no pong in time"))
    );
    vitals.heard(1_199);
    assert_eq!(vitals.due(&RHYTHM, 1_298), None);
    assert_eq!(vitals.due(&RHYTHM, 1_299), Some(Due::Ping));
    let never = Rhythm { ping: 0, ..RHYTHM };
    assert_eq!(vitals.due(&never, u64::MAX), None);
}

#[m0_spec::row(K10)]
#[test]
fn a_peer_is_not_silent_while_nobody_listens() {
    let mut vitals = Vitals::new(1_000);
    vitals.pinged(1_100);
    vitals.listens(false, 1_110);
    assert_eq!(vitals.due(&RHYTHM, 9_000), None);
    vitals.listens(true, 9_000);
    assert_eq!(vitals.due(&RHYTHM, 9_049), None);
    // It is said again and again, and counts once.
    vitals.listens(true, 9_049);
    assert_eq!(
        vitals.due(&RHYTHM, 9_050),
        Some(Due::Cut("no pong in time"))
    );
}

#[m0_spec::row(K11)]
#[test]
fn a_close_that_is_not_answered_is_given_up_whether_or_not_somebody_listens() {
    let mut vitals = Vitals::new(0);
    vitals.pinged(990);
    vitals.closing(1_000);
    vitals.closing(1_020);
    vitals.listens(false, 1_020);
    // A pong is not asked for any more.
    assert_eq!(vitals.due(&RHYTHM, 1_029), None);
    let cut = Some(Due::Cut("close not answered in time"));
    assert_eq!(vitals.due(&RHYTHM, 1_030), cut);
}
