//! Host memory in a file that other processes of the node can map. No folder lists the file (memfd_create); others open it by its number among
//! the open files of the process that made it, and know it by a random name.
//!
//! Enters: lengths, or where another process has such a file. Leaves: mappings. They keep their pages when the file's maker has ended.

use crate::error::{Error, Result, WFMM_ERR_OUT_OF_MEMORY};
use std::collections::hash_map::RandomState;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::os::fd::{AsRawFd, FromRawFd};

/// Where a file is: process, number of the open file there, random name. Each is exact as a number in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    pub process: u64,
    pub descriptor: u64,
    pub name: u64,
}

/// A mapping of a whole file.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: owned memory of bytes; who reads and writes where is up to its users.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: &File, bytes: usize) -> Result<Self> {
        let (access, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
        // SAFETY: a new mapping of an open file that has so many bytes.
        let start = unsafe { libc::mmap(none, bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(failed("mmap"));
        }
        Ok(Self { start: start.cast(), bytes })
    }

    /// Another process's file; none where this process may not open it.
    pub fn of_place(place: Place) -> Option<Self> {
        let file = place.open()?;
        let bytes = file.metadata().ok()?.len() as usize;
        Self::of(&file, bytes).ok()
    }

    pub fn address(&self) -> usize {
        self.start as usize
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and nobody's any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// A file of this process, and its pages here.
#[derive(Debug)]
pub struct SharedPages {
    pub mapping: Mapping,
    pub place: Place,
    /// Open as long as others may look for it.
    _file: File,
}

impl SharedPages {
    pub fn new(bytes: usize) -> Result<Self> {
        let name = RandomState::new().hash_one(std::process::id()) >> 12;
        let text = CString::new(name_of(name)).expect("digits");
        // SAFETY: a new file; the name ends with a zero.
        let descriptor = unsafe { libc::memfd_create(text.as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(failed("memfd_create"));
        }
        // SAFETY: just opened, and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // Its pages are there at once: what lacks memory would otherwise end the process where it is written.
        // SAFETY: a call without pointers.
        match unsafe { libc::posix_fallocate(descriptor, 0, bytes as libc::off_t) } {
            0 => {
                let place = Place { process: u64::from(std::process::id()), descriptor: descriptor as u64, name };
                Ok(Self { mapping: Mapping::of(&file, bytes)?, place, _file: file })
            }
            code => {
                let cause = std::io::Error::from_raw_os_error(code);
                Error::fail(WFMM_ERR_OUT_OF_MEMORY, format!("memory for all ranks of a node: {bytes} bytes: {cause}"))
            }
        }
    }
}

impl Place {
    pub fn to_f64(self) -> [f64; 3] {
        [self.process, self.descriptor, self.name].map(|n| n as f64)
    }

    pub fn from_f64([process, descriptor, name]: [f64; 3]) -> Self {
        Self { process: process as u64, descriptor: descriptor as u64, name: name as u64 }
    }

    /// The file, where its process is one of this node and it may be opened.
    fn open(self) -> Option<File> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let target = std::fs::read_link(&path).ok()?;
        let is_it = target.to_str().is_some_and(|target| target.contains(&name_of(self.name)));
        if self.process > 0 && is_it { OpenOptions::new().read(true).write(true).open(&path).ok() } else { None }
    }
}

fn name_of(random: u64) -> String {
    format!("wakefmm-{random:013x}")
}

fn failed(what: &str) -> Error {
    let cause = std::io::Error::last_os_error();
    Error::new(WFMM_ERR_OUT_OF_MEMORY, format!("memory for all ranks of a node: {what}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(mapping: &Mapping) -> &[u8] {
        // SAFETY: the test's own, of one thread.
        unsafe { std::slice::from_raw_parts(mapping.start, mapping.bytes) }
    }

    #[test]
    fn a_file_is_found_by_its_process_number_and_name() {
        let pages = SharedPages::new(8192).unwrap();
        let place = Place::from_f64(pages.place.to_f64());
        assert_eq!(place, pages.place);
        let other = Mapping::of_place(place).unwrap();
        // SAFETY: as above.
        unsafe { pages.mapping.start.add(4096).write_bytes(7, 4) };
        assert_eq!((bytes(&other)[4099], other.bytes()), (7, 8192));
        assert!(Mapping::of_place(Place { name: place.name ^ 1, ..place }).is_none(), "a file of another name");
        assert!(Mapping::of_place(Place { process: 0, ..place }).is_none());
        drop(pages);
        assert!(Mapping::of_place(place).is_none(), "closed");
        assert_eq!(bytes(&other)[4099], 7);
    }
}
