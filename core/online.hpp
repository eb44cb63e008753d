// Machines that learn row by row: a pass over the rows in a given order.
// w = scale * v throughout, so that shrinking all weights costs one multiplication.
// Invariant: the weights after each of the steps so far add up to  sum_scale * v − sum.
// Rosenblatt: The perceptron, 1958. Widrow, Hoff: Adaptive switching circuits, 1960. Robbins, Monro: A
// stochastic approximation method, 1951. Oja: A simplified neuron model as a principal component analyzer,
// 1982.
#pragma once
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline double magnitude(double a) { return a < 0.0 ? -a : a; }

// The rows that a batch will need are fetched while others are worked on.
inline constexpr index_t rows_ahead = 6;
template <class T>
void fetch(const DenseRows<T>& rows, index_t i) {
    const char* at = reinterpret_cast<const char*>(rows.row(i));
    const index_t bytes = smaller(rows.n_cols * static_cast<index_t>(sizeof(T)), index_t{1024});
    for (index_t k = 0; k < bytes; k += 64) __builtin_prefetch(at + k);
}
template <class T, class I>
void fetch(const CsrRows<T, I>& rows, index_t i) {
    const auto k = rows.indptr[i];
    __builtin_prefetch(rows.values + k);
    __builtin_prefetch(rows.indices + k);
}

// --- weights that move towards 0 by l1_total in all
// ---------------------------------------------------------

inline void catch_up(OnlineState& q, index_t j) {
    const double width = (q.l1_total - q.l1_done[j]) / q.scale;
    q.l1_done[j] = q.l1_total;
    q.v[j] -= smaller(larger(q.v[j], -width), width);
}
template <class T>
void catch_up_row(const DenseRows<T>& rows, index_t, OnlineState& q) {
    for (index_t j = 0; j < rows.n_cols; ++j) catch_up(q, j);
}
template <class T, class I>
void catch_up_row(const CsrRows<T, I>& rows, index_t i, OnlineState& q) {
    for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) catch_up(q, rows.indices[k]);
}
inline void online_settle(index_t n_cols, OnlineState& q) {
    if (q.l1 > 0.0)
        for (index_t j = 0; j < n_cols; ++j) catch_up(q, j);
}

// --- one step
// -----------------------------------------------------------------------------------------------

// scale = 1 again; the sum of all weights so far goes wholly into `sum`.
inline void rescale(OnlineState& q, index_t n_cols) {
    for (index_t j = 0; j < n_cols; ++j) {
        if (q.sum != nullptr) q.sum[j] -= q.sum_scale * q.v[j];
        q.v[j] *= q.scale;
    }
    q.sum_scale = 0.0;
    q.scale = 1.0;
}

inline double step_size(const OnlineState& q) {
    double step = q.rate;
    if (q.power == 1.0)
        step /= static_cast<double>(q.k) + q.offset;
    else if (q.power != 0.0)
        step /= __builtin_pow(static_cast<double>(q.k) + q.offset, q.power);
    return q.by_performance ? step * larger(q.recent, 1e-3) : step;
}

// What a row asks for: correction 0 leaves the weights alone.
struct Wish {
    double correction;
    bool mistake;
};

template <class Rows>
Wish wish(const Rows& rows, const OnlineState& q, index_t i, double y, double f) {
    const double m = y * f, r = y - f;
    switch (q.rule) {
        case OnlineRule::perceptron:
        case OnlineRule::hinge:
            return {m <= q.margin ? y : 0.0, m <= 0.0};
        case OnlineRule::logistic:
            return {y / (1.0 + __builtin_exp(m)), m <= 0.0};
        case OnlineRule::exponential:
            return {y * __builtin_exp(-m), m <= 0.0};
        case OnlineRule::tube:
            return {r >= q.margin ? 1.0 : r <= -q.margin ? -1.0 : 0.0, magnitude(r) >= q.margin};
        case OnlineRule::squared_tube:
            return {r * r > q.margin ? 2.0 * r : 0.0, r * r > q.margin};
        case OnlineRule::squares:
            return {r, m <= 0.0};
        case OnlineRule::relaxation: {
            if (m > q.margin) return {0.0, m <= 0.0};
            const double size = rows.squared_norm(i) + q.bias_gain;
            if (!(size < 1e280)) return {__builtin_nan(""), true};  // the way to go cannot be computed
            return {size > 0.0 ? y * (q.margin - m) / size : 0.0, m <= 0.0};
        }
        default:
            return {f, false};
    }
}

// All weights are multiplied as the rule says; w itself is written out once its scale becomes extreme.
inline void shrink(index_t n_cols, OnlineState& q, double step, double f) {
    if (q.rho > 0.0) q.scale *= 1.0 - 2.0 * step * q.rho;
    if (q.rule == OnlineRule::oja) q.scale *= 1.0 - step * f * f;
    if (!(magnitude(q.scale) > 1e-6 && magnitude(q.scale) < 1e6)) {
        online_settle(n_cols, q);
        rescale(q, n_cols);
    }
}

// The weights shrink, then every row of the batch adds its correction.
template <class Rows>
void apply(const Rows& rows, OnlineState& q, const std::int64_t* order, index_t begin, index_t end,
           double step, index_t corrected, double f) {
    shrink(rows.n_cols, q, step, f);
    if (corrected > 0) {
        const double part =
            q.mean ? step / static_cast<double>(q.rule == OnlineRule::relaxation ? corrected : end - begin)
                   : step;
        for (index_t t = begin; t < end; ++t) {
            const double c = q.correction[t - begin] * part;
            if (c == 0.0) continue;
            const index_t i = order != nullptr ? order[t] : t;
            rows.axpy(i, c / q.scale, q.v);
            if (q.sum != nullptr && q.sum_scale != 0.0) rows.axpy(i, q.sum_scale * c / q.scale, q.sum);
            q.b += q.bias_gain * c;
            if (q.own != nullptr) q.own[i] += c * q.delta * q.delta;
        }
    }
    if (q.l1 > 0.0) q.l1_total += step * q.l1;
}

// One row per step, without extras: the next row's product is taken while the weights move. The same bits as
// by batches of one row.
template <class Rows>
index_t online_single(const Rows& rows, const double* y, const std::int64_t* order, index_t begin,
                      index_t end, OnlineState& q, Watch* watch) {
    index_t until_look = 0;
    double product = rows.dot(order != nullptr ? order[begin] : begin, q.v);
    const bool shrinks = q.rho > 0.0 || q.rule == OnlineRule::oja;
    double per_scale =
        1.0 / q.scale;  // known before the correction is: nothing of the next step begins before that
    for (index_t t = begin; t < end; ++t) {
        if (--until_look < 0) {
            until_look = 1 + 100000 / (rows.cost() + 10);
            if (watch != nullptr && watch->stop()) return t;
        }
        const index_t i = order != nullptr ? order[t] : t;
        if (order != nullptr && t + rows_ahead < end) fetch(rows, order[t + rows_ahead]);
        const double f = q.scale * product + q.b;
        const Wish found = wish(rows, q, i, y[i], f);
        if (!(magnitude(found.correction) < 1e100 && magnitude(f) < 1e200)) {
            q.diverged = true;
            return t;
        }
        q.counts.n_mistakes += found.mistake;
        if (q.by_performance) q.recent += 0.01 * ((found.mistake ? 1.0 : 0.0) - q.recent);
        const double step = step_size(q), c = found.correction * step;
        const bool corrects = found.correction != 0.0;
        if (shrinks) {
            shrink(rows.n_cols, q, step, f);
            per_scale = 1.0 / q.scale;
        }
        const index_t next = t + 1 < end ? (order != nullptr ? order[t + 1] : t + 1) : i;
        if (c != 0.0) {
            product = rows.axpy_dot(i, c * per_scale, q.v, next);
            if (q.sum != nullptr && q.sum_scale != 0.0) rows.axpy(i, q.sum_scale * c / q.scale, q.sum);
            q.b += q.bias_gain * c;
        } else {
            product = rows.dot(next, q.v);
        }
        ++q.counts.n_seen;
        ++q.counts.n_steps;
        q.counts.n_corrections += corrects;
        if (corrects || !q.count_corrections) ++q.k;
        if (q.sum != nullptr) {
            q.sum_scale += q.scale;
            q.sum_b += q.b;
        }
        if (q.counts.pause && corrects) return t + 1;
    }
    return end;
}

template <class Rows>
index_t online_typed(const Rows& rows, const double* y, const std::int64_t* order, index_t begin, index_t end,
                     OnlineState& q, Watch* watch) {
    index_t until_look = 0;
    for (index_t t = begin; t < end;) {
        if (--until_look < 0) {
            until_look = 1 + 100000 / (rows.cost() + 10);
            if (watch != nullptr && watch->stop()) return t;
        }
        const index_t stop = smaller(end, t + q.batch);
        index_t corrected = 0;
        double f = 0.0;
        for (index_t s = t; s < stop; ++s) {
            const index_t i = order != nullptr ? order[s] : s;
            if (order != nullptr && s + rows_ahead < end) fetch(rows, order[s + rows_ahead]);
            if (q.l1 > 0.0) catch_up_row(rows, i, q);
            f = q.scale * rows.dot(i, q.v) + q.b;
            if (q.own != nullptr) f += q.own[i];
            const Wish found = wish(rows, q, i, y[i], f);
            q.correction[s - t] = found.correction;
            if (!(magnitude(found.correction) < 1e100 && magnitude(f) < 1e200)) {
                q.diverged = true;
                return t;
            }
            q.counts.n_mistakes += found.mistake;
            if (q.by_performance) q.recent += 0.01 * ((found.mistake ? 1.0 : 0.0) - q.recent);
            corrected += found.correction != 0.0;
        }
        const double step = step_size(q);
        apply(rows, q, order, t, stop, step, corrected, f);
        q.counts.n_seen += stop - t;
        q.counts.n_steps += 1;
        q.counts.n_corrections += corrected;
        if (corrected > 0 || !q.count_corrections) ++q.k;
        if (q.sum != nullptr) {
            if (q.l1 > 0.0)  // each weight moves on its own: the sum is kept entry by entry
                for (index_t j = 0; j < rows.n_cols; ++j) catch_up(q, j), q.sum[j] -= q.scale * q.v[j];
            else
                q.sum_scale += q.scale;
            q.sum_b += q.b;
        }
        t = stop;
        if (q.counts.pause && corrected > 0) return t;
    }
    return end;
}

inline index_t online_rows(const RowsView& view, const double* y, const std::int64_t* order, index_t begin,
                           index_t end, OnlineState& q, Watch* watch) {
    const bool plain = q.batch == 1 && !(q.l1 > 0.0) && q.own == nullptr && begin < end;
    return visit(view, [&](auto rows) {
        return plain ? online_single(rows, y, order, begin, end, q, watch)
                     : online_typed(rows, y, order, begin, end, q, watch);
    });
}

}  // namespace maxmargin::MAXMARGIN_ISA
