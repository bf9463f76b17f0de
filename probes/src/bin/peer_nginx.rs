//! What nginx does with the probes' requests: one worker, answers from its configuration.
//!
//! Owns the configuration, the port and the line that names it. With `nchan` for its second argument it holds streams by the
//! module of that name, and refuses them without. It never beats: what is published comes from the load.
//! Ends with 69 (EX_UNAVAILABLE) where nginx or the module is not installed.
//! Invariant: nothing here is tuned against the peer; the access log is off, as it is on every other server.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// sysexits.h: a service is not available.
const EX_UNAVAILABLE: u8 = 69;
/// Where packages put the module for streams.
const NCHAN: [&str; 2] = [
    "/usr/lib/nginx/modules/ngx_nchan_module.so",
    "/usr/lib64/nginx/modules/ngx_nchan_module.so",
];
/// Longest wait for nginx to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where nginx writes its process's number.
const PID: &str = "nginx.pid";

fn main() -> ExitCode {
    match serve() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("peer_nginx: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<ExitCode> {
    let mut module = None;
    if std::env::args().nth(2).is_some_and(|word| word == "nchan") {
        module = NCHAN.into_iter().find(|path| Path::new(path).exists());
        if module.is_none() {
            eprintln!(
                "peer_nginx: no module nchan at {}; Debian: apt-get install libnginx-mod-nchan",
                NCHAN.join(" or ")
            );
            return Ok(ExitCode::from(EX_UNAVAILABLE));
        }
    }
    let place = std::env::temp_dir().join(format!("m0-peer-nginx-{}", std::process::id()));
    std::fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let cleared = Cleared(place.clone());
    // nginx cannot be asked for any free port; the one that was free a moment ago is nearly always still free,
    // and where it is not nginx says so and ends.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let file = place.join("nginx.conf");
    std::fs::File::create(&file)?
        .write_all(configuration(&address.to_string(), module).as_bytes())?;
    let spawned = Command::new("nginx")
        .arg("-p")
        .arg(&place)
        .arg("-c")
        .arg(&file)
        .args(["-e", "stderr"])
        .stdin(Stdio::null())
        .spawn();
    let mut nginx = match spawned {
        Ok(nginx) => nginx,
        Err(error) => {
            eprintln!(
                "peer_nginx: cannot start nginx: {error}; Debian: apt-get install nginx-light"
            );
            return Ok(ExitCode::from(EX_UNAVAILABLE));
        }
    };
    // It writes this file last, when it listens and has made its directories; a connection alone may come before.
    let written = place.join(PID);
    let end = Instant::now() + PATIENCE;
    while !written.exists() {
        if let Some(status) = nginx.try_wait()? {
            bail!("nginx ended before it listened ({status})");
        }
        if Instant::now() > end {
            nginx.kill()?;
            nginx.wait()?;
            bail!("nginx does not listen within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Nothing of it is needed any more, and whatever ends this process later leaves nothing.
    drop(cleared);
    eprintln!("{{\"event\":\"listening\",\"address\":\"http://{address}\"}}");
    let status = nginx.wait()?;
    bail!("nginx ended ({status})");
}

/// Removes the directory.
struct Cleared(std::path::PathBuf);

impl Drop for Cleared {
    fn drop(&mut self) {
        // Nothing depends on its being gone.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn configuration(address: &str, module: Option<&str>) -> String {
    let (load, streams) = module.map_or_else(Default::default, |path| {
        let streams = "location = /events { nchan_subscriber eventsource; nchan_channel_id all; }
        location = /publish { nchan_publisher; nchan_channel_id all; }";
        (format!("load_module {path};"), streams)
    });
    format!(
        r#"{load} daemon off; master_process off; pid {PID};
events {{ worker_connections 16384; }}
http {{
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    server {{
        listen {address};
        location = / {{ default_type "text/plain; charset=utf-8"; add_header x-worker 0; return 200 "m0 host_check\n"; }}
        location = /json {{ default_type application/json; return 200 '["a","b"]'; }}
        {streams}
    }}
}}
"#
    )
}
