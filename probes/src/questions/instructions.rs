//! How many instructions does a request cost in user mode, beside axum, actix-web, ntex and a bare epoll loop?
//!
//! Owns two runs of every server, a short and a long one, under valgrind; their difference is what requests cost, whatever
//! the start costs. Refuses nginx, whose answers are in another process than the one that is started.
//! Invariant: nothing else that runs on the machine changes the figure, so it is the one to compare over time.

use anyhow::Result;

use super::Question;
use crate::callgrind::{Count, each, total};
use crate::load::callers::{BROWSER_FIELDS, Callers, request};
use crate::report::{Report, Table};
use crate::samples::Samples;
use crate::session::{Peer, Program, Session};

pub(super) const QUESTION: Question = Question {
    name: "instructions",
    asks: "how many instructions in user mode does one keep-alive request cost?",
    rows: &[],
    rounds: 1,
    run,
};

/// What the others are held against.
const AXUM: &str = "axum";
const UNIT: &str = "instructions a request";
/// Connections that ask in turn.
const CALLERS: usize = 8;
/// Requests on each of them in the short run and in the long one.
const TIMES: [usize; 2] = [50, 250];

const AT_ROOT: [(&str, Program); 5] = [
    ("m0 (host_check)", Program::HostCheck),
    (AXUM, Program::Peer(Peer::Axum)),
    ("actix-web", Program::Peer(Peer::Actix)),
    ("ntex", Program::Peer(Peer::Ntex)),
    ("raw epoll", Program::Peer(Peer::Raw)),
];
const AT_JSON: [(&str, Program); 6] = [
    ("m0 (service_fn)", Program::Example("service")),
    ("m0 (Router)", Program::Example("router")),
    (AXUM, Program::Peer(Peer::Axum)),
    ("actix-web", Program::Peer(Peer::Actix)),
    ("ntex", Program::Peer(Peer::Ntex)),
    ("raw epoll", Program::Peer(Peer::Raw)),
];

fn run(session: &Session, report: &mut Report) -> Result<()> {
    let none: &[(&str, &str)] = &[];
    for (path, programs) in [("/", &AT_ROOT[..]), ("/json", &AT_JSON[..])] {
        for (fields, what) in [(none, "plain"), (&BROWSER_FIELDS, "13 browser fields")] {
            let what = format!("GET {path} {what}");
            let asked = request(path, fields);
            let mut seen = vec![Vec::new(); programs.len()];
            for _ in session.rounds() {
                for ((name, program), seen) in programs.iter().zip(&mut seen) {
                    session.shows(&format!("{what}, {name}"));
                    let [short, long] = TIMES.map(|times| count(session, *program, &asked, times));
                    seen.push(each(short?, long?)?);
                }
            }
            tell(report, &what, programs, &seen)?;
        }
    }
    report.note("What valgrind's callgrind counts: no instruction of the kernel, and every thread of the server.");
    Ok(())
}

fn tell(
    report: &mut Report,
    what: &str,
    programs: &[(&str, Program)],
    seen: &[Vec<f64>],
) -> Result<()> {
    let axum = programs.iter().position(|(name, _)| *name == AXUM);
    for ((name, _), own) in programs.iter().zip(seen) {
        report.figure(format!("{what}, {name}"), UNIT, Samples::of(own.clone())?);
        if let Some(axum) = axum.filter(|_| *name != AXUM) {
            let pairs = own.iter().zip(&seen[axum]).map(|(own, axum)| own / axum);
            let pairs = Samples::of(pairs.collect())?;
            report.figure(format!("{what}, {name}: over {AXUM}"), "ratio", pairs);
        }
    }
    report.table_of(Table {
        what: what.to_owned(),
        whos: programs
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        columns: vec![
            (UNIT.to_owned(), String::new()),
            (format!("over {AXUM}"), format!(": over {AXUM}")),
        ],
    });
    Ok(())
}

/// One run of a server from its start to its end.
fn count(session: &Session, program: Program, asked: &[u8], times: usize) -> Result<Count> {
    let out = std::env::temp_dir().join(format!("m0-callgrind-{}.out", std::process::id()));
    let server = session.counted(program, &out)?;
    let mut callers = Callers::open(server.address(), CALLERS, asked.to_vec())?;
    let requests = callers.ask(times)?;
    drop(callers);
    server.end()?;
    let instructions = total(&out);
    // The next run writes it anew; what is left of the last one bothers nobody.
    let _ = std::fs::remove_file(&out);
    Ok(Count {
        instructions: instructions?,
        requests,
    })
}
