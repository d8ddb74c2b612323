//! Numbers of 32 digits as the unevaluated sum of two f64: the reference of the tests near singularities.
//! Error-free transformations of Dekker and Knuth.

use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Debug, Clone, Copy)]
pub struct DD {
    pub hi: f64,
    pub lo: f64,
}

fn two_sum(a: f64, b: f64) -> DD {
    let s = a + b;
    let t = s - a;
    DD { hi: s, lo: (a - (s - t)) + (b - t) }
}

impl DD {
    pub fn of(x: f64) -> Self {
        DD { hi: x, lo: 0.0 }
    }

    pub fn sqrt(self) -> Self {
        if self.hi <= 0.0 {
            return DD::of(0.0);
        }
        // Two Newton steps from the double root.
        let mut y = DD::of(self.hi.sqrt());
        for _ in 0..2 {
            y = (y + self / y) * DD::of(0.5);
        }
        y
    }
}

impl Add for DD {
    type Output = DD;
    fn add(self, b: DD) -> DD {
        let (s, t) = (two_sum(self.hi, b.hi), two_sum(self.lo, b.lo));
        let u = two_sum(s.hi, s.lo + t.hi);
        two_sum(u.hi, u.lo + t.lo)
    }
}

impl Neg for DD {
    type Output = DD;
    fn neg(self) -> DD {
        DD { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for DD {
    type Output = DD;
    fn sub(self, b: DD) -> DD {
        self + -b
    }
}

impl Mul for DD {
    type Output = DD;
    fn mul(self, b: DD) -> DD {
        let p = self.hi * b.hi;
        let e = self.hi.mul_add(b.hi, -p) + (self.hi * b.lo + self.lo * b.hi);
        two_sum(p, e)
    }
}

impl Div for DD {
    type Output = DD;
    fn div(self, b: DD) -> DD {
        let q = DD::of(self.hi / b.hi);
        let r = self - q * b;
        let q2 = DD::of(r.hi / b.hi);
        let r = r - q2 * b;
        q + q2 + DD::of(r.hi / b.hi)
    }
}

pub fn cross(a: [DD; 3], b: [DD; 3]) -> [DD; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub fn dot(a: [DD; 3], b: [DD; 3]) -> DD {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub fn sub(a: [f64; 3], b: [f64; 3]) -> [DD; 3] {
    std::array::from_fn(|i| DD::of(a[i]) - DD::of(b[i]))
}

#[test]
fn thirty_digits() {
    let x = DD::of(2.0).sqrt();
    assert!((x * x - DD::of(2.0)).hi.abs() < 1e-30);
    let y = DD::of(1.0) / DD::of(3.0);
    assert!((y * DD::of(3.0) - DD::of(1.0)).hi.abs() < 1e-31);
    assert!(y.lo != 0.0);
}
