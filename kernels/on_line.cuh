// Targets on the lines of segments in a periodic domain, whose positions are multiples of a step: a target that is on a line as far as the
// rounding of target and ends tells adds nothing there, as it does in an open domain without rounding.
#pragma once
#include "pair.cuh"

// Distance from its line up to which a target is on it, in steps, as ON_LINE of src/backend/cpu/near/sources.rs.
constexpr double kOnLine = 2;

// Leaves out a pair within that distance of the line of a segment of this squared length; c is ℓ × r1 of it. step: zero in an open domain.
WFMM_DEVICE SegmentPair<double> unless_on_line(SegmentPair<double> pair, double length2, double step) {
    const double limit = kOnLine * step;
    pair.counts = pair.counts && !(pair.c2 <= limit * limit * length2);
    return pair;
}

// As add_segment_exactly of a record whose numbers are good enough.
template <int REG, bool GRADIENT>
WFMM_DEVICE void add_segment_exactly(SegmentSum<double, GRADIENT>& total, Vec<double> x, const Segment<double>& s, double step) {
    if (SegmentPair<double>(x, s).is_on_line()) return;
    add_segment_exactly<REG>(total, unless_on_line(SegmentPair<double>::exact(x, s), square(along(s)), step), s);
}
