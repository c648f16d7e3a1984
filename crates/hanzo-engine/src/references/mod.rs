//! What `@…` in the user's input means: a file, a directory, some lines of a file, an image, or a resource of an MCP server.
//!
//! Only what exists is a reference; a mention, an address or a decorator resolves to nothing and stays the text it is. What
//! the user typed is never changed: what it refers to is put before it, in tagged blocks. The user asks for this, so no gate
//! is passed; but every file is opened through the workspace's path layer, so that what is closed to tools is closed here.
//! Nothing here fails: what cannot be had is a [`Notice`], and the turn goes on.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::Attachment;
use hanzo_sandbox::paths::{FileKind, Workspace};

use crate::files;
use crate::fragment::Notice;
use crate::text::{clip, one_line};

mod complete;
mod listing;
mod parse;
mod read;

pub use complete::{Completion, CompletionKind, complete};
pub use parse::{Lines, Mention, Target, mentions};

/// The most references of one message that are resolved.
const MOST_REFERENCES: usize = 50;
/// What all blocks together may take, in bytes.
const LARGEST_SUM: usize = 400 * 1024;
/// What a resource of a server may take, in bytes.
const LARGEST_RESOURCE: usize = 100 * 1024;

/// Reads resources of MCP servers.
pub trait ResourceReader: Send + Sync {
    /// Whether `name` is a server that is connected. Answered at once.
    fn is_server(&self, name: &str) -> bool;

    /// The servers, for completion.
    fn servers(&self) -> Vec<String>;

    /// The resources a server is known to have, for completion. Answered at once.
    fn resources(&self, server: &str) -> Vec<ResourceName> {
        let _ = server;
        Vec::new()
    }

    /// The text of a resource; the error is a sentence.
    fn read<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Resource, String>>;
}

/// A resource as its server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceName {
    /// What it is read by.
    pub uri: String,
    /// What a person would call it.
    pub name: String,
}

/// A resource of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// Text.
    Text(String),
    /// An image or a document.
    Attachment(Attachment),
}

/// What references are resolved with.
#[derive(Clone)]
pub struct Sources {
    /// Opens files.
    pub workspace: Arc<Workspace>,
    /// The user's home, for `@~/…`.
    pub home: Option<PathBuf>,
    /// Reads resources, where there are MCP servers.
    pub resources: Option<Arc<dyn ResourceReader>>,
}

/// The user's input with what it refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The blocks, then the input as it was typed.
    pub text: String,
    /// Images.
    pub attachments: Vec<Attachment>,
    /// What could not be had, or not whole.
    pub notices: Vec<Notice>,
    /// Where untrusted content in it came from: a server, or a file outside the workspace.
    pub taint: Option<Taint>,
}

/// Resolves the references of an input.
pub async fn resolve(input: &str, sources: &Sources) -> Resolved {
    let mentions = mentions(input);
    let mut gathered = Gathered::default();
    if mentions.is_empty() {
        return gathered.finish(input);
    }
    let mut local = Vec::new();
    for mention in mentions {
        match (server_of(&mention, sources), &sources.resources) {
            (Some((server, uri)), Some(resources)) => {
                let key = (server.to_owned(), uri.to_owned());
                if gathered.admit(format!("{}:{}", key.0, key.1)) {
                    let answer = resources.read(&key.0, &key.1).await;
                    gathered.resource(&key.0, &key.1, answer);
                }
            }
            _ => local.push(mention),
        }
    }
    let shared = sources.clone();
    // A file system may be slow, and the engine's threads are few.
    let files = tokio::task::spawn_blocking(move || {
        for mention in &local {
            gathered.local(mention, &shared);
        }
        gathered
    });
    match files.await {
        Ok(gathered) => gathered.finish(input),
        Err(fault) => {
            let mut resolved = Gathered::default().finish(input);
            resolved.notices.push(Notice::warning(format!("the references could not be resolved: {fault}")));
            resolved
        }
    }
}

/// The server and the resource a mention names, when there is such a server.
fn server_of<'m>(mention: &'m Mention, sources: &Sources) -> Option<(&'m str, &'m str)> {
    let (server, uri) = mention.text.split_once(':')?;
    let known = sources.resources.as_ref().is_some_and(|resources| resources.is_server(server));
    (known && !uri.is_empty()).then_some((server, uri))
}

/// What has been gathered so far.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    blocks: Vec<String>,
    size: usize,
    seen: HashSet<String>,
    resolved: Resolved,
}

impl Gathered {
    /// Whether something is new, and there may be more.
    fn admit(&mut self, key: String) -> bool {
        if self.seen.contains(&key) {
            return false;
        }
        if self.seen.len() == MOST_REFERENCES {
            let text = format!("only the first {MOST_REFERENCES} references of a message are resolved");
            self.resolved.notices.push(Notice::warning(text));
        }
        self.seen.insert(key);
        self.seen.len() <= MOST_REFERENCES
    }

    fn resource(&mut self, server: &str, uri: &str, answer: Result<Resource, String>) {
        match answer {
            Ok(Resource::Text(text)) => {
                let text = clip(&text, LARGEST_RESOURCE.min(self.room()));
                self.resolved.taint = Some(Taint::Mcp);
                self.block("resource", &[("server", server), ("uri", uri)], &text);
            }
            Ok(Resource::Attachment(attachment)) => {
                self.resolved.taint = Some(Taint::Mcp);
                self.resolved.attachments.push(attachment);
            }
            Err(reason) => self.warn(&format!("{server}:{uri}"), &reason),
        }
    }

    /// A mention that may be a path. Which of its readings is meant is decided by what exists.
    fn local(&mut self, mention: &Mention, sources: &Sources) {
        for target in mention.targets() {
            let path = expanded(&target.path, sources.home.as_deref());
            match sources.workspace.stat(&path) {
                Ok(stat) => {
                    let key = format!("{}\u{0}{:?}", stat.location.display(), target.lines);
                    if self.admit(key) {
                        let inside = sources.workspace.writable_roots();
                        if !inside.iter().any(|root| stat.location.starts_with(root)) {
                            self.resolved.taint.get_or_insert(Taint::Outside);
                        }
                        match stat.kind {
                            FileKind::Directory => self.directory(&sources.workspace, &path, &target.path),
                            _ => self.file(&sources.workspace, &path, &target),
                        }
                    }
                    return;
                }
                Err(error) if files::is_missing(&error) => {}
                // It is there, and may not be read or cannot be.
                Err(error) if error.is_denial() => return self.warn(&target.path, &error.to_string()),
                // Too long a name, a loop, a NUL byte: not a file, so only text.
                Err(_) => {}
            }
        }
    }

    fn room(&self) -> usize {
        LARGEST_SUM.saturating_sub(self.size)
    }

    fn block(&mut self, tag: &str, attributes: &[(&str, &str)], text: &str) {
        let block = block(tag, attributes, text);
        self.size += block.len();
        self.blocks.push(block);
    }

    fn warn(&mut self, reference: &str, reason: &str) {
        let reference = one_line(&clip(reference, 200));
        self.resolved.notices.push(Notice::warning(format!("`@{reference}` is left as text: {reason}")));
    }

    fn finish(mut self, input: &str) -> Resolved {
        self.blocks.push(input.to_owned());
        self.resolved.text = self.blocks.join("\n\n");
        self.resolved
    }
}

fn expanded(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(inside), Some(home)) => home.join(inside),
        _ => PathBuf::from(path),
    }
}

/// A tagged block. The tag is one that does not occur in the text, so that a file cannot end its own block and go on as if the
/// user were speaking.
fn block(tag: &str, attributes: &[(&str, &str)], text: &str) -> String {
    use std::fmt::Write as _;
    let mut name = tag.to_owned();
    let mut number = 2;
    while text.contains(&format!("</{name}")) {
        name = format!("{tag}-{number}");
        number += 1;
    }
    let mut block = format!("<{name}");
    for (key, value) in attributes {
        let value = one_line(value).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        let _ = write!(block, " {key}=\"{value}\"");
    }
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(block, ">\n{text}{newline}</{name}>");
    block
}
