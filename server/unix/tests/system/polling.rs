//! Waits end when something comes or when their time is over, neither sooner nor later.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use m0_unix::Signal;
use m0_unix::fds::{Doorbell, pipe};
use m0_unix::poll::{Interest, Poller, wait_readable};
use m0_unix::signals::kill;
use m0_unix::sockets::listen_tcp;

use crate::process::{Actor, PATIENCE, await_state, await_task_state};

/// What is ready now.
fn ready(poller: &Poller) -> Vec<u64> {
    let mut ready = vec![99];
    poller
        .wait(Some(Duration::ZERO), &mut ready)
        .expect("epoll works");
    ready.sort_unstable();
    ready
}

#[m0_spec::row(U10)]
#[test]
fn a_level_is_told_while_it_lasts_and_an_edge_once() {
    let poller = Poller::new().expect("a descriptor is free");
    let (level, edge) = (
        Doorbell::new().expect("free"),
        Doorbell::new().expect("free"),
    );
    poller.add(&level, 1, Interest::Level).expect("new");
    poller.add(&edge, u64::MAX, Interest::Edge).expect("new");
    assert_eq!(ready(&poller), [0; 0]);
    level.ring().expect("open");
    edge.ring().expect("open");
    assert_eq!(ready(&poller), [1, u64::MAX]);
    assert_eq!(ready(&poller), [1], "the edge was told");
    edge.ring().expect("open");
    assert_eq!(ready(&poller), [1, u64::MAX], "a new ring is a new edge");
    level.answer().expect("open");
    assert_eq!(ready(&poller), [0; 0]);
    level.ring().expect("open");
    poller.remove(&level).expect("watched");
    assert_eq!(ready(&poller), [0; 0]);
}

#[m0_spec::row(U14)]
#[test]
fn the_end_of_a_pipe_counts_as_readable() {
    let poller = Poller::new().expect("a descriptor is free");
    let (reader, writer) = pipe().expect("descriptors are free");
    poller.add(&reader, 7, Interest::Level).expect("new");
    assert_eq!(ready(&poller), [0; 0]);
    drop(writer);
    assert_eq!(ready(&poller), [7]);
    assert!(wait_readable(&reader, Some(Duration::ZERO)).expect("ppoll works"));
}

#[m0_spec::row(U12)]
#[test]
fn what_cannot_be_watched_is_an_error_with_its_operation() {
    let poller = Poller::new().expect("a descriptor is free");
    let bell = Doorbell::new().expect("free");
    poller.add(&bell, 1, Interest::Level).expect("new");
    let file = tempfile::tempfile().expect("a temporary directory");
    let (other, _writer) = pipe().expect("descriptors are free");
    for (result, kind, operation) in [
        (
            poller.add(&bell, 2, Interest::Level),
            ErrorKind::AlreadyExists,
            "epoll_ctl(ADD): ",
        ),
        (
            poller.add(&file, 3, Interest::Level),
            ErrorKind::PermissionDenied,
            "epoll_ctl(ADD): ",
        ),
        (
            poller.remove(&other),
            ErrorKind::NotFound,
            "epoll_ctl(DEL): ",
        ),
    ] {
        let error = result.expect_err(operation);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().starts_with(operation), "{error}");
    }
}

#[m0_spec::row(U10)]
#[test]
fn more_ready_than_one_wait_takes_come_with_the_next() {
    let poller = Poller::new().expect("a descriptor is free");
    let bells: Vec<Doorbell> = (0..100).map(|_| Doorbell::new().expect("free")).collect();
    for (token, bell) in bells.iter().enumerate() {
        bell.ring().expect("open");
        poller.add(bell, token as u64, Interest::Edge).expect("new");
    }
    let mut seen = ready(&poller);
    assert!(seen.len() < 100, "one wait has a bound");
    seen.extend(ready(&poller));
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<u64>>());
}

#[m0_spec::row(U25, U13)]
#[test]
fn a_wait_takes_at_least_its_time_however_short() {
    let poller = Poller::new().expect("a descriptor is free");
    let bell = Doorbell::new().expect("free");
    poller.add(&bell, 1, Interest::Level).expect("new");
    for micros in [1, 300, 999, 1000, 1001, 2500] {
        let timeout = Duration::from_micros(micros);
        let mut none = Vec::new();
        let start = Instant::now();
        poller.wait(Some(timeout), &mut none).expect("epoll works");
        assert!(
            none.is_empty() && start.elapsed() >= timeout,
            "{timeout:?}: {:?}",
            start.elapsed()
        );
        let start = Instant::now();
        assert!(!wait_readable(&bell, Some(timeout)).expect("ppoll works"));
        assert!(
            start.elapsed() >= timeout,
            "{timeout:?}: {:?}",
            start.elapsed()
        );
    }
}

#[m0_spec::row(U13)]
#[test]
fn a_wait_of_any_length_ends_when_something_comes() {
    let poller = Poller::new().expect("a descriptor is free");
    let bell = Doorbell::new().expect("free");
    poller.add(&bell, 1, Interest::Level).expect("new");
    for timeout in [
        None,
        Some(Duration::MAX),
        Some(Duration::from_secs(1 << 40)),
        Some(PATIENCE),
    ] {
        let ringer = bell.try_clone().expect("free");
        let ringing = thread::spawn(move || ringer.ring());
        let mut seen = Vec::new();
        poller.wait(timeout, &mut seen).expect("epoll works");
        assert_eq!(seen, [1], "{timeout:?}");
        assert!(
            wait_readable(&bell, timeout).expect("ppoll works"),
            "{timeout:?}"
        );
        ringing.join().expect("no panic").expect("open");
        assert_eq!(bell.answer().expect("open"), 1);
    }
}

#[m0_spec::row(U13)]
#[test]
fn a_wait_that_is_interrupted_over_and_over_still_takes_its_time_and_no_more() {
    for how in ["poller", "one"] {
        let mut actor = Actor::play(&["wait", how, "300"]);
        actor.after("waiting");
        let (pid, start) = (actor.pid(), Instant::now());
        await_state(pid, "SZ");
        let mut interrupted = 0;
        // A stop and a continue interrupt epoll_wait with EINTR, without any handler (signal(7)). A wait that began anew
        // each time would never end while this goes on.
        while !actor.spoke() {
            kill(pid, Signal::SIGSTOP).expect("not reaped yet");
            await_state(pid, "TZ");
            kill(pid, Signal::SIGCONT).expect("not reaped yet");
            // Back in its wait, and not merely runnable: one that is stopped before it has run never sees the time.
            await_state(pid, "SZ");
            interrupted += 1;
            assert!(
                start.elapsed() < PATIENCE,
                "{how}: {interrupted} interruptions"
            );
        }
        let line = actor.line().expect("it tells how long it waited");
        let (millis, found) = line.split_once(' ').expect("two words");
        assert_eq!(found, "false", "{how}");
        let millis: u64 = millis.parse().expect("milliseconds");
        assert!(
            millis >= 300 && interrupted > 0,
            "{how}: {millis} ms, {interrupted} interruptions"
        );
    }
}

/// How many of two pollers that watch one listener wake for one connection.
fn woken(interest: Interest) -> usize {
    let listener = listen_tcp((Ipv4Addr::LOCALHOST, 0).into(), 8).expect("a port is free");
    let address = listener
        .local_addr()
        .expect("bound")
        .as_socket()
        .expect("TCP");
    let (tell, told) = mpsc::channel();
    let stop = Doorbell::new().expect("free");
    static ENTERING: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    thread::scope(|scope| {
        let (listener, stop) = (&listener, &stop);
        let mut tasks = Vec::new();
        for entering in &ENTERING {
            entering.store(false, SeqCst);
            let (task, my_task) = mpsc::channel();
            let tell = tell.clone();
            scope.spawn(move || {
                let poller = Poller::new().expect("a descriptor is free");
                poller.add(listener, 1, interest).expect("new");
                poller.add(stop, 2, Interest::Level).expect("new");
                let own = std::fs::read_link("/proc/thread-self").expect("/proc is mounted");
                task.send(own).expect("the test listens");
                let mut seen = Vec::new();
                entering.store(true, SeqCst);
                // From here the only thing that sleeps is the wait.
                poller.wait(None, &mut seen).expect("epoll works");
                tell.send(seen).expect("the test listens");
            });
            tasks.push((my_task.recv().expect("the thread starts"), entering));
        }
        for (task, entering) in &tasks {
            while !entering.load(SeqCst) {
                thread::yield_now();
            }
            await_task_state(&format!("/proc/{}/stat", task.display()), "S");
        }
        let _client = TcpStream::connect(address).expect("it listens");
        let first = told.recv_timeout(PATIENCE).expect("somebody wakes");
        assert_eq!(first, [1]);
        // Whoever sleeps still was not woken by the connection: the stop finds it asleep, and the connection, which is
        // still in the queue, is then told along with it.
        let other = &tasks;
        let asleep = || {
            other.iter().all(|(task, _)| {
                std::fs::read_to_string(format!("/proc/{}/stat", task.display()))
                    .map_or(true, |stat| stat.contains(") S "))
            })
        };
        let second = told.recv_timeout(Duration::from_millis(200));
        assert!(second.is_ok() || asleep());
        stop.ring().expect("open");
        if second.is_err() {
            told.recv_timeout(PATIENCE).expect("the stop wakes it");
        }
        1 + usize::from(second.is_ok())
    })
}

#[m0_spec::row(U23)]
#[test]
fn one_connection_wakes_one_of_two_exclusive_pollers() {
    assert_eq!(woken(Interest::ExclusiveLevel), 1);
    assert_eq!(woken(Interest::Level), 2, "what the promise guards against");
}
