//! `hanzo-dev sandbox`: one command in the jail, or an explanation of it.

use std::ffi::OsString;
use std::process::ExitCode;

use hanzo_sandbox::jail::{JailConfig, Level, ProbeReport, probe};
use hanzo_sandbox::{Network, detect_container};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::sandbox::{Overrides, jail_config};

/// Prints the level in force, what may be written, and what is missing. Fails when commands could not be run.
pub fn explain(
    global: &Global,
    overrides: &Overrides,
    json: bool,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let config = load(global, overrides, printer)?;
    let report = probe(&config);
    if json {
        printer.json(&as_json(&config, &report))?;
    } else {
        for line in lines(&config, &report) {
            printer.line(&line)?;
        }
    }
    let usable = report.level >= config.require;
    Ok(if usable { Exit::Ok } else { Exit::Sandbox }.into())
}

/// The jail in words, one fact a line.
pub fn lines(config: &JailConfig, report: &ProbeReport) -> Vec<String> {
    let mut lines = vec![format!("level      {} ({})", report.level, meaning(report.level))];
    let writable = std::iter::once(&config.workspace).chain(&config.writable);
    lines.extend(writable.map(|path| format!("writable   {}", path.display())));
    lines.push("writable   /tmp (private, gone afterwards)".to_owned());
    let kept = config.protected.iter().filter(|protected| protected.path.exists());
    lines.extend(kept.map(|protected| format!("read-only  {}", protected.path.display())));
    let hidden = config.unreadable.iter().filter(|path| path.exists());
    lines.extend(hidden.map(|path| format!("hidden     {}", path.display())));
    lines.push(format!("network    {}", network(config.network)));
    lines.push(format!("processes  bounded by: {}", report.processes));
    lines.push(format!("memory     bounded by: {}", report.memory));
    if let Some(container) = container() {
        lines.push(format!("container  {container}; the jail is built inside it all the same"));
    }
    for missing in &report.missing {
        lines.push(format!("missing    {}: {}", missing.facility, missing.why));
        lines.push(format!("           to get it: {}", missing.how_to_get_it));
    }
    lines
}

fn as_json(config: &JailConfig, report: &ProbeReport) -> Value {
    let missing = |missing: &hanzo_sandbox::jail::Missing| json!({"facility": missing.facility, "why": missing.why, "howToGetIt": missing.how_to_get_it});
    json!({
        "level": report.level.to_string(),
        "required": config.require.to_string(),
        "workspace": config.workspace,
        "writable": config.writable,
        "protected": config.protected.iter().map(|protected| &protected.path).collect::<Vec<_>>(),
        "unreadable": config.unreadable,
        "network": config.network == Network::On,
        "limits": {"processes": report.processes.to_string(), "memory": report.memory.to_string()},
        "container": container(),
        "missing": report.missing.iter().map(missing).collect::<Vec<_>>(),
    })
}

fn meaning(level: Level) -> &'static str {
    match level {
        Level::Full => "the kernel confines commands by namespaces, Landlock and seccomp",
        Level::LandlockSeccomp => {
            "the kernel confines commands, but one of the two walls against writes is missing"
        }
        Level::PathCheck => "nothing confines commands; only the built-in file tools are checked",
    }
}

fn network(network: Network) -> &'static str {
    match network {
        Network::Off => "off; commands reach each other over loopback",
        Network::On => "on",
    }
}

fn container() -> Option<String> {
    detect_container("/".as_ref(), &|name| std::env::var_os(name)).map(|container| container.to_string())
}

/// The jail of the settings, for `doctor` too.
pub fn load(global: &Global, overrides: &Overrides, printer: &mut Printer) -> Result<JailConfig, Failure> {
    // The jail of the command line is the user's own doing; a workspace cannot loosen it before it is trusted.
    let trust = settings::trust(false);
    let inputs = settings::inputs(global, trust)?;
    let config = settings::load(global, trust, printer)?;
    jail_config(&config.settings().sandbox, &inputs, overrides)
}

/// Runs `command` with our own streams and passes its exit code on.
#[cfg(target_os = "linux")]
pub fn run(
    global: &Global,
    overrides: &Overrides,
    command: &[OsString],
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    use std::os::fd::AsFd as _;

    use hanzo_sandbox::jail::{Command, ExitStatus, Io, Jail, JailError};

    use crate::spawner::limit_name;

    let failure = |error: JailError| match error {
        // The jail stood; the program is not there. Shells say 127.
        JailError::Exec { .. } => Failure::message(Exit::BadInput, error),
        _ => Failure::message(Exit::Sandbox, error),
    };
    let mut config = load(global, overrides, printer)?;
    let working_directory = settings::inputs(global, settings::trust(false))?.cwd;
    // What the user would see outside is what the user should see inside.
    config.env.inherit.extend(["NO_COLOR", "CLICOLOR", "COLUMNS", "LINES"].map(str::to_owned));
    let jail = Jail::start(config).map_err(failure)?;

    let mut order = Command::new(command);
    order.cwd = Some(working_directory);
    let own = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map(Io::Fd);
    order.stdin = own(std::io::stdin().as_fd())?;
    order.stdout = own(std::io::stdout().as_fd())?;
    order.stderr = own(std::io::stderr().as_fd())?;
    let status = jail.spawn(order).map_err(failure)?.wait().map_err(failure)?.status;

    match status {
        ExitStatus::Exited(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        ExitStatus::Signalled(signal) => Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(255))),
        ExitStatus::TimedOut => {
            printer.warning("the command was killed: it took longer than `--timeout`");
            Ok(ExitCode::from(124))
        }
        ExitStatus::LimitReached(limit) => {
            let text = format!("the command was killed: it reached the limit of {}", limit_name(limit));
            Err(Failure::message(Exit::Failure, text))
        }
        other => Err(Failure::message(Exit::Sandbox, format!("the command was lost: {other:?}"))),
    }
}

/// There is no jail for processes here, so nothing is run.
#[cfg(not(target_os = "linux"))]
pub fn run(_: &Global, _: &Overrides, _: &[OsString], _: &mut Printer) -> Result<ExitCode, Failure> {
    Err(Failure::message(Exit::Sandbox, hanzo_sandbox::jail::JailError::Unsupported))
}
