//! Numbers by chance that are the same on every machine: splitmix64.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * self.unit()
    }

    /// Even in the logarithm.
    pub fn log_between(&mut self, a: f64, b: f64) -> f64 {
        (self.between(a.ln(), b.ln())).exp()
    }

    pub fn in_cube(&mut self) -> [f64; 3] {
        std::array::from_fn(|_| self.unit())
    }

    pub fn signed(&mut self) -> [f64; 3] {
        std::array::from_fn(|_| self.between(-1.0, 1.0))
    }

    /// Mean 0, deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let r = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        r * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub fn normals(&mut self) -> [f64; 3] {
        std::array::from_fn(|_| self.normal())
    }

    pub fn direction(&mut self) -> [f64; 3] {
        let v = self.normals();
        let l = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.map(|x| x / l)
    }
}
