//! A Chromium of the probe's own, and what the report must do in it.
//!
//! Owns the steps and the clock, which is the page's. Refuses to be built without the feature `browser`: its crates are
//! many. Invariant: the driver and the browser are gone when the probe is.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use thirtyfour::prelude::*;
use thirtyfour::stringmatch::StringMatch;

use super::GOAL_MS;
use crate::grown::{self, ROWS};
use crate::report::Report;
use crate::samples::Samples;
use crate::session::Session;

/// What is typed, one key after the other, in each round.
const TYPED: &str = "every beat 42";

/// Chromium as root, without a network and without what it does by itself.
const ARGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

pub(super) fn measure(
    session: &Session,
    report: &mut Report,
    trace: &Path,
    home: &Path,
) -> Result<()> {
    session.shows("growing");
    let root = home.join("repository");
    grown::grow(&root, 1)?;
    let status = Command::new(trace)
        .args(["report", "--html", "site"])
        .current_dir(&root)
        .env_remove("CARGO_TARGET_DIR")
        .stdout(Stdio::null())
        .status()
        .context("cannot run trace")?;
    ensure!(status.success(), "trace report failed: {status}");
    let driver = Driver::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot make a runtime")?;
    let page = format!("file://{}", root.join("site/index.html").display());
    let profile = home.join("profile");
    let times = runtime.block_on(async {
        let mut chrome = DesiredCapabilities::chrome();
        for arg in ARGS {
            chrome.add_arg(arg)?;
        }
        chrome.add_arg(&format!("--user-data-dir={}", profile.display()))?;
        let browser = WebDriver::new(&driver.address, chrome)
            .await
            .context("Chromium does not start")?;
        let outcome = in_browser(session, &browser, &page).await;
        // Its end is the driver's to see to where it cannot be asked.
        let _ = browser.quit().await;
        outcome
    })?;
    report
        .figure("search, slowest key of a round", "ms", Samples::of(times)?)
        .goal(GOAL_MS)
        .swayed();
    report.note("From the key to the page laid out anew. Search, filters, keyboard, a row's page and the dark form were right.");
    Ok(())
}

/// The driver of Chromium, ended when this value goes.
struct Driver {
    child: Child,
    address: String,
}

impl Driver {
    fn start() -> Result<Self> {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start chromedriver (Debian: chromium-driver)")?;
        let out = child.stdout.take().context("it is piped")?;
        let port = BufReader::new(out)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("started successfully on port ")?;
                Some(port.trim_end_matches('.').to_owned())
            });
        let address = port.map(|port| format!("http://127.0.0.1:{port}"));
        let driver = Self {
            child,
            address: address.clone().unwrap_or_default(),
        };
        ensure!(address.is_some(), "chromedriver names no port");
        Ok(driver)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One thing that the page must answer: what is done, and what must then be so.
const STEPS: [(&str, &str, &str); 9] = [
    (
        "all rows are shown",
        "",
        "count.textContent === '1000 of 1000 rows'",
    ),
    (
        "a row is found by its id",
        "type('a42')",
        "count.textContent === '1 of 1000 rows' && shown()[0].id === 'A42'",
    ),
    (
        "words are found in any order",
        "type('once 42 workers')",
        "shown().length === 10 && shown().every((row) => row.text.includes('At 42 workers'))",
    ),
    (
        "what fits no row says so",
        "type('no such row')",
        "shown().length === 0 && !none.hidden",
    ),
    (
        "Escape empties the search",
        "key(document.body, 'Escape')",
        "search.value === '' && shown().length === 1000",
    ),
    (
        "the grade filters",
        "choose('grade', 'proven')",
        "shown().length === 300 && shown().every((row) => row.text.includes('proven'))",
    ),
    (
        "and the area with it",
        "choose('area', 'B')",
        "shown().length === 30 && shown().every((row) => row.id.startsWith('B'))",
    ),
    (
        "a slash leads to the search",
        "choose('grade', ''); choose('area', ''); key(document.body, '/')",
        "document.activeElement === search",
    ),
    (
        "and an arrow to the rows",
        "key(search, 'ArrowDown'); key(document.activeElement, 'ArrowDown')",
        "document.activeElement.textContent === 'A2'",
    ),
];

/// What the steps are written in.
const WORDS: &str = "const search = document.getElementById('search'), count = document.getElementById('count'), none = document.getElementById('none');\
    const shown = () => Array.from(document.querySelectorAll('#matrix tbody tr')).filter((row) => row.offsetHeight > 0)\
    .map((row) => ({ id: row.querySelector('a').textContent, text: row.textContent }));\
    const input = (element) => element.dispatchEvent(new Event('input', { bubbles: true }));\
    const type = (text) => { search.value = text; input(search); };\
    const choose = (id, value) => { const element = document.getElementById(id); element.value = value; input(element); };\
    const key = (element, key) => element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));";

async fn in_browser(session: &Session, browser: &WebDriver, page: &str) -> Result<Vec<f64>> {
    browser.goto(page).await?;
    for (what, does, is) in STEPS {
        session.shows(what);
        let holds = ask(browser, &format!("{WORDS} {does}; return {is};")).await?;
        ensure!(holds == json!(true), "{what}: `{is}` does not hold");
    }
    shoot(session, browser, "arrows").await?;
    // Enter, by the real keyboard, opens the first row that fits.
    session.shows("the page of a row");
    let search = browser.find(By::Id("search")).await?;
    search.send_keys("a41" + Key::Enter).await?;
    heading(browser, "A41").await?;
    let claim = browser.find(By::Css(".claim")).await?.text().await?;
    ensure!(
        claim.contains("At 41 workers"),
        "the page of A41 says {claim}"
    );
    shoot(session, browser, "row").await?;
    let body = || async { browser.find(By::Css("body")).await };
    body().await?.send_keys("" + Key::Right).await?;
    heading(browser, "A42").await?;
    body().await?.send_keys("u").await?;
    browser.query(By::Id("matrix")).first().await?;
    let at = browser.current_url().await?;
    ensure!(at.as_str() == format!("{page}#rows"), "`u` leads to {at}");
    // Light and dark, as the system asks.
    let mut backs = Vec::new();
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser
            .cdp()
            .send_raw("Emulation.setEmulatedMedia", media)
            .await?;
        let colours = "const of = getComputedStyle(document.body); return of.backgroundColor + ' ' + of.color;";
        backs.push(ask(browser, colours).await?);
        shoot(session, browser, scheme).await?;
    }
    let wanted = [
        json!("rgb(255, 255, 255) rgb(27, 27, 27)"),
        json!("rgb(20, 20, 20) rgb(232, 232, 232)"),
    ];
    ensure!(backs == wanted, "light and dark are {backs:?}");
    let scripts = ask(
        browser,
        "return performance.getEntriesByType('resource').length;",
    )
    .await?;
    ensure!(scripts == json!(0), "the page loads {scripts} things");
    let mut times = Vec::new();
    for round in session.rounds() {
        session.shows(&format!("typing, round {round}"));
        let timed = format!(
            "{WORDS} type(''); document.body.getBoundingClientRect(); const times = []; for (let end = 1; end <= '{TYPED}'.length; end += 1) {{ const began = performance.now(); \
             type('{TYPED}'.slice(0, end)); document.body.getBoundingClientRect(); times.push(performance.now() - began); }} \
             return [times, shown().length];"
        );
        let answer = ask(browser, &timed).await?;
        ensure!(
            answer[1] == json!(ROWS / 100),
            "{} rows fit `{TYPED}`",
            answer[1]
        );
        let each = answer[0].as_array().context("a list of times")?;
        let slowest = each.iter().filter_map(Value::as_f64).reduce(f64::max);
        times.push(slowest.context("no key was timed")?);
    }
    Ok(times)
}

/// A picture of the window as it is, where pictures are wanted.
async fn shoot(session: &Session, browser: &WebDriver, name: &str) -> Result<()> {
    session.shot(name, &browser.screenshot_as_png().await?)
}

async fn ask(browser: &WebDriver, script: &str) -> Result<Value> {
    let answer = browser.execute(script, Vec::new()).await;
    Ok(answer.with_context(|| script.to_owned())?.json().clone())
}

/// Waits for the page of a row.
async fn heading(browser: &WebDriver, id: &str) -> Result<()> {
    let heading = browser
        .query(By::Css("h1"))
        .with_text(StringMatch::from(id).partial());
    heading
        .first()
        .await
        .with_context(|| format!("the page of {id} does not come"))?;
    Ok(())
}
