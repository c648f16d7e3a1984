//! The program on a terminal of its own, without an emulator: what it writes is heard byte by byte, and what a terminal has to
//! answer is answered.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::World;

/// What a terminal is asked, of which the answers keep frames coming.
const WHERE: &[u8] = b"\x1b[6n";

pub struct Pty {
    master: Arc<File>,
    child: Child,
    heard: Arc<(Mutex<Vec<u8>>, Condvar)>,
}

impl Pty {
    /// Starts the program on a terminal that answers where its cursor is: always in the last column.
    pub fn start(world: &World, width: u16, height: u16, arguments: &[&str]) -> Self {
        Self::start_with(world, (width, height), &[], arguments)
    }

    /// The same with more variables.
    pub fn start_with(
        world: &World,
        (width, height): (u16, u16),
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let mut asked: Vec<u8> = Vec::new();
        Self::with(world, (width, height), variables, arguments, move |bytes, master| {
            asked.extend_from_slice(bytes);
            let count = asked.windows(WHERE.len()).filter(|window| *window == WHERE).count();
            let rest = asked.len().saturating_sub(WHERE.len() - 1);
            asked.drain(..rest);
            for _ in 0..count {
                let _ = (&*master).write_all(format!("\x1b[{height};{width}R").as_bytes());
            }
        })
    }

    /// Starts the program; everything it writes goes through `terminal`, which may answer.
    pub fn with(
        world: &World,
        (width, height): (u16, u16),
        variables: &[(&str, &str)],
        arguments: &[&str],
        mut terminal: impl FnMut(&[u8], &File) + Send + 'static,
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&slave, size(width, height)).unwrap();
        let end = || Stdio::from(OwnedFd::from(slave.try_clone().unwrap()));
        let plain = world.command(arguments);
        // The terminal becomes the one that sends signals, which is how the program hears of another size.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(plain.get_program()).args(plain.get_args());
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        command.envs(variables.iter().copied()).current_dir(world.workspace());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(slave);
        let master = Arc::new(File::from(master));
        let heard: Arc<(Mutex<Vec<u8>>, Condvar)> = Arc::default();
        let (reads, hears) = (Arc::clone(&master), Arc::clone(&heard));
        std::thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            // The end of the program is an error here.
            while let Ok(count @ 1..) = (&*reads).read(&mut bytes) {
                hears.0.lock().unwrap().extend_from_slice(&bytes[..count]);
                hears.1.notify_all();
                terminal(&bytes[..count], &reads);
            }
        });
        Self { master, child, heard }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, text: &str) {
        (&*self.master).write_all(text.as_bytes()).unwrap();
    }

    pub fn resize(&self, width: u16, height: u16) {
        tcsetwinsize(&*self.master, size(width, height)).unwrap();
    }

    /// How much was heard so far.
    pub fn length(&self) -> usize {
        self.heard.0.lock().unwrap().len()
    }

    /// What was heard behind `from`.
    pub fn heard(&self, from: usize) -> Vec<u8> {
        self.heard.0.lock().unwrap()[from..].to_vec()
    }

    /// Waits until `text` is heard behind `from`; returns where it ends, and when that was.
    pub fn wait_for(&self, text: &str, from: usize) -> (usize, Instant) {
        let end = Instant::now() + Duration::from_mins(1);
        let mut heard = self.heard.0.lock().unwrap();
        let mut searched = from;
        loop {
            let window = &heard[searched.min(heard.len())..];
            if let Some(at) = window.windows(text.len()).position(|window| window == text.as_bytes()) {
                return (searched + at + text.len(), Instant::now());
            }
            searched = heard.len().saturating_sub(text.len()).max(from);
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {text}: {}", String::from_utf8_lossy(&heard[from..]));
            heard = self.heard.1.wait_timeout(heard, left).unwrap().0;
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(width: u16, height: u16) -> Winsize {
    Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 }
}
