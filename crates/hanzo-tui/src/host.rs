//! What the face needs of the machine it runs on, given to it by the program that starts it: a face names neither the engine
//! nor the sandbox, and reads no file by itself.

use std::path::{Path, PathBuf};

use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::Attachment;

/// Something that could be typed behind an `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What to show.
    pub label: String,
    /// What to put behind the `@`.
    pub insert: String,
    /// Whether it is gone on with, as a directory is.
    pub goes_on: bool,
}

/// An instruction file, there or to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// What to show.
    pub label: String,
    /// What it holds for, and how long it is.
    pub detail: String,
    /// The file.
    pub path: PathBuf,
}

/// What became of a file the user had in their editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEdit {
    /// It is as it was.
    Same,
    /// It is another now.
    Changed,
}

/// The machine, as the face sees it. Called from a thread where waiting is allowed.
pub trait Host: Send + Sync {
    /// What `typed` could become: one directory level, by the beginning of the name.
    fn complete(&self, typed: &str) -> Vec<Completion>;

    /// Files anywhere in the workspace whose path has the letters of `query` in order, best first.
    fn find(&self, query: &str) -> Vec<Completion>;

    /// The branch of the workspace's repository.
    fn branch(&self) -> Option<String>;

    /// What confines the commands of a thread.
    fn sandbox(&self, thread: ThreadId) -> Option<String>;

    /// The image at `path`, when it is one.
    fn image(&self, path: &str) -> Option<Attachment>;

    /// The image on the clipboard; the error is a sentence.
    fn clipboard_image(&self) -> Result<Attachment, String>;

    /// The instruction files in force, those of directories below, and where one could be begun.
    fn memories(&self) -> Vec<Memory>;

    /// Lets the user change a file in an editor of their own. The terminal is theirs meanwhile.
    fn edit_file(&self, path: &Path) -> Result<FileEdit, String>;

    /// What is in order with this installation and what is not, in Markdown.
    fn doctor(&self) -> String;

    /// Keeps what is written and not sent, so that neither a crash nor leaving loses it. Nothing is kept of an empty text.
    fn keep_draft(&self, draft: &str);

    /// Remembers a prompt for the next start.
    fn remember(&self, prompt: &str);

    /// Writes a document the user asked for and says where it is.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String>;

    /// Puts text on the clipboard of the desktop the program runs on, and says which program did; `None` where there is no
    /// such desktop, as on the far side of a connection.
    fn copy(&self, text: &str) -> Option<&'static str>;

    /// Runs a program the user asked for in the workspace, outside every sandbox, and returns what it printed.
    fn run(&self, program: &str, arguments: &[String]) -> Result<String, String>;

    /// Lets the user change `text` in an editor of their own. The terminal is theirs meanwhile.
    fn edit(&self, text: &str) -> Result<String, String>;
}
