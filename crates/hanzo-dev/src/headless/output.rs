//! Where a run's output goes: data to standard output, in the format asked for, and words for people to standard error.

use std::io::Write;

use hanzo_protocol::event::{Event, EventContent};
use hanzo_protocol::item::{BreakReason, ItemContent, NoticeLevel, ToolCallStatus};
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::Init;
use super::cards::{Cards, Paint};
use super::result::{RunResult, Tokens};
use crate::cli::OutputFormat;
use crate::exit::Failure;
use crate::output::printable;

/// How much is said on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Also what did not go as asked.
    Warnings,
    /// Also a line for each call.
    Progress,
    /// Also what calls returned and the agent said on the way.
    Cards,
}

/// A run's output.
pub struct Output {
    format: OutputFormat,
    verbosity: Verbosity,
    cards: Cards,
    paint: Paint,
    data: Box<dyn AsyncWrite + Send + Unpin>,
    messages: Box<dyn Write + Send>,
    /// What the agent said last, shown as progress only when something follows it: the last of it is the answer.
    said: Option<String>,
}

impl Output {
    /// The process's own streams.
    pub fn standard(format: OutputFormat, verbosity: Verbosity) -> Self {
        let paint = Paint::suited(&std::io::stderr());
        Self::new(format, verbosity, paint, Box::new(tokio::io::stdout()), Box::new(std::io::stderr()))
    }

    /// Other streams.
    pub fn new(
        format: OutputFormat,
        verbosity: Verbosity,
        paint: Paint,
        data: Box<dyn AsyncWrite + Send + Unpin>,
        messages: Box<dyn Write + Send>,
    ) -> Self {
        Self { format, verbosity, cards: Cards::new(paint), paint, data, messages, said: None }
    }

    /// Whether the first line is `init`.
    pub fn wants_init(&self) -> bool {
        self.format == OutputFormat::StreamJson
    }

    /// Says what the run begins with.
    pub async fn init(&mut self, init: &Init) -> Result<(), Failure> {
        self.json(init).await
    }

    /// Passes on what happened.
    pub async fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if self.format == OutputFormat::StreamJson {
            self.json(event).await?;
        }
        self.watch(event);
        Ok(())
    }

    /// Says how it ended. In text this is the answer alone.
    pub async fn result(&mut self, result: &RunResult) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Text if result.result.is_empty() => {}
            OutputFormat::Text => {
                let mut text = printable(&result.result).trim_end().to_owned();
                text.push('\n');
                self.data.write_all(text.as_bytes()).await?;
                self.data.flush().await?;
            }
            OutputFormat::Json | OutputFormat::StreamJson => self.json(result).await?,
        }
        // A recording that counts no tokens has nothing to tell.
        if self.verbosity >= Verbosity::Progress && result.usage != Tokens::default() {
            let line = totals(result);
            let line = self.paint.dim(&line).into_owned();
            self.say(&line);
        }
        Ok(())
    }

    /// Says something that is not data.
    pub fn notice(&mut self, text: &str) {
        if self.verbosity >= Verbosity::Warnings {
            let text = format!("warning: {}", printable(text));
            self.say(&text);
        }
    }

    /// One line, written at once: a reader sees it before the next thing happens.
    async fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value).map_err(std::io::Error::from)?;
        line.push(b'\n');
        self.data.write_all(&line).await?;
        Ok(self.data.flush().await?)
    }

    fn say(&mut self, line: &str) {
        // There is nobody left to tell when it is closed.
        let _ = writeln!(self.messages, "{line}");
    }

    fn watch(&mut self, event: &Event) {
        match &event.content {
            EventContent::ItemCompleted { item } => match &item.content {
                ItemContent::ToolCall(call) => {
                    self.say_before();
                    let refused = call.status == ToolCallStatus::Denied;
                    match self.verbosity {
                        Verbosity::Cards => {
                            for line in self.cards.card(call) {
                                self.say(&line);
                            }
                            self.say("");
                        }
                        Verbosity::Progress => {
                            let line = self.cards.line(call);
                            self.say(&line);
                        }
                        Verbosity::Warnings if refused => {
                            let line = self.cards.line(call);
                            self.say(&line);
                        }
                        _ => {}
                    }
                }
                ItemContent::AgentMessage { text } => self.said = Some(text.clone()),
                ItemContent::Notice { level, text } => self.level(*level, text),
                ItemContent::PrefixBreak { reason } if self.verbosity >= Verbosity::Progress => {
                    if let Some(words) = changed(*reason) {
                        self.say(&format!("{words}, so the vendor's cache starts anew"));
                    }
                }
                ItemContent::Compaction { folded, tokens_saved, .. }
                    if self.verbosity >= Verbosity::Progress =>
                {
                    self.say(&format!("folded {folded} items into a digest, {tokens_saved} tokens fewer"));
                }
                _ => {}
            },
            EventContent::Notice { level, text } => self.level(*level, text),
            EventContent::TurnStarted { .. } => self.said = None,
            _ => {}
        }
    }

    /// What the agent said before it went on is progress.
    fn say_before(&mut self) {
        if let Some(text) = self.said.take().filter(|text| !text.trim().is_empty())
            && self.verbosity >= Verbosity::Cards
        {
            for line in printable(text.trim()).lines() {
                self.say(line);
            }
            self.say("");
        }
    }

    fn level(&mut self, level: NoticeLevel, text: &str) {
        match level {
            NoticeLevel::Info if self.verbosity >= Verbosity::Progress => self.say(&printable(text)),
            NoticeLevel::Warning => self.notice(text),
            NoticeLevel::Error => {
                let text = format!("error: {}", printable(text));
                self.say(&text);
            }
            NoticeLevel::Info => {}
        }
    }
}

/// Why the prompt begins differently, in words; a fold tells of itself.
fn changed(reason: BreakReason) -> Option<&'static str> {
    Some(match reason {
        BreakReason::Compaction => return None,
        BreakReason::ModelSwitch => "another model goes on",
        BreakReason::ToolListChanged => "the tools have changed",
        BreakReason::InstructionsChanged => "the instructions have changed",
        BreakReason::SettingsChanged => "the settings of requests have changed",
        BreakReason::Rewind => "the conversation was taken back",
    })
}

fn totals(result: &RunResult) -> String {
    let usage = &result.usage;
    let input = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    let requests = if result.num_turns == 1 { "request" } else { "requests" };
    let mut parts = vec![
        format!("{} model {requests}", result.num_turns),
        format!("{} tokens in, {} out", thousands(input), thousands(usage.output_tokens)),
    ];
    if let (Some(share), true) = ((usage.cache_read_input_tokens * 100).checked_div(input), input > 0) {
        parts.push(format!("{share} % from the cache"));
    }
    match result.prefix_breaks {
        0 => {}
        1 => parts.push("1 prefix break".to_owned()),
        breaks => parts.push(format!("{breaks} prefix breaks")),
    }
    if let Some(cost) = result.total_cost_usd {
        parts.push(super::cost(cost.max(0.0)).to_string());
    }
    parts.push(hanzo_tui::transcript::duration(result.duration_ms));
    parts.join(" · ")
}

fn thousands(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let thousands = count as f64 / 1000.0;
    if count < 10_000 { count.to_string() } else { format!("{thousands:.1}k") }
}
