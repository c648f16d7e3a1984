//! Files: text in a block, images as attachments, everything else by name and size.

use std::io::{BufRead as _, BufReader, Read, Seek as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_sandbox::paths::Workspace;

use super::Gathered;
use super::listing;
use super::parse::{Lines, Target};
use crate::text::clip;

/// What one file may take of a message, in bytes.
const LARGEST_FILE: usize = 100 * 1024;
/// The largest image that is attached. Vendors take 5 MB of base64.
const LARGEST_IMAGE: u64 = 3_750_000;
/// Where a file is looked at to tell text from other things.
const SNIFFED: usize = 8 * 1024;
/// How far into a file lines are counted.
const FARTHEST: u64 = 64 * 1024 * 1024;

impl Gathered {
    pub(super) fn file(&mut self, workspace: &Workspace, path: &Path, target: &Target) {
        let opened = workspace.open_read(path).map_err(|error| error.to_string());
        let read = opened.and_then(|file| self.content(file, target).map_err(|error| error.to_string()));
        if let Err(reason) = read {
            self.warn(&target.path, &reason);
        }
    }

    fn content(&mut self, mut file: std::fs::File, target: &Target) -> std::io::Result<()> {
        let size = file.metadata()?.len();
        let mut head = Vec::new();
        (&mut file).take(SNIFFED as u64).read_to_end(&mut head)?;
        file.rewind()?;
        if let Some(media_type) = image_type(&head) {
            return self.image(file, size, media_type, target);
        }
        if is_binary(&head) {
            let about = [("path", target.path.as_str()), ("size", &size.to_string())];
            self.block("file", &about, "[a binary file, not shown]");
            return Ok(());
        }
        let most = LARGEST_FILE.min(self.room());
        let (bytes, note) = match target.lines {
            None => whole(file, most, size)?,
            Some(lines) => some(file, most, lines)?,
        };
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if target.lines.is_none() && text.starts_with('\u{feff}') {
            text.remove(0);
        }
        if let Some(note) = note {
            let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text = format!("{text}{newline}[{note}]");
        }
        let lines = target.lines.map(|lines| format!("{}-{}", lines.first, lines.last));
        let mut about = vec![("path", target.path.as_str())];
        about.extend(lines.as_deref().map(|lines| ("lines", lines)));
        self.block("file", &about, &text);
        Ok(())
    }

    fn image(
        &mut self,
        file: std::fs::File,
        size: u64,
        media_type: &str,
        target: &Target,
    ) -> std::io::Result<()> {
        if size > LARGEST_IMAGE {
            self.warn(&target.path, &format!("an image of {size} bytes is too large to attach"));
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_IMAGE).read_to_end(&mut bytes)?;
        self.resolved.attachments.push(Attachment {
            media_type: media_type.to_owned(),
            name: Some(clip(&target.path, 200).into_owned()),
            source: AttachmentSource::Inline { base64: STANDARD.encode(&bytes) },
        });
        self.block("file", &[("path", &target.path), ("type", media_type)], "[attached as an image]");
        Ok(())
    }

    pub(super) fn directory(&mut self, workspace: &Workspace, path: &Path, typed: &str) {
        match listing::list(workspace, path, self.room()) {
            Ok(text) => self.block("directory", &[("path", typed)], &text),
            Err(error) => self.warn(typed, &error.to_string()),
        }
    }
}

type Taken = (Vec<u8>, Option<String>);

fn whole(file: std::fs::File, most: usize, size: u64) -> std::io::Result<Taken> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() <= most {
        return Ok((bytes, None));
    }
    bytes.truncate(most);
    // Whole lines, where there are any.
    if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
        bytes.truncate(end + 1);
    }
    let note = format!("cut: {} of {size} bytes; read the rest with `fs`", bytes.len());
    Ok((bytes, Some(note)))
}

fn some(file: std::fs::File, most: usize, lines: Lines) -> std::io::Result<Taken> {
    let mut reader = BufReader::new(file.take(FARTHEST));
    let (mut bytes, mut line, mut number) = (Vec::new(), Vec::new(), 0u32);
    while number < lines.last {
        line.clear();
        // A line without an end must not fill the memory.
        if (&mut reader).take(most as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        if number >= lines.first {
            if bytes.len() + line.len() > most {
                return Ok((bytes, Some("cut here; read the rest with `fs`".to_owned())));
            }
            bytes.extend_from_slice(&line);
        }
    }
    let note = (number < lines.last).then(|| format!("the file has {number} lines"));
    Ok((bytes, note))
}

/// By their first bytes; a name says nothing.
fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn is_binary(head: &[u8]) -> bool {
    head.contains(&0) || head.starts_with(b"%PDF-")
}
