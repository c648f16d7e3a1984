//! Another size: the steps from the news of it to a drawing for it, and when a frame is due at all.

use std::io;
use std::time::{Duration, Instant};

use crossterm::terminal::size;

use super::sequences::in_tmux;
use super::{Face, PACE};
use crate::app::Event;
use crate::edit::{Key, KeyCode, Modifiers};
use crate::terminal::{Asking, Extent, Input};

/// How long the terminal's size must be quiet before it is believed: while a window is dragged, what is drawn for one size
/// arrives at another.
const SETTLED: Duration = Duration::from_millis(40);
/// How long a terminal has to answer. One that never answered is not asked again.
pub(super) const ANSWER: Duration = Duration::from_millis(250);
/// How long one that did answer before has: the connection may be slow.
const SLOW_ANSWER: Duration = Duration::from_secs(2);
/// How long two sizes, the one we are told and the one the terminal has, may differ before the first is believed.
const DISAGREE: Duration = Duration::from_secs(1);
/// How soon another size follows while a window is dragged.
const DRAGGED: Duration = Duration::from_millis(600);
/// How long after another size tmux may have the next one without telling: it tells one in a quarter of a second.
const HUSHED: Duration = Duration::from_millis(260);
/// How many rows a turn of the wheel is.
const WHEEL_ROWS: isize = 3;

/// The steps from the news of another size to a drawing for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resizing {
    Not,
    /// The size must be quiet until then.
    Quiet(Instant),
    /// The terminal was asked where it has put everything, and has until then to say.
    Asked(Instant),
    /// The old viewport was erased, and the terminal has until then to say whether it had the size that was done for.
    Checked(Instant),
}

impl Resizing {
    pub(super) fn until(self) -> Option<Instant> {
        match self {
            Resizing::Not => None,
            Resizing::Quiet(until) | Resizing::Asked(until) | Resizing::Checked(until) => Some(until),
        }
    }
}

impl Face<'_> {
    /// When what changed is drawn. A terminal that has not come to the last frame yet gets no further one to fall behind with.
    pub(super) fn next_frame(&self, dirty: bool) -> Option<Instant> {
        let pace = if self.screen.is_waiting() { self.patience() } else { PACE };
        let at = (self.drawn + pace).max(self.hushed.unwrap_or(self.drawn));
        (dirty && self.resizing == Resizing::Not).then_some(at)
    }

    fn patience(&self) -> Duration {
        if self.has_answered { SLOW_ANSWER } else { ANSWER }
    }

    /// Takes what is for the loop; the rest is for the state.
    pub(super) fn typed(&mut self, input: Input) -> Option<Input> {
        match input {
            Input::Resize(..) => self.resize_soon(),
            Input::Position(row, column) => {
                if !std::mem::replace(&mut self.has_answered, true) {
                    // It was slow to begin with and may have been given up.
                    self.screen.ask(Asking::EachFrame);
                }
                self.screen.answered(row, column);
                if self.screen.is_astray() && self.resizing == Resizing::Not {
                    self.resize_soon();
                }
            }
            Input::Click { row, column } => {
                // On the whole screen the lines come first, then what the state shows.
                let above = match self.terminal.modes.extent {
                    Extent::Inline => 0,
                    Extent::Whole => self.screen.size().1.saturating_sub(self.app.view().rows.len()),
                };
                let row = self.screen.row_at(row)?.checked_sub(u16::try_from(above).ok()?)?;
                return Some(Input::Click { row, column });
            }
            input => {
                let Some(by) = self.scrolls(&input) else { return Some(input) };
                let (width, height) = self.screen.size();
                self.pages.scroll(by, width, height.saturating_sub(self.app.view().rows.len()));
                return Some(Input::Wheel(0));
            }
        }
        None
    }

    /// How many rows something typed goes through the lines that are kept here.
    fn scrolls(&self, input: &Input) -> Option<isize> {
        if self.terminal.modes.extent != Extent::Whole || self.app.has_dialog() {
            return None;
        }
        let page = isize::try_from(self.screen.size().1 / 2).unwrap_or(1).max(1);
        let control = |code| Key::new(code).with(Modifiers::CONTROL);
        match input {
            Input::Wheel(by) => Some(isize::from(*by) * WHEEL_ROWS),
            Input::Key(key) if *key == Key::new(KeyCode::PageUp) => Some(-page),
            Input::Key(key) if *key == Key::new(KeyCode::PageDown) => Some(page),
            Input::Key(key) if *key == control(KeyCode::Home) => Some(isize::MIN / 2),
            Input::Key(key) if *key == control(KeyCode::End) => Some(isize::MAX / 2),
            _ => None,
        }
    }

    pub(super) fn resize_soon(&mut self) {
        let now = Instant::now();
        if self.resizing == Resizing::Not {
            // One size that follows another soon is a window that is being dragged.
            let again = self.resized.is_some_and(|before| now.duration_since(before) < DRAGGED);
            self.wanted = if again { 2 } else { 1 };
        }
        self.resized = Some(now);
        self.resizing = Resizing::Quiet(now + SETTLED);
    }

    /// Takes the next step when it is time for it; whether there is another size to draw for.
    pub(super) fn go_on_resizing(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        match self.resizing {
            Resizing::Quiet(until) if until <= now => {
                self.screen.ask_where()?;
                self.resizing = Resizing::Asked(now + self.patience());
                Ok(false)
            }
            Resizing::Asked(until) if !self.screen.is_waiting() || until <= now => {
                let (width, height) = size()?;
                let real = self.screen.whereabouts().width;
                if real != self.real {
                    self.resized = Some(now);
                    self.real = real;
                }
                // What we are told is behind what the terminal has: the rest of the news is under way. Where that was so
                // once, one answer that agrees may be by chance; what is erased for a width that is over takes lines
                // that are not ours.
                if real.is_some_and(|real| real != usize::from(width)) {
                    self.wanted = 2;
                    let lately = self.resized.is_some_and(|at| now.duration_since(at) < DISAGREE);
                    if lately {
                        self.resizing = Resizing::Quiet(now + SETTLED);
                        return Ok(false);
                    }
                } else if self.wanted > 1 {
                    self.wanted -= 1;
                    self.resizing = Resizing::Quiet(now + 2 * SETTLED);
                    return Ok(false);
                }
                self.resizing = Resizing::Checked(now + self.patience());
                for line in self.screen.resize(width, height)?.into_iter().rev() {
                    self.backlog.push_front(line);
                }
                self.go_on_resizing()
            }
            Resizing::Checked(until) if !self.screen.is_waiting() || until <= now => {
                if self.screen.is_astray() {
                    // It had yet another size.
                    self.resize_soon();
                    return Ok(false);
                }
                self.resizing = Resizing::Not;
                self.resized = Some(now);
                self.hushed = in_tmux().then(|| now + HUSHED);
                let (width, height) = self.screen.size();
                let size = |cells: usize| u16::try_from(cells).unwrap_or(u16::MAX);
                let commands = self.update(Event::Input(Input::Resize(size(width), size(height))));
                self.carry_out(commands)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
