//! An editor of the test's own: it starts the server, frames messages, and keeps the findings that it is told.
//!
//! Refuses to wait by the clock: each question is followed by its answer, and the server tells its findings before it
//! answers the next question.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lsp_server::{Message, Notification, Request, RequestId, ResponseError};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) struct Editor {
    dir: TempDir,
    root: PathBuf,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: i32,
    /// The last findings of each file.
    told: BTreeMap<String, Value>,
    versions: i32,
}

impl Editor {
    /// Starts the server in a repository with some files, and shakes hands.
    pub(super) fn open(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let root = dir.path().canonicalize().expect("it is there");
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let init = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(&root)
            .status();
        assert!(init.expect("git runs").success());
        let mut child = Command::new(env!("CARGO_BIN_EXE_trace"))
            .arg("lsp")
            .current_dir(&root)
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("trace runs");
        let to = child.stdin.take().expect("it is piped");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut editor = Self {
            dir,
            root,
            child,
            to,
            from,
            asked: 0,
            told: BTreeMap::new(),
            versions: 0,
        };
        let answer = editor.request("initialize", &json!({"capabilities": {}}));
        let capabilities = &answer.expect("it is answered")["capabilities"];
        assert_eq!(capabilities["hoverProvider"], true);
        assert_eq!(capabilities["positionEncoding"], "utf-16");
        editor.note("initialized", &json!({}));
        editor
    }

    pub(super) fn uri(&self, name: &str) -> String {
        format!("file://{}", self.root.join(name).display())
    }

    /// Asks about a place of a file; lines and characters count from 0.
    pub(super) fn ask(
        &mut self,
        method: &str,
        name: &str,
        line: u32,
        character: u32,
        also: &Value,
    ) -> Value {
        let mut params = also.clone();
        params["textDocument"] = json!({"uri": self.uri(name)});
        params["position"] = json!({"line": line, "character": character});
        let answer = self.request(method, &params);
        answer.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// A question that must be refused: the error.
    pub(super) fn refused(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.request(method, params);
        json!(answer.expect_err("it is refused"))
    }

    /// The whole text of a file after a key was pressed; not saved.
    pub(super) fn types(&mut self, name: &str, text: &str) {
        self.versions += 1;
        let (uri, version) = (self.uri(name), self.versions);
        let params = if self.versions == 1 {
            json!({"textDocument": {"uri": uri, "version": version, "languageId": "any", "text": text}})
        } else {
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]})
        };
        let method = if self.versions == 1 {
            "didOpen"
        } else {
            "didChange"
        };
        self.note(&format!("textDocument/{method}"), &params);
    }

    /// The findings of a file after all that was sent; none when nothing was ever told of it.
    pub(super) fn findings(&mut self, name: &str) -> Option<Value> {
        self.ask("textDocument/hover", name, 0, 0, &json!({}));
        self.told.get(&self.uri(name)).cloned()
    }

    /// Ends the server as the protocol asks, and looks at its exit.
    pub(super) fn close(mut self) {
        self.request("shutdown", &Value::Null).expect("it is taken");
        self.note("exit", &Value::Null);
        let status = self.child.wait().expect("it is our child");
        assert!(status.success(), "{status}");
        drop(self.dir);
    }

    pub(super) fn note(&mut self, method: &str, params: &Value) {
        let notification = Notification::new(method.into(), params.clone());
        let message = Message::Notification(notification);
        message.write(&mut self.to).expect("the server listens");
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, ResponseError> {
        self.asked += 1;
        let id = RequestId::from(self.asked);
        let request = Request::new(id.clone(), method.into(), params.clone());
        let message = Message::Request(request);
        message.write(&mut self.to).expect("the server listens");
        loop {
            let message = Message::read(&mut self.from).expect("it is a message");
            match message.expect("the server answers before it goes") {
                Message::Response(response) => {
                    assert_eq!(response.id, id);
                    return response.response_result;
                }
                Message::Notification(note) if note.method == "textDocument/publishDiagnostics" => {
                    let uri = note.params["uri"].as_str().expect("an address").to_owned();
                    self.told.insert(uri, note.params["diagnostics"].clone());
                }
                Message::Notification(_) | Message::Request(_) => {}
            }
        }
    }
}
