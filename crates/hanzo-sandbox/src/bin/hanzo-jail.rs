//! Runs one command in a jail. Also the supervisor for hosts whose `main` is not theirs, such as tests.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    hanzo_sandbox::run_personality();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    #[cfg(target_os = "linux")]
    return match linux::run(arguments) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "hanzo-jail: {error}");
            ExitCode::from(125)
        }
    };
    #[cfg(not(target_os = "linux"))]
    {
        drop(arguments);
        let _ = writeln!(io::stderr(), "hanzo-jail: {}", hanzo_sandbox::JailError::Unsupported);
        ExitCode::from(125)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::AsFd;
    use std::path::PathBuf;
    use std::process::ExitCode;
    use std::time::Duration;

    use hanzo_sandbox::jail::{
        Command, ExitStatus, Io, Jail, JailConfig, Leftovers, Level, Network, Protected, PtySize,
        UnixSockets, probe,
    };
    use hanzo_sandbox::protected::default_unreadable;

    const USAGE: &str = "usage: hanzo-jail [OPTION]… -- CMD…\n\n\
        --workspace DIR     work in DIR instead of the current directory\n\
        --write DIR         make DIR writable too\n\
        --protect PATH      keep PATH read-only\n\
        --unreadable PATH   hide PATH\n\
        --network           use the host's network\n\
        --unix-sockets      allow unix sockets\n\
        --env NAME          pass NAME through\n\
        --timeout SECONDS   kill the command after SECONDS\n\
        --memory BYTES, --cpu SECONDS, --processes N, --file-size BYTES, --open-files N\n\
        --no-namespaces, --no-landlock   pretend the machine lacks them\n\
        --require LEVEL     refuse to run below full or landlock+seccomp\n\
        --pty               give the command a terminal and copy what it prints\n\
        --keep              leave background processes running until this one ends\n\
        --explain           print the level, the writable set and what is missing";

    pub(super) fn run(arguments: Vec<OsString>) -> Result<ExitCode, Box<dyn Error>> {
        let mut workspace = std::env::current_dir()?;
        let (mut writable, mut protected) = (Vec::new(), Vec::new());
        let mut config = JailConfig::new(&workspace);
        config.unreadable = usual_secrets();
        let mut command = Vec::new();
        let mut explain = false;
        let mut leftovers = Leftovers::Kill;
        let mut pty = None;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut path = || arguments.next().ok_or(USAGE);
            let number =
                |text: OsString| text.to_str().and_then(|text| text.parse::<u64>().ok()).ok_or(USAGE);
            match argument.to_str() {
                Some("--workspace") => workspace = path()?.into(),
                Some("--write") => writable.push(path()?.into()),
                Some("--protect") => protected.push(Protected::new(path()?)),
                Some("--unreadable") => config.unreadable.push(path()?.into()),
                Some("--network") => config.network = Network::On,
                Some("--unix-sockets") => config.unix_sockets = UnixSockets::Any,
                Some("--env") => config.env.inherit.push(path()?.to_string_lossy().into_owned()),
                Some("--timeout") => config.limits.wall_clock = Some(Duration::from_secs(number(path()?)?)),
                Some("--memory") => config.limits.memory = Some(number(path()?)?),
                Some("--cpu") => config.limits.cpu_time = Some(Duration::from_secs(number(path()?)?)),
                Some("--processes") => config.limits.processes = Some(number(path()?)?),
                Some("--file-size") => config.limits.file_size = Some(number(path()?)?),
                Some("--open-files") => config.limits.open_files = Some(number(path()?)?),
                Some("--no-namespaces") => config.facilities.namespaces = false,
                Some("--no-landlock") => config.facilities.landlock = false,
                Some("--require") => {
                    config.require = match path()?.to_str() {
                        Some("full") => Level::Full,
                        Some("landlock+seccomp") => Level::LandlockSeccomp,
                        _ => return Err(USAGE.into()),
                    }
                }
                Some("--pty") => pty = Some(PtySize { rows: 24, columns: 80 }),
                Some("--keep") => leftovers = Leftovers::Keep,
                Some("--explain") => explain = true,
                Some("--") => {
                    command.extend(arguments);
                    break;
                }
                _ => return Err(USAGE.into()),
            }
        }
        let base = JailConfig::new(workspace);
        config.workspace = base.workspace;
        config.writable = base.writable.into_iter().chain(writable).collect();
        config.protected = base.protected.into_iter().chain(protected).collect();
        if explain {
            return explain_jail(&config);
        }
        if command.is_empty() {
            return Err(USAGE.into());
        }
        let jail = Jail::start(config)?;
        let mut command = Command::new(command);
        command.stdin = Io::Fd(io::stdin().as_fd().try_clone_to_owned()?);
        command.stdout = Io::Fd(io::stdout().as_fd().try_clone_to_owned()?);
        command.stderr = Io::Fd(io::stderr().as_fd().try_clone_to_owned()?);
        command.leftovers = leftovers;
        command.pty = pty;
        let mut child = jail.spawn(command)?;
        if let Some(terminal) = child.terminal.take() {
            // Ends with an error when the last user of the terminal is gone.
            let _ = io::copy(&mut File::from(terminal), &mut io::stdout());
        }
        let report = child.wait()?;
        let code = match report.status {
            ExitStatus::Exited(code) => code,
            ExitStatus::Signalled(signal) => 128 + signal,
            ExitStatus::TimedOut => 124,
            status => {
                writeln!(io::stderr(), "hanzo-jail: {status:?}")?;
                137
            }
        };
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }

    /// Where credentials are kept on most machines.
    fn usual_secrets() -> Vec<PathBuf> {
        let Some(home) = std::env::home_dir().filter(|home| home.is_absolute()) else { return Vec::new() };
        let directory = |variable: &str, usual: &str| {
            std::env::var_os(variable).map_or_else(|| home.join(usual), PathBuf::from).join("hanzo")
        };
        let config = directory("XDG_CONFIG_HOME", ".config");
        default_unreadable(&home, &config, &directory("XDG_DATA_HOME", ".local/share"))
    }

    fn explain_jail(config: &JailConfig) -> Result<ExitCode, Box<dyn Error>> {
        let report = probe(config);
        let mut out = io::stdout();
        writeln!(out, "level: {}", report.level)?;
        writeln!(out, "writable: {}", config.workspace.display())?;
        for path in &config.writable {
            writeln!(out, "writable: {}", path.display())?;
        }
        writeln!(out, "network: {:?}", config.network)?;
        writeln!(out, "limit on processes: {}\nlimit on memory: {}", report.processes, report.memory)?;
        for missing in &report.missing {
            writeln!(out, "missing: {missing}")?;
        }
        Ok(if report.level >= config.require { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
