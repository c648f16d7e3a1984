//! Pictures.

use super::ScreenError;

/// A picture: three bytes a pixel, red first, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// How wide.
    pub width: u32,
    /// How high.
    pub height: u32,
    /// The pixels.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// As a PNG.
    pub fn png(&self) -> Result<Vec<u8>, ScreenError> {
        let failed = |error: png::EncodingError| ScreenError::Failed(format!("no PNG: {error}"));
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&self.rgb).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(out)
    }
}
