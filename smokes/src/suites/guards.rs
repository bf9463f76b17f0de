//! Who may ask and who may read: pages of other origins, credentials, and layers that contradict themselves.
//!
//! Knows the credentials that host_check lets in, and searches what it wrote for them.
//! Invariant: whoever is refused is seen to be kept from the application.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use m0_spec::{E123, E124, E125, E126};
use serde_json::Value;

use super::layers::{Given, get};
use crate::ends::{Ending, code};
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside(
        "layers-pages-of-other-origins",
        30,
        &[E123],
        pages_of_other_origins,
    ),
    beside("layers-guards", 30, &[E125, E126], guards),
    beside("layers-refused", 30, &[E124], refused),
];

fn pages_of_other_origins(run: &Run) -> Result<Witness> {
    const PAGE: &str = "https://app.example";
    const LETS: &str = "access-control-allow-origin";
    let server = Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 1000)
        .env(
            "M0_HOSTCHECK_CORS",
            "https://app.example,http://localhost:5173",
        )
        .env("M0_HOSTCHECK_CORS_CREDENTIALS", 1)
        .env("M0_HOSTCHECK_GUARD", 1)
        .start()?;
    let mut peer = Peer::connect(server.addr())?;
    let mut asked = 0;
    // Also what the host answers, and what a guard does not let pass.
    for (path, status) in [
        ("/", 200),
        ("/none", 404),
        ("/healthz", 200),
        ("/guarded/basic/x", 401),
    ] {
        for (origin, lets) in [
            (PAGE, true),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let answer = get(&mut peer, path, &[("Origin", origin)])?.expect(status)?;
            let told = answer.head.field(LETS);
            ensure!(
                told == lets.then_some(origin),
                "{path} for {origin}: {told:?}"
            );
            let vary = answer
                .head
                .field("vary")
                .unwrap_or_default()
                .to_ascii_lowercase();
            ensure!(vary.contains("origin"), "{:?}", answer.head);
            asked += 1;
        }
    }
    for (origin, lets) in [(PAGE, true), ("https://evil.example", false)] {
        let fields = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "DELETE"),
        ];
        peer.send(request("OPTIONS", "/guarded/basic/x", &fields, b""))?;
        let answer = peer.answer()?.expect(204)?;
        ensure!(
            answer.head.field(LETS) == lets.then_some(origin),
            "{:?}",
            answer.head
        );
        let methods = answer.head.field("access-control-allow-methods");
        ensure!(
            !lets || methods == Some("GET,POST,DELETE"),
            "{:?}",
            answer.head
        );
        asked += 1;
    }
    // Other OPTIONS are the application's.
    peer.send(request("OPTIONS", "/", &[("Origin", PAGE)], b""))?;
    peer.answer()?.expect(405)?;
    let mut stream = Peer::connect(server.addr())?;
    stream.send(request("GET", "/events", &[("Origin", PAGE)], b""))?;
    let head = stream.head(PATIENCE)?;
    ensure!(head.field(LETS) == Some(PAGE), "{head:?}");
    drop(stream);
    server.stop()?;
    Ok(Witness::of("requests of pages", asked))
}

fn guards(run: &Run) -> Result<Witness> {
    let server = Server::launch(run)
        .env("M0_HOSTCHECK_PERIOD_MS", 1000)
        .env("M0_HOSTCHECK_GUARD", 1)
        .env("M0_ACCESS_LOG", 1)
        .env("M0_LOG", "debug")
        .panics_allowed()
        .start()?;
    let mut peer = Peer::connect(server.addr())?;
    // ada:correct horse, and one letter off.
    let right = "Basic YWRhOmNvcnJlY3QgaG9yc2U=";
    let wrong = "Basic YWRhOmNvcnJlY3QgaG9yc2Y=";
    let challenge = "Basic realm=\"host_check\", charset=\"UTF-8\"";
    let mut denied = 0;
    for path in [
        "/guarded/basic",
        "/guarded/basic/x",
        "/guarded/%62asic/x",
        "//guarded/basic/x",
        "/guarded/./basic/x",
    ] {
        for given in [None, Some(wrong), Some("Basic !"), Some("Bearer t0ken")] {
            let fields: Vec<_> = given
                .iter()
                .map(|given| ("Authorization", *given))
                .collect();
            let answer = get(&mut peer, path, &fields)?.expect(401)?;
            let told = answer.head.field("www-authenticate");
            ensure!(told == Some(challenge), "{path} with {given:?}: {told:?}");
            ensure!(
                answer.head.field("x-worker").is_none(),
                "the application saw {path}"
            );
            denied += 1;
        }
    }
    let answer = get(&mut peer, "/guarded/basic/x", &[("Authorization", right)])?.expect(200)?;
    ensure!(answer.text() == "let in\n", "{:?}", answer.text());
    get(
        &mut peer,
        "/guarded/token/x",
        &[("Authorization", "Bearer t0ken")],
    )?
    .expect(200)?;
    for (given, told) in [
        (None, "Bearer realm=\"host_check\""),
        (
            Some("Bearer t0kem"),
            "Bearer realm=\"host_check\", error=\"invalid_token\"",
        ),
    ] {
        let fields: Vec<_> = given
            .iter()
            .map(|given| ("Authorization", *given))
            .collect();
        let answer = get(&mut peer, "/guarded/token/x", &fields)?.expect(401)?;
        ensure!(
            answer.head.field("www-authenticate") == Some(told),
            "{:?}",
            answer.head
        );
        denied += 1;
    }
    get(&mut peer, "/guarded/free", &[])?.expect(200)?;
    // A check that panics lets nobody in: panic:x.
    get(
        &mut peer,
        "/guarded/basic/x",
        &[("Authorization", "Basic cGFuaWM6eA==")],
    )?
    .expect(500)?;
    let (out, log) = (server.out().clone(), server.log().clone());
    server.stop()?;
    let written: Vec<String> = [out.objects(), log.objects()]
        .concat()
        .iter()
        .map(Value::to_string)
        .collect();
    for secret in ["correct hors", "t0ke", "YWRhOmNvc", "cGFuaWM6"] {
        let line = written.iter().find(|line| line.contains(secret));
        ensure!(line.is_none(), "a secret stands in {line:?}");
    }
    Ok(Witness::of("denied", denied).and("lines searched", written.len()))
}

fn refused(run: &Run) -> Result<Witness> {
    let cases: [(Given<'_>, &[&str]); 4] = [
        (
            &[
                ("M0_HOSTCHECK_CORS", "*"),
                ("M0_HOSTCHECK_CORS_CREDENTIALS", "1"),
            ],
            &["Cors::credentials", "list the origins"],
        ),
        (
            &[("M0_HOSTCHECK_CORS", "https://app.example/")],
            &["https://app.example/", "is no origin"],
        ),
        (
            &[("M0_HOSTCHECK_FILES", "/proc/no/such")],
            &["/proc/no/such", "want a directory"],
        ),
        (
            &[("M0_HOSTCHECK_FILES", "/proc/version")],
            &["/proc/version", "is not a directory"],
        ),
    ];
    for (env, parts) in cases {
        // A host that bound first would find the address occupied, and end with 71.
        let occupant = TcpListener::bind((Run::own_address(0), 0))?;
        let mut launch = Server::launch(run).bind(occupant.local_addr()?);
        for (name, value) in env {
            launch = launch.env(name, value);
        }
        let mut server = launch.spawn()?;
        server.await_exit(Duration::from_secs(5))?;
        drop(occupant);
        let log = server.log().clone();
        server
            .finish(&Ending::code(code::CONFIG))
            .with_context(|| format!("{env:?}"))?;
        let lines = log.events("refused");
        ensure!(lines.len() == 1, "{env:?}: {} lines", lines.len());
        let text = lines[0].to_string();
        for part in parts {
            ensure!(text.contains(part), "{env:?}: {part:?} is not in {text}");
        }
    }
    Ok(Witness::of("refusals", cases.len()))
}
