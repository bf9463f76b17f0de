//! x
use crate::Row;
/// A slot that crashes while serving is respawned at once the first time.
pub const D1: Row = Row { id: "D1", title: "A slot that crashes while serving is respawned at once the first time." };
/// Each further crash of a slot in a row doubles its respawn delay, up to the cap.
pub const D2: Row = Row { id: "D2", title: "Each further crash of a slot in a row doubles its respawn delay, up to the cap." };
/// A slot that stayed up for the healthy time starts again from an immediate respawn.
pub const D3: Row = Row { id: "D3", title: "A slot that stayed up for the healthy time starts again from an immediate respawn." };
/// A slot that crashes as often in a row as the limit ends the host with exit 70.
pub const D4: Row = Row { id: "D4", title: "A slot that crashes as often in a row as the limit ends the host with exit 70." };
/// The backoff of one slot delays no other slot.
pub const D5: Row = Row { id: "D5", title: "The backoff of one slot delays no other slot." };
/// A worker that exits 78 is not respawned, its siblings are drained and the host exits 78.
pub const D6: Row = Row { id: "D6", title: "A worker that exits 78 is not respawned, its siblings are drained and the host exits 78." };
/// Exit code 78 from a process that is no known worker changes nothing.
pub const D7: Row = Row { id: "D7", title: "Exit code 78 from a process that is no known worker changes nothing." };
/// A planned exit counts as no crash.
pub const D8: Row = Row { id: "D8", title: "A planned exit counts as no crash." };
/// The stop is recorded before any signal is forwarded.
pub const D9: Row = Row { id: "D9", title: "The stop is recorded before any signal is forwarded." };
/// After a stop was asked for no slot is filled again, however its worker ends.
pub const D10: Row = Row { id: "D10", title: "After a stop was asked for no slot is filled again, however its worker ends." };
/// A second stop signal kills every worker at once.
pub const D11: Row = Row { id: "D11", title: "A second stop signal kills every worker at once." };
/// A worker still alive at the end of the drain's bound is sent SIGKILL.
pub const D12: Row = Row { id: "D12", title: "A worker still alive at the end of the drain's bound is sent SIGKILL." };
/// The host stops only when no worker is left.
pub const D13: Row = Row { id: "D13", title: "The host stops only when no worker is left." };
/// At most one live worker holds a slot at any moment.
pub const D14: Row = Row { id: "D14", title: "At most one live worker holds a slot at any moment." };
/// An unknown child that ended is reaped and changes no slot.
pub const D15: Row = Row { id: "D15", title: "An unknown child that ended is reaped and changes no slot." };
/// A fork that fails is tried again after the slot's backoff and counts as a death of that slot.
pub const D16: Row = Row { id: "D16", title: "A fork that fails is tried again after the slot's backoff and counts as a death of that slot." };
/// From any state reached under faults, once the faults stop every slot serves or the host has ended.
pub const D17: Row = Row { id: "D17", title: "From any state reached under faults, once the faults stop every slot serves or the host has ended." };
/// A worker that does not report ready is never counted as serving.
pub const D18: Row = Row { id: "D18", title: "A worker that does not report ready is never counted as serving." };
/// The banner is asked for once, when every slot is ready for the first time.
pub const D19: Row = Row { id: "D19", title: "The banner is asked for once, when every slot is ready for the first time." };
/// Every death of a worker yields one log action with slot, pid, code or signal, uptime and delay to the respawn.
pub const D20: Row = Row { id: "D20", title: "Every death of a worker yields one log action with slot, pid, code or signal, uptime and delay to the respawn." };
/// The words of a dead worker are repaired before its slot is filled again.
pub const D21: Row = Row { id: "D21", title: "The words of a dead worker are repaired before its slot is filled again." };
/// A journal of events replays to the same actions.
pub const D22: Row = Row { id: "D22", title: "A journal of events replays to the same actions." };
/// The journal holds at most its bound of entries, the newest.
pub const D23: Row = Row { id: "D23", title: "The journal holds at most its bound of entries, the newest." };
/// A stopped worker makes the supervisor stand in at the listener until it continues or ends.
pub const D24: Row = Row { id: "D24", title: "A stopped worker makes the supervisor stand in at the listener until it continues or ends." };
/// Every state meets every event with a defined list of actions.
pub const D25: Row = Row { id: "D25", title: "Every state meets every event with a defined list of actions." };
/// The host exits 0 after a stop in which every worker drained, and 1 when one crashed or had to be killed.
pub const D26: Row = Row { id: "D26", title: "The host exits 0 after a stop in which every worker drained, and 1 when one crashed or had to be killed." };
/// An axum Router is an application as it stands.
pub const E1: Row = Row { id: "E1", title: "An axum Router is an application as it stands." };
/// The handler's make runs once in each worker, after the fork.
pub const E2: Row = Row { id: "E2", title: "The handler's make runs once in each worker, after the fork." };
/// An application that names no producer runs without one.
pub const E3: Row = Row { id: "E3", title: "An application that names no producer runs without one." };
/// A producer whose wanted answers no is never built.
pub const E4: Row = Row { id: "E4", title: "A producer whose wanted answers no is never built." };
/// An application whose max_workers is below the workers asked for is refused with 78 before binding.
pub const E5: Row = Row { id: "E5", title: "An application whose max_workers is below the workers asked for is refused with 78 before binding." };
/// The application's page has as many words as page_slots answers, shared by every worker and zero at the start.
pub const E6: Row = Row { id: "E6", title: "The application's page has as many words as page_slots answers, shared by every worker and zero at the start." };
/// A variable that names a mode this build does not have is refused with 78 and names itself.
pub const E7: Row = Row { id: "E7", title: "A variable that names a mode this build does not have is refused with 78 and names itself." };
/// A value that does not parse or is out of range is refused with 78, naming the variable, its value and what would be right.
pub const E8: Row = Row { id: "E8", title: "A value that does not parse or is out of range is refused with 78, naming the variable, its value and what would be right." };
/// Two values that contradict each other are refused with 78, naming both.
pub const E9: Row = Row { id: "E9", title: "Two values that contradict each other are refused with 78, naming both." };
/// An unknown M0_ name is refused with 78 and the nearest right name is told.
pub const E10: Row = Row { id: "E10", title: "An unknown M0_ name is refused with 78 and the nearest right name is told." };
/// An inherited M0_WORKER_SPAWNED that the host did not set is refused with 78.
pub const E11: Row = Row { id: "E11", title: "An inherited M0_WORKER_SPAWNED that the host did not set is refused with 78." };
/// A process that already runs threads is refused with 78 when more than one worker is asked for.
pub const E12: Row = Row { id: "E12", title: "A process that already runs threads is refused with 78 when more than one worker is asked for." };
/// A refusal is one line for each cause, prints no banner and binds nothing.
pub const E13: Row = Row { id: "E13", title: "A refusal is one line for each cause, prints no banner and binds nothing." };
/// The host listens once, in the process that forks, on TCP or on a unix socket.
pub const E14: Row = Row { id: "E14", title: "The host listens once, in the process that forks, on TCP or on a unix socket." };
/// A worker that is executed anew serves from the page, the bus and the listener that it inherits.
pub const E15: Row = Row { id: "E15", title: "A worker that is executed anew serves from the page, the bus and the listener that it inherits." };
/// A listener passed through LISTEN_FDS is adopted and not bound again.
pub const E16: Row = Row { id: "E16", title: "A listener passed through LISTEN_FDS is adopted and not bound again." };
/// The host's page is a memfd whose descriptor children find in M0_SHARED_ID_FD.
pub const E17: Row = Row { id: "E17", title: "The host's page is a memfd whose descriptor children find in M0_SHARED_ID_FD." };
/// Slot 0 of the host's page is the event id, slot 2 the magic word, then each worker's accept-share line.
pub const E18: Row = Row { id: "E18", title: "Slot 0 of the host's page is the event id, slot 2 the magic word, then each worker's accept-share line." };
/// At one worker a held stream beats.
pub const E19: Row = Row { id: "E19", title: "At one worker a held stream beats." };
/// Signals that arrive between the fork and the arming are kept and answered, not lost.
pub const E20: Row = Row { id: "E20", title: "Signals that arrive between the fork and the arming are kept and answered, not lost." };
/// SIGTERM to the supervisor alone ends every held stream with its last chunk, every worker exits clean and none outlives the supervisor.
pub const E21: Row = Row { id: "E21", title: "SIGTERM to the supervisor alone ends every held stream with its last chunk, every worker exits clean and none outlives the supervisor." };
/// At two workers every held stream carries every beat, once, in order.
pub const E22: Row = Row { id: "E22", title: "At two workers every held stream carries every beat, once, in order." };
/// A producer step still running at the end of the drain is left behind by name, and the process leaves within the bound.
pub const E23: Row = Row { id: "E23", title: "A producer step still running at the end of the drain is left behind by name, and the process leaves within the bound." };
/// A descriptor inherited as a page is adopted only when its size and magic word are right, else refused with 78.
pub const E24: Row = Row { id: "E24", title: "A descriptor inherited as a page is adopted only when its size and magic word are right, else refused with 78." };
/// After SIGKILL of worker 0 the streams held on worker 1 beat again within 2 s, from the one new producer, with a higher id.
pub const E25: Row = Row { id: "E25", title: "After SIGKILL of worker 0 the streams held on worker 1 beat again within 2 s, from the one new producer, with a higher id." };
/// A blocking handler runs on a pool lane beside the loop and never stalls a stream.
pub const E26: Row = Row { id: "E26", title: "A blocking handler runs on a pool lane beside the loop and never stalls a stream." };
/// A handler's make that refuses ends the host with 78, prints its reason and is not respawned.
pub const E27: Row = Row { id: "E27", title: "A handler's make that refuses ends the host with 78, prints its reason and is not respawned." };
/// A producer's make that refuses ends the host with 78 before the producer thread is started.
pub const E28: Row = Row { id: "E28", title: "A producer's make that refuses ends the host with 78 before the producer thread is started." };
/// Exactly one producer runs at any moment, on slot 0, also while slot 0 is respawned.
pub const E29: Row = Row { id: "E29", title: "Exactly one producer runs at any moment, on slot 0, also while slot 0 is respawned." };
/// Every event of one host carries an id above the one before it, whichever process published it.
pub const E30: Row = Row { id: "E30", title: "Every event of one host carries an id above the one before it, whichever process published it." };
/// Publish hands the stamped id to the closure that writes the frame, so an id is never chosen by the application.
pub const E31: Row = Row { id: "E31", title: "Publish hands the stamped id to the closure that writes the frame, so an id is never chosen by the application." };
/// A forked worker ends through one exit path that runs no teardown of its parent.
pub const E32: Row = Row { id: "E32", title: "A forked worker ends through one exit path that runs no teardown of its parent." };
/// A producer's steps keep their phase: the next start is the scheduled start plus the duration returned.
pub const E33: Row = Row { id: "E33", title: "A producer's steps keep their phase: the next start is the scheduled start plus the duration returned." };
/// After an overrun the next step is scheduled from now and the missed steps are counted, never run back to back.
pub const E34: Row = Row { id: "E34", title: "After an overrun the next step is scheduled from now and the missed steps are counted, never run back to back." };
/// A producer with a 60 s period stops within 100 ms of the drain.
pub const E35: Row = Row { id: "E35", title: "A producer with a 60 s period stops within 100 ms of the drain." };
/// A producer step that fails ends the producer, is named in the log, and the server keeps serving.
pub const E36: Row = Row { id: "E36", title: "A producer step that fails ends the producer, is named in the log, and the server keeps serving." };
/// A publish that a worker could not take is counted and reported to the step.
pub const E37: Row = Row { id: "E37", title: "A publish that a worker could not take is counted and reported to the step." };
/// The producer is signalled when the drain begins, so the drain's and the join's bounds run together.
pub const E38: Row = Row { id: "E38", title: "The producer is signalled when the drain begins, so the drain's and the join's bounds run together." };
/// A process under an inherited blocked signal mask or ignored SIGCHLD supervises and drains as usual.
pub const E39: Row = Row { id: "E39", title: "A process under an inherited blocked signal mask or ignored SIGCHLD supervises and drains as usual." };
/// After SIGKILL of the supervisor every worker is gone within 1 s.
pub const E40: Row = Row { id: "E40", title: "After SIGKILL of the supervisor every worker is gone within 1 s." };
/// As process 1 the host reaps strangers silently and drains on SIGTERM.
pub const E41: Row = Row { id: "E41", title: "As process 1 the host reaps strangers silently and drains on SIGTERM." };
/// SIGTERM at any moment of start-up leaves no process behind and the port free.
pub const E42: Row = Row { id: "E42", title: "SIGTERM at any moment of start-up leaves no process behind and the port free." };
/// Fifty stop signals in a row, or one to the whole process group, end the host once and in order.
pub const E43: Row = Row { id: "E43", title: "Fifty stop signals in a row, or one to the whole process group, end the host once and in order." };
/// A worker that crashes is respawned in its slot while its siblings serve with no added latency.
pub const E44: Row = Row { id: "E44", title: "A worker that crashes is respawned in its slot while its siblings serve with no added latency." };
/// A worker that crashes leaves one log line with slot, pid, signal or code, uptime and delay to the respawn.
pub const E45: Row = Row { id: "E45", title: "A worker that crashes leaves one log line with slot, pid, signal or code, uptime and delay to the respawn." };
/// A slot in a crash loop ends the host with 70, after a visible backoff.
pub const E46: Row = Row { id: "E46", title: "A slot in a crash loop ends the host with 70, after a visible backoff." };
/// SIGUSR1 to the supervisor writes its journal to the path of M0_JOURNAL.
pub const E47: Row = Row { id: "E47", title: "SIGUSR1 to the supervisor writes its journal to the path of M0_JOURNAL." };
/// Bursts of 32 connections at two workers split within 2 to 1, with deferrals counted.
pub const E48: Row = Row { id: "E48", title: "Bursts of 32 connections at two workers split within 2 to 1, with deferrals counted." };
/// M0_ACCEPT_SHARE=0 leaves the bare race, and no deferral is counted.
pub const E49: Row = Row { id: "E49", title: "M0_ACCEPT_SHARE=0 leaves the bare race, and no deferral is counted." };
/// 400 held streams over four workers stay within 1.25 to 1.
pub const E50: Row = Row { id: "E50", title: "400 held streams over four workers stay within 1.25 to 1." };
/// At eight workers there are at most 0.2 fruitless wake-ups for each accepted connection.
pub const E51: Row = Row { id: "E51", title: "At eight workers there are at most 0.2 fruitless wake-ups for each accepted connection." };
/// A worker blocked in a handler takes no connection while another is idle.
pub const E52: Row = Row { id: "E52", title: "A worker blocked in a handler takes no connection while another is idle." };
/// While a worker is SIGKILLed, SIGSTOPped or out of descriptors no client of 200 connects a second hangs.
pub const E53: Row = Row { id: "E53", title: "While a worker is SIGKILLed, SIGSTOPped or out of descriptors no client of 200 connects a second hangs." };
/// An accept that fails for want of descriptors neither spins nor stops the worker, and service resumes when descriptors are free.
pub const E54: Row = Row { id: "E54", title: "An accept that fails for want of descriptors neither spins nor stops the worker, and service resumes when descriptors are free." };
/// A worker accepts a bounded batch before it serves the connections it holds.
pub const E55: Row = Row { id: "E55", title: "A worker accepts a bounded batch before it serves the connections it holds." };
/// The accept-share count of a dead worker is zero before its successor serves.
pub const E56: Row = Row { id: "E56", title: "The accept-share count of a dead worker is zero before its successor serves." };
/// A connection whose client has gone before the accept is skipped without a line in the log.
pub const E57: Row = Row { id: "E57", title: "A connection whose client has gone before the accept is skipped without a line in the log." };
/// A drain with idle connections, silent connections and streams only ends in less than 500 ms.
pub const E58: Row = Row { id: "E58", title: "A drain with idle connections, silent connections and streams only ends in less than 500 ms." };
/// A request or upload in flight when the drain begins is answered before the worker exits.
pub const E59: Row = Row { id: "E59", title: "A request or upload in flight when the drain begins is answered before the worker exits." };
/// A slow reader or a stuck handler is cut at the drain's bound, and the cut is logged.
pub const E60: Row = Row { id: "E60", title: "A slow reader or a stuck handler is cut at the drain's bound, and the cut is logged." };
/// A connection kept alive is told Connection: close by the answer that the drain lets through.
pub const E61: Row = Row { id: "E61", title: "A connection kept alive is told Connection: close by the answer that the drain lets through." };
/// A request head that stays incomplete past its deadline is answered 408 and closed.
pub const E62: Row = Row { id: "E62", title: "A request head that stays incomplete past its deadline is answered 408 and closed." };
/// A request body that stalls past its deadline is answered 408 and closed.
pub const E63: Row = Row { id: "E63", title: "A request body that stalls past its deadline is answered 408 and closed." };
/// A connection that sends no first byte before its deadline is closed silently.
pub const E64: Row = Row { id: "E64", title: "A connection that sends no first byte before its deadline is closed silently." };
/// A kept-alive connection that stays idle past its deadline is closed.
pub const E65: Row = Row { id: "E65", title: "A kept-alive connection that stays idle past its deadline is closed." };
/// A reader that makes no progress past its deadline is cut, and the cut is logged.
pub const E66: Row = Row { id: "E66", title: "A reader that makes no progress past its deadline is cut, and the cut is logged." };
/// A body above the limit is answered 413, also when its length is not announced.
pub const E67: Row = Row { id: "E67", title: "A body above the limit is answered 413, also when its length is not announced." };
/// A target above the limit is answered 414.
pub const E68: Row = Row { id: "E68", title: "A target above the limit is answered 414." };
/// A head or a count of headers above the limit is answered 431.
pub const E69: Row = Row { id: "E69", title: "A head or a count of headers above the limit is answered 431." };
/// A connection above the worker's limit is answered 503 with Retry-After and closed.
pub const E70: Row = Row { id: "E70", title: "A connection above the worker's limit is answered 503 with Retry-After and closed." };
/// An answer to a request that was not read to its end arrives whole before the connection is closed.
pub const E71: Row = Row { id: "E71", title: "An answer to a request that was not read to its end arrives whole before the connection is closed." };
/// Ambiguous framing is answered 400 and the connection closed.
pub const E72: Row = Row { id: "E72", title: "Ambiguous framing is answered 400 and the connection closed." };
/// A handler that panics costs its own connection an answer 500 and nobody else anything.
pub const E73: Row = Row { id: "E73", title: "A handler that panics costs its own connection an answer 500 and nobody else anything." };
/// An access log line for each request is written as JSON when asked for, with method, path, status, bytes and time.
pub const E74: Row = Row { id: "E74", title: "An access log line for each request is written as JSON when asked for, with method, path, status, bytes and time." };
/// A closed or unread log never blocks service, and dropped lines are counted.
pub const E75: Row = Row { id: "E75", title: "A closed or unread log never blocks service, and dropped lines are counted." };
/// /healthz answers 200 while the worker serves, and /readyz answers 503 from the moment of the drain.
pub const E76: Row = Row { id: "E76", title: "/healthz answers 200 while the worker serves, and /readyz answers 503 from the moment of the drain." };
/// M0_HEALTH=0 leaves /healthz and /readyz to the application.
pub const E77: Row = Row { id: "E77", title: "M0_HEALTH=0 leaves /healthz and /readyz to the application." };
/// Each variable is also a flag, and the flag wins.
pub const E78: Row = Row { id: "E78", title: "Each variable is also a flag, and the flag wins." };
/// --doctor prints every setting with its origin and checks the machine without binding.
pub const E79: Row = Row { id: "E79", title: "--doctor prints every setting with its origin and checks the machine without binding." };
/// The banner is printed only when every worker is ready, and names the address really bound.
pub const E80: Row = Row { id: "E80", title: "The banner is printed only when every worker is ready, and names the address really bound." };
/// Every line of the log is one JSON object with time, level, event and pid.
pub const E81: Row = Row { id: "E81", title: "Every line of the log is one JSON object with time, level, event and pid." };
/// The supervisor runs one thread and gains no descriptor over a hundred respawns.
pub const E82: Row = Row { id: "E82", title: "The supervisor runs one thread and gains no descriptor over a hundred respawns." };
/// A panic is logged once with its message and place.
pub const E83: Row = Row { id: "E83", title: "A panic is logged once with its message and place." };
/// Descriptors 0 to 2 are open before anything else is, so none of them is reused.
pub const E84: Row = Row { id: "E84", title: "Descriptors 0 to 2 are open before anything else is, so none of them is reused." };
/// /metrics on a listener or prefix that the operator chose shows the counters of all workers.
pub const E85: Row = Row { id: "E85", title: "/metrics on a listener or prefix that the operator chose shows the counters of all workers." };
/// A client that speaks HTTP/2 with prior knowledge is served on the same listener.
pub const E86: Row = Row { id: "E86", title: "A client that speaks HTTP/2 with prior knowledge is served on the same listener." };
/// An idle drain exits within 100 ms, as the median of its probe.
pub const E87: Row = Row { id: "E87", title: "An idle drain exits within 100 ms, as the median of its probe." };
/// Neither the order of start-up nor a signal in it leaves more than one listener or a socket file behind.
pub const E88: Row = Row { id: "E88", title: "Neither the order of start-up nor a signal in it leaves more than one listener or a socket file behind." };
/// A frame appended is read whole, with the id it was stamped with.
pub const F1: Row = Row { id: "F1", title: "A frame appended is read whole, with the id it was stamped with." };
/// Ids of one log rise by one with each frame, whoever appends.
pub const F2: Row = Row { id: "F2", title: "Ids of one log rise by one with each frame, whoever appends." };
/// A reader that keeps up reads every frame once, in order.
pub const F3: Row = Row { id: "F3", title: "A reader that keeps up reads every frame once, in order." };
/// A reader that was lapped is told, and is never handed bytes of another frame.
pub const F4: Row = Row { id: "F4", title: "A reader that was lapped is told, and is never handed bytes of another frame." };
/// A reader never waits for a writer.
pub const F5: Row = Row { id: "F5", title: "A reader never waits for a writer." };
/// A writer killed after any one store leaves a log that the survivors read and append to after the repair.
pub const F6: Row = Row { id: "F6", title: "A writer killed after any one store leaves a log that the survivors read and append to after the repair." };
/// A lock held by a dead process is taken over once, by the one that repairs.
pub const F7: Row = Row { id: "F7", title: "A lock held by a dead process is taken over once, by the one that repairs." };
/// A frame above the largest size is refused and changes nothing.
pub const F8: Row = Row { id: "F8", title: "A frame above the largest size is refused and changes nothing." };
/// A frame of any size up to 1 MiB comes back byte for byte, also across the ring's end.
pub const F9: Row = Row { id: "F9", title: "A frame of any size up to 1 MiB comes back byte for byte, also across the ring's end." };
/// Replay after an id yields exactly the frames above it that are still held.
pub const F10: Row = Row { id: "F10", title: "Replay after an id yields exactly the frames above it that are still held." };
/// Replay after an id too old, from the future or of another epoch says which of these it is.
pub const F11: Row = Row { id: "F11", title: "Replay after an id too old, from the future or of another epoch says which of these it is." };
/// The ring's size is configured, rounded as documented, and bounds the memory used.
pub const F12: Row = Row { id: "F12", title: "The ring's size is configured, rounded as documented, and bounds the memory used." };
/// A log attached to memory without the magic word or with another layout is refused.
pub const F13: Row = Row { id: "F13", title: "A log attached to memory without the magic word or with another layout is refused." };
/// A worker's share line counts what it holds, with one writer for each word.
pub const F14: Row = Row { id: "F14", title: "A worker's share line counts what it holds, with one writer for each word." };
/// The least-loaded live worker is found among live ones only.
pub const F15: Row = Row { id: "F15", title: "The least-loaded live worker is found among live ones only." };
/// The words of a dead worker are zeroed without touching a sibling's.
pub const F16: Row = Row { id: "F16", title: "The words of a dead worker are zeroed without touching a sibling's." };
/// Each worker's words stand on cache lines of their own.
pub const F17: Row = Row { id: "F17", title: "Each worker's words stand on cache lines of their own." };
/// A reader that sees an id published sees every byte of its frame.
pub const F18: Row = Row { id: "F18", title: "A reader that sees an id published sees every byte of its frame." };
/// An epoch differs between two starts of a host.
pub const F19: Row = Row { id: "F19", title: "An epoch differs between two starts of a host." };
/// The attribute row leaves a test's behaviour as it was.
pub const H1: Row = Row { id: "H1", title: "The attribute row leaves a test's behaviour as it was." };
/// A row that does not exist is a compile error at the test that names it.
pub const H2: Row = Row { id: "H2", title: "A row that does not exist is a compile error at the test that names it." };
/// A retired row in an attribute is a deprecation warning that names the successor.
pub const H3: Row = Row { id: "H3", title: "A retired row in an attribute is a deprecation warning that names the successor." };
/// A test that starts appends one line with its rows to the file of TRACE_EVENTS, and none when that is unset.
pub const H4: Row = Row { id: "H4", title: "A test that starts appends one line with its rows to the file of TRACE_EVENTS, and none when that is unset." };
/// A body that runs many times in one process leaves one line.
pub const H5: Row = Row { id: "H5", title: "A body that runs many times in one process leaves one line." };
/// With TRACE_DECLARE set a test binary tells the rows that its tests declare and runs no body.
pub const H6: Row = Row { id: "H6", title: "With TRACE_DECLARE set a test binary tells the rows that its tests declare and runs no body." };
/// The attribute works on async tests, properties, models, tests that must panic, tests that return a result and tests made by macros.
pub const H7: Row = Row { id: "H7", title: "The attribute works on async tests, properties, models, tests that must panic, tests that return a result and tests made by macros." };
/// The generated constants, SPEC.md and the ledger are told as stale when they differ from the YAML.
pub const H8: Row = Row { id: "H8", title: "The generated constants, SPEC.md and the ledger are told as stale when they differ from the YAML." };
/// An id that is duplicated, malformed or lost from the YAML is an error with file, line and column.
pub const H9: Row = Row { id: "H9", title: "An id that is duplicated, malformed or lost from the YAML is an error with file, line and column." };
/// An unknown key or state in a row is an error that names the nearest right one.
pub const H10: Row = Row { id: "H10", title: "An unknown key or state in a row is an error that names the nearest right one." };
/// A claim that is not one sentence is an error.
pub const H11: Row = Row { id: "H11", title: "A claim that is not one sentence is an error." };
/// A retired row names its successors or why there is none.
pub const H12: Row = Row { id: "H12", title: "A retired row names its successors or why there is none." };
/// A planted violation of each absence is found by tidy with file and line.
pub const H13: Row = Row { id: "H13", title: "A planted violation of each absence is found by tidy with file and line." };
/// The same results are written from nextest and from cargo's own runner.
pub const H14: Row = Row { id: "H14", title: "The same results are written from nextest and from cargo's own runner." };
/// A run of zero tests is red.
pub const H15: Row = Row { id: "H15", title: "A run of zero tests is red." };
/// A gate that did not run is named in the closing lines and not counted as passed.
pub const H16: Row = Row { id: "H16", title: "A gate that did not run is named in the closing lines and not counted as passed." };
/// The closing line of a test run is N passed, N failed on a line of its own.
pub const H17: Row = Row { id: "H17", title: "The closing line of a test run is N passed, N failed on a line of its own." };
/// A run ends with a failure when any gate failed, and the later gates have still run.
pub const H18: Row = Row { id: "H18", title: "A run ends with a failure when any gate failed, and the later gates have still run." };
/// Colour appears only on a terminal and never when NO_COLOR is set.
pub const H19: Row = Row { id: "H19", title: "Colour appears only on a terminal and never when NO_COLOR is set." };
/// A phase that could not have failed is reported as vacuous, and vacuous is red.
pub const H20: Row = Row { id: "H20", title: "A phase that could not have failed is reported as vacuous, and vacuous is red." };
/// A server started by the harness is killed with its whole tree when it is dropped, by the processes it owns and not by name.
pub const H21: Row = Row { id: "H21", title: "A server started by the harness is killed with its whole tree when it is dropped, by the processes it owns and not by name." };
/// The harness waits for an observed state with a bound, and the message at the bound says what was seen last.
pub const H22: Row = Row { id: "H22", title: "The harness waits for an observed state with a bound, and the message at the bound says what was seen last." };
/// Every phase checks at its end for processes left, zombies, held ports, panics and the documented exit code.
pub const H23: Row = Row { id: "H23", title: "Every phase checks at its end for processes left, zombies, held ports, panics and the documented exit code." };
/// Results are written as JSON lines, TAP and JUnit that agree with each other.
pub const H24: Row = Row { id: "H24", title: "Results are written as JSON lines, TAP and JUnit that agree with each other." };
/// Each measured quantity is reported with its bound and its headroom.
pub const H25: Row = Row { id: "H25", title: "Each measured quantity is reported with its bound and its headroom." };
/// No field of an event can end it early or forge another: CR, LF, CRLF, NUL and U+2028 are encoded or refused.
pub const S1: Row = Row { id: "S1", title: "No field of an event can end it early or forge another: CR, LF, CRLF, NUL and U+2028 are encoded or refused." };
/// An encoded event decodes to the fields it was made of.
pub const S2: Row = Row { id: "S2", title: "An encoded event decodes to the fields it was made of." };
/// A stream is sent each frame above its last id once and none at or below it.
pub const S3: Row = Row { id: "S3", title: "A stream is sent each frame above its last id once and none at or below it." };
/// A stream that joins with Last-Event-ID gets the held frames and then the live ones with no gap, repeat or reorder.
pub const S4: Row = Row { id: "S4", title: "A stream that joins with Last-Event-ID gets the held frames and then the live ones with no gap, repeat or reorder." };
/// Last-Event-ID is honoured by any worker, also one just respawned.
pub const S5: Row = Row { id: "S5", title: "Last-Event-ID is honoured by any worker, also one just respawned." };
/// An id too old, from the future, of another epoch or malformed is answered with a reset event that says which.
pub const S6: Row = Row { id: "S6", title: "An id too old, from the future, of another epoch or malformed is answered with a reset event that says which." };
/// What waits for a stream never exceeds its budget in bytes.
pub const S7: Row = Row { id: "S7", title: "What waits for a stream never exceeds its budget in bytes." };
/// A stream above its budget is told of the gap and cut.
pub const S8: Row = Row { id: "S8", title: "A stream above its budget is told of the gap and cut." };
/// A slow stream delays no other stream.
pub const S9: Row = Row { id: "S9", title: "A slow stream delays no other stream." };
/// An idle stream is sent a heartbeat comment at the configured interval.
pub const S10: Row = Row { id: "S10", title: "An idle stream is sent a heartbeat comment at the configured interval." };
/// A client that has gone is noticed within 2 s and its place is freed.
pub const S11: Row = Row { id: "S11", title: "A client that has gone is noticed within 2 s and its place is freed." };
/// The head of a stream's response is sent at once, before the first event.
pub const S12: Row = Row { id: "S12", title: "The head of a stream's response is sent at once, before the first event." };
/// A drain sends each stream a last event and a retry with jitter, and then its last chunk.
pub const S13: Row = Row { id: "S13", title: "A drain sends each stream a last event and a retry with jitter, and then its last chunk." };
/// A new stream asked for during the drain is answered 503 with Retry-After.
pub const S14: Row = Row { id: "S14", title: "A new stream asked for during the drain is answered 503 with Retry-After." };
/// A stream above the worker's limit is answered 503 with Retry-After.
pub const S15: Row = Row { id: "S15", title: "A stream above the worker's limit is answered 503 with Retry-After." };
/// A frame published by a handler of one worker reaches the streams of every worker.
pub const S16: Row = Row { id: "S16", title: "A frame published by a handler of one worker reaches the streams of every worker." };
/// The epoch in an id changes when the host is restarted and not when a worker is.
pub const S17: Row = Row { id: "S17", title: "The epoch in an id changes when the host is restarted and not when a worker is." };
/// A held stream costs at most 8 KiB of memory.
pub const S18: Row = Row { id: "S18", title: "A held stream costs at most 8 KiB of memory." };
/// Two streams of one worker share the bytes of a frame.
pub const S19: Row = Row { id: "S19", title: "Two streams of one worker share the bytes of a frame." };
/// After SIGKILL of worker 0 a sibling's stream beats again within 50 ms, as the median of its probe.
pub const S20: Row = Row { id: "S20", title: "After SIGKILL of worker 0 a sibling's stream beats again within 50 ms, as the median of its probe." };
/// A stream's frames leave without delay of small packets, and no compression buffers them.
pub const S21: Row = Row { id: "S21", title: "A stream's frames leave without delay of small packets, and no compression buffers them." };
/// A stream that ends is removed from the registry once, and its key is not taken for the next stream's.
pub const S22: Row = Row { id: "S22", title: "A stream that ends is removed from the registry once, and its key is not taken for the next stream's." };
/// A fork is refused while the process runs more than one thread.
pub const U1: Row = Row { id: "U1", title: "A fork is refused while the process runs more than one thread." };
/// The child of a fork starts with default dispositions and an empty signal mask, whatever was inherited.
pub const U2: Row = Row { id: "U2", title: "The child of a fork starts with default dispositions and an empty signal mask, whatever was inherited." };
/// Every descriptor the crate makes is closed on exec.
pub const U3: Row = Row { id: "U3", title: "Every descriptor the crate makes is closed on exec." };
/// A reap never blocks and tells exits, signals, stops and continues apart.
pub const U4: Row = Row { id: "U4", title: "A reap never blocks and tells exits, signals, stops and continues apart." };
/// A child whose parent ends is killed, also when the parent ended before the child had asked for it.
pub const U5: Row = Row { id: "U5", title: "A child whose parent ends is killed, also when the parent ended before the child had asked for it." };
/// A signal descriptor reports every blocked signal that arrived, with its sender's number.
pub const U6: Row = Row { id: "U6", title: "A signal descriptor reports every blocked signal that arrived, with its sender's number." };
/// Shared memory is the same words in parent and child, zero at the start, and leaves no name behind.
pub const U7: Row = Row { id: "U7", title: "Shared memory is the same words in parent and child, zero at the start, and leaves no name behind." };
/// Shared memory of another size than was asked for is refused.
pub const U8: Row = Row { id: "U8", title: "Shared memory of another size than was asked for is refused." };
/// A monotonic clock never goes back.
pub const U9: Row = Row { id: "U9", title: "A monotonic clock never goes back." };
/// A doorbell rung any number of times wakes its waiter at least once and is silent after it was drained.
pub const U10: Row = Row { id: "U10", title: "A doorbell rung any number of times wakes its waiter at least once and is silent after it was drained." };
/// Descriptors 0 to 2 are open after the guard ran, whatever was inherited.
pub const U11: Row = Row { id: "U11", title: "Descriptors 0 to 2 are open after the guard ran, whatever was inherited." };
/// A failed system call is an error that names the operation and carries its errno.
pub const U12: Row = Row { id: "U12", title: "A failed system call is an error that names the operation and carries its errno." };
/// An epoll wait returns at its deadline, also when it is interrupted by a signal.
pub const U13: Row = Row { id: "U13", title: "An epoll wait returns at its deadline, also when it is interrupted by a signal." };
/// A pipe whose other end is held by a dead process reads as closed.
pub const U14: Row = Row { id: "U14", title: "A pipe whose other end is held by a dead process reads as closed." };
/// The count of threads is read from the kernel, not guessed.
pub const U15: Row = Row { id: "U15", title: "The count of threads is read from the kernel, not guessed." };
/// The exit of a child runs no destructor and no exit handler of its parent.
pub const U16: Row = Row { id: "U16", title: "The exit of a child runs no destructor and no exit handler of its parent." };
/// Resource limits are read and set for the calling process alone.
pub const U17: Row = Row { id: "U17", title: "Resource limits are read and set for the calling process alone." };
/// A head is complete at its empty line and not before, however its bytes are split.
pub const W1: Row = Row { id: "W1", title: "A head is complete at its empty line and not before, however its bytes are split." };
/// A head above its limit is refused with 431, however its bytes are split.
pub const W2: Row = Row { id: "W2", title: "A head above its limit is refused with 431, however its bytes are split." };
/// A target above its limit is refused with 414.
pub const W3: Row = Row { id: "W3", title: "A target above its limit is refused with 414." };
/// More headers than the limit are refused with 431.
pub const W4: Row = Row { id: "W4", title: "More headers than the limit are refused with 431." };
/// A request of HTTP/1.1 with no Host or with more than one is refused with 400.
pub const W5: Row = Row { id: "W5", title: "A request of HTTP/1.1 with no Host or with more than one is refused with 400." };
/// A bare LF, or a bare CR, in a head is refused with 400.
pub const W6: Row = Row { id: "W6", title: "A bare LF, or a bare CR, in a head is refused with 400." };
/// Content-Length with Transfer-Encoding is refused with 400.
pub const W7: Row = Row { id: "W7", title: "Content-Length with Transfer-Encoding is refused with 400." };
/// Content-Length that differs from another, is signed, empty or above 2^64-1 is refused with 400.
pub const W8: Row = Row { id: "W8", title: "Content-Length that differs from another, is signed, empty or above 2^64-1 is refused with 400." };
/// Transfer-Encoding that does not end in chunked, or comes in HTTP/1.0, is refused with 400.
pub const W9: Row = Row { id: "W9", title: "Transfer-Encoding that does not end in chunked, or comes in HTTP/1.0, is refused with 400." };
/// White space before a header's colon or at the start of a line is refused with 400.
pub const W10: Row = Row { id: "W10", title: "White space before a header's colon or at the start of a line is refused with 400." };
/// A deadline fires at its time or one sweep later and never before.
pub const W11: Row = Row { id: "W11", title: "A deadline fires at its time or one sweep later and never before." };
/// Any order of bytes and time leaves a connection in exactly one phase with at most one deadline.
pub const W12: Row = Row { id: "W12", title: "Any order of bytes and time leaves a connection in exactly one phase with at most one deadline." };
/// The first-byte, head, body, idle and write deadlines each yield their own verdict.
pub const W13: Row = Row { id: "W13", title: "The first-byte, head, body, idle and write deadlines each yield their own verdict." };
/// Progress by a slow reader moves its deadline, and none does not.
pub const W14: Row = Row { id: "W14", title: "Progress by a slow reader moves its deadline, and none does not." };
/// Each verdict that carries an answer names status, close or keep, and linger.
pub const W15: Row = Row { id: "W15", title: "Each verdict that carries an answer names status, close or keep, and linger." };
/// A connection is kept alive after an answer only if both sides may, the body was read to its end, and no drain has begun.
pub const W16: Row = Row { id: "W16", title: "A connection is kept alive after an answer only if both sides may, the body was read to its end, and no drain has begun." };
/// No sequence of bytes makes a decision panic.
pub const W17: Row = Row { id: "W17", title: "No sequence of bytes makes a decision panic." };
/// A body above its limit is refused with 413, announced or chunked.
pub const W18: Row = Row { id: "W18", title: "A body above its limit is refused with 413, announced or chunked." };
/// A lingering close ends at its bound in time or bytes.
pub const W19: Row = Row { id: "W19", title: "A lingering close ends at its bound in time or bytes." };
/// Expect: 100-continue with a body above the limit is refused before the body is sent.
pub const W20: Row = Row { id: "W20", title: "Expect: 100-continue with a body above the limit is refused before the body is sent." };
