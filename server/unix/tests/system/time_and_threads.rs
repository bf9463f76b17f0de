//! The clock and the names of threads.

use m0_unix::clock::{monotonic_ms, monotonic_ns, wall_ms};
use m0_unix::process::name_thread;

#[m0_spec::row(U9)]
#[test]
fn the_clock_goes_forward_and_the_coarse_one_follows_it() {
    let mut last = (monotonic_ns(), monotonic_ms());
    let start = last.0;
    while last.0 - start < 30_000_000 {
        let now = (monotonic_ns(), monotonic_ms());
        assert!(now.0 >= last.0 && now.1 >= last.1, "{last:?} then {now:?}");
        let after = monotonic_ns();
        assert!(
            now.1 <= after / 1_000_000,
            "coarse {} ms is ahead of {after} ns",
            now.1
        );
        assert!(
            now.1 + 20 >= now.0 / 1_000_000,
            "coarse {} ms is far behind {} ns",
            now.1,
            now.0
        );
        last = now;
    }
}

#[m0_spec::row(E74)]
#[test]
fn the_time_of_day_is_the_systems_or_a_tick_behind_it() {
    let system = || {
        let since = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
        i64::try_from(since.as_millis()).expect("a time of this age")
    };
    let before = system();
    let seen = wall_ms();
    let after = system();
    assert!(
        (before - 20..=after).contains(&seen),
        "{before} {seen} {after}"
    );
}

#[m0_spec::row(U33)]
#[test]
fn a_name_is_cut_at_a_whole_character() {
    for (given, kept) in [
        ("m0-watch", "m0-watch"),
        ("", ""),
        ("fifteen-bytes-x", "fifteen-bytes-x"),
        ("sixteen-bytes-xy", "sixteen-bytes-x"),
        ("fourteen-bytesé", "fourteen-bytes"),
        ("before\0after", "before"),
    ] {
        let seen = std::thread::spawn(move || {
            name_thread(given);
            std::fs::read_to_string("/proc/thread-self/comm").expect("/proc is mounted")
        })
        .join()
        .expect("no name is refused");
        assert_eq!(seen.trim_end_matches('\n'), kept, "{given:?}");
    }
}
