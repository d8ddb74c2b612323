//! PNG files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ::png::{BitDepth, ColorType, Compression, Encoder};

use crate::error::{Error, Result, WFMM_ERR_FILE};
use crate::memory;

/// Writes rows of four bytes a pixel; the file appears under its name when it is whole.
pub fn write(path: &Path, width: usize, height: usize, rgba: &[u8]) -> Result<()> {
    // What the encoder will take, whose allocations cannot report a failure.
    drop(memory::filled(0u8, rgba.len() + (4 << 20)));
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = Path::new(&beside);
    let done = encode(beside, width, height, rgba).and_then(|()| std::fs::rename(beside, path));
    done.or_else(|e| {
        // That it may stay is no second error.
        let _ = std::fs::remove_file(beside);
        Error::fail(WFMM_ERR_FILE, format!("{}: {e}", path.display()))
    })
}

fn encode(path: &Path, width: usize, height: usize, rgba: &[u8]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut encoder = Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgba)?;
    writer.finish()?;
    file.flush()?;
    file.get_ref().sync_all()
}
