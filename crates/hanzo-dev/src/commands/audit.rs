//! `hanzo-dev audit`: what was called, what was decided, and why.

use hanzo_store::{AuditEntry, AuditFilter};
use jiff::{SignedDuration, Timestamp};

use crate::cli::{AuditArgs, Global};
use crate::commands::with_engine::{open, thread};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root;

/// Lists the records, newest first.
pub fn run(global: &Global, args: &AuditArgs, printer: &mut Printer) -> Result<(), Failure> {
    let since = args.since.as_deref().map(|text| moment(text, Timestamp::now())).transpose()?;
    root::block_on(async {
        let root = open(global, "hanzo-dev audit", printer).await?;
        let thread = match &args.thread {
            Some(prefix) => Some(thread(&root, prefix).await?),
            None => None,
        };
        let filter = AuditFilter {
            thread,
            tool: args.tool.clone(),
            decision: args.decision.clone(),
            since,
            limit: Some(args.limit),
            ..AuditFilter::default()
        };
        let page =
            root.store().audit(filter).await.map_err(|error| Failure::message(Exit::Failure, error))?;
        for entry in &page.entries {
            let text = if args.json { serde_json::to_string(entry).unwrap_or_default() } else { line(entry) };
            printer.line(&text)?;
        }
        if page.entries.is_empty() && !args.json {
            printer.note("no calls are recorded");
        }
        if page.next.is_some() && !args.json {
            printer.note(&format!("these are the newest {}; `--limit` shows more", page.entries.len()));
        }
        root.close().await;
        Ok(())
    })
}

fn line(entry: &AuditEntry) -> String {
    let tool = match &entry.action {
        Some(action) if !entry.tool.contains('.') => format!("{}.{action}", entry.tool),
        _ => entry.tool.clone(),
    };
    let id = entry.thread.to_string();
    let mut text =
        format!("{:.0}  {}  {:<14}  {:<8}", entry.at, &id[..id.len().min(13)], tool, entry.decision);
    if let Some(subject) = &entry.subject {
        let subject = subject.lines().next().unwrap_or_default();
        text.push_str("  ");
        text.extend(subject.chars().take(80));
    }
    if let Some(rule) = &entry.rule {
        text.push_str("  by ");
        text.push_str(rule);
    }
    if let (Some(reason), false) = (&entry.reason, entry.decision.starts_with("allow")) {
        text.push_str("  (");
        text.push_str(reason.lines().next().unwrap_or_default());
        text.push(')');
    }
    text
}

/// A moment: a date, a time, or how long ago.
fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if let Ok(date) = text.parse::<jiff::civil::Date>() {
        return date
            .to_zoned(jiff::tz::TimeZone::UTC)
            .map(|at| at.timestamp())
            .map_err(|error| wrong(text, &error));
    }
    let unit = text.chars().last().unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(wrong(text, &"it has no unit we know")),
    };
    let count: i64 = text[..text.len() - unit.len_utf8()].parse().map_err(|error| wrong(text, &error))?;
    let age = SignedDuration::from_secs(count.saturating_mul(seconds));
    now.checked_sub(age).map_err(|error| wrong(text, &error))
}

fn wrong(text: &str, why: &dyn std::fmt::Display) -> Failure {
    let hint = "write a date (`2026-05-01`), a time (`2026-05-01T10:00:00Z`), or an age (`90m`, `24h`, `7d`)";
    Failure::message(Exit::BadInput, format!("`{text}` is no moment: {why}\n\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_a_time_or_an_age() {
        let now: Timestamp = "2026-05-02T12:00:00Z".parse().unwrap();
        let at = |text: &str| moment(text, now).map(|at| at.to_string());
        assert_eq!(at("2026-05-01").unwrap(), "2026-05-01T00:00:00Z");
        assert_eq!(at("2026-05-01T10:00:00Z").unwrap(), "2026-05-01T10:00:00Z");
        assert_eq!(at("90m").unwrap(), "2026-05-02T10:30:00Z");
        assert_eq!(at("2d").unwrap(), "2026-04-30T12:00:00Z");
        for bad in ["", "yesterday", "d", "5", "99999999999999999999d", "9223372036854775807w", "5ü"] {
            assert_eq!(moment(bad, now).unwrap_err().exit(), Exit::BadInput, "{bad}");
        }
    }
}
