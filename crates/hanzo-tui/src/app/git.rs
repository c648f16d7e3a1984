//! The commands for git. The user types them, so they pass no gate (seed 000 §12); what a model writes in them, a commit
//! message, is shown before it is used.

use hanzo_protocol::item::NoticeLevel;

use super::{App, Choice, Command, Dialog};
use crate::composer::Prompt;
use crate::dialog::{Entry, Picker};
use crate::text;
use crate::transcript;

/// The most of a diff that is sent to the model.
const LONGEST_DIFF: usize = 60 * 1024;
/// How many rows of a diff are shown.
const SHOWN_ROWS: usize = 200;

const WRITE_MESSAGE: &str = "Write a conventional commit message for this staged diff: a subject of at most 72 characters such \
                             as `fix(parser): accept empty input`, and below it, after an empty line, what changed and why \
                             where that is not obvious. Use no tools. Answer with the message alone, without quotes or fences.";

/// What a program was run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// To do something and say what it printed.
    Tell,
    /// To see what changed.
    Diff,
    /// To stage what changed.
    Stage(Afterwards),
    /// To see what is staged.
    Staged(Afterwards),
    /// To commit.
    Commit(Afterwards),
    /// To push.
    Push,
}

/// What follows a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// Nothing.
    Nothing,
    /// A push and a pull request.
    PullRequest,
}

/// A commit on its way: the message is being written, or chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    afterwards: Afterwards,
    message: Option<String>,
}

impl App {
    /// Runs a command for git; `false` when it is none.
    pub(super) fn git(&mut self, name: &str, arguments: &str, commands: &mut Vec<Command>) -> bool {
        let named =
            !arguments.is_empty() && !arguments.starts_with('-') && !arguments.contains(char::is_whitespace);
        match name {
            "diff" => run(Job::Diff, "git", &["diff", "HEAD"], commands),
            "stash" => {
                let message = format!("hanzo: {}", jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"));
                run(Job::Tell, "git", &["stash", "push", "-m", &message], commands);
            }
            "branch" | "worktree" if !named => {
                self.warn(&format!("`/{name}` needs one name\n\nhint: `/{name} my-change`"));
            }
            "branch" => run(Job::Tell, "git", &["checkout", "-b", arguments], commands),
            "worktree" => {
                let repository =
                    self.setup.workspace.file_name().map(|name| name.to_string_lossy().into_owned());
                let place = format!("../{}-{arguments}", repository.unwrap_or_default());
                run(Job::Tell, "git", &["worktree", "add", &place, "-b", arguments], commands);
            }
            "commit" => self.begin_commit(Afterwards::Nothing, commands),
            "commit-push-pr" => self.begin_commit(Afterwards::PullRequest, commands),
            _ => return false,
        }
        true
    }

    fn begin_commit(&mut self, afterwards: Afterwards, commands: &mut Vec<Command>) {
        if self.is_busy() {
            self.remark("Stop the turn first (Esc)");
            return;
        }
        run(Job::Stage(afterwards), "git", &["add", "--update"], commands);
    }

    /// A program ended.
    pub(super) fn program_ended(
        &mut self,
        job: Job,
        ended: Result<String, String>,
        commands: &mut Vec<Command>,
    ) {
        let printed = match ended {
            Ok(printed) => printed,
            Err(why) => return self.tell(NoticeLevel::Error, &why),
        };
        match job {
            Job::Tell => {
                let printed = printed.trim();
                self.tell(NoticeLevel::Info, if printed.is_empty() { "Done" } else { printed });
                if let Some(id) = self.thread_id() {
                    commands.push(Command::LookAround(id));
                }
            }
            Job::Diff => self.show_diff(&printed),
            Job::Stage(afterwards) => run(Job::Staged(afterwards), "git", &["diff", "--cached"], commands),
            Job::Staged(_) if printed.trim().is_empty() => {
                self.tell(
                    NoticeLevel::Info,
                    "Nothing is staged and no tracked file has changed: there is nothing to commit",
                );
            }
            Job::Staged(afterwards) => {
                self.commit = Some(Commit { afterwards, message: None });
                let text = format!("{}\n\n{WRITE_MESSAGE}", block("diff", &printed));
                self.say(Prompt { text, ..Prompt::of("Write a commit message") }, commands);
            }
            Job::Commit(afterwards) => {
                self.tell(NoticeLevel::Info, printed.trim());
                if afterwards == Afterwards::PullRequest {
                    run(Job::Push, "git", &["push", "--set-upstream", "origin", "HEAD"], commands);
                }
            }
            Job::Push => run(Job::Tell, "gh", &["pr", "create", "--fill"], commands),
        }
    }

    fn show_diff(&mut self, diff: &str) {
        if diff.trim().is_empty() {
            self.tell(NoticeLevel::Info, "Nothing has changed since the last commit");
            return;
        }
        let context = self.context();
        let mut lines = transcript::diff(diff, &context);
        let hidden = lines.len().saturating_sub(SHOWN_ROWS);
        lines.truncate(SHOWN_ROWS);
        let lines = self.live.say(lines);
        self.out.extend(lines);
        if hidden > 0 {
            self.tell(NoticeLevel::Info, &format!("… {hidden} more lines"));
        }
        self.shell_outputs.push(block("diff", diff));
        self.remark("The agent will see this diff with your next message");
    }

    /// The turn that writes the message is over.
    pub(super) fn message_written(&mut self, completed: bool) {
        let Some(commit) = self.commit.as_mut().filter(|commit| commit.message.is_none()) else { return };
        let message = without_fence(&self.last_answer);
        if !completed || message.is_empty() {
            self.commit = None;
            return;
        }
        commit.message = Some(message);
        self.ask_commit();
    }

    fn ask_commit(&mut self) {
        let Some(Commit { afterwards, message: Some(message) }) = &self.commit else { return };
        let then = match afterwards {
            Afterwards::Nothing => "",
            Afterwards::PullRequest => "then push and open a pull request",
        };
        let entry =
            |label: &str, detail: &str, value| Entry { label: label.into(), detail: detail.into(), value };
        let entries = vec![
            entry("Commit with this message", then, Choice::Commit),
            entry("Change the message", "in your editor", Choice::EditMessage),
            entry("Never mind", "what is staged stays staged", Choice::Nothing),
        ];
        let notes = message.lines().map(str::to_owned).collect();
        self.open_unasked(Dialog::Pick(Picker::new("Commit?", entries).with_notes(notes)));
    }

    pub(super) fn commit_now(&mut self, commands: &mut Vec<Command>) {
        if let Some(Commit { afterwards, message: Some(message) }) = self.commit.take() {
            run(Job::Commit(afterwards), "git", &["commit", "-m", &message], commands);
        }
    }

    pub(super) fn edit_message(&mut self, commands: &mut Vec<Command>) {
        if let Some(Commit { message: Some(message), .. }) = &self.commit {
            commands.push(Command::Edit(message.clone()));
        }
    }

    /// The editor was closed: over a commit's message, or over the draft.
    pub(super) fn edited(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        match &mut self.commit {
            Some(commit) if commit.message.is_some() => {
                commit.message = Some(text.trim().to_owned()).filter(|message| !message.is_empty());
                if commit.message.is_some() {
                    self.ask_commit();
                } else {
                    self.commit = None;
                    self.remark("An empty message: nothing is committed");
                }
            }
            _ => self.composer.set_text(text),
        }
    }
}

fn run(job: Job, program: &'static str, arguments: &[&str], commands: &mut Vec<Command>) {
    commands.push(Command::Run(
        job,
        program,
        arguments.iter().map(|&argument| argument.to_owned()).collect(),
    ));
}

/// A tagged block for the model; a tag that occurs in the text gets a number.
pub(super) fn block(tag: &str, content: &str) -> String {
    let mut cut = text::clean(content);
    if cut.len() > LONGEST_DIFF {
        cut.truncate(cut.floor_char_boundary(LONGEST_DIFF));
        cut.push_str("\n… (cut)");
    }
    let mut name = tag.to_owned();
    let mut number = 2;
    while cut.contains(&format!("</{name}")) {
        name = format!("{tag}-{number}");
        number += 1;
    }
    format!("<{name}>\n{}\n</{name}>", cut.trim_end())
}

fn without_fence(answer: &str) -> String {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner {
        Some(inner) => inner.split_once('\n').map_or(inner, |(_, rest)| rest).trim().to_owned(),
        None => answer.to_owned(),
    }
}
