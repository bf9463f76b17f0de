//! What an application declares, seen from outside: real processes of `m0-host-actor`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use m0_spec::row;
use m0_unix::Signal;
use m0_unix::signals::kill;

/// A bound that no promise of this file comes near: a read that reaches it has failed.
const LONG: Duration = Duration::from_secs(20);

fn actor(name: &str, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_m0-host-actor"));
    for (inherited, _) in std::env::vars().filter(|(name, _)| name.starts_with("M0_")) {
        command.env_remove(inherited);
    }
    command
        .env("ACTOR", name)
        .env("M0_BIND", "127.0.0.1:0")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A host that serves; ended with the test, whatever becomes of it.
struct Served {
    process: Child,
    address: String,
    /// What its log said until it listened.
    begun: String,
    log: BufReader<std::process::ChildStderr>,
}

impl Served {
    fn start(name: &str, env: &[(&str, &str)]) -> Served {
        Served::started(&mut actor(name, env))
    }

    fn started(command: &mut Command) -> Served {
        let mut process = command.spawn().expect("the actor starts");
        let log = BufReader::new(process.stderr.take().expect("piped"));
        // Owned from here on, so that a failure below ends it too.
        let mut served = Served {
            process,
            address: String::new(),
            begun: String::new(),
            log,
        };
        while served.address.is_empty() {
            let seen = &mut served.begun;
            let before = seen.len();
            let read = served.log.read_line(seen).expect("the log is text");
            assert!(read > 0, "it ended before it listened:\n{seen}");
            if let Some((_, rest)) = seen[before..].split_once("\"address\":\"") {
                rest.split('"')
                    .next()
                    .expect("a closing quote")
                    .clone_into(&mut served.address);
            }
        }
        served
    }

    /// The body of the answer to `GET /`.
    fn ask(&self) -> String {
        self.answer().1
    }

    /// The head and the body of that answer.
    fn answer(&self) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("not zero");
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        (head.to_owned(), body.to_owned())
    }

    /// Stops it; its exit status and its whole log.
    fn stop(mut self) -> (ExitStatus, String) {
        let pid = m0_unix::Pid::from_raw(self.process.id().cast_signed());
        kill(pid, Signal::SIGTERM).expect("it runs");
        let mut log = std::mem::take(&mut self.begun);
        self.log.read_to_string(&mut log).expect("the log is text");
        (self.process.wait().expect("our child"), log)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Ended already where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs an actor that must refuse; its log. One that serves instead is ended and told.
fn refused(name: &str, env: &[(&str, &str)]) -> String {
    let mut process = actor(name, env).spawn().expect("the actor starts");
    let mut lines = BufReader::new(process.stderr.take().expect("piped"));
    let mut log = String::new();
    // The end of its log is the end of every process of it.
    while lines.read_line(&mut log).expect("the log is text") > 0 {
        if log.contains("\"listening\"") {
            process.kill().expect("our child");
        }
    }
    let status = process.wait().expect("our child");
    assert!(!log.contains("\"listening\""), "a banner:\n{log}");
    assert_eq!(status.code(), Some(78), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    log
}

#[row(E12)]
#[test]
fn a_process_that_already_runs_threads_is_refused() {
    for workers in ["1", "2"] {
        let log = refused("threads", &[("M0_WORKERS", workers)]);
        assert!(log.contains("already runs 2 threads"), "{log}");
    }
}

#[row(E5)]
#[test]
fn an_application_of_one_process_is_refused_at_two_workers_and_served_at_one() {
    let log = refused("single", &[("M0_WORKERS", "2")]);
    assert!(
        log.contains("M0_WORKERS=2") && log.contains("at most 1"),
        "{log}"
    );
    let served = Served::start("single", &[]);
    assert_eq!(served.ask(), "alone");
    assert_eq!(served.stop().0.code(), Some(0));
}

#[row(E6, E3)]
#[test]
fn the_applications_page_is_as_large_as_asked_zeroed_and_shared() {
    let served = Served::start("page", &[("M0_WORKERS", "2")]);
    for before in 0..12 {
        let told = served.ask();
        let words: Vec<&str> = told.split(' ').collect();
        // Words, requests before this one whichever worker answered them, sum of the other words.
        assert_eq!(
            words[..3],
            ["5", before.to_string().as_str(), "0"],
            "{told}"
        );
    }
    assert_eq!(served.stop().0.code(), Some(0));
}

#[row(E4)]
#[test]
fn a_producer_that_is_not_wanted_is_never_made() {
    let served = Served::start("unwanted", &[]);
    assert_eq!(served.ask(), "alone");
    let (status, log) = served.stop();
    assert_eq!(status.code(), Some(0));
    assert!(!log.contains("unwanted producer"), "{log}");
}

#[row(E17, D48)]
#[test]
fn a_child_of_a_worker_finds_the_page_and_its_exit_status_is_the_applications() {
    for workers in ["1", "2"] {
        let served = Served::start("child", &[("M0_WORKERS", workers)]);
        for _ in 0..8 {
            let found = served.ask();
            // The child's own exit code, which a host that reaps for everyone would have taken.
            assert!(found.starts_with("Some(0) "), "at {workers}: {found:?}");
            assert!(found.contains("memfd:m0-page"), "at {workers}: {found:?}");
        }
        assert_eq!(served.stop().0.code(), Some(0));
    }
}

#[row(E31, E30)]
#[test]
fn the_closure_that_writes_a_frame_is_given_the_id_that_is_published() {
    let served = Served::start("publishes", &[("M0_WORKERS", "2")]);
    let mut last = 0;
    for _ in 0..8 {
        let told = served.ask();
        let (published, inside) = told.split_once(' ').expect("two ids");
        assert_eq!(published, inside);
        let (_, seq) = published.split_once('-').expect("an epoch and a number");
        let seq: u64 = seq.parse().expect("a number");
        assert_eq!(seq, last + 1, "ids of both workers are one row");
        last = seq;
    }
    assert_eq!(served.stop().0.code(), Some(0));
}

#[row(E32)]
#[test]
fn a_forked_worker_flushes_nothing_that_its_parent_had_buffered() {
    let mut command = actor("buffered", &[("M0_WORKERS", "3")]);
    let mut served = Served::started(command.stdout(Stdio::piped()));
    let mut stdout = served.process.stdout.take().expect("piped");
    assert_eq!(served.stop().0.code(), Some(0));
    let mut out = String::new();
    stdout.read_to_string(&mut out).expect("text");
    // A worker that left through main would have written its copy of the buffer too.
    assert_eq!(out, "once");
}

#[row(F19)]
#[test]
fn two_starts_of_a_host_have_two_epochs() {
    let epoch = || {
        let served = Served::start("publishes", &[]);
        let told = served.ask();
        let epoch = told.split('-').next().expect("an epoch").to_owned();
        assert_eq!(served.stop().0.code(), Some(0));
        epoch
    };
    assert_ne!(epoch(), epoch());
}

#[row(E2)]
#[test]
fn the_application_is_made_once_in_each_worker_after_the_fork() {
    for workers in [1_u64, 3] {
        let served = Served::start("made", &[("M0_WORKERS", &workers.to_string())]);
        for _ in 0..8 {
            // How often it was made in the whole host, and whether by the very process that answers.
            assert_eq!(served.ask(), format!("{workers} true"));
        }
        assert_eq!(served.stop().0.code(), Some(0));
    }
}

#[row(E74)]
#[test]
fn each_request_is_one_json_line_of_the_access_log_and_only_when_asked_for() {
    for (asked_for, wanted) in [("1", 2), ("0", 0)] {
        let mut command = actor("single", &[("M0_ACCESS_LOG", asked_for)]);
        let mut served = Served::started(command.stdout(Stdio::piped()));
        let mut stdout = served.process.stdout.take().expect("piped");
        for _ in 0..2 {
            assert_eq!(served.ask(), "alone");
        }
        assert_eq!(served.stop().0.code(), Some(0));
        let mut out = String::new();
        stdout.read_to_string(&mut out).expect("text");
        let lines: Vec<serde_json::Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), wanted, "{out}");
        for line in lines {
            let told = (&line["method"], &line["path"], &line["status"]);
            assert_eq!(told, (&"GET".into(), &"/".into(), &200.into()), "{line}");
            assert_eq!(line["bytes"], "alone".len(), "{line}");
            assert!(line["us"].is_u64() && line["time"].is_string(), "{line}");
        }
    }
}

#[row(E116)]
#[test]
fn workers_of_one_host_make_no_id_twice_whatever_was_drawn_before_the_fork() {
    for actor in ["page", "drawn"] {
        let env = [("M0_WORKERS", "2"), ("M0_REQUEST_ID", "1")];
        let served = Served::start(actor, &env);
        let (mut slots, mut ids) = (BTreeSet::new(), BTreeSet::new());
        let mut asked = 0;
        // Each asks on a connection of its own, so both workers come to it.
        while slots.len() < 2 || asked < 16 {
            assert!(asked < 10_000, "{actor}: only worker {slots:?} answers");
            let (head, body) = served.answer();
            let field = head
                .lines()
                .find_map(|line| line.strip_prefix("x-request-id: "));
            let id = field.expect("an id").to_owned();
            assert!(ids.insert(id), "{actor}: an id came twice, after {ids:?}");
            slots.extend(body.rsplit(' ').next().map(str::to_owned));
            asked += 1;
        }
        assert_eq!(served.stop().0.code(), Some(0));
    }
}

#[row(E97)]
#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_a_line_and_no_death() {
    for workers in ["1", "2"] {
        let served = actor("page", &[("M0_WORKERS", workers)]);
        let mut limited = Command::new("sh");
        limited
            .args(["-c", "ulimit -f 8 && exec \"$0\""])
            .arg(served.get_program());
        for (name, value) in served.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let output = limited.output().expect("the shell runs");
        let log = String::from_utf8(output.stderr).expect("the log is text");
        assert_eq!(output.status.code(), Some(71), "{:?} {log}", output.status);
        assert!(
            log.contains("\"os-refused\"") && log.contains("making shared memory"),
            "{log}"
        );
    }
}
