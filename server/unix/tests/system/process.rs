//! A process that a test watches: the actor of this crate, or any other program.
//!
//! Owns its life: it is killed and reaped when the test ends, however it ends. Refuses to know the scenes.
//! Invariant: no wait is longer than [`PATIENCE`], and every wait is for something observed.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use m0_unix::Pid;
use m0_unix::poll::wait_readable;

/// What a scene takes on a machine that is busy with other builds, and more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running scene.
pub(crate) struct Actor {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    unread: Vec<u8>,
}

impl Actor {
    /// The command that plays a scene.
    pub(crate) fn command(words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_m0-unix-actor"));
        command.args(words);
        command
    }

    /// Plays a scene.
    pub(crate) fn play(words: &[&str]) -> Actor {
        Actor::start(&mut Actor::command(words))
    }

    /// Starts any command with its standard input and output in our hands.
    pub(crate) fn start(command: &mut Command) -> Actor {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        Actor {
            child,
            input,
            output,
            unread: Vec::new(),
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// The next line, or `None` when everybody who could write one is gone.
    pub(crate) fn line(&mut self) -> Option<String> {
        let start = Instant::now();
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line = self.unread.drain(..=end).collect::<Vec<u8>>();
                return Some(String::from_utf8(line).expect("text").trim_end().to_owned());
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            let readable = wait_readable(self.output.as_fd(), Some(left)).expect("ppoll works");
            assert!(
                readable,
                "no line within {PATIENCE:?}; so far: {:?}",
                String::from_utf8_lossy(&self.unread)
            );
            let mut part = [0; 4096];
            let count = self.output.read(&mut part).expect("a pipe");
            if count == 0 {
                assert!(
                    self.unread.is_empty(),
                    "half a line: {:?}",
                    String::from_utf8_lossy(&self.unread)
                );
                return None;
            }
            self.unread.extend_from_slice(&part[..count]);
        }
    }

    /// Whether there is something to read now.
    pub(crate) fn spoke(&self) -> bool {
        !self.unread.is_empty()
            || wait_readable(&self.output, Some(Duration::ZERO)).expect("ppoll works")
    }

    /// The next line, which starts with `word`; what stands after it.
    pub(crate) fn after(&mut self, word: &str) -> String {
        let line = self
            .line()
            .unwrap_or_else(|| panic!("ended before it said {word:?}"));
        line.strip_prefix(word)
            .unwrap_or_else(|| panic!("wanted {word:?}, got {line:?}"))
            .trim_start()
            .to_owned()
    }

    /// The pid that the next line tells after `word`.
    pub(crate) fn pid_after(&mut self, word: &str) -> Pid {
        Pid::from_raw(self.after(word).parse().expect("a pid"))
    }

    /// All lines until the end.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Everything it has written and we have not read, to the end.
    pub(crate) fn unread(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.unread);
        self.output.read_to_end(&mut all).expect("a pipe");
        all
    }

    /// Writes a line to its standard input.
    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not closed yet");
        writeln!(input, "{line}").expect("it reads its input");
    }

    /// Its exit status, once it has ended.
    pub(crate) fn end(&mut self) -> ExitStatus {
        drop(self.input.take());
        let pid = rustix::process::Pid::from_raw(self.pid().as_raw()).expect("a pid is not 0");
        let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            .expect("Linux 5.3");
        assert!(
            wait_readable(&handle, Some(PATIENCE)).expect("ppoll works"),
            "did not end within {PATIENCE:?}"
        );
        self.child.wait().expect("it is our child")
    }

    /// Plays a scene to its end, which must be a good one, and returns its lines.
    pub(crate) fn lines(words: &[&str]) -> Vec<String> {
        let mut actor = Actor::play(words);
        let lines = actor.rest();
        let status = actor.end();
        assert!(
            status.success(),
            "{words:?} ended with {status} (signal {:?}) after {lines:?}",
            status.signal()
        );
        lines
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Both fail only when it has been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the process is in one of these states (`proc_pid_stat(5)`: R, S, T, Z…).
pub(crate) fn await_state(pid: Pid, states: &str) {
    await_task_state(&format!("/proc/{pid}/stat"), states);
}

/// As [`await_state`], of the thread behind a stat file.
pub(crate) fn await_task_state(file: &str, states: &str) {
    let start = Instant::now();
    loop {
        let stat = std::fs::read_to_string(file).expect("the process exists");
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next())
            .expect("a state");
        if states.contains(state) {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{file}: still {state}, wanted one of {states}"
        );
        std::thread::yield_now();
    }
}
