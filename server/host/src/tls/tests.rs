//! Identities out of files, and records however they are cut, with a client of rustls and without a socket.

use std::fs;
use std::io::{self, Read as _, Write};
use std::path::PathBuf;
use std::sync::Arc;

use m0_spec::row;
use proptest::prelude::*;
use rcgen::generate_simple_self_signed;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tempfile::TempDir;

use super::{Identity, Sealed, Tls};
use crate::config::AppConfig;
use crate::refusal::Refusal;

const NAME: &str = "a.example";

/// A certificate and its key, in PEM.
fn made() -> (String, String) {
    let made = generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// The two files of a host.
struct Files {
    dir: TempDir,
}

impl Files {
    fn new(cert: &str, key: &str) -> Self {
        let files = Files {
            dir: tempfile::tempdir().expect("a directory"),
        };
        files.write(cert, key);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, cert: &str, key: &str) {
        fs::write(self.path("cert"), cert).expect("room on the disk");
        fs::write(self.path("key"), key).expect("room on the disk");
    }

    fn identity(&self, http2: bool) -> Result<Identity, Refusal> {
        let pairs = [
            ("M0_TLS_CERT", self.path("cert").display().to_string()),
            ("M0_TLS_KEY", self.path("key").display().to_string()),
            ("M0_HTTP2", u8::from(http2).to_string()),
        ];
        let config = AppConfig::from_parts(pairs, std::iter::empty::<&str>());
        let settings = config.resolve(&[]).expect("valid");
        Identity::of(&settings).map(|identity| identity.expect("both files are named"))
    }
}

/// A client that trusts this certificate and offers these protocols.
fn client(cert: &str, protocols: &[&str]) -> ClientConnection {
    let der = rustls::pki_types::CertificateDer::from_pem_slice(cert.as_bytes());
    let mut roots = RootCertStore::empty();
    roots.add(der.expect("PEM")).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("suites of both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(NAME).expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("a configuration")
}

/// A socket that takes so many bytes at once.
struct Narrow<'a> {
    takes: usize,
    went: &'a mut Vec<u8>,
}

impl Write for Narrow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.takes);
        self.went.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything that the client has to say, in pieces of `size`; what the host opens of it into `room` bytes at a time.
fn say(client: &mut ClientConnection, host: &mut Sealed, size: usize, room: usize) -> Vec<u8> {
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).expect("a vector has room");
    }
    let (mut opened, mut into) = (Vec::new(), vec![0; room]);
    for piece in records.chunks(size) {
        host.feed(piece).expect("records");
        while let Some(got) = host.open(&mut into).expect("records") {
            assert!(got > 0, "an end that nobody told");
            opened.extend_from_slice(&into[..got]);
        }
    }
    opened
}

/// Everything that the host has sealed, as a socket takes it that takes `takes` bytes at once; what the client opens of it.
fn answer(
    client: &mut ClientConnection,
    host: &mut Sealed,
    takes: usize,
) -> Result<Vec<u8>, rustls::Error> {
    let (mut went, mut opened) = (Vec::new(), Vec::new());
    while host.has_unsent() {
        let mut socket = Narrow {
            takes,
            went: &mut went,
        };
        host.send(&mut socket).expect("it takes some");
    }
    let (mut rest, mut into) = (&went[..], vec![0; 20_000]);
    while !rest.is_empty() {
        client.read_tls(&mut rest).expect("a slice");
        client.process_new_packets()?;
        while let Ok(got @ 1..) = client.reader().read(&mut into) {
            opened.extend_from_slice(&into[..got]);
        }
    }
    Ok(opened)
}

/// Both sides of a connection whose handshake is done.
fn shaken(cert: &str, identity: &Identity, protocols: &[&str]) -> (ClientConnection, Sealed) {
    let (mut client, mut host) = (client(cert, protocols), Sealed::new(identity));
    while client.is_handshaking() || host.is_handshaking() {
        assert_eq!(say(&mut client, &mut host, 100, 100), b"");
        answer(&mut client, &mut host, 100).expect("a certificate that is trusted");
    }
    (client, host)
}

#[row(E162)]
#[test]
fn what_cannot_serve_is_refused_by_its_file_and_what_would_be_right() {
    let section = |label: &str, text: &str| {
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    let ((cert, key), (_, other)) = (made(), made());
    let cut = cert[..cert.len() / 2].to_owned();
    let sealed = section("ENCRYPTED PRIVATE KEY", "AAAA");
    let older = section("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\n\nAAAA");
    let long = " ".repeat((1 << 20) + 1);
    let cases: [(&str, &str, &str, &str); 13] = [
        ("", &key, "M0_TLS_CERT", "is empty"),
        (&key, &key, "M0_TLS_CERT", "holds no certificate"),
        (&cut, &key, "M0_TLS_CERT", "no END line"),
        (
            "-----BEGIN CERTIFICATE--\n",
            &key,
            "M0_TLS_CERT",
            "a BEGIN line is cut",
        ),
        (
            &section("CERTIFICATE", "!!!!"),
            &key,
            "M0_TLS_CERT",
            "is not base64",
        ),
        (
            &section("CERTIFICATE", "AAAA"),
            &key,
            "M0_TLS_CERT",
            "a broken certificate",
        ),
        (&long, &key, "M0_TLS_CERT", "is longer than 1048576 bytes"),
        (&cert, "", "M0_TLS_KEY", "is empty"),
        (&cert, &cert, "M0_TLS_KEY", "holds no private key"),
        (&cert, &sealed, "M0_TLS_KEY", "holds an encrypted key"),
        (&cert, &older, "M0_TLS_KEY", "holds an encrypted key"),
        (
            &cert,
            &section("PRIVATE KEY", "AAAA"),
            "M0_TLS_KEY",
            "a key of no use",
        ),
        (
            &cert,
            &other,
            "M0_TLS_KEY",
            "is not the key of the first certificate in M0_TLS_CERT=/",
        ),
    ];
    let files = Files::new("", "");
    let refused = |name: &str, why: &str| {
        let refusal = files
            .identity(false)
            .err()
            .unwrap_or_else(|| panic!("{why}: taken"));
        let text = refusal.to_string();
        let file = name.trim_start_matches("M0_TLS_").to_lowercase();
        let named = format!("{name}={}: ", files.path(&file).display());
        assert!(
            text.starts_with(&named) && text.contains(why),
            "{why}: {text}"
        );
        assert!(text.contains("; want a file in PEM"), "{text}");
        assert!(
            !text.contains("AAAA"),
            "it shows what stands in the file: {text}"
        );
    };
    for (cert, key, name, why) in cases {
        files.write(cert, key);
        refused(name, why);
    }
    files.write(&cert, &key);
    fs::remove_file(files.path("key")).expect("it is there");
    refused("M0_TLS_KEY", "cannot be read: No such file");
    fs::create_dir(files.path("key")).expect("a directory");
    refused("M0_TLS_KEY", "is no regular file");
}

#[row(E162)]
#[test]
fn a_chain_and_both_in_one_file_are_taken() {
    let ((cert, key), (issuer, _)) = (made(), made());
    let chain = format!("what others wrote in front\n{cert}\n{issuer}");
    let both = format!("{key}{cert}");
    for (cert_file, key_file) in [(&chain, &key), (&both, &both)] {
        let identity = Files::new(cert_file, key_file).identity(false);
        let identity = identity.unwrap_or_else(|refusal| panic!("{refusal}"));
        let (client, _) = shaken(&cert, &identity, &[]);
        let shown = client.peer_certificates().expect("it shows some").len();
        assert_eq!(shown, cert_file.matches("BEGIN CERTIFICATE").count());
    }
}

#[row(E161)]
#[test]
fn the_protocol_is_the_one_that_both_sides_name() {
    let (cert, key) = made();
    let files = Files::new(&cert, &key);
    let cases: [(bool, &[&str], Option<&str>); 6] = [
        (true, &["http/1.1", "h2"], Some("h2")),
        (true, &["http/1.1"], Some("http/1.1")),
        (true, &[], None),
        (false, &["h2", "http/1.1"], Some("http/1.1")),
        (false, &["spdy/3", "http/1.1"], Some("http/1.1")),
        (false, &[], None),
    ];
    for (http2, offered, chosen) in cases {
        let identity = files
            .identity(http2)
            .unwrap_or_else(|refusal| panic!("{refusal}"));
        let (client, host) = shaken(&cert, &identity, offered);
        assert_eq!(
            client.alpn_protocol(),
            chosen.map(str::as_bytes),
            "{offered:?}"
        );
        assert_eq!(host.speaks_http2(), chosen == Some("h2"), "{offered:?}");
    }
    for (http2, offered) in [(false, "h2"), (true, "http/1.0"), (true, "h2c")] {
        let identity = files
            .identity(http2)
            .unwrap_or_else(|refusal| panic!("{refusal}"));
        let (mut client, mut host) = (client(&cert, &[offered]), Sealed::new(&identity));
        let mut hello = Vec::new();
        client.write_tls(&mut hello).expect("a vector has room");
        host.feed(&hello).expect_err("nothing in common");
        let told = answer(&mut client, &mut host, usize::MAX).expect_err("an alert");
        assert!(told.to_string().contains("NoApplicationProtocol"), "{told}");
    }
}

#[row(E163)]
#[test]
fn a_look_takes_a_pair_that_can_serve_and_nothing_else() {
    let (old, new) = (made(), made());
    let files = Files::new(&old.0, &old.1);
    let identity = files
        .identity(false)
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    let shows = |identity: &Identity, cert: &str| {
        let (mut client, mut host) = (client(cert, &[]), Sealed::new(identity));
        say(&mut client, &mut host, 1_000, 1_000);
        answer(&mut client, &mut host, 1_000).is_ok()
    };
    let tls = Tls::new(identity.clone());
    assert!(
        matches!(tls.identity().look(), Ok(None)),
        "nothing has changed"
    );
    // The key comes behind its certificate, and for a while stands beside another one.
    files.write(&new.0, &old.1);
    let looked = tls.identity().look();
    let refusal = looked.as_ref().err().expect("they do not belong together");
    assert_eq!(refusal.name(), Some("M0_TLS_KEY"), "{refusal}");
    assert!(tls.take(looked), "not told");
    assert!(!tls.take(tls.identity().look()), "told at each look");
    assert!(shows(&tls.identity(), &old.0), "the old one is gone");
    files.write(&new.0, &new.1);
    assert!(tls.take(tls.identity().look()), "not told");
    assert!(shows(&tls.identity(), &new.0), "the new one is not used");
    assert!(!shows(&tls.identity(), &old.0), "both are used");
    // A worker that is started late begins with what is there, and where that cannot serve with what once was.
    assert!(shows(&Tls::new(identity.clone()).identity(), &new.0));
    files.write("", "");
    assert!(shows(&Tls::new(identity).identity(), &old.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[row(E167)]
    #[test]
    fn what_is_said_arrives_whole_however_it_is_cut(
        sizes in proptest::collection::vec(1_usize..40_000, 1..6),
        (cut, room, takes) in (1_usize..20_000, 1_usize..20_000, 1_usize..20_000),
    ) {
        let (cert, key) = made();
        let identity = Files::new(&cert, &key).identity(false);
        let identity = identity.unwrap_or_else(|refusal| panic!("{refusal}"));
        let (mut client, mut host) = shaken(&cert, &identity, &[]);
        let all: usize = sizes.iter().sum();
        let text: Vec<u8> = (0..all).map(|at| (at % 251) as u8).collect();
        let (mut rest, mut heard) = (&text[..], Vec::new());
        // Small writes beside large ones: several records lie in one piece, or one over several.
        for size in &sizes {
            let (piece, behind) = rest.split_at(*size);
            client.writer().write_all(piece).expect("below the limit of the client");
            heard.extend(say(&mut client, &mut host, cut, room));
            rest = behind;
        }
        prop_assert!(heard == text, "{} of {} bytes came", heard.len(), text.len());
        let (mut sealed, mut told) = (0, Vec::new());
        while sealed < text.len() {
            sealed += host.seal(&text[sealed..]).expect("it is open");
            told.extend(answer(&mut client, &mut host, takes).expect("records"));
        }
        prop_assert!(told == text, "{} of {} bytes went", told.len(), text.len());
        prop_assert_eq!(host.unsent_bytes(), 0);
        host.say_end();
        answer(&mut client, &mut host, takes).expect("records");
        prop_assert_eq!(client.reader().read(&mut [0]).expect("an end in order"), 0);
    }
}
