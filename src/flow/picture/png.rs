//! PNG files.

use std::path::Path;

use ::png::{BitDepth, ColorType, Compression, Encoder};

use crate::error::{Error, Result, WFMM_ERR_FILE};
use crate::flow::file::NewFile;
use crate::memory;

/// Writes rows of four bytes a pixel; the file appears under its name when it is whole.
pub fn write(path: &Path, width: usize, height: usize, rgba: &[u8]) -> Result<()> {
    // What the encoder will take, whose allocations cannot report a failure.
    drop(memory::filled(0u8, rgba.len() + (4 << 20)));
    let written = NewFile::beside(path).and_then(|mut file| {
        encode(&mut file, width, height, rgba)?;
        file.put_in_place()
    });
    written.or_else(|e| Error::fail(WFMM_ERR_FILE, format!("{}: {e}", path.display())))
}

fn encode(file: &mut NewFile, width: usize, height: usize, rgba: &[u8]) -> std::io::Result<()> {
    let mut encoder = Encoder::new(file, width as u32, height as u32);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgba)?;
    Ok(writer.finish()?)
}
