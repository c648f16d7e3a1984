//! `/memory`: the instruction files, to look at and to change.

use std::path::Path;

use hanzo_protocol::item::NoticeLevel;

use super::{App, Choice, Dialog};
use crate::dialog::{Entry, Picker};
use crate::host::{FileEdit, Memory};

impl App {
    pub(super) fn pick_memory(&mut self, files: Vec<Memory>) {
        let entry =
            |file: Memory| Entry { label: file.label, detail: file.detail, value: Choice::Memory(file.path) };
        let mut entries: Vec<Entry<Choice>> = files.into_iter().map(entry).collect();
        entries.push(Entry { label: "Never mind".to_owned(), detail: String::new(), value: Choice::Nothing });
        let notes = vec!["What the agent is told from files; Enter opens one in your editor.".to_owned()];
        self.dialogs.push_back(Dialog::Pick(Picker::new("Instruction files", entries).with_notes(notes)));
    }

    pub(super) fn memory_edited(&mut self, path: &Path, edited: Result<FileEdit, String>) {
        match edited {
            Ok(FileEdit::Same) => self.remark("The file is as it was"),
            Ok(FileEdit::Changed) => {
                let words = format!(
                    "{} was changed; the agent reads it when a thread is opened (`/new`, `/resume`)",
                    path.display()
                );
                self.tell(NoticeLevel::Info, &words);
            }
            Err(why) => self.tell(NoticeLevel::Error, &why),
        }
    }
}
