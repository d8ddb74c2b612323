//! Files that appear under their name when they are whole.
//!
//! Enters: a path, then bytes. Leaves: a file beside the one that the path names, which takes its place, or is removed.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// As many as Linux follows.
const LINKS_MAX: usize = 40;
/// Where a file says that it is once it has failed: behind all that was written.
const BEHIND_ALL: u64 = 1 << 62;

/// The process that writes a file and the file's number there: its name until it is in its place.
pub type Writer = [u64; 2];

/// A file that is being written. Removed when it is dropped, unless it was put in its place.
pub struct NewFile {
    file: BufWriter<File>,
    writer: Writer,
    beside: PathBuf,
    /// What will be replaced, or made.
    target: PathBuf,
    failed: bool,
    in_place: bool,
}

impl NewFile {
    /// A new file in the folder of the one that `path` names, with its mode if it is there. Symbolic links are followed; what is
    /// there and is no regular file is refused.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let target = followed(path);
        let permissions = match fs::metadata(&target) {
            Ok(there) if there.is_file() => Some(there.permissions()),
            Ok(_) => return Err(io::Error::other("this is there and is no regular file; only files are replaced")),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let (writer, file) = unique(&target)?;
        let beside = temporary(&target, writer);
        let new = Self { file: BufWriter::new(file), writer, beside, target, failed: false, in_place: false };
        if let Some(permissions) = permissions {
            let file = new.file.get_ref();
            // Where it is the same nothing is asked of a file system that may not know modes.
            if file.metadata()?.permissions() != permissions {
                file.set_permissions(permissions)?;
            }
        }
        Ok(new)
    }

    pub fn writer(&self) -> Writer {
        self.writer
    }

    /// The name that it will have in its folder.
    pub fn name(&self) -> Option<&OsStr> {
        self.target.file_name()
    }

    /// Whether a file of another writer is being written in the same folder.
    pub fn is_beside(&self, other: Writer) -> bool {
        other != self.writer && temporary(&self.target, other).exists()
    }

    /// Fails unless all that was written is on the disk.
    pub fn complete(&mut self) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier part could not be written"));
        }
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }

    /// Gives the file its name.
    pub fn put_in_place(mut self) -> io::Result<()> {
        self.complete()?;
        fs::rename(&self.beside, &self.target)?;
        self.in_place = true;
        Ok(())
    }

    /// After the first error nothing is done, without an error: writers that finish their file when they are dropped have no other
    /// way to tell of one than standard error.
    fn unless_failed<R>(
        &mut self,
        instead: R,
        work: impl FnOnce(&mut BufWriter<File>) -> io::Result<R>,
    ) -> io::Result<R> {
        if self.failed {
            return Ok(instead);
        }
        let done = work(&mut self.file);
        self.failed = done.as_ref().is_err_and(|e| e.kind() != ErrorKind::Interrupted);
        done
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_failed(bytes.len(), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed((), |file| file.flush())
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.unless_failed(BEHIND_ALL, |file| file.seek(to))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.in_place {
            // What is there is of no use; that it may stay is no second error.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Where the links of a path lead, also where nothing is there yet.
fn followed(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(to);
    }
    target
}

/// A short name in the folder of `target`.
fn temporary(target: &Path, [process, number]: Writer) -> PathBuf {
    target.with_file_name(format!(".wakefmm-{process:x}-{number:x}.tmp"))
}

/// A file there that nobody else writes.
fn unique(target: &Path) -> io::Result<(Writer, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let writer = [u64::from(std::process::id()), NEXT.fetch_add(1, Ordering::Relaxed)];
        match OpenOptions::new().write(true).create_new(true).open(temporary(target, writer)) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (writer, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// An empty folder, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("wakefmm-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut file = NewFile::beside(path)?;
        file.write_all(text.as_bytes())?;
        file.put_in_place()
    }

    #[test]
    fn two_writers_of_one_name_are_apart_and_nothing_is_left() {
        let folder = Folder::new("two-writers");
        let path = folder.0.join("x");
        let (mut a, mut b) = (NewFile::beside(&path).unwrap(), NewFile::beside(&path).unwrap());
        a.write_all(b"first").unwrap();
        b.write_all(b"second, longer").unwrap();
        assert!(!path.exists() && a.is_beside(b.writer()) && b.is_beside(a.writer()) && !a.is_beside(a.writer()));
        b.put_in_place().unwrap();
        a.put_in_place().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        drop(NewFile::beside(&path).unwrap());
        assert_eq!(folder.names(), ["x"]);
    }

    #[test]
    fn links_are_followed_and_only_files_are_replaced() {
        let folder = Folder::new("links");
        let at = |name: &str| folder.0.join(name);
        fs::create_dir(at("d")).unwrap();
        symlink("d/new", at("relative")).unwrap();
        symlink(at("relative"), at("absolute")).unwrap();
        symlink("round", at("round")).unwrap();
        write(&at("absolute"), "new").unwrap();
        write(&at("relative"), "replaced").unwrap();
        assert_eq!(fs::read(at("d/new")).unwrap(), b"replaced");
        assert!(at("absolute").is_symlink() && at("relative").is_symlink());
        assert!(write(&at("d"), "").unwrap_err().to_string().contains("no regular file"));
        assert!(write(&at("round"), "").is_err());
        assert_eq!(folder.names(), ["absolute", "d", "relative", "round"]);
    }

    #[test]
    fn a_mode_is_kept_and_names_may_be_long() {
        let folder = Folder::new("modes");
        let path = folder.0.join("n".repeat(255));
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let ordinary = folder.0.join("ordinary");
        fs::write(&ordinary, "").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(mode(), fs::metadata(&ordinary).unwrap().permissions().mode() & 0o777);
        for kept in [0o600, 0o444, 0o775] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            write(&path, "again").unwrap();
            assert_eq!(mode(), kept);
        }
        assert!(write(&folder.0.join("n".repeat(256)), "").is_err());
        assert_eq!(folder.names().len(), 2);
    }

    #[test]
    fn an_archive_that_failed_ends_without_a_word_and_does_not_appear() {
        let folder = Folder::new("failed");
        let path = folder.0.join("x.npz");
        let mut zip = zip::ZipWriter::new(NewFile::beside(&path).unwrap());
        let stored = zip::write::SimpleFileOptions::default().large_file(true);
        zip.start_file("a.npy", stored.compression_method(zip::CompressionMethod::Stored)).unwrap();
        zip.write_all(b"some").unwrap();
        let mut file = zip.finish().unwrap();
        assert!(file.unless_failed((), |_| Err(io::Error::other("forced"))).is_err());
        let mut zip = zip::ZipWriter::new(file);
        zip.start_file("b.npy", stored.compression_method(zip::CompressionMethod::Stored)).unwrap();
        zip.write_all(b"more").unwrap();
        // What it does when it is dropped, too.
        assert!(zip.finish().unwrap().put_in_place().is_err());
        assert!(folder.names().is_empty());
    }
}
