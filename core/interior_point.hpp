// Passes of the primal–dual interior point method for
//     minimise ½‖w‖² + Σ C_i ξ_i^p   subject to  margin_i >= target_i − ξ_i,  ξ >= 0,  p = 1 or 2.
// Central path, p = 1:  margin − target + xi − s = 0,  alpha s = mu,  t xi = mu,  t = C − alpha.
// Central path, p = 2:  margin − target + alpha/(2C) − s = 0,  alpha s = mu.
// Eliminating s and xi leaves  d_alpha = D (rho − d_margin)  for each row, and (R + XᵀDX) dw = … for all.
#pragma once
#include "products.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// rho of one row for the present corrections e_s, e_xi.
inline double barrier_rho(const BarrierState& b, index_t i) {
    const double rho = b.target[i] - b.margin[i] - b.e_s[i] / b.alpha[i];
    return b.boxed ? rho + b.e_xi[i] / b.t[i] : rho - 0.5 * b.alpha[i] / b.C[i];
}
inline double barrier_ds(const BarrierState& b, index_t i) {
    return -b.s[i] - (b.e_s[i] + b.s[i] * b.d_alpha[i]) / b.alpha[i];
}
inline double barrier_dxi(const BarrierState& b, index_t i) {
    return -b.xi[i] - (b.e_xi[i] - b.xi[i] * b.d_alpha[i]) / b.t[i];
}

template <class Body>
void for_rows(const BarrierState& b, const Execution& how, Body body) {
    for_chunks(b.n, 8, how, [&](index_t, index_t begin, index_t end) {
        for (index_t i = begin; i < end; ++i)
            if (b.C[i] > 0.0) body(i);
    });
}

inline void barrier_scale(const BarrierState& b, const Execution& how) {
    for_rows(b, how, [&](index_t i) {
        const double upper = b.boxed ? b.xi[i] / b.t[i] : 0.5 / b.C[i];
        b.D[i] = 1.0 / (upper + b.s[i] / b.alpha[i]);
    });
}

// The right-hand side is Xᵀ out − R w.
inline void barrier_coefficient(const BarrierState& b, double* out, const Execution& how) {
    for_rows(b, how, [&](index_t i) { out[i] = b.y[i] * (b.D[i] * barrier_rho(b, i) + b.alpha[i]); });
}

inline double ratio(double value, double change) { return change < 0.0 ? -value / change : 2.0; }

inline double barrier_direction(const RowsView& view, const BarrierState& b, const double* dw, double db,
                                const Execution& how) {
    const index_t n_chunks = chunks_of(b.n);
    Buffer shortest(n_chunks);
    visit(view, [&](auto rows) {
        for_chunks(b.n, rows.cost() + 8, how, [&](index_t c, index_t begin, index_t end) {
            double step = 2.0;
            for (index_t i = begin; i < end; ++i) {
                if (!(b.C[i] > 0.0)) continue;
                b.d_margin[i] = b.y[i] * (rows.dot(i, dw) + db);
                b.d_alpha[i] = b.D[i] * (barrier_rho(b, i) - b.d_margin[i]);
                step = smaller(step, ratio(b.alpha[i], b.d_alpha[i]));
                step = smaller(step, ratio(b.s[i], barrier_ds(b, i)));
                if (b.boxed) {
                    step = smaller(step, ratio(b.t[i], -b.d_alpha[i]));
                    step = smaller(step, ratio(b.xi[i], barrier_dxi(b, i)));
                }
            }
            shortest.data()[c] = step;
        });
    });
    double step = 2.0;
    for (index_t c = 0; c < n_chunks; ++c) step = smaller(step, shortest.data()[c]);
    return step;
}

// Σ alpha s + t xi after a step along the direction.
inline double barrier_complementarity(const BarrierState& b, double step, const Execution& how) {
    const index_t n_chunks = chunks_of(b.n);
    Buffer sums(n_chunks);
    for_chunks(b.n, 8, how, [&](index_t c, index_t begin, index_t end) {
        double sum = 0.0;
        for (index_t i = begin; i < end; ++i) {
            if (!(b.C[i] > 0.0)) continue;
            const double da = step * b.d_alpha[i];
            sum += (b.alpha[i] + da) * (b.s[i] + step * barrier_ds(b, i));
            if (b.boxed) sum += (b.t[i] - da) * (b.xi[i] + step * barrier_dxi(b, i));
        }
        sums.data()[c] = sum;
    });
    double total = 0.0;
    for (index_t c = 0; c < n_chunks; ++c) total += sums.data()[c];
    return total;
}

// Mehrotra: aim at products mu and take the affine direction's second-order term into account.
inline void barrier_second_order(const BarrierState& b, double mu, const Execution& how) {
    for_rows(b, how, [&](index_t i) {
        const double ds = barrier_ds(b, i), dxi = b.boxed ? barrier_dxi(b, i) : 0.0;
        b.e_s[i] = b.d_alpha[i] * ds - mu;
        if (b.boxed) b.e_xi[i] = -b.d_alpha[i] * dxi - mu;
    });
}

// What moves a product into [mu/10, 10 mu]; downwards never by more than 10 mu.
inline double towards_centre(double product, double mu) {
    const double wanted = smaller(larger(product, 0.1 * mu), 10.0 * mu);
    return larger(wanted - product, -10.0 * mu);
}

// Gondzio: correct the products that a step of this length would leave badly centred.
inline void barrier_recentre(const BarrierState& b, double step, double mu, const Execution& how) {
    for_rows(b, how, [&](index_t i) {
        const double da = step * b.d_alpha[i];
        const double ds = barrier_ds(b, i), dxi = b.boxed ? barrier_dxi(b, i) : 0.0;
        b.e_s[i] -= towards_centre((b.alpha[i] + da) * (b.s[i] + step * ds), mu);
        if (b.boxed) b.e_xi[i] -= towards_centre((b.t[i] - da) * (b.xi[i] + step * dxi), mu);
    });
}

inline void barrier_move(const BarrierState& b, double step, const Execution& how) {
    const Execution unwatched{how.n_threads, nullptr};  // the iterate is never half-written
    for_rows(b, unwatched, [&](index_t i) {
        const double ds = barrier_ds(b, i), da = step * b.d_alpha[i];
        if (b.boxed) {
            const double dxi = barrier_dxi(b, i);
            b.t[i] -= da;
            b.xi[i] += step * dxi;
        }
        b.alpha[i] += da;
        b.s[i] += step * ds;
        b.margin[i] += step * b.d_margin[i];
    });
}

}  // namespace maxmargin::MAXMARGIN_ISA
