//! Small dense kernels on lanes: constant matrices times columns of registers, plane rotations, transposition.
//!
//! Input and output are slices of numbers. A register holds `LANES` numbers, and a coefficient takes `C` registers, one for each
//! component. Lengths are checked once at the start of a call, against bounds that the tables store. The loops then use raw pointers:
//! bounds checks inside them took a third of the time.

use super::{Lane, Real, Simd, each, transpose};

/// Most numbers in a register: f32 with AVX-512.
pub const WIDEST: usize = 16;

/// Bytes of the registers of AVX-512, of which there are 32; narrower instruction sets have 16.
const WIDE_REGISTER: usize = 64;

/// Rows that a matrix product sums at the same time: the sums, an entry of the matrix and the coefficients of a column stay in
/// registers.
const fn rows_at_a_time(components: usize, is_wide: bool) -> usize {
    match (components, is_wide) {
        (1, _) => 8,
        (_, true) => 6,
        _ => 4,
    }
}

/// Pairs of rows that `RowPairs` sums at the same time. A pair has two sums for each component, and its rotation needs two registers.
const fn pairs_at_a_time(components: usize, is_wide: bool) -> usize {
    match (components, is_wide) {
        (1, true) => 6,
        (1, false) | (_, true) => 4,
        _ => 2,
    }
}

/// Number of the coefficient that each row of a product is written to.
#[derive(Debug, Clone)]
pub struct Destinations {
    to: Vec<u32>,
    end: usize,
}

impl Destinations {
    pub fn new(to: impl IntoIterator<Item = usize>) -> Self {
        let to: Vec<u32> = to.into_iter().map(|k| k as u32).collect();
        let end = to.iter().map(|&k| k as usize + 1).max().unwrap_or(0);
        Self { to, end }
    }
}

/// A constant matrix, `entries[row][column]`.
#[derive(Debug, Clone)]
pub struct Matrix<T> {
    rows: usize,
    columns: usize,
    entries: Vec<T>,
}

impl<T: Real> Matrix<T> {
    pub fn new(rows: usize, columns: usize, entries: Vec<T>) -> Self {
        assert_eq!(entries.len(), rows * columns);
        Self { rows, columns, entries }
    }

    /// `y[to[r]] = Σ_j entries[r][j] x[j]` for the first `rows` rows and `columns` columns.
    #[inline(always)]
    pub fn apply<S: Simd, const C: usize>(
        &self,
        s: S,
        [rows, columns]: [usize; 2],
        x: &[T],
        to: &Destinations,
        y: &mut [T],
    ) {
        let w = Lane::<S, T>::LANES * C;
        assert!(rows <= self.rows && columns <= self.columns && rows <= to.to.len());
        assert!(x.len() >= columns * w && y.len() >= to.end * w);
        let product = Product { columns, stride: self.columns, x: x.as_ptr(), y: y.as_mut_ptr() };
        // SAFETY: lengths just checked.
        unsafe { product.all::<S, C>(s, rows, self.entries.as_ptr(), to.to.as_ptr()) }
    }
}

/// The parts of a product that all its rows share.
#[derive(Clone, Copy)]
struct Product<T> {
    columns: usize,
    stride: usize,
    x: *const T,
    y: *mut T,
}

impl<T: Real> Product<T> {
    /// All rows, in groups of nearly equal size.
    ///
    /// # Safety
    /// `m` holds `rows` rows of `stride` entries, `to` has `rows` numbers of coefficients within `y`, and `x` holds `columns`·C registers.
    #[inline(always)]
    unsafe fn all<S: Simd, const C: usize>(self, s: S, rows: usize, m: *const T, to: *const u32) {
        let most = rows_at_a_time(C, size_of::<T::Of<S>>() >= WIDE_REGISTER);
        let groups = rows.div_ceil(most).max(1);
        let mut done = 0;
        for g in 0..groups {
            let count = (rows * (g + 1)) / groups - done;
            // SAFETY: done + count <= rows.
            unsafe {
                let (m, to) = (m.add(done * self.stride), to.add(done));
                match count {
                    1 => self.pairs_from::<S, 1, C>(s, m, to),
                    2 => self.pairs_from::<S, 2, C>(s, m, to),
                    3 => self.pairs_from::<S, 3, C>(s, m, to),
                    4 => self.pairs_from::<S, 4, C>(s, m, to),
                    5 if most > 4 => self.pairs_from::<S, 5, C>(s, m, to),
                    6 if most > 4 => self.pairs_from::<S, 6, C>(s, m, to),
                    7 if C == 1 => self.pairs_from::<S, 7, C>(s, m, to),
                    8 if C == 1 => self.pairs_from::<S, 8, C>(s, m, to),
                    _ => {}
                }
            }
            done += count;
        }
    }

    /// A group of R rows.
    ///
    /// # Safety
    /// As for `all`, with R rows.
    #[inline(always)]
    unsafe fn pairs_from<S: Simd, const R: usize, const C: usize>(self, s: S, m: *const T, to: *const u32) {
        let w = Lane::<S, T>::LANES;
        // SAFETY: the caller's promise.
        unsafe {
            let sums = sums::<S, T, R, C>(s, [self.columns, self.stride], m, self.x);
            for (r, sum) in sums.iter().enumerate() {
                let y = self.y.add(*to.add(r) as usize * C * w);
                for (c, v) in sum.iter().enumerate() {
                    v.store_ptr(y.add(c * w));
                }
            }
        }
    }
}

/// `y[r] = Σ_j m[r·stride + j] x[j]` for a matrix that changes from call to call. The array holds rows, columns and stride.
#[inline(always)]
pub fn product<S: Simd, T: Real>(s: S, [rows, columns, stride]: [usize; 3], m: &[T], x: &[T], y: &mut [T]) {
    let w = Lane::<S, T>::LANES;
    assert!(columns <= stride && m.len() >= rows * stride && x.len() >= columns * w && y.len() >= rows * w);
    assert!(rows <= IN_ORDER.len());
    let product = Product { columns, stride, x: x.as_ptr(), y: y.as_mut_ptr() };
    // SAFETY: lengths just checked.
    unsafe { product.all::<S, 1>(s, rows, m.as_ptr(), IN_ORDER.as_ptr()) }
}

const IN_ORDER: [u32; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// R rows of a matrix times `C` columns of lanes.
///
/// # Safety
/// `m` holds R rows of `stride`, `x` `columns`·C registers.
#[inline(always)]
unsafe fn sums<S: Simd, T: Real, const R: usize, const C: usize>(
    s: S,
    [columns, stride]: [usize; 2],
    m: *const T,
    x: *const T,
) -> [[Lane<S, T>; C]; R] {
    let w = Lane::<S, T>::LANES;
    let mut sums = [[Lane::<S, T>::zero(s); C]; R];
    // SAFETY: the caller's promise.
    unsafe {
        for j in 0..columns {
            let x: [Lane<S, T>; C] = each(|c| Lane::load_ptr(s, x.add((j * C + c) * w)));
            for (r, sum) in sums.iter_mut().enumerate() {
                let f = Lane::splat(s, *m.add(r * stride + j));
                for c in 0..C {
                    sum[c] = f.fma(x[c], sum[c]);
                }
            }
        }
    }
    sums
}

/// Plane rotations of pairs of coefficients: pair k is rotated by (k + 1) times the angle. Coefficient 0 is not rotated.
#[derive(Debug, Clone)]
pub struct PlaneRotations {
    pairs: Vec<(u32, u32)>,
    end: usize,
}

impl PlaneRotations {
    pub fn new(pairs: Vec<(u32, u32)>) -> Self {
        let end = pairs.iter().map(|&(a, b)| a.max(b) as usize + 1).max().unwrap_or(1);
        Self { pairs, end }
    }

    /// a' = a cos + b sin, b' = b cos - a sin. `cos` and `sin` hold a register for each multiple m of the angle.
    #[inline(always)]
    pub fn rotate<S: Simd, T: Real, const C: usize>(&self, s: S, cos: &[T], sin: &[T], x: &mut [T]) {
        let w = Lane::<S, T>::LANES;
        let angles = (self.pairs.len() + 1) * w;
        assert!(cos.len() >= angles && sin.len() >= angles && x.len() >= self.end * C * w);
        let (x, cos, sin) = (x.as_mut_ptr(), cos.as_ptr(), sin.as_ptr());
        for (k, &(i, j)) in self.pairs.iter().enumerate() {
            // SAFETY: lengths just checked.
            unsafe {
                let (cm, sm) = (Lane::load_ptr(s, cos.add((k + 1) * w)), Lane::load_ptr(s, sin.add((k + 1) * w)));
                let (x, y) = (x.add(i as usize * C * w), x.add(j as usize * C * w));
                for c in 0..C {
                    let (a, b) = (Lane::<S, T>::load_ptr(s, x.add(c * w)), Lane::<S, T>::load_ptr(s, y.add(c * w)));
                    let (a, b) = rotated(false, a, b, cm, sm);
                    a.store_ptr(x.add(c * w));
                    b.store_ptr(y.add(c * w));
                }
            }
        }
    }
}

/// One matrix product: the matrix, the vector (a column of registers) and where each row goes.
#[derive(Clone, Copy)]
pub struct Part<'a, T> {
    pub matrix: &'a Matrix<T>,
    pub x: &'a [T],
    pub to: &'a Destinations,
}

/// Two matrix products, `cos` and `sin`, whose rows are rotated in pairs before they are written. Row r of `sin` is the sine coefficient
/// of order m = first + 2r. Its partner, the cosine coefficient, is row unpaired + r of `cos`. The pair is rotated by m times the
/// angle. `unpaired` is 1 where row 0 of `cos` is the coefficient of m = 0, which no rotation changes, and 0 otherwise.
pub struct RowPairs<'a, T> {
    pub cos: Part<'a, T>,
    pub sin: Part<'a, T>,
    pub unpaired: usize,
    pub first: usize,
}

/// A rotation, and how its results are written. `cos` and `sin` hold a register for each multiple of the angle. `back` rotates by minus the
/// angle. The results are stored, or with `add` multiplied by that factor and added to what is there.
pub struct Rotation<'a, S: Simd, T: Real> {
    pub cos: &'a [T],
    pub sin: &'a [T],
    pub back: bool,
    pub add: Option<Lane<S, T>>,
}

impl<T: Real> RowPairs<'_, T> {
    #[inline(always)]
    pub fn run<S: Simd, const C: usize>(&self, s: S, rotation: &Rotation<'_, S, T>, y: &mut [T]) {
        let w = Lane::<S, T>::LANES;
        let pairs = self.sin.matrix.rows;
        assert_eq!(self.cos.matrix.rows, pairs + self.unpaired);
        for part in [self.cos, self.sin] {
            assert!(part.x.len() >= part.matrix.columns * C * w && y.len() >= part.to.end * C * w);
            assert!(part.to.to.len() >= part.matrix.rows);
        }
        let angles = (self.first + 2 * pairs) * w;
        assert!(pairs == 0 || (rotation.cos.len() >= angles && rotation.sin.len() >= angles));
        let y = y.as_mut_ptr();
        // SAFETY: lengths just checked.
        unsafe {
            if self.unpaired > 0 {
                let v = self.cos.sums::<S, 1, C>(s, 0);
                let to = self.cos.to.to.as_ptr();
                (0..C).for_each(|c| write(s, rotation, y.add((*to as usize * C + c) * w), v[0][c]));
            }
            let most = pairs_at_a_time(C, size_of::<T::Of<S>>() >= WIDE_REGISTER);
            let groups = pairs.div_ceil(most);
            let mut done = 0;
            for g in 0..groups {
                let count = (pairs * (g + 1)) / groups - done;
                match count {
                    1 => self.pairs_from::<S, 1, C>(s, rotation, done, y),
                    2 => self.pairs_from::<S, 2, C>(s, rotation, done, y),
                    3 if most > 2 => self.pairs_from::<S, 3, C>(s, rotation, done, y),
                    4 if most > 2 => self.pairs_from::<S, 4, C>(s, rotation, done, y),
                    5 if C == 1 => self.pairs_from::<S, 5, C>(s, rotation, done, y),
                    6 if C == 1 => self.pairs_from::<S, 6, C>(s, rotation, done, y),
                    _ => {}
                }
                done += count;
            }
        }
    }

    /// Computes, rotates and writes R pairs of rows, from pair `r0` on.
    ///
    /// # Safety
    /// What `run` checks holds, and there are r0 + R pairs or more.
    #[inline(always)]
    unsafe fn pairs_from<S: Simd, const R: usize, const C: usize>(
        &self,
        s: S,
        rotation: &Rotation<'_, S, T>,
        r0: usize,
        y: *mut T,
    ) {
        let w = Lane::<S, T>::LANES;
        // SAFETY: the caller's promise.
        unsafe {
            let a = self.cos.sums::<S, R, C>(s, r0 + self.unpaired);
            let b = self.sin.sums::<S, R, C>(s, r0);
            for r in 0..R {
                let m = (self.first + 2 * (r0 + r)) * w;
                let (cos, sin) =
                    (Lane::load_ptr(s, rotation.cos.as_ptr().add(m)), Lane::load_ptr(s, rotation.sin.as_ptr().add(m)));
                let i = *self.cos.to.to.as_ptr().add(r0 + r + self.unpaired) as usize * C * w;
                let j = *self.sin.to.to.as_ptr().add(r0 + r) as usize * C * w;
                for c in 0..C {
                    let (a, b) = rotated(rotation.back, a[r][c], b[r][c], cos, sin);
                    write(s, rotation, y.add(i + c * w), a);
                    write(s, rotation, y.add(j + c * w), b);
                }
            }
        }
    }
}

/// # Safety
/// `to` can be written for one register, and read where the rotation adds.
#[inline(always)]
unsafe fn write<S: Simd, T: Real>(s: S, rotation: &Rotation<'_, S, T>, to: *mut T, v: Lane<S, T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match rotation.add {
            Some(factor) => factor.fma(v, Lane::load_ptr(s, to)).store_ptr(to),
            None => v.store_ptr(to),
        }
    }
}

impl<T: Real> Part<'_, T> {
    /// The sums of R rows from row `r0` on.
    ///
    /// # Safety
    /// r0 + R rows are there, and `columns` coefficients in x.
    #[inline(always)]
    unsafe fn sums<S: Simd, const R: usize, const C: usize>(&self, s: S, r0: usize) -> [[Lane<S, T>; C]; R] {
        // SAFETY: the caller's promise.
        unsafe {
            let m = self.matrix.entries.as_ptr().add(r0 * self.matrix.columns);
            sums::<S, T, R, C>(s, [self.matrix.columns, self.matrix.columns], m, self.x.as_ptr())
        }
    }
}

#[inline(always)]
fn rotated<S: Simd, T: Real>(
    back: bool,
    a: Lane<S, T>,
    b: Lane<S, T>,
    cos: Lane<S, T>,
    sin: Lane<S, T>,
) -> (Lane<S, T>, Lane<S, T>) {
    if back { (b.fnma(sin, a * cos), a.fma(sin, b * cos)) } else { (b.fma(sin, a * cos), a.fnma(sin, b * cos)) }
}

/// `x[i][c][lane] = factor · from[lane][begin + c·stride + i]` for i < count; lanes beyond `from` repeat its last.
#[inline(always)]
pub fn gather<S: Simd, T: Real, const C: usize>(
    s: S,
    from: &[&[T]],
    [begin, stride, count]: [usize; 3],
    factor: Lane<S, T>,
    x: &mut [T],
) {
    let w = Lane::<S, T>::LANES;
    assert!(x.len() >= count * C * w && !from.is_empty());
    let shortest = from.iter().map(|f| f.len()).min().unwrap_or(0);
    assert!(shortest >= begin + (C - 1) * stride + count);
    let mut rows = [from[0].as_ptr(); WIDEST];
    for k in 1..w {
        rows[k] = from[k.min(from.len() - 1)].as_ptr();
    }
    let zero = Lane::zero(s);
    for c in 0..C {
        for i in (0..count).step_by(w) {
            let at = begin + c * stride + i;
            let (some, whole) = (w.min(count - i), at + w <= shortest);
            let mut block = [zero; WIDEST];
            for k in 0..w {
                // SAFETY: every row is `shortest` long; reading into what follows the degree is harmless.
                block[k] = unsafe {
                    if whole {
                        Lane::load_ptr(s, rows[k].add(at))
                    } else {
                        Lane::load_part(s, std::slice::from_raw_parts(rows[k].add(at), some), T::ZERO)
                    }
                };
            }
            let block = transpose::block(s, block);
            let to = &mut x[i * C * w..(i + some) * C * w];
            for (v, to) in block.iter().zip(to.chunks_exact_mut(C * w)) {
                (*v * factor).store(&mut to[c * w..]);
            }
        }
    }
}
