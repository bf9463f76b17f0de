//! A root with files, asked as the handler asks.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_RANGE, ETAG, IF_RANGE, LAST_MODIFIED};
use http::{HeaderName, Uri};
use http_body_util::BodyExt as _;
use m0_spec::row;
use tokio::runtime::Builder;

use super::*;

const TEXT: &str = "0123456789";

struct Root {
    dir: tempfile::TempDir,
    files: Files,
}

/// What came: the status, the fields and the body.
struct Came {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Came {
    fn field(&self, name: HeaderName) -> Option<&str> {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("text"))
    }
}

impl Root {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("site/empty")).expect("made");
        fs::create_dir(root.join(".git")).expect("made");
        for (name, text) in [
            ("digits.txt", TEXT),
            ("a b.html", "<p>"),
            ("app.js", "1"),
            ("pic.png", "png"),
            ("odd.unknown", "?"),
            ("nothing", ""),
            ("site/index.html", "home"),
            (".env", "secret"),
            (".git/config", "secret"),
        ] {
            fs::write(root.join(name), text).expect("written");
        }
        fs::write(dir.path().join("secret"), "secret").expect("written");
        symlink("../secret", root.join("leak")).expect("linked");
        symlink("..", root.join("up")).expect("linked");
        let files = Files::at("/s", &root);
        assert_eq!(files.refusal(), None);
        Root { dir, files }
    }

    fn ask(&self, method: Method, uri: &str, fields: &[(HeaderName, &str)]) -> Option<Came> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse::<Uri>().expect("a target");
        for (name, value) in fields {
            let value = HeaderValue::from_str(value).expect("a value");
            request.headers_mut().append(name, value);
        }
        let runtime = Builder::new_current_thread().build().expect("a loop");
        runtime.block_on(async {
            let found = self
                .files
                .answer(&request)
                .await?
                .expect("no error of the disk");
            let (head, body) = found.into_parts();
            let body = body.collect().await.expect("read").to_bytes();
            Some(Came {
                status: head.status.as_u16(),
                headers: head.headers,
                body,
            })
        })
    }

    fn get(&self, uri: &str, fields: &[(HeaderName, &str)]) -> Came {
        self.ask(Method::GET, uri, fields).expect("an answer")
    }
}

#[row(E117, E119)]
#[test]
fn what_leads_out_or_is_hidden_is_the_applications() {
    let root = Root::new();
    for uri in [
        "/s/leak",
        "/s/up/secret",
        "/s/up/root/digits.txt",
        "/s/.env",
        "/s/%2eenv",
        "/s/.git/config",
        "/s/../secret",
        "/s/%2e%2e/secret",
        "/s/site%2f..%2f..%2fsecret",
        "/s//digits.txt",
        "/s/digits.txt/",
        "/s/digits.txt%00",
        "/s/site/empty",
        "/s/site/empty/",
        "/s/none",
        "/s/",
        "/s",
        "/other",
        "/sdigits.txt",
        "/s/%ff",
    ] {
        assert!(root.ask(Method::GET, uri, &[]).is_none(), "{uri}");
    }
    let long = format!("/s/{}", "x".repeat(300));
    assert!(root.ask(Method::GET, &long, &[]).is_none());
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        assert!(root.ask(method, "/s/digits.txt", &[]).is_none());
    }
}

#[row(E118)]
#[test]
fn a_file_has_its_length_type_date_and_etag_with_get_and_with_head() {
    let root = Root::new();
    for (uri, kind, text) in [
        ("/s/digits.txt?v=1", "text/plain; charset=utf-8", TEXT),
        ("/s/a%20b.html", "text/html; charset=utf-8", "<p>"),
        ("/s/app.js", "text/javascript; charset=utf-8", "1"),
        ("/s/pic.png", "image/png", "png"),
        ("/s/odd.unknown", "application/octet-stream", "?"),
        ("/s/nothing", "application/octet-stream", ""),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let body = if method == Method::GET { text } else { "" };
            let came = root.ask(method, uri, &[]).expect("a file");
            assert_eq!(
                (came.status, &came.body[..]),
                (200, body.as_bytes()),
                "{uri}"
            );
            assert_eq!(came.field(CONTENT_TYPE), Some(kind), "{uri}");
            let length = text.len().to_string();
            assert_eq!(came.field(CONTENT_LENGTH), Some(&length[..]), "{uri}");
            assert_eq!(came.field(X_CONTENT_TYPE_OPTIONS), Some("nosniff"));
            assert_eq!(came.field(ACCEPT_RANGES), Some("bytes"));
            assert!(came.field(ETAG).is_some_and(|tag| tag.starts_with('"')));
            assert!(
                came.field(LAST_MODIFIED)
                    .is_some_and(|date| date.ends_with("GMT"))
            );
            assert_eq!(came.field(CACHE_CONTROL), None);
        }
    }
    let root = Root {
        files: root.files.clone().cached_for(Duration::from_mins(1)),
        ..root
    };
    let came = root.get("/s/app.js", &[]);
    assert_eq!(came.field(CACHE_CONTROL), Some("public, max-age=60"));
}

#[row(E118)]
#[test]
fn conditions_are_judged_in_their_order() {
    let root = Root::new();
    let plain = root.get("/s/digits.txt", &[]);
    let (tag, date) = (
        plain.field(ETAG).expect("a tag"),
        plain.field(LAST_MODIFIED).expect("a date"),
    );
    let weak = format!("W/{tag}");
    let old = "Sun, 06 Nov 1994 08:49:37 GMT";
    let status = |fields: &[(HeaderName, &str)]| root.get("/s/digits.txt", fields).status;
    for same in [tag, &weak, "*"] {
        let came = root.get("/s/digits.txt", &[(IF_NONE_MATCH, same)]);
        assert_eq!((came.status, came.body.len()), (304, 0), "{same}");
        assert_eq!(came.field(ETAG), Some(tag));
    }
    assert_eq!(
        status(&[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, tag)]),
        304
    );
    assert_eq!(status(&[(IF_NONE_MATCH, "\"x\"")]), 200);
    assert_eq!(status(&[(IF_MODIFIED_SINCE, date)]), 304);
    assert_eq!(status(&[(IF_MODIFIED_SINCE, old)]), 200);
    // The tag decides where there is one (section 13.2.2).
    assert_eq!(
        status(&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, date)]),
        200
    );
    assert_eq!(status(&[(IF_MATCH, "\"x\"")]), 412);
    assert_eq!(status(&[(IF_MATCH, &weak)]), 412);
    assert_eq!(status(&[(IF_MATCH, tag), (IF_UNMODIFIED_SINCE, old)]), 200);
    assert_eq!(status(&[(IF_UNMODIFIED_SINCE, old)]), 412);
    assert_eq!(status(&[(IF_NONE_MATCH, tag), (RANGE, "bytes=0-1")]), 304);
}

#[row(E118)]
#[test]
fn one_range_gives_that_part_and_one_beyond_the_end_416() {
    let root = Root::new();
    for (range, part, told) in [
        ("bytes=0-", TEXT, "bytes 0-9/10"),
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=9-9", "9", "bytes 9-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-30", TEXT, "bytes 0-9/10"),
        ("bytes=5-500", "56789", "bytes 5-9/10"),
    ] {
        let came = root.get("/s/digits.txt", &[(RANGE, range)]);
        assert_eq!(
            (came.status, &came.body[..]),
            (206, part.as_bytes()),
            "{range}"
        );
        assert_eq!(came.field(CONTENT_RANGE), Some(told));
        assert_eq!(
            came.field(CONTENT_LENGTH),
            Some(&part.len().to_string()[..])
        );
        assert!(came.field(ETAG).is_some() && came.field(CONTENT_TYPE).is_some());
    }
    for beyond in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
        let came = root.get("/s/digits.txt", &[(RANGE, beyond)]);
        assert_eq!((came.status, came.body.len()), (416, 0), "{beyond}");
        assert_eq!(came.field(CONTENT_RANGE), Some("bytes */10"));
    }
    // An empty file has no part.
    for (range, status) in [("bytes=0-", 200), ("bytes=-5", 200), ("bytes=3-", 416)] {
        let came = root.get("/s/nothing", &[(RANGE, range)]);
        assert_eq!((came.status, came.body.len()), (status, 0), "{range}");
    }
    for whole in ["bytes=0-1,4-5", "lines=0-1", "bytes=4-2", "bytes=x-"] {
        let came = root.get("/s/digits.txt", &[(RANGE, whole)]);
        assert_eq!((came.status, came.body.len()), (200, 10), "{whole}");
    }
    let head = root.ask(Method::HEAD, "/s/digits.txt", &[(RANGE, "bytes=0-1")]);
    assert_eq!(head.expect("an answer").status, 200);
}

#[row(E118)]
#[test]
fn a_download_goes_on_only_with_bytes_of_the_same_file() {
    let root = Root::new();
    let tag = root
        .get("/s/digits.txt", &[])
        .field(ETAG)
        .expect("a tag")
        .to_owned();
    let part = [(RANGE, "bytes=5-"), (IF_RANGE, &tag[..])];
    assert_eq!(root.get("/s/digits.txt", &part).status, 206);
    for other in ["\"other\"", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let came = root.get("/s/digits.txt", &[(RANGE, "bytes=5-"), (IF_RANGE, other)]);
        assert_eq!(
            (came.status, &came.body[..]),
            (200, TEXT.as_bytes()),
            "{other}"
        );
        let beyond = root.get("/s/digits.txt", &[(RANGE, "bytes=90-"), (IF_RANGE, other)]);
        assert_eq!(beyond.status, 200, "{other}");
    }
    fs::write(root.dir.path().join("root/digits.txt"), "another text").expect("written");
    let came = root.get("/s/digits.txt", &part);
    assert_eq!((came.status, &came.body[..]), (200, &b"another text"[..]));
}

#[row(E119)]
#[test]
fn a_directory_is_its_page_and_is_found_without_its_slash() {
    let root = Root::new();
    let came = root.get("/s/site/", &[]);
    assert_eq!((came.status, &came.body[..]), (200, &b"home"[..]));
    assert_eq!(came.field(CONTENT_TYPE), Some("text/html; charset=utf-8"));
    let came = root.get("/s/site?a=b", &[]);
    assert_eq!(
        (came.status, came.field(LOCATION)),
        (307, Some("/s/site/?a=b"))
    );
    fs::write(root.dir.path().join("root/index.html"), "top").expect("written");
    let came = root.get("/s?a=b", &[]);
    assert_eq!((came.status, came.field(LOCATION)), (307, Some("/s/?a=b")));
    assert_eq!(&root.get("/s/", &[]).body[..], b"top");
}

#[row(E120)]
#[test]
fn a_file_is_opened_and_read_beside_the_loop() {
    let runtime = Builder::new_current_thread().build().expect("a loop");
    let here = thread::current().id();
    let there = runtime.block_on(beneath::beside(|| Ok(thread::current().id())));
    assert_ne!(there.expect("done"), here);
    let broken = runtime.block_on(beneath::beside::<()>(|| panic!("in the dark")));
    assert!(broken.is_err());
}

#[row(E124)]
#[test]
fn a_root_that_is_none_and_an_odd_prefix_are_refused() {
    let root = Root::new();
    let at = |prefix: &str, inner: &str| Files::at(prefix, root.dir.path().join(inner)).refusal();
    for prefix in ["/", "/a", "/a/b-c.d"] {
        assert_eq!(at(prefix, "root"), None, "{prefix}");
    }
    for prefix in [
        "", "a", "/a/", "//a", "/a//b", "/a b", "/a?b", "/{x}", "/%41",
    ] {
        let refused = at(prefix, "root");
        assert_eq!(refused.is_some(), !prefix.is_empty(), "{prefix}");
    }
    for (inner, told) in [("none", "cannot be read"), ("secret", "is not a directory")] {
        let refused = at("/a", inner).expect("refused").to_string();
        assert!(
            refused.contains(told) && refused.contains(inner),
            "{refused}"
        );
    }
}
