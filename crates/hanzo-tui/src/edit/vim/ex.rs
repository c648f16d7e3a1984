//! The line after `:`. A prompt needs few commands: send, leave, go to a line, and settings.

use std::time::Duration;

use super::super::key::{Key, KeyCode};
use super::super::{Editor, InputMode, Outcome};
use super::VimMode;

impl Editor {
    pub(super) fn command_key(&mut self, key: Key) -> Outcome {
        match key.code {
            KeyCode::Escape => self.leave_command_line(),
            KeyCode::Enter => {
                let line = std::mem::take(&mut self.vim.command_line);
                self.leave_command_line();
                return self.run_ex(&line);
            }
            KeyCode::Backspace => self.command_backspace(),
            KeyCode::Char('h') if key == Key::ctrl('h') => self.command_backspace(),
            KeyCode::Char('c') if key == Key::ctrl('c') => self.leave_command_line(),
            KeyCode::Char('u') if key == Key::ctrl('u') => self.vim.command_line.clear(),
            KeyCode::Char('w') if key == Key::ctrl('w') => {
                let kept =
                    self.vim.command_line.trim_end().rsplit_once(' ').map_or(0, |(kept, _)| kept.len() + 1);
                self.vim.command_line.truncate(kept);
            }
            _ => match key.typed() {
                Some(c) => self.vim.command_line.push(c),
                None => return Outcome::Ignored,
            },
        }
        Outcome::Done
    }

    fn command_backspace(&mut self) {
        if self.vim.command_line.pop().is_none() {
            self.leave_command_line();
        }
    }

    fn leave_command_line(&mut self) {
        self.vim.command_line.clear();
        self.vim.mode = VimMode::Normal;
        self.cursor = self.buffer.clamp_on(self.cursor);
    }

    fn run_ex(&mut self, line: &str) -> Outcome {
        // From a selection Vim starts the line with a range; a prompt has no use for one.
        let line = line.trim().trim_start_matches("'<,'>").trim_start_matches(':').trim();
        let (word, rest) = match line.find(|c: char| c.is_whitespace()) {
            Some(at) => (&line[..at], line[at..].trim()),
            None => (line, ""),
        };
        match word.trim_end_matches('!') {
            "" => Outcome::Done,
            "w" | "write" => Outcome::Submit,
            "q" | "quit" | "qa" | "qall" => Outcome::Quit,
            "wq" | "x" | "xit" | "wqa" | "xa" => Outcome::SubmitAndQuit,
            "se" | "set" => self.set(rest),
            "$" => self.go_to_line(usize::MAX),
            number => match number.parse::<usize>() {
                Ok(number) => self.go_to_line(number),
                Err(_) => Outcome::Message(format!(
                    "no such command: `:{line}`\n\nhint: `:w` sends, `:q` leaves, `:set` shows the settings"
                )),
            },
        }
    }

    fn go_to_line(&mut self, number: usize) -> Outcome {
        let line = number.saturating_sub(1).min(self.buffer.last_line());
        self.cursor = self.buffer.first_nonblank(line);
        self.vim.want = self.column_here();
        Outcome::Done
    }

    fn set(&mut self, options: &str) -> Outcome {
        let mut outcome = None;
        for option in options.split_whitespace() {
            let (name, value) = option.split_once(['=', ':']).unwrap_or((option, ""));
            let number = value.parse::<u32>().ok();
            match (name.trim_end_matches('?'), number) {
                ("vim" | "novim" | "emacs" | "noemacs" | "default", _) => {
                    let input = InputMode::from_name(name).unwrap_or_default();
                    self.configure(super::super::Settings { input, ..self.settings });
                    outcome = Some(Outcome::InputMode(input));
                }
                ("input_mode" | "inputmode", None) if !value.is_empty() => {
                    let Some(input) = InputMode::from_name(value) else {
                        return Outcome::Message(format!(
                            "no such input mode: `{value}`\n\nhint: it is vim, emacs or default"
                        ));
                    };
                    self.configure(super::super::Settings { input, ..self.settings });
                    outcome = Some(Outcome::InputMode(input));
                }
                ("timeoutlen" | "tm", Some(milliseconds)) => {
                    self.settings.pending_timeout = Duration::from_millis(milliseconds.into());
                }
                ("notimeout", None) => self.settings.pending_timeout = Duration::ZERO,
                ("shiftwidth" | "sw", Some(columns)) => {
                    self.settings.shift_width = columns.clamp(1, 40) as usize;
                }
                ("tabstop" | "ts", Some(columns)) => self.settings.tab_width = columns.clamp(1, 40) as usize,
                (
                    "timeoutlen" | "tm" | "shiftwidth" | "sw" | "tabstop" | "ts" | "input_mode" | "inputmode",
                    None,
                ) => {
                    outcome = Some(Outcome::Message(self.settings_line()));
                }
                _ => {
                    return Outcome::Message(format!(
                        "no such setting: `{option}`\n\nhint: there are vim, emacs, default, timeoutlen, notimeout, shiftwidth and tabstop"
                    ));
                }
            }
        }
        match outcome {
            Some(outcome) => outcome,
            None if options.is_empty() => Outcome::Message(self.settings_line()),
            None => Outcome::Done,
        }
    }

    fn settings_line(&self) -> String {
        let settings = &self.settings;
        format!(
            "input_mode={} timeoutlen={} shiftwidth={} tabstop={}",
            settings.input.name(),
            settings.pending_timeout.as_millis(),
            settings.shift_width,
            settings.tab_width
        )
    }
}
