//! Morton keys: bits of coordinates side by side.

/// The lowest 21 bits of a coordinate, with two zeros between each.
pub fn interleave(x: u64) -> u64 {
    let mut x = x & 0x1f_ffff;
    x = (x | (x << 32)) & 0x001f_0000_0000_ffff;
    x = (x | (x << 16)) & 0x001f_0000_ff00_00ff;
    x = (x | (x << 8)) & 0x100f_00f0_0f00_f00f;
    x = (x | (x << 4)) & 0x10c3_0c30_c30c_30c3;
    (x | (x << 2)) & 0x1249_2492_4924_9249
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_interleaved() {
        assert_eq!(interleave(0b1011), 0b001_000_001_001);
        assert_eq!(interleave((1 << 16) - 1).count_ones(), 16);
        assert_eq!(interleave((1 << 21) - 1).count_ones(), 21);
    }
}
