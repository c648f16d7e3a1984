//! The directory a runner writes its report to, in the `/tmp` it sees. It is read through a descriptor that was opened when it
//! was made and without following links: what runs there may have put anything in its place.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hanzo_protocol::spawn::Spawner;

/// A report is read up to here.
const MAX_REPORT: u64 = 64 << 20;

/// The directory of one run. It is removed with this.
#[derive(Debug)]
pub(super) struct ReportDir {
    directory: File,
    path: PathBuf,
    seen: PathBuf,
}

impl ReportDir {
    /// Makes one that processes of `spawner` can write to.
    pub(super) fn create(spawner: &dyn Spawner) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let confinement = spawner.confinement();
        let (parent, seen) = match confinement.tmp {
            // Only with namespaces of its own is it called `/tmp` inside.
            Some(tmp) if confinement.level == "full" => (tmp, PathBuf::from("/tmp")),
            Some(tmp) => (tmp.clone(), tmp),
            None => (std::env::temp_dir(), std::env::temp_dir()),
        };
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("hanzo-test-{}-{number}", std::process::id());
            let path = parent.join(&name);
            match make(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let directory = File::open(&path)?;
                    return Ok(Self { directory, path, seen: seen.join(name) });
                }
            }
        }
    }

    /// What a file in it is called to processes.
    pub(super) fn seen(&self, name: &str) -> PathBuf {
        self.seen.join(name)
    }

    /// Puts a file there, before anything runs.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        std::fs::write(self.path.join(name), text)
    }

    /// What the runner wrote to `name`, if it did.
    #[cfg(unix)]
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        read(&self.directory, Path::new(name))
    }

    /// The first XML file in the directory `inner`.
    #[cfg(unix)]
    pub(super) fn read_xml_in(&self, inner: &str) -> io::Result<Option<Vec<u8>>> {
        use rustix::fs::{Dir, Mode, OFlags, openat};
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match openat(&self.directory, inner, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            directory => File::from(directory?),
        };
        for entry in Dir::read_from(&directory)?.take(100) {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            if Path::new(name.as_ref()).extension().is_some_and(|extension| extension == "xml") {
                return read(&directory, Path::new(name.as_ref()));
            }
        }
        Ok(None)
    }

    #[cfg(not(unix))]
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let _ = &self.directory;
        match File::open(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => bounded(file?).map(Some),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn read_xml_in(&self, inner: &str) -> io::Result<Option<Vec<u8>>> {
        let Ok(entries) = std::fs::read_dir(self.path.join(inner)) else { return Ok(None) };
        let mut files = entries.flatten().map(|entry| entry.path());
        match files.find(|path| path.extension().is_some_and(|extension| extension == "xml")) {
            Some(path) => bounded(File::open(path)?).map(Some),
            None => Ok(None),
        }
    }
}

impl Drop for ReportDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn make(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn read(directory: &File, name: &Path) -> io::Result<Option<Vec<u8>>> {
    use rustix::fs::{Mode, OFlags, openat};
    // Nor does a FIFO keep us waiting.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => Ok(None),
        file => bounded(File::from(file?)).map(Some),
    }
}

fn bounded(file: File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_REPORT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use hanzo_testkit::plain_spawner::PlainSpawner;

    use super::*;

    #[test]
    fn only_a_plain_file_in_it_is_read_and_it_is_gone_afterwards() {
        let report = ReportDir::create(&PlainSpawner::new("/")).unwrap();
        let seen = report.seen("r.xml");
        assert_eq!(report.read("r.xml").unwrap(), None);
        std::fs::write(&seen, "<x/>").unwrap();
        assert_eq!(report.read("r.xml").unwrap().unwrap(), b"<x/>");
        std::fs::remove_file(&seen).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &seen).unwrap();
        assert!(report.read("r.xml").is_err(), "a link is not followed");
        std::os::unix::fs::symlink("/etc", report.seen("default")).unwrap();
        assert!(report.read_xml_in("default").is_err());
        let moved = report.seen("..").join("moved-away");
        let _ = std::fs::remove_dir_all(&moved);
        std::fs::rename(report.seen(""), &moved).unwrap();
        std::os::unix::fs::symlink("/etc", seen.parent().unwrap()).unwrap();
        assert!(report.read("passwd").unwrap().is_none(), "it is the directory that was made");
        drop(report);
        let _ = std::fs::remove_dir_all(&moved);
        let _ = std::fs::remove_file(seen.parent().unwrap());
    }
}
