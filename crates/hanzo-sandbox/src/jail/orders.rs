//! The messages themselves: what the supervisor is set up with, what it is told to run, what it answers.

use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::config::{Limits, Network, Placeholder, Protected, UnixSockets};
use super::ladder::Facilities;
use super::wire::{Reader, Writer};

/// A step that failed, with its name: the only thing a supervisor can say before it works.
#[derive(Debug)]
pub(crate) struct StepError {
    pub(crate) step: String,
    pub(crate) source: io::Error,
}

/// Names the step an error happened in.
pub(crate) trait Step<T> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, StepError> {
        self.map_err(|source| StepError { step: step(), source: source.into() })
    }
}

/// The configuration, resolved: every path absolute and canonical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) protected: Vec<Protected>,
    pub(crate) unreadable: Vec<PathBuf>,
    pub(crate) network: Network,
    pub(crate) unix_sockets: UnixSockets,
    pub(crate) facilities: Facilities,
    /// Something is mounted in `/proc`, as containers do to hide parts of it. Looked up by the host, which has the time.
    pub(crate) proc_is_covered: bool,
    /// How many processors the commands share.
    pub(crate) cores: Option<NonZeroUsize>,
    /// The private `/tmp`, as the host sees it.
    pub(crate) tmp: PathBuf,
}

impl Setup {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let facilities = self.facilities;
        let flags = [
            self.network == Network::On,
            self.unix_sockets == UnixSockets::Any,
            facilities.namespaces,
            facilities.landlock,
            facilities.seccomp,
            facilities.private_proc,
            facilities.pid_max,
            self.proc_is_covered,
        ];
        let mut writer = Writer::default();
        for flag in flags {
            writer.number(u64::from(flag));
        }
        writer
            .list(self.roots.iter(), |writer, path| {
                writer.path(path);
            })
            .list(self.unreadable.iter(), |writer, path| {
                writer.path(path);
            })
            .list(self.protected.iter(), |writer, protected| {
                let (kind, content) = match &protected.placeholder {
                    Placeholder::Directory => (0, ""),
                    Placeholder::OnlyIfPresent => (1, ""),
                    Placeholder::File(content) => (2, content.as_str()),
                };
                writer.path(&protected.path).number(kind).bytes(content.as_bytes());
            })
            .optional(self.cores.map(|cores| cores.get() as u64))
            .path(&self.tmp)
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = Reader::new(bytes);
        let mut flag = || reader.number().map(|flag| flag == 1);
        let network = if flag()? { Network::On } else { Network::Off };
        let unix_sockets = if flag()? { UnixSockets::Any } else { UnixSockets::PairsOnly };
        let facilities = Facilities {
            namespaces: flag()?,
            landlock: flag()?,
            seccomp: flag()?,
            private_proc: flag()?,
            pid_max: flag()?,
        };
        let proc_is_covered = flag()?;
        Ok(Self {
            proc_is_covered,
            network,
            unix_sockets,
            facilities,
            roots: reader.list(Reader::path)?,
            unreadable: reader.list(Reader::path)?,
            protected: reader.list(|reader| {
                let path = reader.path()?;
                let kind = reader.number()?;
                let content = String::from_utf8_lossy(reader.bytes()?).into_owned();
                let placeholder = match kind {
                    0 => Placeholder::Directory,
                    1 => Placeholder::OnlyIfPresent,
                    _ => Placeholder::File(content),
                };
                Ok(Protected { path, placeholder })
            })?,
            cores: reader
                .optional()?
                .and_then(|cores| usize::try_from(cores).ok())
                .and_then(NonZeroUsize::new),
            tmp: reader.path()?,
        })
    }
}

/// A terminal's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtySize {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// A command for the supervisor. Descriptors beside it: the command's socket, then stdin, stdout and stderr unless it gets
/// a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) program: Option<PathBuf>,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) keep_leftovers: bool,
    pub(crate) pty: Option<PtySize>,
}

impl Order {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let text = |writer: &mut Writer, text: &OsString| {
            writer.path(text.as_ref());
        };
        let mut writer = Writer::default();
        writer
            .list(self.program.iter(), |writer, path| {
                writer.path(path);
            })
            .list(self.argv.iter(), text)
            .list(self.env.iter(), |writer, (name, value)| {
                text(writer, name);
                text(writer, value);
            })
            .path(&self.cwd)
            .limits(&self.limits)
            .number(u64::from(self.keep_leftovers))
            .optional(self.pty.map(|size| u64::from(size.rows) << 16 | u64::from(size.columns)))
            .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            program: reader.list(Reader::path)?.pop(),
            argv: reader.list(Reader::text)?,
            env: reader.list(|reader| Ok((reader.text()?, reader.text()?)))?,
            cwd: reader.path()?,
            limits: reader.limits()?,
            keep_leftovers: reader.number()? == 1,
            pty: reader.optional()?.map(|size| PtySize {
                rows: u16::try_from(size >> 16).unwrap_or(u16::MAX),
                columns: u16::try_from(size & 0xffff).unwrap_or(u16::MAX),
            }),
        })
    }
}

/// How a command ended, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) kind: EndKind,
    /// Exit code, or 256 + signal.
    pub(crate) status: i32,
    pub(crate) cpu: Duration,
    pub(crate) max_rss: u64,
    pub(crate) leftovers: bool,
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum EndKind {
    /// By itself; see the status.
    Own,
    /// It reached its time.
    Timeout,
    /// Somebody killed it: the caller, or the kernel its init.
    #[default]
    Killed,
    /// The tree's memory grew past the limit.
    Memory,
    /// The tree had too many processes.
    Processes,
}

/// What a command's socket carries to the host.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The terminal's other end is attached.
    Master,
    /// The program runs.
    Started,
    /// It does not: the step and the error number. `exec` is set when the jail stood and only the program failed.
    Failed { step: String, errno: i32, exec: bool },
    /// It is over.
    Ended(Ending),
}

impl Answer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        match self {
            Self::Master => writer.number(0),
            Self::Started => writer.number(1),
            Self::Failed { step, errno, exec } => writer
                .number(2)
                .bytes(step.as_bytes())
                .number(u64::try_from(*errno).unwrap_or(0))
                .number(u64::from(*exec)),
            Self::Ended(ending) => {
                let kind = match ending.kind {
                    EndKind::Own => 0,
                    EndKind::Timeout => 1,
                    EndKind::Killed => 2,
                    EndKind::Memory => 3,
                    EndKind::Processes => 4,
                };
                writer
                    .number(3)
                    .number(kind)
                    .number(u64::try_from(ending.status).unwrap_or(0))
                    .number(u64::try_from(ending.cpu.as_micros()).unwrap_or(u64::MAX))
                    .number(ending.max_rss)
                    .number(u64::from(ending.leftovers))
            }
        }
        .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = Reader::new(bytes);
        Ok(match reader.number()? {
            0 => Self::Master,
            1 => Self::Started,
            2 => Self::Failed {
                step: String::from_utf8_lossy(reader.bytes()?).into_owned(),
                errno: reader.signed()?,
                exec: reader.number()? == 1,
            },
            _ => Self::Ended(Ending {
                kind: match reader.number()? {
                    0 => EndKind::Own,
                    1 => EndKind::Timeout,
                    3 => EndKind::Memory,
                    4 => EndKind::Processes,
                    _ => EndKind::Killed,
                },
                status: reader.signed()?,
                cpu: Duration::from_micros(reader.number()?),
                max_rss: reader.number()?,
                leftovers: reader.number()? == 1,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_and_an_order_survive_the_trip() {
        let setup = Setup {
            roots: vec!["/a".into(), "/b c".into()],
            protected: vec![
                Protected::new("/a/x"),
                Protected::file("/a/y", ".\n"),
                Protected::if_present("/a/z"),
            ],
            unreadable: vec!["/h/.ssh".into()],
            network: Network::On,
            unix_sockets: UnixSockets::PairsOnly,
            facilities: Facilities { landlock: false, ..Facilities::default() },
            proc_is_covered: true,
            cores: NonZeroUsize::new(3),
            tmp: "/t".into(),
        };
        assert_eq!(Setup::decode(&setup.encode()).unwrap(), setup);
        let order = Order {
            program: Some("/bin/x".into()),
            argv: vec!["x".into(), String::new().into()],
            env: vec![("A".into(), "b=c".into())],
            cwd: "/a".into(),
            limits: Limits::standard(),
            keep_leftovers: true,
            pty: Some(PtySize { rows: 24, columns: 80 }),
        };
        assert_eq!(Order::decode(&order.encode()).unwrap(), order);
    }
}
