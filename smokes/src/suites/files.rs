//! Files beside an application: what leads out of the root, parts and conditions, directories.
//!
//! Speaks raw HTTP/1.1, so that no client tidies a path up. Knows which files it made.
//! Invariant: what must stay unseen has a text of its own, and each answer is searched for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use m0_spec::{E117, E118, E119};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::layers::{Given, get};
use crate::answer::find;
use crate::peer::{PATIENCE, Peer, request};
use crate::phase::{Phase, beside};
use crate::run::{Run, Witness};
use crate::server::Server;

/// Phases of this suite.
pub const PHASES: &[Phase] = &[
    beside("files-stay-in-their-root", 30, &[E117], stay_in_their_root),
    beside(
        "files-parts-and-conditions",
        30,
        &[E118],
        parts_and_conditions,
    ),
    beside("files-directories", 30, &[E119], directories),
];

/// What no answer may hold.
const SECRET: &str = "what nobody may read";
const TEXT: &str = "0123456789abcdef";
/// Bytes of the large file, which no buffer on the way holds.
const LARGE: usize = 8 * 1024 * 1024;

/// Makes a root with files, links and a pipe, and secrets beside and within it.
fn root(run: &Run) -> Result<PathBuf> {
    let top = run.dir().join("files");
    let root = top.join("root");
    fs::create_dir_all(root.join("deep"))?;
    fs::create_dir(root.join(".hidden"))?;
    fs::create_dir(root.join("empty"))?;
    fs::create_dir(top.join("outside"))?;
    for (name, text) in [
        ("root/digits.txt", TEXT),
        ("root/deep/page.html", "<p>deep"),
        ("root/deep/index.html", "<p>index"),
        ("root/.env", SECRET),
        ("root/.hidden/file", SECRET),
        ("outside/secret", SECRET),
        ("secret", SECRET),
    ] {
        fs::write(top.join(name), text)?;
    }
    fs::write(root.join("large"), vec![b'x'; LARGE])?;
    symlink("deep/page.html", root.join("inside"))?;
    symlink("../secret", root.join("link"))?;
    symlink("../outside", root.join("directory"))?;
    symlink(top.join("secret"), root.join("absolute"))?;
    symlink("/proc/self/root", root.join("magic"))?;
    mkfifo(&root.join("pipe"), Mode::S_IRWXU)?;
    Ok(root)
}

fn serve<'run>(run: &'run Run, root: &std::path::Path) -> Result<Server<'run>> {
    Server::launch(run)
        .workers(2)
        .env("M0_HOSTCHECK_PERIOD_MS", 1000)
        .env("M0_HOSTCHECK_FILES", root.display())
        .start()
}

fn stay_in_their_root(run: &Run) -> Result<Witness> {
    let root = root(run)?;
    let server = serve(run, &root)?;
    let mut peer = Peer::connect(server.addr())?;
    for (path, text) in [("digits.txt", TEXT), ("inside", "<p>deep")] {
        let answer = get(&mut peer, &format!("/files/{path}"), &[])?.expect(200)?;
        ensure!(answer.text() == text, "{path} is {:?}", answer.text());
    }
    let mut refused = 0;
    for path in [
        "../secret",
        "deep/../../secret",
        "..%2fsecret",
        "%2e%2e/secret",
        "%2E%2E%2Fsecret",
        ".%2e/secret",
        "..%5csecret",
        "..\\secret",
        "deep%2f..%2f..%2fsecret",
        "%252e%252e/secret",
        "%c0%ae%c0%ae/secret",
        "..%00/secret",
        "../secret%00.txt",
        "digits.txt%00",
        "link",
        "directory/secret",
        "directory/../secret",
        "absolute",
        "magic/etc/passwd",
        "magic/",
        ".env",
        "%2eenv",
        ".hidden/file",
        "deep/../.env",
        "/etc/passwd",
        "//etc/passwd",
        "%2fetc%2fpasswd",
        "pipe",
        "digits.txt/",
        "digits.txt/..",
    ] {
        for method in ["GET", "HEAD"] {
            peer.send(format!(
                "{method} /files/{path} HTTP/1.1\r\nHost: a\r\n\r\n"
            ))?;
            let head = peer.head(PATIENCE).with_context(|| path.to_owned())?;
            let deadline = Instant::now() + PATIENCE;
            let body = peer.body(head.framing(method == "HEAD")?, deadline)?;
            ensure!(head.status == 404, "{method} {path} is {}", head.status);
            let leaked = [SECRET, "root:"]
                .iter()
                .any(|text| find(&body, text.as_bytes()).is_some());
            ensure!(!leaked, "{path} leads out");
            refused += 1;
        }
    }
    // The root is looked up for each request: a release is switched under a host that serves.
    let next = root.with_file_name("next");
    fs::create_dir(&next)?;
    fs::write(next.join("digits.txt"), "the next release")?;
    fs::rename(&root, root.with_file_name("former"))?;
    fs::rename(&next, &root)?;
    let answer = get(&mut peer, "/files/digits.txt", &[])?.expect(200)?;
    ensure!(answer.text() == "the next release", "{:?}", answer.text());
    server.stop()?;
    Ok(Witness::of("paths", refused))
}

fn parts_and_conditions(run: &Run) -> Result<Witness> {
    let root = root(run)?;
    let server = serve(run, &root)?;
    let mut peer = Peer::connect(server.addr())?;
    let path = "/files/digits.txt";
    let whole = get(&mut peer, path, &[])?.expect(200)?;
    let field = |name: &str| whole.head.field(name).map(str::to_owned);
    let tag = field("etag").context("no ETag")?;
    let date = field("last-modified").context("no date")?;
    ensure!(
        field("content-type").as_deref() == Some("text/plain; charset=utf-8"),
        "{whole:?}"
    );
    ensure!(
        field("accept-ranges").as_deref() == Some("bytes"),
        "{whole:?}"
    );
    ensure!(
        field("cache-control").as_deref() == Some("public, max-age=60"),
        "{whole:?}"
    );
    ensure!(
        field("x-content-type-options").as_deref() == Some("nosniff"),
        "{whole:?}"
    );
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    let cases: [(Given<'_>, u16, &str); 14] = [
        (&[("Range", "bytes=2-4")], 206, "234"),
        (&[("Range", "bytes=-4")], 206, "cdef"),
        (&[("Range", "bytes=-400")], 206, TEXT),
        (&[("Range", "bytes=14-99")], 206, "ef"),
        (&[("Range", "bytes=16-")], 416, ""),
        (&[("Range", "bytes=0-1,3-4")], 200, TEXT),
        (&[("Range", "lines=0-1")], 200, TEXT),
        (&[("Range", "bytes=2-4"), ("If-Range", &tag)], 206, "234"),
        (
            &[("Range", "bytes=2-4"), ("If-Range", "\"other\"")],
            200,
            TEXT,
        ),
        (&[("Range", "bytes=2-4"), ("If-Range", old)], 200, TEXT),
        (&[("If-None-Match", &tag)], 304, ""),
        (
            &[("If-None-Match", "\"other\""), ("If-Modified-Since", &date)],
            200,
            TEXT,
        ),
        (&[("If-Modified-Since", &date)], 304, ""),
        (&[("If-Match", "\"other\"")], 412, ""),
    ];
    for (fields, status, text) in cases {
        let answer = get(&mut peer, path, fields)?;
        ensure!(
            answer.status() == status,
            "{fields:?} is {}",
            answer.status()
        );
        ensure!(
            answer.text() == text,
            "{fields:?} brings {:?}",
            answer.text()
        );
        let kept = status == 416 || status == 412 || answer.head.field("etag") == Some(&*tag);
        ensure!(kept, "{fields:?} is without its tag");
    }
    peer.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"))?;
    let head = peer.head(PATIENCE)?;
    let length = TEXT.len().to_string();
    ensure!(
        head.status == 200 && head.field("content-length") == Some(&length),
        "{head:?}"
    );
    // A large file comes whole, and the next request on the connection is answered.
    let large = get(&mut peer, "/files/large", &[])?.expect(200)?;
    ensure!(
        large.body.len() == LARGE,
        "{} bytes of {LARGE}",
        large.body.len()
    );
    ensure!(large.body.iter().all(|byte| *byte == b'x'), "other bytes");
    get(&mut peer, path, &[])?.expect(200)?;
    // One that shrinks while it is sent is cut, and does not look whole.
    let mut slow = Peer::connect_narrow(server.addr(), 4096)?;
    slow.send(request("GET", "/files/large", &[], b""))?;
    slow.head(PATIENCE)?;
    fs::OpenOptions::new()
        .write(true)
        .open(root.join("large"))?
        .set_len(16)?;
    let (came, closing) = slow.drained(PATIENCE)?;
    ensure!(came < LARGE, "all of a file that is not there any more");
    run.note(format!(
        "{came} bytes of a file that shrank, then {closing:?}"
    ));
    server.stop()?;
    Ok(Witness::of("conditions", cases.len()))
}

fn directories(run: &Run) -> Result<Witness> {
    let root = root(run)?;
    let server = serve(run, &root)?;
    let mut peer = Peer::connect(server.addr())?;
    let page = get(&mut peer, "/files/deep/", &[])?.expect(200)?;
    ensure!(page.text() == "<p>index", "{:?}", page.text());
    ensure!(
        page.head.field("content-type") == Some("text/html; charset=utf-8"),
        "{page:?}"
    );
    let moved = get(&mut peer, "/files/deep?a=b", &[])?.expect(307)?;
    ensure!(
        moved.head.field("location") == Some("/files/deep/?a=b"),
        "{moved:?}"
    );
    for path in [
        "/files/empty",
        "/files/empty/",
        "/files/",
        "/files",
        "/files/none",
    ] {
        let answer = get(&mut peer, path, &[])?.expect(404)?;
        // The application's own answer, which names its worker.
        answer.slot().with_context(|| path.to_owned())?;
    }
    peer.send(request("POST", "/files/digits.txt", &[], b"x"))?;
    peer.answer()?.expect(404)?.slot().context("POST")?;
    server.stop()?;
    Ok(Witness::of("directories", 7))
}
