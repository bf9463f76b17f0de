//! Traps that make other tools say caught where nothing was: each measured once, each kept out here.

use super::fixture::{CAUGHT, Fixture, SHELL_GATES, TAP};

/// A fixture whose test does `what` when the rule is applied.
fn when_wrong(what: &str) -> Fixture {
    let fixture = Fixture::shell(CAUGHT);
    let tap = TAP.replace(
        "bad=0\n",
        &format!("bad=0\nif [ \"$(add 1 1)\" != 2 ]; then\n{what}\nfi\n"),
    );
    fixture.write("t.sh", &tap);
    fixture
}

#[m0_spec::row(B10)]
#[test]
fn a_gate_killed_from_outside_is_infra_and_not_caught() {
    let answer = when_wrong("kill -9 $$").check(&[], 5, &[("adds-wrong", "infra")]);
    assert!(
        answer
            .out
            .contains("died by signal 9, which nobody asked for"),
        "{}",
        answer.out
    );
    let fixture = when_wrong("kill -9 $$");
    fixture.write(
        "sabotage/rules/r.yaml",
        &CAUGHT.replace("  expect:", "  symptom: crash\n  expect:"),
    );
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
}

#[m0_spec::row(B10)]
#[test]
fn an_undeclared_exit_code_and_a_missing_result_are_infra() {
    let answer = when_wrong("exit 77").check(&[], 5, &[("adds-wrong", "infra")]);
    assert!(answer.out.contains("exited with 77"), "{}", answer.out);
    when_wrong("exit 1").check(&[], 5, &[("adds-wrong", "infra")]);
    when_wrong("echo 'Address already in use' >&2; echo 'not ok - adds'; echo '# Address already in use'; echo 'ok - negates'; exit 1")
        .check(&[], 5, &[("adds-wrong", "infra")]);
}

#[m0_spec::row(B10)]
#[test]
fn an_old_results_file_is_not_this_runs() {
    let fixture = Fixture::shell(CAUGHT);
    fixture.write(
        "sabotage/gates.yaml",
        &SHELL_GATES
            .replace("run: sh t.sh", "run: sh t.sh > out.tap")
            .replace("results: tap", "results: tap\n    results_file: out.tap"),
    );
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    let stuck = "run: '. ./sum.sh; [ $(add 1 1) = 2 ] || exit 1; sh t.sh > out.tap'";
    fixture.write(
        "sabotage/gates.yaml",
        &SHELL_GATES
            .replace("run: sh t.sh", stuck)
            .replace("results: tap", "results: tap\n    results_file: out.tap"),
    );
    fixture.check(&[], 5, &[("adds-wrong", "infra")]);
}

#[m0_spec::row(B11)]
#[test]
fn a_check_without_end_is_a_time_out_or_the_declared_hang() {
    let hang = when_wrong("sleep 600");
    hang.write(
        "sabotage/rules/r.yaml",
        &CAUGHT.replace("  expect:", "  timeout: 1s\n  expect:"),
    );
    hang.check(&[], 5, &[("adds-wrong", "timeout")]);
    hang.write(
        "sabotage/rules/r.yaml",
        &CAUGHT.replace("  expect:", "  timeout: 1s\n  symptom: hang\n  expect:"),
    );
    hang.check(&[], 0, &[("adds-wrong", "caught")]);
}

#[m0_spec::row(B12, B25)]
#[test]
fn an_orphan_neither_holds_up_the_run_nor_outlives_it() {
    for jail in [&[][..], &["--no-jail"]] {
        let fixture = Fixture::shell(CAUGHT);
        let mark = format!("60{}", std::process::id());
        fixture.write(
            "t.sh",
            &TAP.replace(
                "echo 1..2\n",
                &format!("echo 1..2\n(setsid sleep {mark} &)\n"),
            ),
        );
        let start = std::time::Instant::now();
        let answer = fixture.check(jail, 0, &[("adds-wrong", "caught")]);
        assert!(start.elapsed().as_secs() < 60, "it waited for the orphan");
        assert!(
            answer
                .out
                .contains(&format!("leaves a process behind: sleep {mark}")),
            "{}",
            answer.out
        );
        assert_eq!(alive(&mark), 0, "{jail:?}");
    }
}

/// How many processes have a word on their command line.
pub(crate) fn alive(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("listed").flatten();
    let holds = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    };
    entries.filter(holds).count()
}

#[m0_spec::row(B24)]
#[test]
fn gates_that_bind_one_port_run_beside_each_other() {
    let bind = "python3 -c \"import socket,time; s=socket.socket(); s.bind(('127.0.0.1', 47813)); s.listen(); \
        c=socket.create_connection(('127.0.0.1', 47813)); time.sleep(0.3)\" 2>why || { bad=1; echo taken by another; }\n";
    let make = || {
        let fixture = Fixture::shell(CAUGHT);
        fixture.write("t.sh", &TAP.replace("bad=0\n", &format!("bad=0\n{bind}")));
        fixture
    };
    let fixtures = [make(), make(), make()];
    std::thread::scope(|scope| {
        for fixture in &fixtures {
            scope.spawn(|| fixture.check(&[], 0, &[("adds-wrong", "caught")]));
        }
    });
}

#[m0_spec::row(B51)]
#[test]
fn a_gate_has_room_for_a_socket_and_leaves_no_temporary_file() {
    let fixture = Fixture::shell(CAUGHT);
    std::fs::create_dir_all(fixture.cache()).expect("made");
    let told = fixture.cache().join("told");
    // As a test would: a directory of its own, and a socket in it.
    let bind = format!(
        "python3 -c \"import socket,tempfile; d=tempfile.mkdtemp(); print(d, file=open('{}','a')); \
        socket.socket(socket.AF_UNIX).bind(d+'/a-name-of-a-socket.sock')\" || bad=1\n",
        told.display()
    );
    fixture.write("t.sh", &TAP.replace("bad=0\n", &format!("bad=0\n{bind}")));
    fixture.check(&[], 0, &[("adds-wrong", "caught")]);
    let told = std::fs::read_to_string(told).expect("each run told its directory");
    assert!(told.lines().count() >= 3, "{told}");
    for directory in told.lines() {
        assert!(!std::path::Path::new(directory).exists(), "{directory}");
    }
}
