//! A process killed right after each store of an append and of a repair.
//!
//! The test runs itself again as the victim, on the same shared words, and the victim sends itself
//! SIGKILL from the hook after store N; N grows until a run ends without a death. So the number of
//! deaths follows the code, not a constant. The parent is supervisor, survivor and reader.

#![cfg(not(loom))]

mod victim;

use m0_framelog::{AppendError, FrameLog, Next, Reader, Repair, words_needed};
use m0_unix::shared::SharedWords;
use victim::{Order, Outcome, Victim, body, log_over};

/// Room for 64 words: 8 index entries, frames up to 128 bytes.
const CAPACITY: usize = 512;

/// A log before the death: so many frames of so many bytes, then the victim's frame.
#[derive(Clone, Copy, Debug)]
struct Scene {
    frames: u64,
    frame_bytes: usize,
    victim_bytes: usize,
}

/// Empty; short frames that run out of entries; and full rings at every place of the wrap.
const SCENES: [Scene; 9] = [
    Scene {
        frames: 0,
        frame_bytes: 0,
        victim_bytes: 40,
    },
    Scene {
        frames: 3,
        frame_bytes: 0,
        victim_bytes: 0,
    },
    Scene {
        frames: 30,
        frame_bytes: 3,
        victim_bytes: 21,
    },
    Scene {
        frames: 20,
        frame_bytes: 100,
        victim_bytes: 128,
    },
    Scene {
        frames: 21,
        frame_bytes: 100,
        victim_bytes: 128,
    },
    Scene {
        frames: 22,
        frame_bytes: 100,
        victim_bytes: 128,
    },
    Scene {
        frames: 23,
        frame_bytes: 100,
        victim_bytes: 65,
    },
    Scene {
        frames: 24,
        frame_bytes: 128,
        victim_bytes: 1,
    },
    Scene {
        frames: 25,
        frame_bytes: 128,
        victim_bytes: 128,
    },
];

impl Scene {
    fn set(self) -> SharedWords {
        let shared = SharedWords::create("log-test", 8 + words_needed(CAPACITY)).expect("memory");
        let (ids, words) = (&shared.words()[0], &shared.words()[8..]);
        let log = FrameLog::format(words, ids, 7);
        for _ in 0..self.frames {
            append(log, self.frame_bytes).expect("nobody else appends");
        }
        shared
    }
}

fn append(log: FrameLog<'_>, bytes: usize) -> Result<u64, AppendError> {
    log.append(std::process::id(), |id, frame| {
        frame.extend(body(id.seq, bytes));
    })
    .map(|id| id.seq)
}

/// Reads all there is: every frame whole, every number once, every gap told.
#[track_caller]
fn read_all(reader: &mut Reader<'_>, why: &str) {
    let mut out = Vec::new();
    loop {
        let expected = reader.position();
        match reader.next(&mut out) {
            Next::Frame(id) => {
                assert_eq!(id.seq, expected, "{why}");
                assert!(
                    out.iter().copied().eq(body(id.seq, out.len())),
                    "{why}: frame {id} is torn"
                );
            }
            Next::Lapped { resumed_at, missed } => {
                assert!(missed > 0 && resumed_at.seq == expected + missed, "{why}");
            }
            Next::Empty => return,
        }
    }
}

/// Checks the log after the death of `pid`, repairs it, and goes on for a few frames.
fn survive(log: FrameLog<'_>, pid: u32, tail_before: u64, why: &str) -> Repair {
    let tail = log.tail();
    assert!(tail == tail_before || tail == tail_before + 1, "{why}");
    let mut early = Reader::after(log, log.oldest() - 1).expect("the oldest frame is there");
    read_all(&mut early, why);
    assert_eq!(early.position(), tail, "{why}");

    let repair = log.repair(pid);
    match repair {
        Repair::RolledBack { seq } => assert_eq!((seq, tail), (tail_before, tail_before), "{why}"),
        Repair::Released => {}
        Repair::NotHeld => assert_eq!(
            tail,
            tail_before + 1,
            "{why}: the last store frees the lock"
        ),
    }
    assert_eq!(log.repair(pid), Repair::NotHeld, "{why}: once");
    for (n, bytes) in [128, 0, 9, 100].into_iter().enumerate() {
        assert_eq!(append(log, bytes), Ok(tail + n as u64), "{why}");
        read_all(&mut early, why);
    }
    assert_eq!(early.position(), log.tail(), "{why}");
    let mut late = Reader::after(log, log.oldest() - 1).expect("the oldest frame is there");
    read_all(&mut late, why);
    assert_eq!(late.position(), log.tail(), "{why}");
    repair
}

#[m0_spec::row(F6, F2)]
#[test]
fn survivors_go_on_after_a_death_at_any_store_of_an_append() {
    if victim::obeyed() {
        return;
    }
    let victim = Victim::of("survivors_go_on_after_a_death_at_any_store_of_an_append");
    let mut most = 0;
    for scene in SCENES {
        let mut deaths = 0;
        let mut seen = Vec::new();
        loop {
            let why = format!("{scene:?}, store {}", deaths + 1);
            let shared = scene.set();
            let log = log_over(&shared);
            let tail = log.tail();
            match victim.run(
                &shared,
                Order::Append {
                    bytes: scene.victim_bytes,
                    dies_after: deaths + 1,
                },
            ) {
                Outcome::Killed(pid) => seen.push(survive(log, pid, tail, &why)),
                Outcome::Ended => {
                    assert_eq!(log.tail(), tail + 1, "{why}");
                    break;
                }
            }
            deaths += 1;
        }
        assert_eq!(
            seen.first(),
            Some(&Repair::Released),
            "{scene:?}: dead with the bare lock"
        );
        assert!(
            seen.contains(&Repair::RolledBack {
                seq: scene.frames + 1
            }),
            "{scene:?}"
        );
        assert_eq!(
            seen.last(),
            Some(&Repair::NotHeld),
            "{scene:?}: dead after the release"
        );
        most = most.max(deaths);
    }
    assert!(most >= 8, "only {most} stores seen: the hook is not called");
}

#[m0_spec::row(F6)]
#[test]
fn survivors_go_on_after_two_deaths_in_a_row_at_any_stores() {
    if victim::obeyed() {
        return;
    }
    let victim = Victim::of("survivors_go_on_after_two_deaths_in_a_row_at_any_stores");
    let scene = Scene {
        frames: 21,
        frame_bytes: 100,
        victim_bytes: 24,
    };
    let mut pairs = 0;
    let mut first = 1;
    loop {
        let mut second = 1;
        let first_died = loop {
            let shared = scene.set();
            let log = log_over(&shared);
            let Outcome::Killed(pid) = victim.run(
                &shared,
                Order::Append {
                    bytes: 24,
                    dies_after: first,
                },
            ) else {
                break false;
            };
            log.repair(pid);
            let tail = log.tail();
            let why = format!("stores {first} and {second}");
            match victim.run(
                &shared,
                Order::Append {
                    bytes: 57,
                    dies_after: second,
                },
            ) {
                Outcome::Killed(pid) => {
                    survive(log, pid, tail, &why);
                }
                Outcome::Ended => break true,
            }
            pairs += 1;
            second += 1;
        };
        if !first_died {
            break;
        }
        first += 1;
    }
    assert!(pairs >= 64, "only {pairs} pairs of stores");
}

#[m0_spec::row(F6, F7)]
#[test]
fn a_repair_killed_after_any_store_is_done_again() {
    if victim::obeyed() {
        return;
    }
    let victim = Victim::of("a_repair_killed_after_any_store_is_done_again");
    let scene = Scene {
        frames: 21,
        frame_bytes: 100,
        victim_bytes: 24,
    };
    let mut deaths = 0;
    loop {
        let shared = scene.set();
        let log = log_over(&shared);
        let tail = log.tail();
        let Outcome::Killed(dead) = victim.run(
            &shared,
            Order::Append {
                bytes: 24,
                dies_after: 4,
            },
        ) else {
            panic!("an append has more than 4 stores");
        };
        match victim.run(
            &shared,
            Order::Repair {
                pid: dead,
                dies_after: deaths + 1,
            },
        ) {
            Outcome::Killed(_) => {
                log.repair(dead);
                assert_eq!(append(log, 9), Ok(tail));
                let mut reader = Reader::after(log, log.oldest() - 1).expect("it is there");
                read_all(&mut reader, "after a repair that was killed");
                assert_eq!(reader.position(), tail + 1);
            }
            Outcome::Ended => {
                assert_eq!(
                    log.repair(dead),
                    Repair::NotHeld,
                    "the whole repair was done"
                );
                break;
            }
        }
        deaths += 1;
    }
    assert!(deaths >= 1, "a repair has a store");
}

#[m0_spec::row(F22, F5)]
#[test]
fn until_the_repair_an_append_is_refused_by_name_and_readers_go_on() {
    if victim::obeyed() {
        return;
    }
    let victim = Victim::of("until_the_repair_an_append_is_refused_by_name_and_readers_go_on");
    let scene = Scene {
        frames: 3,
        frame_bytes: 30,
        victim_bytes: 30,
    };
    let shared = scene.set();
    let log = log_over(&shared);
    let mut reader = Reader::after(log, 0).expect("frame 1 is there");
    let Outcome::Killed(pid) = victim.run(
        &shared,
        Order::Append {
            bytes: 30,
            dies_after: 3,
        },
    ) else {
        panic!("an append has more than 3 stores");
    };
    for _ in 0..3 {
        assert_eq!(append(log, 5), Err(AppendError::Busy { holder: pid }));
    }
    assert_eq!(
        log.repair(pid + 1),
        Repair::NotHeld,
        "another process's death changes nothing"
    );
    assert_eq!(append(log, 5), Err(AppendError::Busy { holder: pid }));
    read_all(&mut reader, "a reader waits for nobody");
    assert_eq!(reader.position(), 4);
    assert_eq!(log.repair(pid), Repair::RolledBack { seq: 4 });
    assert_eq!(append(log, 5), Ok(4));
}

#[m0_spec::row(F6, F3)]
#[test]
fn workers_killed_at_random_moments_cost_the_others_nothing_but_a_repair() {
    if victim::obeyed() {
        return;
    }
    let victim =
        Victim::of("workers_killed_at_random_moments_cost_the_others_nothing_but_a_repair");
    let shared = SharedWords::create("log-test", 8 + words_needed(1 << 16)).expect("memory");
    let log = FrameLog::format(&shared.words()[8..], &shared.words()[0], 7);
    let mut reader = Reader::at_tail(log);
    let mut workers: Vec<_> = (0..3)
        .map(|_| victim.start(&shared, Order::AppendForEver))
        .collect();
    // At least 30 deaths, and as many more as it takes for one to hit a holder of the lock.
    let mut inside = 0;
    let mut round = 0;
    while round < 30 || inside == 0 {
        assert!(round < 300, "no death of {round} was inside an append");
        let goal = log.tail() + 100;
        victim::until("the workers append", || {
            read_all(&mut reader, "while others append");
            log.tail() >= goal
        });
        let mut killed = workers.remove(round % workers.len());
        killed.kill().expect("the child is ours");
        killed.wait().expect("the child is ours");
        inside += usize::from(log.repair(killed.id()) != Repair::NotHeld);
        workers.push(victim.start(&shared, Order::AppendForEver));
        round += 1;
    }
    for mut worker in workers {
        worker.kill().expect("the child is ours");
        worker.wait().expect("the child is ours");
        log.repair(worker.id());
    }
    assert_eq!(append(log, 10), Ok(log.tail() - 1));
    read_all(&mut reader, "at the end");
    assert_eq!(reader.position(), log.tail());
}
