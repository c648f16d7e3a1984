//! `fs.read`.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::primitives::{ContentHash, FileUri, PageCursor, Position, Range};
use hanzo_protocol::tool::{Effect, ToolCaller};
use hanzo_sandbox::memory;
use hanzo_sandbox::paths::PathError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::LARGE;
use super::large;
use super::part::{self, DEFAULT_LINES, MAX_BYTES, Next, Part, Wanted};
use super::text::{self, Decoded};
use crate::contract::place;
use crate::contract::{Action, Answer, Call, Cancelled, Target};
use crate::host::Host;

/// The largest file that is held in memory, and so the largest that is edited; of a larger one, parts are read.
pub(super) const MAX_FILE: u64 = 64 << 20;
/// The largest file that is read without another thread's help.
const SMALL: u64 = 64 << 10;
/// The bytes of a character in the encodings in which large files are read.
const LONGEST_CHARACTER: usize = 4;
/// The largest image that is handed to a model.
const MAX_IMAGE: usize = 5 << 20;

/// Reads a file.
pub(super) struct Read;

/// The arguments of `fs.read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInput {
    /// File or directory.
    path: String,
    /// First line.
    offset: Option<u32>,
    /// Most lines or entries.
    limit: Option<u32>,
    /// {start:{line,col},end:{line,col}}
    range: Option<Range>,
    /// Other than UTF-8/16: e.g. windows-1252
    encoding: Option<String>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// The answer of `fs.read`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReadOutput {
    /// The file; none for a ref.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<FileUri>,
    /// The hash of the whole file, for `base_hash`; none of one that is too large to be gone through.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
    /// The part that is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    /// How many lines the file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u32>,
    /// The file's size in bytes.
    size: u64,
    /// How the text is written down, when not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// The media type of a file that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Action for Read {
    const NAME: &'static str = "read";
    const SUMMARY: &'static str = "text and hash of a file";
    const EXAMPLE: &'static str = r#"{"path":"src/main.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["range", "encoding"];
    const QUIET: &'static [&'static str] = &["path"];
    type Input = ReadInput;
    type Output = ReadOutput;

    fn effect(&self, _: &ReadInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &ReadInput) -> Vec<Target> {
        if input.path.starts_with(REF_PREFIX) { Vec::new() } else { vec![Target::read(&input.path)] }
    }

    async fn run(&self, call: &Call<'_>, input: ReadInput) -> Result<Answer<ReadOutput>, ToolError> {
        let start = match call.position::<Next>(input.cursor.as_ref())? {
            Some(next) => Some(next.into()),
            None => input.offset.map(|line| Position { line, col: 0 }),
        };
        let named = input.encoding.as_deref().map(text::named).transpose()?;
        let wanted = Wanted { start, limit: input.limit, range: input.range };
        let loaded = if let Some(hash) = input.path.strip_prefix(REF_PREFIX) {
            kept(call, hash).await?
        } else {
            let path = place::parse(&input.path)?;
            let caller = call.context.caller;
            let shared = Arc::new(path);
            let path = Arc::clone(&shared);
            let begin = move |host: &Arc<Host>| {
                let (mut file, there) = open(host, &path, caller)?;
                // Of no size are files that the kernel makes up while they are read.
                if (1..=SMALL).contains(&there.size) {
                    let bytes = read_small(&mut file, &path, there.size)?;
                    return Ok(Opened::Whole(there.with(bytes)));
                }
                Ok(Opened::Rest(file, there))
            };
            let read = match call.briefly(begin).await? {
                Opened::Whole(loaded) => Ok(loaded),
                Opened::Rest(mut file, there) => {
                    let rest = move |_: &Arc<Host>, cancelled: &Cancelled| {
                        if there.size <= MAX_FILE {
                            return Ok(Ok(there.with(read_all(&mut file, &shared)?)));
                        }
                        read_large(&mut file, &shared, &there, wanted, named, cancelled).map(Err)
                    };
                    call.blocking(rest).await?
                }
            };
            match read {
                Ok(loaded) => loaded,
                Err(part) => {
                    if let (Some(hash), Some(uri)) = (&part.output.hash, &part.output.uri) {
                        call.host.ledger.saw(&uri.to_path(), hash);
                    }
                    let answer = Answer::new(part.output).tainted(part.taint);
                    return Ok(match part.next {
                        Some(next) => answer.paged(call.more(&Next::from(next))),
                        None => answer,
                    });
                }
            }
        };
        if let Some(real) = &loaded.real {
            call.host.ledger.saw(real, &loaded.hash);
        }
        let size = loaded.bytes.len() as u64;
        let mut output = ReadOutput {
            uri: loaded.real.as_deref().map(place::uri),
            hash: Some(loaded.hash.clone()),
            range: None,
            lines: None,
            size,
            encoding: None,
            binary: None,
            text: None,
        };
        let answer = match text::decode(&loaded.bytes, named) {
            Decoded::Binary => {
                let media_type = media_type(&loaded.bytes);
                output.binary = Some(media_type.to_owned());
                let mut answer = Answer::new(output);
                if media_type.starts_with("image/") && loaded.bytes.len() <= MAX_IMAGE {
                    let base64 = base64::engine::general_purpose::STANDARD.encode(&loaded.bytes);
                    let name = loaded.real.as_deref().and_then(Path::file_name);
                    let name = name.map(|name| name.to_string_lossy().into_owned());
                    let source = AttachmentSource::Inline { base64 };
                    answer.attachments.push(Attachment { media_type: media_type.into(), name, source });
                }
                answer
            }
            Decoded::Text(content, form) => {
                if form != text::TextForm::PLAIN {
                    output.encoding = Some(form.label());
                }
                let part = Part::of(&content, wanted)?;
                output.lines = Some(part.lines);
                output.range = Some(part.range);
                output.text = Some(content[part.bytes.clone()].to_owned());
                let answer = Answer::new(output);
                match part.next {
                    Some(next) => answer.paged(call.more(&Next::from(next))),
                    None => answer,
                }
            }
        };
        if loaded.real.is_some() {
            call.host.ledger.keep_read(&call.host.blobs, &loaded.hash, loaded.bytes);
        }
        Ok(answer.tainted(loaded.taint.or_else(|| call.host.ledger.taint_of(&loaded.hash))))
    }
}

/// How a ref to kept content begins.
pub(super) const REF_PREFIX: &str = "blob:";

/// The content of a file, or of a ref.
pub(super) struct Loaded {
    pub(super) real: Option<PathBuf>,
    pub(super) taint: Option<Taint>,
    pub(super) bytes: Vec<u8>,
    pub(super) hash: ContentHash,
}

async fn kept(call: &Call<'_>, hash: &str) -> Result<Loaded, ToolError> {
    let hash: ContentHash = hash.parse().map_err(|fault| {
        ToolError::new(ErrorCode::InvalidArguments, format!("this is not a ref: {fault}"))
    })?;
    let bytes = super::content(call, &hash).await?;
    Ok(Loaded { real: None, taint: None, bytes, hash })
}

/// A file that was opened, and read as well where that takes no time.
enum Opened {
    Whole(Loaded),
    Rest(File, There),
}

/// A file that is there.
struct There {
    real: PathBuf,
    taint: Option<Taint>,
    size: u64,
}

impl There {
    fn with(self, bytes: Vec<u8>) -> Loaded {
        let hash = ContentHash::of(&bytes);
        Loaded { real: Some(self.real), taint: self.taint, bytes, hash }
    }
}

fn open(host: &Host, path: &Path, caller: ToolCaller) -> Result<(File, There), ToolError> {
    let fail = |error: PathError| place::failure(&error);
    let opened = host.workspace.open_read_known(path);
    if opened.is_err() && caller == ToolCaller::Remote {
        // Not even what kind of thing is there.
        super::taint(host, &host.workspace.stat(path).map_err(fail)?.location, caller)?;
    }
    let (file, metadata) = opened.map_err(fail)?;
    let real = metadata.location;
    let taint = super::taint(host, &real, caller)?;
    Ok((file, There { real, taint, size: metadata.len }))
}

/// A part of a file that is too large for memory.
struct LargePart {
    output: ReadOutput,
    taint: Option<Taint>,
    next: Option<Position>,
}

fn read_large(
    file: &mut File,
    path: &Path,
    there: &There,
    wanted: Wanted,
    named: Option<&'static encoding_rs::Encoding>,
    cancelled: &Cancelled,
) -> Result<LargePart, ToolError> {
    let start = wanted.first();
    let end = start.line.saturating_add(wanted.limit.unwrap_or(DEFAULT_LINES).max(1));
    // What is before the column is passed over again; and one character too many, so that a line that is too long is seen to be.
    let before = (start.col as usize).saturating_mul(LONGEST_CHARACTER);
    let bytes = before.saturating_add(MAX_BYTES + LONGEST_CHARACTER);
    if bytes as u64 > MAX_FILE {
        return Err(too_far(path, start));
    }
    let lines = large::Wanted { first: start.line, end, bytes };
    let found = large::lines(file, path, lines, cancelled)?;
    let marked = encoding_rs::Encoding::for_bom(&found.head).map(|(encoding, _)| encoding);
    if [marked, named].into_iter().flatten().any(|encoding| !large::has_plain_line_feeds(encoding)) {
        return Err(ToolError::new(
            ErrorCode::Unsupported,
            format!(
                "`{}` is larger than {MAX_FILE} bytes and in an encoding that is only read in smaller files; convert it \
                 with a command such as iconv",
                path.display()
            ),
        ));
    }
    let whole = found.whole;
    let mut output = ReadOutput {
        uri: Some(place::uri(&there.real)),
        hash: whole.as_ref().map(|(hash, _)| hash.clone()),
        range: None,
        lines: None,
        size: there.size,
        encoding: None,
        binary: None,
        text: None,
    };
    let is_cut = found.bytes.len() >= bytes;
    let kept = if is_cut && named.is_none() { large::whole_characters(&found.bytes) } else { &found.bytes };
    let decoded = match memchr::memchr(0, &found.head) {
        Some(_) => Decoded::Binary,
        None => text::decode(kept, named),
    };
    let Decoded::Text(content, form) = decoded else {
        output.binary = Some(media_type(&found.head).to_owned());
        return Ok(LargePart { output, taint: there.taint, next: None });
    };
    if form != text::TextForm::PLAIN {
        output.encoding = Some(form.label());
    }
    let total = whole.map(|(_, lines)| lines);
    if start.line > 0 && found.count == 0 {
        return Err(part::past_the_end(start.line, total));
    }
    // The part is taken from these lines as from a small file, and put back where it is.
    let range = wanted.range.map(|range| Range {
        start: Position { line: range.start.line.saturating_sub(start.line), ..range.start },
        end: Position { line: range.end.line.saturating_sub(start.line), ..range.end },
    });
    if wanted.range.is_some_and(|range| range.end < range.start) {
        return Err(part::backwards());
    }
    let here = Some(Position { line: 0, ..start });
    let part = Part::of(&content, Wanted { start: here, limit: wanted.limit, range })?;
    let shifted =
        |position: Position| Position { line: position.line.saturating_add(start.line), ..position };
    output.range = Some(Range { start: shifted(part.range.start), end: shifted(part.range.end) });
    output.lines = total;
    output.text = Some(content[part.bytes].to_owned());
    let is_last = range.is_some_and(|range| range.end.line < found.count);
    let next = match part.next {
        Some(next) => Some(next),
        None => (found.more && !is_last).then_some(Position { line: part.lines, col: 0 }),
    };
    Ok(LargePart { output, taint: there.taint, next: next.map(shifted) })
}

/// Lines are gone through from their beginning, and that much of one is not held.
fn too_far(path: &Path, start: Position) -> ToolError {
    let message = format!(
        "column {} of line {} of `{}` is too far into a line of a file of this size; search it with search_text, or cut it with \
         a command",
        start.col,
        start.line,
        path.display()
    );
    ToolError::new(ErrorCode::TooLarge, message)
}

/// Reads an open file that was small a moment ago. One byte more than it had is asked for: getting less than one asked for is its end.
fn read_small(file: &mut File, path: &Path, size: u64) -> Result<Vec<u8>, ToolError> {
    let size = usize::try_from(size).unwrap_or(0);
    let mut bytes = Vec::with_capacity(size + 1);
    match rustix::io::read(&*file, rustix::buffer::spare_capacity(&mut bytes)) {
        Ok(read) if read == size => return Ok(bytes),
        // It grew or shrank, or was read in part: what is known is forgotten.
        _ => file.rewind(),
    }
    .map_err(|fault| ToolError::new(ErrorCode::Io, format!("cannot read `{}`: {fault}", path.display())))?;
    read_all(file, path)
}

/// Reads an open file to its end, if that is not too far.
pub(super) fn read_all(file: &mut File, path: &Path) -> Result<Vec<u8>, ToolError> {
    let io = |fault: std::io::Error| {
        ToolError::new(ErrorCode::Io, format!("cannot read `{}`: {fault}", path.display()))
    };
    let size = file.metadata().map_err(io)?.len();
    if size > MAX_FILE {
        return Err(too_large(path, size));
    }
    // In one piece as far as the size goes, which for large files is much quicker than by and by.
    let size = usize::try_from(size).unwrap_or(0);
    let mut bytes = Vec::with_capacity(size);
    if size >= LARGE {
        memory::fill_soon(&mut bytes);
    }
    while bytes.len() < size {
        match rustix::io::read(&*file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(io(errno.into())),
        }
    }
    // The size may be wrong (files in /proc say 0) or change while we read.
    file.by_ref().take(MAX_FILE + 1 - bytes.len() as u64).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_large(path, bytes.len() as u64));
    }
    Ok(bytes)
}

fn too_large(path: &Path, size: u64) -> ToolError {
    ToolError::new(
        ErrorCode::TooLarge,
        format!(
            "`{}` has {size} bytes, more than the {MAX_FILE} that are edited here; read it with `offset` and `limit`, search \
             it with search_text, change it with a command",
            path.display()
        ),
    )
    .with_details(serde_json::json!({"size": size, "limit": MAX_FILE}))
}

fn media_type(bytes: &[u8]) -> &'static str {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"\x7fELF", "application/x-elf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    KNOWN
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map_or("application/octet-stream", |(_, kind)| kind)
}
