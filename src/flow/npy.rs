//! Arrays in NumPy's `.npy` format, version 1.0: a header that says type and shape, then the numbers, little endian.
//!
//! Enters and leaves: lists, or rows of a few numbers, in C's order.

use std::io::{self, Read, Write};

use crate::memory;

/// A type of numbers of the format.
pub trait Number: Copy {
    /// NumPy's name of the type.
    const DESCR: &'static str;
    const SIZE: usize;
    fn put(self, bytes: &mut Vec<u8>);
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($t:ident, $descr:literal) => {
        impl Number for $t {
            const DESCR: &'static str = $descr;
            const SIZE: usize = size_of::<$t>();
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("as many bytes as the type has"))
            }
        }
    };
}
number!(f64, "<f8");
number!(i64, "<i8");
number!(i32, "<i4");

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// Headers end at a multiple of this.
const ALIGNMENT: usize = 64;
/// Numbers that are written or read at a time.
const BLOCK: usize = 1 << 16;

/// The description of an array: `width` 0 is a list.
fn header<T: Number>(width: usize, len: usize) -> Vec<u8> {
    let shape = len.checked_div(width).map_or_else(|| format!("({len},)"), |rows| format!("({rows}, {width})"));
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", T::DESCR);
    let end = (MAGIC.len() + 2 + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', end - MAGIC.len() - 2 - text.len() - 1));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

pub fn write<T: Number>(to: &mut impl Write, width: usize, values: &[T]) -> io::Result<()> {
    to.write_all(&header::<T>(width, values.len()))?;
    let mut bytes = memory::with_room(BLOCK.min(values.len()) * T::SIZE);
    for block in values.chunks(BLOCK) {
        bytes.clear();
        block.iter().for_each(|v| v.put(&mut bytes));
        to.write_all(&bytes)?;
    }
    Ok(())
}

/// An array of this type and number of columns; anything else, and an array that ends too early, is an error.
pub fn read<T: Number>(from: &mut impl Read, width: usize) -> io::Result<Vec<T>> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut start = [0; 10];
    from.read_exact(&mut start)?;
    if !start.starts_with(MAGIC) {
        return Err(wrong("no array of .npy version 1.0".into()));
    }
    let mut text = vec![0; u16::from_le_bytes([start[8], start[9]]) as usize];
    from.read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    if !text.contains(&format!("'descr': '{}'", T::DESCR)) || !text.contains("'fortran_order': False") {
        return Err(wrong(format!("an array of {} in C's order is needed, not {text}", T::DESCR)));
    }
    let shape = text.split("'shape': (").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or("?");
    let extents: Option<Vec<usize>> =
        shape.split(',').map(str::trim).filter(|e| !e.is_empty()).map(|e| e.parse().ok()).collect();
    let len = match (extents.as_deref(), width) {
        (Some([n]), 0) => *n,
        (Some([n, columns]), _) if *columns == width => n.saturating_mul(width),
        _ => return Err(wrong(format!("shape ({shape}) where {width} columns are needed"))),
    };
    let mut values = Vec::new();
    let mut bytes = memory::filled(0, BLOCK.min(len) * T::SIZE);
    while values.len() < len {
        // Room for what is there, not for what a header promises.
        let block = BLOCK.min(len - values.len());
        from.read_exact(&mut bytes[..block * T::SIZE])?;
        values.try_reserve(block).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        values.extend(bytes[..block * T::SIZE].chunks_exact(T::SIZE).map(T::take));
    }
    // The container looks at its checksum when the member ends.
    match from.read(&mut [0])? {
        0 => Ok(values),
        _ => Err(wrong("more numbers than the shape says".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_and_others_are_refused() {
        let mut file = Vec::new();
        write(&mut file, 3, &[1.0, f64::NAN, -0.0, 4.0, 5.0, f64::MAX]).unwrap();
        assert_eq!((file.len() - 48) % ALIGNMENT, 0);
        let back: Vec<f64> = read(&mut &file[..], 3).unwrap();
        assert!(back[1].is_nan() && back[2].is_sign_negative() && back[5] == f64::MAX);
        assert!(read::<f64>(&mut &file[..], 0).is_err() && read::<i64>(&mut &file[..], 3).is_err());
        assert!(read::<f64>(&mut &file[..file.len() - 1], 3).is_err());
        file.push(0);
        assert!(read::<f64>(&mut &file[..], 3).is_err());
    }
}
