//! What `--doctor` prints: every setting with its source, and whether this machine can serve.
//!
//! Owns the checks of the machine. Refuses to change anything: what it opens it closes again.
//! Invariant: a check that fails says what would help, and the exit code is then not 0.

use std::fmt::Write;
use std::io;

use m0_unix::fds::Doorbell;
use m0_unix::poll::{Interest, Poller};
use m0_unix::process;
use m0_unix::shared::SharedWords;
use m0_unix::sockets;
use socket2::Domain;

use crate::config::Given;
use crate::listen;
use crate::refusal::Refusal;
use crate::settings::{Bind, Settings};
use crate::tls::Identity;

/// Descriptors that a worker needs beside one for each connection.
const OWN_DESCRIPTORS: u64 = 64;

/// The report, and whether everything is well.
pub(crate) fn report(given: &[Given], resolved: Result<Settings, Vec<Refusal>>) -> (String, bool) {
    let mut text = String::from("settings\n");
    for Given {
        variable,
        text: value,
        source,
    } in given
    {
        let value = if value.is_empty() { "none" } else { value };
        line(
            &mut text,
            &format!(
                "  {:26} {value:24} {source:12} --{}",
                variable.name,
                variable.flag()
            ),
        );
    }
    let checked = resolved.map(|settings| {
        Identity::of(&settings)?;
        listeners(&settings)
    });
    let (refusals, listeners) = match checked {
        Ok(Ok(listeners)) => (Vec::new(), listeners),
        Ok(Err(refusal)) => (vec![refusal], Vec::new()),
        Err(refusals) => (refusals, Vec::new()),
    };
    line(&mut text, "configuration");
    if refusals.is_empty() {
        line(&mut text, "  ok");
    }
    for refusal in &refusals {
        line(&mut text, &format!("  REFUSED {refusal}"));
    }
    if !listeners.is_empty() {
        line(&mut text, "listeners");
    }
    for listener in &listeners {
        line(&mut text, &format!("  {listener}"));
    }
    line(&mut text, "machine");
    let mut well = refusals.is_empty();
    for (name, found) in checks() {
        let shown = match found {
            Ok(found) => format!("ok      {name}: {found}"),
            Err(error) => {
                well = false;
                format!("FAILED  {name}: {error}")
            }
        };
        line(&mut text, &format!("  {shown}"));
    }
    (text, well)
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes every write");
}

/// Where the host would listen: as it is set, or what the service manager has handed over.
fn listeners(settings: &Settings) -> Result<Vec<String>, Refusal> {
    let adopted = listen::adopt(settings)?;
    let over = |tcp: bool| {
        if tcp && settings.tls_cert.is_some() {
            ", over TLS"
        } else {
            ""
        }
    };
    if adopted.is_empty() {
        let shown = |bind: &Bind| format!("{bind}{}", over(matches!(bind, Bind::Tcp(_))));
        return Ok(settings.bind.iter().map(shown).collect());
    }
    let shown = adopted.iter().map(|(socket, name)| {
        let name = name
            .as_ref()
            .map_or(String::new(), |name| format!(" ({name})"));
        let over = over(socket.domain().is_ok_and(|domain| domain != Domain::UNIX));
        format!("{}{name}, handed over{over}", listen::name_of(socket))
    });
    Ok(shown.collect())
}

type Check = (&'static str, Result<String, String>);

fn checks() -> Vec<Check> {
    vec![
        ("memory shared by processes (memfd)", shared()),
        ("one wake-up a connection (epoll, exclusive)", exclusive()),
        ("descriptors for connections", descriptors()),
        ("threads of this process can be counted (/proc)", threads()),
    ]
}

fn shared() -> Result<String, String> {
    SharedWords::create("m0-doctor", 8)
        .map(|_| "made".to_owned())
        .map_err(|error| error.to_string())
}

fn exclusive() -> Result<String, String> {
    let attempt = || -> io::Result<()> {
        let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = sockets::listen_tcp(loopback, 1)?;
        let poller = Poller::new()?;
        poller.add(&listener, 0, Interest::ExclusiveLevel)?;
        poller.add(&Doorbell::new()?, 1, Interest::Level)
    };
    attempt()
        .map(|()| "works on 127.0.0.1".to_owned())
        .map_err(|error| error.to_string())
}

fn descriptors() -> Result<String, String> {
    let (soft, hard) = process::descriptor_limit().map_err(|error| error.to_string())?;
    if hard <= OWN_DESCRIPTORS {
        return Err(format!(
            "the limit is {hard}; raise it (ulimit -n) above {OWN_DESCRIPTORS} and the connections wanted"
        ));
    }
    Ok(format!("{soft}, raised to {hard} at the start"))
}

fn threads() -> Result<String, String> {
    m0_unix::fork::thread_count()
        .map(|count| format!("{count} now"))
        .map_err(|error| format!("{error}; mount /proc"))
}
