#!/usr/bin/env python3
"""Fits the polynomials of kernels/fits.cuh: weighted least squares on Chebyshev nodes, reweighted towards minimax.

Enters: nothing. Leaves: fits.cuh on standard output; every polynomial with the largest weighted error that it reached.
Needs mpmath. Run by hand when a fit changes: python3 kernels/fit.py > kernels/fits.cuh
"""
import mpmath as mp

mp.mp.dps = 50
K = mp.sqrt(2 / mp.pi)


def multiply(p, q):
    r = [mp.mpf(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            r[i + j] += x * y
    return r


def fit(f, weight, a, b, degree):
    """Monomial coefficients, lowest first, and max |weight (p - f)| on [a, b]."""
    a, b, n = mp.mpf(a), mp.mpf(b), 4 * degree + 20
    middle, half = (a + b) / 2, (b - a) / 2
    z = [mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    x = [middle + half * zi for zi in z]
    fx, wx, share = [f(xi) for xi in x], [weight(xi) for xi in x], [mp.mpf(1)] * n
    for _ in range(12):
        A, B = mp.matrix(n, degree + 1), mp.matrix(n, 1)
        for i in range(n):
            s = mp.sqrt(share[i]) * wx[i]
            for j in range(degree + 1):
                A[i, j] = s * mp.chebyt(j, z[i])
            B[i] = s * fx[i]
        c = mp.qr_solve(A, B)[0]
        error = [abs(wx[i] * (sum(c[j] * mp.chebyt(j, z[i]) for j in range(degree + 1)) - fx[i])) for i in range(n)]
        worst = max(error)
        share = [s * (e / worst + mp.mpf("1e-6")) for s, e in zip(share, error)]
        total = sum(share)
        share = [s * n / total for s in share]
    line, low, high, poly = [-middle / half, 1 / half], [mp.mpf(1)], None, [mp.mpf(0)] * (degree + 1)
    high = line[:]
    for j in range(degree + 1):
        for i, term in enumerate(low):
            poly[i] += c[j] * term
        following = [2 * t for t in multiply(line, high)]
        for i, term in enumerate(low):
            following[i] -= term
        low, high = high, following
    return poly, worst


def gauss_inner(t):  # g/q³ with t = q²/2
    return K / 3 if t == 0 else mp.gammainc(mp.mpf(3) / 2, 0, t, regularized=True) / (2 * t) ** mp.mpf("1.5")


def gauss_outer(q):  # (1 - g) exp(q²/2)
    return mp.exp(q * q / 2) * mp.erfc(q / mp.sqrt(2)) + K * q


def scaled_erfc(v):  # exp(q²/2) erfc(q/√2), v = 1/(q+3)
    q = 1 / v - 3
    return mp.exp(q * q / 2) * mp.erfc(q / mp.sqrt(2))


def expm1_ratio(y):  # (1 - exp(-y))/y
    return mp.mpf(1) if y == 0 else -mp.expm1(-y) / y


def emit(name, kind, digits, comment, fitted):
    poly, worst = fitted
    terms = ", ".join(mp.nstr(c, digits, strip_zeros=False) + ("f" if kind == "float" else "") for c in poly)
    print(f"// {comment}; error {mp.nstr(worst, 2)}.")
    print(f"#define {name} {terms}")


def relative(f):
    return lambda x: 1 / f(x)


print("// Made by fit.py: coefficients of polynomials, lowest first.")
print("#pragma once")
log2 = mp.log(2) / 2
emit("FIT_EXP_F64", "double", 20, "exp(x), |x| <= ln(2)/2, relative", fit(mp.exp, lambda x: mp.exp(-x), -log2, log2, 10))
emit("FIT_GAUSS_INNER_F64", "double", 20, "g/q^3 in t = q^2/2 <= 1/2, relative", fit(gauss_inner, relative(gauss_inner), 0, "0.5", 9))
emit("FIT_GAUSS_INNER_F32", "float", 11, "the same", fit(gauss_inner, relative(gauss_inner), 0, "0.5", 4))
emit("FIT_ERFCX_F64", "double", 20, "exp(q^2/2) erfc(q/sqrt 2) in v = 1/(q+3), 1 <= q <= 9.3, times exp(-q^2/2)",
     fit(scaled_erfc, lambda v: mp.exp(-((1 / v - 3) ** 2) / 2), 1 / mp.mpf("12.3"), mp.mpf(1) / 4, 12))
emit("FIT_GAUSS_OUTER_F32", "float", 11, "(1-g) exp(q^2/2), 1 <= q <= 6.6, times exp(-q^2/2)",
     fit(gauss_outer, lambda q: mp.exp(-q * q / 2), 1, "6.6", 8))
emit("FIT_EXPM1_F64", "double", 20, "(1-exp(-y))/y, 0 <= y <= 1/2, relative", fit(expm1_ratio, relative(expm1_ratio), 0, "0.5", 9))
emit("FIT_EXPM1_F32", "float", 11, "the same", fit(expm1_ratio, relative(expm1_ratio), 0, "0.5", 4))
