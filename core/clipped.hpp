// Multipliers that are clipped to a box: what Newton's method sees of the hinge, the tube and their squares.
#pragma once
#include "kernels.hpp"
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// Σ term(i), begin ≤ i < end, in fixed lanes.
template <class Term>
double lane_sum(index_t begin, index_t end, Term term) {
    double sum[lanes] = {};
    index_t i = begin;
    for (; i + lanes <= end; i += lanes)
        for (int k = 0; k < lanes; ++k) sum[k] += term(i + k);
    for (int k = 0; i < end; ++i, ++k) sum[k] += term(i);
    return fold(sum);
}

// As for_chunks, for a few operations per row that wait for memory: threads pay from `enough` rows on.
template <class Body>
void for_light_chunks(index_t n, index_t enough, const Execution& how, Body body) {
    for_chunks(n, 1, n < enough ? Execution{1, how.watch} : how, body);
}

inline double shrunk(double z, double width) { return z - smaller(larger(z, -width), width); }

inline double clipped_slope(const ClippedLine& q, double t, const Execution& how) {
    Buffer parts(chunks_of(q.n));
    for_light_chunks(q.n, 1000000, how, [&](index_t c, index_t begin, index_t end) {
        parts.data()[c] = lane_sum(begin, end, [&q, t](index_t i) {
            const double moved = shrunk(q.z[i] - t * q.sigma[i] * q.dm[i], q.tube * q.sigma[i]);
            return smaller(larger(moved, q.lower[i]), q.upper[i]) * q.dm[i];
        });
    });
    double total = 0.0;
    for (index_t c = 0; c < chunks_of(q.n); ++c) total += parts.data()[c];
    return total;
}

inline ClippedSums clipped_point(const ClippedPoint& q, double b, const Execution& how) {
    const index_t n_chunks = chunks_of(q.n);
    Buffer parts(4 * n_chunks);
    for_light_chunks(q.n, 100000, how, [&](index_t c, index_t begin, index_t end) {
        const bool tube = q.tube > 0.0;
        for (index_t i = begin; i < end; ++i) {
            const double z = q.anchor[i] + q.sigma[i] * (q.target[i] - q.sign[i] * (q.scores[i] + b));
            const double u = shrunk(z, q.tube * q.sigma[i]);
            const double pi = u < q.lower[i] ? q.lower[i] : u > q.upper[i] ? q.upper[i] : u;  // NaN stays
            const bool inside = (u > q.lower[i]) & (u < q.upper[i]) & (!tube | (u != 0.0));
            q.z[i] = z;
            q.pi[i] = pi;
            q.signed_pi[i] = q.sign[i] * pi;
            q.D[i] = inside ? q.sigma[i] : 0.0;
        }
        double* part = parts + 4 * c;
        part[0] = lane_sum(begin, end, [&q](index_t i) { return q.signed_pi[i]; });
        part[1] = lane_sum(begin, end, [&q](index_t i) {
            const double moved = q.pi[i] - q.anchor[i];
            return moved * moved;
        });
        part[2] = lane_sum(begin, end, [&q](index_t i) { return q.pi[i] < 0.0 ? -q.pi[i] : q.pi[i]; });
        part[3] = lane_sum(begin, end, [&q](index_t i) { return q.D[i]; });
    });
    ClippedSums sums;
    for (index_t c = 0; c < n_chunks; ++c) {
        const double* part = parts + 4 * c;
        sums.balance += part[0];
        sums.moved += part[1];
        sums.size += part[2];
        sums.curvature += part[3];
    }
    return sums;
}

}  // namespace maxmargin::MAXMARGIN_ISA
