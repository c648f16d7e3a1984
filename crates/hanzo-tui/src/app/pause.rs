//! When a dialog may be answered. One that opens by itself must not take keys that were meant for something else: it has to be
//! in sight, and no key to come, for a moment. Until then the keys go on to where they went.

use std::time::Duration;

use super::{App, Dialog};

/// That moment. Whoever types leaves less than this between two keys; whoever has seen something new takes longer to answer.
pub(super) const PAUSE: Duration = Duration::from_millis(400);

/// Whether the dialog in front may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Readiness {
    /// It may: the user opened it, or has had the time to see it.
    #[default]
    Ready,
    /// It is not on the screen yet.
    Unseen(Strays),
    /// It is, since then.
    Seen(Duration, Strays),
}

/// Where keys go that came too early for a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strays {
    /// On into the draft.
    Draft,
    /// Nowhere: they were for a dialog that is gone, or for a list that is hidden now.
    Nowhere,
}

impl App {
    /// What [`App::view`] shows is on the screen.
    pub fn drawn(&mut self, now: Duration) {
        if let Readiness::Unseen(strays) = self.readiness {
            self.readiness = Readiness::Seen(now, strays);
        }
    }

    /// When the dialog in front will be ready, if nothing is typed.
    pub(super) fn ready_at(&self) -> Option<Duration> {
        match self.readiness {
            Readiness::Seen(since, _) => Some(self.last_key.map_or(since, |last| last.max(since)) + PAUSE),
            Readiness::Ready | Readiness::Unseen(_) => None,
        }
    }

    /// Where keys go that are not for the dialog in front yet; `None` when they are for it, or when there is none.
    pub(super) fn strays(&self) -> Option<Strays> {
        match self.readiness {
            _ if self.dialogs.is_empty() => None,
            Readiness::Ready => None,
            Readiness::Unseen(strays) | Readiness::Seen(_, strays) => Some(strays),
        }
    }

    /// Time passed: the dialog in front may be ready now.
    pub(super) fn settle_dialog(&mut self) {
        if self.ready_at().is_some_and(|at| at <= self.now) {
            self.readiness = Readiness::Ready;
        }
    }

    /// A dialog nobody asked for opens: behind others of its kind, before a list the user has open.
    pub(super) fn open_unasked(&mut self, dialog: Dialog) {
        let list = self.dialogs.iter().position(|dialog| matches!(dialog, Dialog::Pick(_)));
        let at = if matches!(dialog, Dialog::Pick(_)) { None } else { list };
        if self.dialogs.is_empty() || at == Some(0) {
            let strays = if self.dialogs.is_empty() { Strays::Draft } else { Strays::Nowhere };
            self.readiness = Readiness::Unseen(strays);
            self.menu = None;
        }
        self.dialogs.insert(at.unwrap_or(self.dialogs.len()), dialog);
    }

    /// The dialog in front is gone; one that was behind it is seen for the first time, or again.
    pub(super) fn uncovered(&mut self) {
        self.readiness =
            if self.dialogs.is_empty() { Readiness::Ready } else { Readiness::Unseen(Strays::Nowhere) };
    }
}
