//! Colors: of the kinds, of a scale, and what lines and points of a pixel make together.

use super::camera::{Blending, Coloring};
use super::canvas::{Canvas, Haze, ONE, Rgb};
use crate::flow::options::ElementKind;

/// Nine colors of the scale "viridis" (CC0), from dark to light.
pub const SCALE: [Rgb; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// Of a kind.
pub fn of_kind(kind: ElementKind) -> Rgb {
    match kind {
        ElementKind::Particles => [232, 120, 86],
        ElementKind::Filaments => [120, 190, 255],
        ElementKind::BoundSegments => [255, 214, 74],
        ElementKind::Tracers => [110, 230, 170],
        ElementKind::Dust => [222, 184, 132],
    }
}

/// At `t` of the scale, 0 to 1.
pub fn of_scale(t: f64) -> Rgb {
    let at = t.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let k = (at as usize).min(SCALE.len() - 2);
    mix(SCALE[k], SCALE[k + 1], at - k as f64)
}

/// Between two colors.
pub fn mix(a: Rgb, b: Rgb, t: f64) -> Rgb {
    std::array::from_fn(|i| (f64::from(a[i]) + t * (f64::from(b[i]) - f64::from(a[i])) + 0.5) as u8)
}

/// A color with its alpha, both 0 to 1, the color multiplied by it.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    pub color: [f64; 3],
    pub alpha: f64,
}

impl Paint {
    pub fn new(color: [f64; 3], alpha: f64) -> Self {
        Self { color: color.map(|c| c * alpha), alpha }
    }

    /// Covered by another.
    pub fn under(self, over: Self) -> Self {
        let rest = 1.0 - over.alpha;
        Self {
            color: std::array::from_fn(|i| over.color[i] + rest * self.color[i]),
            alpha: over.alpha + rest * self.alpha,
        }
    }

    /// Lit by another.
    fn plus(self, light: Self) -> Self {
        let sum = |a: f64, b: f64| (a + b).min(1.0);
        Self {
            color: std::array::from_fn(|i| sum(self.color[i], light.color[i])),
            alpha: self.alpha.max(light.alpha.min(1.0)),
        }
    }

    /// As four bytes, the color without the alpha.
    pub fn bytes(self) -> [u8; 4] {
        let byte = |x: f64| (255.0 * x.clamp(0.0, 1.0) + 0.5) as u8;
        let [r, g, b] = self.color.map(|c| byte(if self.alpha > 0.0 { c / self.alpha } else { 0.0 }));
        [r, g, b, byte(self.alpha)]
    }
}

/// How points of a pixel become a color.
#[derive(Debug, Clone, Copy)]
pub struct Mixer {
    pub coloring: Coloring,
    pub blending: Blending,
    /// Optical depth of a weight of one.
    pub opacity: f64,
}

impl Mixer {
    fn points(&self, haze: Haze) -> Paint {
        let depth = self.opacity * haze.weight as f64 / ONE;
        let covered = -(-depth).exp_m1();
        let color = if self.coloring == Coloring::Density {
            of_scale(covered).map(|c| f64::from(c) / 255.0)
        } else {
            haze.sums.map(|sum| sum as f64 / (255.0 * haze.weight as f64))
        };
        Paint::new(color, if self.blending == Blending::Additive { depth } else { covered })
    }

    /// A pixel over its background.
    pub fn pixel(&self, canvas: &Canvas, pixel: usize, background: Paint) -> [u8; 4] {
        let [behind, front] = canvas.points(pixel);
        let with = |paint: Paint, haze: Haze| match self.blending {
            _ if haze.weight == 0 => paint,
            Blending::Opacity => paint.under(self.points(haze)),
            Blending::Additive => paint.plus(self.points(haze)),
        };
        let mut paint = with(background, behind);
        if let Some(line) = canvas.closest(pixel) {
            paint = paint.under(Paint::new(line.color.map(|c| f64::from(c) / 255.0), line.coverage));
        }
        with(paint, front).bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_with_its_colors() {
        assert_eq!((of_scale(-1.0), of_scale(1.0), of_scale(0.125)), (SCALE[0], SCALE[8], SCALE[1]));
    }

    #[test]
    fn paint_covers_by_its_alpha() {
        let under = Paint::new([1.0, 0.0, 0.0], 1.0).under(Paint::new([0.0, 0.0, 1.0], 0.4));
        assert_eq!(under.bytes(), [153, 0, 102, 255]);
        assert_eq!(Paint::new([1.0; 3], 0.0).bytes(), [0; 4]);
        assert_eq!(Paint::new([0.2, 0.4, 0.6], 0.5).bytes(), [51, 102, 153, 128]);
    }
}
