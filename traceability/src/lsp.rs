//! `trace lsp`: the editor server, for the YAML and for every language in which a row can be named.
//!
//! Reading order: here the conversation, `words` finds the id under the cursor, `answers` says what is known of it,
//! `findings` tells what falls short. Refuses to judge: the texts that the editor holds are judged as `trace check`
//! would judge them if they were saved. Invariant: standard output holds the protocol alone, and a request is
//! answered, with an error where there is nothing better.

mod answers;
mod findings;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lsp_server::{Connection, ErrorCode, ExtractError, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument,
    DidSaveTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{
    Completion, GotoDefinition, GotoImplementation, HoverRequest, References, Request as _,
};
use lsp_types::{
    CompletionOptions, HoverProviderCapability, ImplementationProviderCapability, InitializeParams,
    OneOf, PositionEncodingKind, ServerCapabilities, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::judge::{Ask, judge};
use crate::workspace::{Given, Workspace};
use answers::Answers;
use words::Encoding;

/// Serves an editor over standard input and output until it says `exit`.
///
/// # Errors
///
/// When the editor breaks the protocol, or goes away without a word.
pub fn serve(root: &Path, given: Given, ask: Ask) -> Result<()> {
    let (connection, threads) = Connection::stdio();
    let (id, params) = connection
        .initialize_start()
        .context("the editor does not begin with `initialize`")?;
    let params: InitializeParams =
        serde_json::from_value(params).context("`initialize` has other parameters")?;
    let encoding = Encoding::of(&params.capabilities);
    let capabilities = serde_json::to_value(capabilities(encoding)).context("capabilities")?;
    let info = json!({"name": "trace", "version": env!("CARGO_PKG_VERSION")});
    connection
        .initialize_finish(
            id,
            json!({"capabilities": capabilities, "serverInfo": info}),
        )
        .context("the editor does not go on after `initialize`")?;
    let root = root
        .canonicalize()
        .with_context(|| format!("cannot find {}", root.display()))?;
    let mut server = Server {
        connection: &connection,
        root,
        given,
        ask,
        encoding,
        workspace: None,
        told: BTreeSet::new(),
        problem: None,
    };
    server.run()?;
    drop(connection);
    threads.join().context("standard input or output broke")
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        implementation_provider: Some(ImplementationProviderCapability::Simple(true)),
        references_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([" ", ",", "(", "["].map(str::to_owned).into()),
            ..CompletionOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}

struct Server<'a> {
    connection: &'a Connection,
    root: PathBuf,
    given: Given,
    ask: Ask,
    encoding: Encoding,
    /// The repository as it was last read; none when it changed since.
    workspace: Option<Workspace>,
    /// Files of which the editor shows findings.
    told: BTreeSet<PathBuf>,
    /// Why the repository cannot be read, when the editor was told.
    problem: Option<String>,
}

impl Server<'_> {
    fn run(&mut self) -> Result<()> {
        self.settle()?;
        while let Ok(message) = self.connection.receiver.recv() {
            if self.take(message)? {
                return Ok(());
            }
            // Keys come faster than a repository is read: it is read when nothing more is waiting.
            if self.connection.receiver.is_empty() {
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Handles one message; whether the editor is done.
    fn take(&mut self, message: Message) -> Result<bool> {
        match message {
            Message::Request(request) => {
                let done = self.connection.handle_shutdown(&request);
                if done.context("the editor shuts down and does not exit")? {
                    return Ok(true);
                }
                self.settle()?;
                let response = self.answer(request);
                self.send(Message::Response(response))?;
            }
            Message::Notification(notification) => self.note(notification),
            Message::Response(_) => {}
        }
        Ok(false)
    }

    fn send(&self, message: Message) -> Result<()> {
        let sent = self.connection.sender.send(message);
        sent.context("the editor no longer listens")
    }

    fn note(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        let path = |uri: &Uri| words::path_of(&self.root, uri);
        match method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(params) = parse::<lsp_types::DidOpenTextDocumentParams>(params)
                    && let Some(path) = path(&params.text_document.uri)
                {
                    self.given.open.insert(path, params.text_document.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(params) = parse::<lsp_types::DidChangeTextDocumentParams>(params)
                    && let Some(path) = path(&params.text_document.uri)
                    && let Some(last) = params.content_changes.into_iter().next_back()
                {
                    self.given.open.insert(path, last.text);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(params) = parse::<lsp_types::DidCloseTextDocumentParams>(params)
                    && let Some(path) = path(&params.text_document.uri)
                {
                    self.given.open.remove(&path);
                }
            }
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => {}
            _ => return,
        }
        self.workspace = None;
    }

    /// Reads and judges the repository when it changed, and tells the editor.
    fn settle(&mut self) -> Result<()> {
        if self.workspace.is_some() {
            return Ok(());
        }
        match Workspace::read(&self.root, &self.given) {
            Ok(workspace) => {
                let judged = judge(&workspace, &self.ask);
                let fresh = findings::by_file(&workspace, &judged, &self.given.open, self.encoding);
                let gone = self.told.iter().filter(|path| !fresh.contains_key(*path));
                let gone = gone.cloned().map(|path| (path, Vec::new()));
                for (path, diagnostics) in gone.chain(fresh.clone()).collect::<Vec<_>>() {
                    let Some(uri) = words::uri_of(&self.root, &path) else {
                        continue;
                    };
                    let params = lsp_types::PublishDiagnosticsParams::new(uri, diagnostics, None);
                    self.send(Message::Notification(Notification::new(
                        PublishDiagnostics::METHOD.into(),
                        params,
                    )))?;
                }
                self.told = fresh.into_keys().collect();
                self.workspace = Some(workspace);
                self.problem = None;
            }
            Err(error) => {
                let text = format!("trace: {error:#}");
                if self.problem.as_ref() != Some(&text) {
                    let params = json!({"type": 1, "message": text});
                    let method = "window/showMessage".to_owned();
                    self.send(Message::Notification(Notification::new(method, params)))?;
                    self.problem = Some(text);
                }
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Response {
        let id = request.id.clone();
        let Some(workspace) = &self.workspace else {
            let text = self.problem.clone().unwrap_or_default();
            return Response::new_err(id, ErrorCode::RequestFailed as i32, text);
        };
        let answers = Answers {
            workspace,
            root: &self.root,
            open: &self.given.open,
            encoding: self.encoding,
        };
        let method = request.method.clone();
        let answered = match method.as_str() {
            HoverRequest::METHOD => {
                extract::<HoverRequest>(request).map(|(at, _)| json!(answers.hover(&at)))
            }
            GotoDefinition::METHOD => {
                extract::<GotoDefinition>(request).map(|(at, _)| json!(answers.row(&at)))
            }
            GotoImplementation::METHOD => {
                extract::<GotoImplementation>(request).map(|(at, _)| json!(answers.tests(&at)))
            }
            References::METHOD => extract::<References>(request).map(|(at, params)| {
                let declaration = params["context"]["includeDeclaration"] == json!(true);
                json!(answers.everywhere(&at, declaration))
            }),
            Completion::METHOD => {
                extract::<Completion>(request).map(|(at, _)| json!(answers.completion(&at)))
            }
            _ => {
                let text = format!("{method} is not served");
                return Response::new_err(id, ErrorCode::MethodNotFound as i32, text);
            }
        };
        match answered {
            Ok(value) => Response::new_ok(id, value),
            Err(text) => Response::new_err(id, ErrorCode::InvalidParams as i32, text),
        }
    }
}

/// The place that a request asks about, and its other parameters.
fn extract<R>(request: Request) -> Result<(TextDocumentPositionParams, Value), String>
where
    R: lsp_types::request::Request,
{
    let (_, params) = request
        .extract::<Value>(R::METHOD)
        .map_err(|error: ExtractError<Request>| error.to_string())?;
    let at = serde_json::from_value(params.clone()).map_err(|error| error.to_string())?;
    Ok((at, params))
}

/// The parameters of a notification; a notification has no answer, so one that is not of its form is passed over.
fn parse<T: DeserializeOwned>(params: Value) -> Option<T> {
    serde_json::from_value(params).ok()
}
