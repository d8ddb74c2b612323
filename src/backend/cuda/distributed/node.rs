//! Host memory that all ranks of a node have in common: one array of all ranks, of which each writes its own part, so that nothing is sent.
//!
//! Enters: lengths, the same on all ranks. Leaves: page-locked memory that every rank has mapped, or none where some rank could not map it:
//! ranks on several nodes, or without permission to open each other's files. The first rank makes a file in memory that no folder lists
//! (memfd_create); the others open it by its number among the open files of that process, and know it by a random name.

use crate::backend::cuda::context::Context;
use crate::backend::cuda::memory::{Plain, register_host, unregister_host};
use crate::distributed::Communicator;
use crate::error::{Error, Result, WFMM_ERR_OUT_OF_MEMORY};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;

/// Smaller arrays are sent: no pages are locked for them.
const LEAST: usize = 4096;

/// A mapping of the memory, page-locked.
#[derive(Debug)]
struct Mapping {
    context: Arc<Context>,
    start: *mut u8,
    bytes: usize,
    registered: bool,
}

// SAFETY: owned memory of bytes; who writes where is up to `Node::array`.
unsafe impl Send for Mapping {}
// SAFETY: the same.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: &File, bytes: usize, context: &Arc<Context>) -> Result<Self> {
        let (access, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
        // SAFETY: a new mapping of an open file that has so many bytes.
        let start = unsafe { libc::mmap(none, bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(failed("mmap"));
        }
        let mut mapping = Self { context: context.clone(), start: start.cast(), bytes, registered: false };
        register_host(context, start as usize, bytes)?;
        mapping.registered = true;
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.registered {
            let _ = unregister_host(&self.context, self.start as usize);
        }
        // SAFETY: mapped by `of`, and nobody's any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

fn failed(what: &str) -> Error {
    Error::new(
        WFMM_ERR_OUT_OF_MEMORY,
        format!("memory for all ranks of a node: {what}: {}", std::io::Error::last_os_error()),
    )
}

/// `len` values of the memory.
#[derive(Debug)]
pub struct Common<T> {
    mapping: Arc<Mapping>,
    len: usize,
    of: std::marker::PhantomData<T>,
}

// SAFETY: plain values in shared memory.
unsafe impl<T: Plain> Send for Common<T> {}
// SAFETY: the same.
unsafe impl<T: Plain + Sync> Sync for Common<T> {}

impl<T: Plain> Common<T> {
    /// This rank's part.
    ///
    /// # Safety
    /// No other rank writes to these values, nobody reads them before the next agreement of all ranks, and there are that many.
    pub unsafe fn part_mut(&mut self, first: usize, len: usize) -> &mut [T] {
        // SAFETY: within the mapping, whose start is that of a page; any bytes are values.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.cast::<T>().add(first), len) }
    }
}

impl<T: Plain> AsRef<[T]> for Common<T> {
    fn as_ref(&self) -> &[T] {
        // SAFETY: as in `part_mut`; ranks write between two agreements only, in which nobody reads.
        unsafe { std::slice::from_raw_parts(self.mapping.start.cast::<T>(), self.len) }
    }
}

/// The arrays that ranks of one node have in common, by name.
#[derive(Debug, Default)]
pub struct Node {
    mappings: HashMap<&'static str, Arc<Mapping>>,
    /// Some rank could not map the memory; the same on all ranks.
    apart: bool,
}

impl Node {
    /// Room for the array `name` of all ranks, where what was written before may still be. All ranks call it alike, and none still reads what the
    /// array held: of an evaluation that has ended.
    pub fn array<T: Plain>(
        &mut self,
        communicator: &Communicator,
        context: &Arc<Context>,
        name: &'static str,
        len: usize,
    ) -> Result<Option<Common<T>>> {
        let bytes = len * size_of::<T>();
        if self.apart || bytes < LEAST || communicator.size() == 1 {
            return Ok(None);
        }
        if self.mappings.get(name).is_none_or(|mapping| mapping.bytes < bytes) {
            self.mappings.remove(name);
            // An eighth more, so that a slowly growing wake does not lock pages in every step.
            let Some(mapping) = map_together(communicator, context, (bytes + bytes / 8).next_multiple_of(4096))? else {
                log::info!("rank {} has no memory in common with the others: arrays are sent", communicator.rank());
                self.apart = true;
                self.mappings.clear();
                return Ok(None);
            };
            self.mappings.insert(name, Arc::new(mapping));
        }
        let mapping = self.mappings[name].clone();
        Ok(Some(Common { mapping, len, of: std::marker::PhantomData }))
    }
}

/// A file of the first rank, as the others find it: process, number of the open file, random name.
type Found = [u64; 3];

/// None where some rank has no mapping.
fn map_together(communicator: &Communicator, context: &Arc<Context>, bytes: usize) -> Result<Option<Mapping>> {
    let made = if communicator.rank() == 0 { make(bytes).map(Some) } else { Ok(None) };
    if let Err(error) = &made {
        log::info!("{}", error.message);
    }
    let made = made.ok().flatten();
    let mine = made.as_ref().map_or([0; 3], |(_, found)| *found).map(|n| n as f64);
    let all = communicator.each(&mine)?;
    let found: Found = std::array::from_fn(|k| all[k] as u64);
    // Open until all have it.
    let file = made.map(|(file, _)| file).or_else(|| open(found));
    let mapping = file.as_ref().and_then(|file| Mapping::of(file, bytes, context).ok());
    let count = communicator.total(&[f64::from(u8::from(mapping.is_some()))])?[0];
    Ok(mapping.filter(|_| count == communicator.size() as f64))
}

/// Numbers of this file and process cross as exact numbers in double precision.
fn make(bytes: usize) -> Result<(File, Found)> {
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
        0 => Ok((file, [u64::from(std::process::id()), descriptor as u64, name])),
        code => {
            let cause = std::io::Error::from_raw_os_error(code);
            Error::fail(WFMM_ERR_OUT_OF_MEMORY, format!("memory for all ranks of a node: {bytes} bytes: {cause}"))
        }
    }
}

fn name_of(random: u64) -> String {
    format!("wakefmm-{random:013x}")
}

/// The first rank's file, where this is a process of its node and may.
fn open([process, descriptor, name]: Found) -> Option<File> {
    let path = format!("/proc/{process}/fd/{descriptor}");
    let target = std::fs::read_link(&path).ok()?;
    let is_it = target.to_str().is_some_and(|target| target.contains(&name_of(name)));
    if process > 0 && is_it { OpenOptions::new().read(true).write(true).open(&path).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_file_is_found_by_its_process_number_and_name() {
        let (mut file, found) = make(8192).unwrap();
        let mut other = open(found).unwrap();
        file.write_all(&[7; 16]).unwrap();
        let mut read = [0; 16];
        other.read_exact(&mut read).unwrap();
        assert_eq!(read, [7; 16]);
        let [process, descriptor, name] = found;
        assert!(open([process, descriptor, name ^ 1]).is_none(), "a file of another name");
        assert!(open([0, descriptor, name]).is_none());
        drop(file);
        assert!(open(found).is_none(), "closed");
    }
}
