//! `net.download`.
//!
//! Bytes go to `NAME.part` beside the file and are renamed when they are all there and what they should be. A download that
//! breaks off leaves them; the same call goes on from there if the server says that it still has the same file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hanzo_net::Url;
use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::primitives::{ContentHash, FileUri};
use hanzo_protocol::tool::{Effect, Place, TimeLimit};
use hanzo_sandbox::paths::{Access, FileKind, Overwrite, PathError, Workspace, WriteMode};
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::claim::{Claim, Record};
use super::exchange::{self, Arrived, Order, Redirects};
use super::{Coding, Deadline, Seconds, parse_url, shown};
use crate::contract::{Action, Answer, Call, Target, place};
use crate::host::Host;

/// How long a download may take, unless the caller says otherwise.
const USUAL: Duration = Duration::from_mins(10);
/// How large a file may be, unless the caller says otherwise.
const DEFAULT_BYTES: u64 = 1 << 30;
/// How often progress is shown.
const PROGRESS: Duration = Duration::from_millis(500);

/// Saves what a URL leads to.
pub(super) struct Download;

/// The arguments of `net.download`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadInput {
    /// http or https.
    url: String,
    /// File to save to.
    output: String,
    /// The hash it must have.
    sha256: Option<String>,
    /// Whether a file that is there is replaced.
    #[serde(default)]
    overwrite: bool,
    /// Names and values.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Most bytes to take.
    max_bytes: Option<u64>,
    /// Seconds.
    timeout: Option<Seconds>,
}

/// The answer of `net.download`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DownloadOutput {
    /// The file.
    uri: FileUri,
    /// Its hash.
    hash: ContentHash,
    /// Its size in bytes.
    size: u64,
    /// From which byte on the download went on, when an earlier one had broken off.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_at: Option<u64>,
    /// Where it came from, when that is not what was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
}

impl Action for Download {
    const NAME: &'static str = "download";
    const SUMMARY: &'static str = "save a file; resumes";
    const EXAMPLE: &'static str = r#"{"url":"https://example.com/data.csv","output":"data/data.csv"}"#;
    const WORST: Effect = Effect::Network;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] =
        &[("uri", "url"), ("path", "output"), ("file_path", "output"), ("destination", "output")];
    const HIDDEN: &'static [&'static str] = &["overwrite", "timeout", "max_bytes"];
    const QUIET: &'static [&'static str] = &["url", "sha256", "headers"];
    const INTENTS: Option<&'static [Intent]> = Some(&[Intent::Apply, Intent::Ship]);
    type Input = DownloadInput;
    type Output = DownloadOutput;

    fn effect(&self, _: &DownloadInput) -> Effect {
        Effect::Network
    }

    fn targets(&self, input: &DownloadInput) -> Vec<Target> {
        vec![Target::write(&input.output)]
    }

    fn time_limit(&self, _: &DownloadInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: DownloadInput) -> Result<Answer<DownloadOutput>, ToolError> {
        let url = parse_url(&input.url, &["http", "https"])?;
        let wanted = input.sha256.as_deref().map(parse_hash).transpose()?;
        let deadline = Deadline::after(input.timeout, USUAL)?;
        let headers = exchange::headers(&input.headers)?;
        let path = place::parse(&input.output)?;
        let overwrite = if input.overwrite { Overwrite::Replace } else { Overwrite::Refuse };
        let asked = url.clone();
        let mut target = call.blocking(move |host, _| Plan::new(host, &path, &asked, overwrite)).await?;

        let arrived = target.ask(call, &url, &headers, deadline).await?;
        let most = input.max_bytes.unwrap_or(DEFAULT_BYTES);
        let from = target.have;
        let expected = arrived.response.content_length().map(|rest| rest.saturating_add(from));
        if let Some(size) = expected.filter(|size| *size > most) {
            return Err(too_large(&url, size, most));
        }
        let final_url = (arrived.url != url).then(|| shown(&arrived.url));
        let media_type = arrived.response.headers().get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let taken = target.take(call, arrived, expected, most, deadline).await;
        let digest = match taken {
            Ok(digest) => digest,
            Err(error) => return Err(target.broken_off(call, error).await),
        };
        let hash: ContentHash =
            format!("sha256:{digest}").parse().expect("the digest is 64 hexadecimal digits");
        if let Some(wanted) = wanted.filter(|wanted| *wanted != hash) {
            target.discard(call).await;
            return Err(ToolError::new(
                ErrorCode::Conflict,
                "what was downloaded does not have the hash it should have; it was not kept",
            )
            .with_details(json!({"expected": wanted.as_str(), "actual": hash.as_str()})));
        }
        let size = target.have;
        let real = target.real.clone();
        call.blocking(move |host, _| target.finish(&host.workspace)).await?;
        call.host.ledger.saw(&real, &hash);
        call.host.ledger.taint(&hash, Taint::Network);
        let output = DownloadOutput {
            uri: place::uri(&real),
            hash,
            size,
            resumed_at: (from > 0).then_some(from),
            url: final_url,
            media_type,
        };
        Ok(Answer::new(output).tainted(Some(Taint::Network)))
    }
}

fn parse_hash(text: &str) -> Result<ContentHash, ToolError> {
    let digits = text.trim().strip_prefix("sha256:").unwrap_or(text.trim()).to_ascii_lowercase();
    format!("sha256:{digits}").parse().map_err(|_| {
        ToolError::new(ErrorCode::InvalidArguments, "`sha256` takes 64 hexadecimal digits")
            .with_details(json!({"field": "sha256"}))
    })
}

fn too_large(url: &Url, size: u64, most: u64) -> ToolError {
    let host = exchange::host(url);
    ToolError::new(
        ErrorCode::TooLarge,
        format!("what `{host}` sends has {size} bytes or more, and {most} are taken; see `max_bytes`"),
    )
    .with_details(json!({"size": size, "limit": most}))
}

/// Where the bytes go.
struct Plan {
    asked: Url,
    real: PathBuf,
    part: PathBuf,
    claim: Arc<Claim>,
    overwrite: Overwrite,
    /// How many bytes are there, and what they hash to.
    have: u64,
    hasher: Sha256,
    validator: Option<String>,
}

impl Plan {
    fn new(host: &Host, path: &Path, url: &Url, overwrite: Overwrite) -> Result<Self, ToolError> {
        let workspace = &host.workspace;
        let failed = |error: PathError| place::failure(&error);
        let real = match workspace.locate(path, Access::Write) {
            Ok(real) => real,
            // In a directory that is yet to be made, which is done when there is something to put into it.
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {
                let real = place::resolve(workspace, path);
                if place::place_of(workspace, &real) == Place::Outside {
                    let text = format!("`{}` is outside the workspace", path.display());
                    return Err(ToolError::new(ErrorCode::SandboxDenied, text));
                }
                real
            }
            Err(error) => return Err(failed(error)),
        };
        match workspace.stat_link(&real) {
            Ok(found) if found.kind != FileKind::File => {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    format!("`{}` is no file that could be written", real.display()),
                ));
            }
            Ok(_) if overwrite == Overwrite::Refuse => return Err(taken(&real)),
            Ok(_) => {}
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {}
            Err(error) => return Err(failed(error)),
        }
        let mut name = real.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = real.with_file_name(name);
        let claim = Arc::new(Claim::take(&host.options.data_dir, &real)?);
        let mut plan = Self {
            asked: url.clone(),
            real,
            part,
            claim,
            overwrite,
            have: 0,
            hasher: Sha256::new(),
            validator: None,
        };
        plan.find_earlier(workspace)?;
        Ok(plan)
    }

    /// What an earlier call left, if it was ours and for the same URL.
    fn find_earlier(&mut self, workspace: &Workspace) -> Result<(), ToolError> {
        let earlier = match workspace.stat_link(&self.part) {
            Ok(earlier) => earlier,
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => return Ok(()),
            Err(error) => return Err(place::failure(&error)),
        };
        let Some(record) =
            self.claim.record().filter(|_| earlier.kind == FileKind::File && earlier.links == 1)
        else {
            return Err(taken(&self.part));
        };
        if !record.is_of(&self.asked) || record.validator.is_none() {
            return workspace.remove_file(&self.part).map_err(|error| place::failure(&error));
        }
        let mut file = workspace.open_read(&self.part).map_err(|error| place::failure(&error))?;
        let mut piece = vec![0; 1 << 16];
        loop {
            let count = file.read(&mut piece).map_err(|fault| self.io("read", &fault))?;
            if count == 0 {
                break;
            }
            self.hasher.update(&piece[..count]);
            self.have += count as u64;
        }
        self.validator = record.validator;
        Ok(())
    }

    /// Asks for what is missing, and for everything when the server cannot give that.
    async fn ask(
        &mut self,
        call: &Call<'_>,
        url: &Url,
        headers: &HeaderMap,
        deadline: Deadline,
    ) -> Result<Arrived, ToolError> {
        loop {
            let mut headers = headers.clone();
            let validator = self.validator.as_deref().and_then(|text| HeaderValue::try_from(text).ok());
            if let Some(validator) = validator.filter(|_| self.have > 0) {
                let range = HeaderValue::try_from(format!("bytes={}-", self.have));
                headers.insert(header::RANGE, range.expect("a number is fit for a header"));
                headers.insert(header::IF_RANGE, validator);
            }
            let order = Order {
                url: url.clone(),
                method: Method::GET,
                headers,
                body: None,
                redirects: Redirects::Follow,
                coding: Coding::AsIs,
            };
            let arrived = exchange::send(call, order, deadline).await?;
            let status = arrived.response.status();
            match status {
                StatusCode::PARTIAL_CONTENT if self.have > 0 && starts_at(&arrived.response, self.have) => {
                    return Ok(arrived);
                }
                StatusCode::OK => {
                    self.start_again(call).await;
                    return Ok(arrived);
                }
                // It has less than we do, or counts in another way: another version of the file.
                StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT if self.have > 0 => {
                    self.start_again(call).await;
                }
                _ => return Err(unwelcome(status, url, arrived.held)),
            }
        }
    }

    async fn start_again(&mut self, call: &Call<'_>) {
        if self.have > 0 || self.validator.is_some() {
            (self.have, self.hasher, self.validator) = (0, Sha256::new(), None);
            self.discard(call).await;
        }
    }

    /// Takes the bytes; the digest of all of them.
    async fn take(
        &mut self,
        call: &Call<'_>,
        arrived: Arrived,
        expected: Option<u64>,
        most: u64,
        deadline: Deadline,
    ) -> Result<String, ToolError> {
        let Arrived { mut response, url, .. } = arrived;
        self.validator = validator(response.headers());
        let record = Record::new(&self.asked, self.validator.clone());
        let (claim, part, have) = (Arc::clone(&self.claim), self.part.clone(), self.have);
        let file = call.blocking(move |host, _| open_part(host, &part, have, &claim, &record)).await?;
        let mut file = tokio::fs::File::from_std(file);
        let mut shown_at = Instant::now();
        let doing = format!("downloading from `{}`", exchange::host(&url));
        loop {
            let piece = deadline.limit_idle(call.host.options.net.idle, &doing, response.chunk()).await;
            let piece = match piece {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    file.flush().await.map_err(|fault| self.io("write", &fault))?;
                    return Err(exchange::failure(&error, &url));
                }
                Err(error) => {
                    file.flush().await.map_err(|fault| self.io("write", &fault))?;
                    return Err(error);
                }
            };
            if self.have + piece.len() as u64 > most {
                return Err(too_large(&url, self.have + piece.len() as u64, most));
            }
            file.write_all(&piece).await.map_err(|fault| self.io("write", &fault))?;
            self.hasher.update(&piece);
            self.have += piece.len() as u64;
            if shown_at.elapsed() >= PROGRESS {
                shown_at = Instant::now();
                show(call, self.have, expected);
            }
        }
        file.flush().await.map_err(|fault| self.io("write", &fault))?;
        file.sync_all().await.map_err(|fault| self.io("write", &fault))?;
        show(call, self.have, expected);
        let digest = std::mem::take(&mut self.hasher).finalize();
        Ok(digest.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string does not fail");
            text
        }))
    }

    /// What to say of a download that broke off, and what to leave of it.
    async fn broken_off(&self, call: &Call<'_>, mut error: ToolError) -> ToolError {
        let worth_keeping = self.have > 0 && self.validator.is_some() && error.code != ErrorCode::TooLarge;
        if worth_keeping {
            error.message = format!(
                "{}; {} bytes are in `{}`, and the same call goes on from there",
                error.message,
                self.have,
                self.part.display()
            );
        } else if !matches!(error.code, ErrorCode::AlreadyExists | ErrorCode::Conflict) {
            self.discard(call).await;
        }
        error
    }

    /// Removes what was taken so far. What cannot be removed is found by the next call.
    async fn discard(&self, call: &Call<'_>) {
        let (part, claim) = (self.part.clone(), Arc::clone(&self.claim));
        let removed = call.blocking(move |host, _| {
            let _ = host.workspace.remove_file(&part);
            claim.forget();
            Ok(())
        });
        let _ = removed.await;
    }

    /// Gives the file its name.
    fn finish(&self, workspace: &Workspace) -> Result<(), ToolError> {
        workspace.rename(&self.part, &self.real, self.overwrite).map_err(|error| place::failure(&error))?;
        self.claim.forget();
        Ok(())
    }

    fn io(&self, doing: &str, fault: &std::io::Error) -> ToolError {
        ToolError::new(ErrorCode::Io, format!("cannot {doing} `{}`: {fault}", self.part.display()))
    }
}

/// The file the bytes go to, which has `have` of them.
fn open_part(host: &Host, part: &Path, have: u64, claim: &Claim, record: &Record) -> Result<File, ToolError> {
    let failed = |error: PathError| place::failure(&error);
    let file = if have == 0 {
        // Only now: a download that nobody answers leaves no directories behind.
        if let Some(parent) = part.parent() {
            host.workspace.mkdir_all(parent).map_err(failed)?;
        }
        host.workspace.create_new(part).map_err(failed)?
    } else {
        host.workspace.open_write(part, WriteMode::Append).map_err(failed)?
    };
    if file.metadata().is_ok_and(|there| there.len() != have) {
        let text = format!("`{}` was changed by somebody else", part.display());
        return Err(ToolError::new(ErrorCode::Conflict, text));
    }
    // Without the record a broken download starts again; that is no reason to have none.
    let _ = claim.keep(record);
    Ok(file)
}

fn taken(path: &Path) -> ToolError {
    ToolError::new(
        ErrorCode::AlreadyExists,
        format!("`{}` exists; choose another `output`, or remove it", path.display()),
    )
}

/// What the server calls this version of the file, in a form it can be asked for again: a weak tag promises nothing about
/// bytes.
fn validator(headers: &HeaderMap) -> Option<String> {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    text(header::ETAG).filter(|tag| tag.starts_with('"')).or_else(|| text(header::LAST_MODIFIED))
}

/// Whether a part begins where ours ends.
fn starts_at(response: &Response, start: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let first = range
        .and_then(|range| range.trim().strip_prefix("bytes"))
        .and_then(|range| range.trim().split_once('-'))
        .and_then(|(first, _)| first.trim().parse::<u64>().ok());
    first == Some(start)
}

fn unwelcome(status: StatusCode, url: &Url, held: Option<&'static str>) -> ToolError {
    let code = match status.as_u16() {
        404 | 410 => ErrorCode::NotFound,
        401 | 403 | 407 => ErrorCode::Denied,
        429 => ErrorCode::RateLimited,
        _ => ErrorCode::Unavailable,
    };
    let held = held.map_or_else(String::new, |held| format!(" ({held})"));
    ToolError::new(
        code,
        format!("`{}` answered {} instead of a file{held}", exchange::host(url), status.as_u16()),
    )
    .with_details(json!({"status": status.as_u16()}))
}

/// Shows how far it is.
fn show(call: &Call<'_>, have: u64, expected: Option<u64>) {
    let Some(output) = &call.context.output else { return };
    let line = match expected.filter(|size| *size > 0) {
        Some(size) => format!("{have} of {size} bytes ({} %)\n", have.saturating_mul(100) / size),
        None => format!("{have} bytes\n"),
    };
    output.push(&line);
}
