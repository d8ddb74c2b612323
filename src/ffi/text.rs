//! Strings for callers: the caller's buffer, its capacity, and the length that would have been needed.

use std::ffi::c_char;

use crate::error::Result;

use super::boundary::not_null;

/// Copies as much of `text` as fits, always with a closing NUL, and tells its full length (without the NUL).
///
/// # Safety
/// `capacity` bytes at `buf` may be written (`buf` may be NULL where `capacity` is 0); `out_length` is NULL or writable.
pub unsafe fn put(buf: *mut c_char, capacity: usize, out_length: *mut usize, text: &str) -> Result<()> {
    if capacity > 0 {
        not_null("buf", buf)?;
        let mut end = text.len().min(capacity - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // `end` + 1 bytes are at most `capacity`, which the caller vouches for.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buf.cast::<u8>(), end);
            buf.add(end).write(0);
        }
    }
    if !out_length.is_null() {
        not_null("out_length", out_length)?;
        unsafe { out_length.write(text.len()) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_whole_character_and_closed() {
        let (mut buf, mut length) = ([1u8; 4], 0);
        unsafe { put(buf.as_mut_ptr().cast(), 4, &mut length, "ab\u{e9}f") }.unwrap();
        assert_eq!((&buf[..3], length), (&b"ab\0"[..], 5));
    }
}
