// The perceptron for several classes at once, and the dual form of the perceptron and of Widrow and Hoff's
// rule.
#pragma once
#include "winnow.hpp"

namespace maxmargin::MAXMARGIN_ISA {

template <class Rows>
void add_to_class(const Rows& rows, index_t i, double c, index_t m, MulticlassState& q, double* W,
                  double* b) {
    each_entry(rows, i, [&](index_t j, double x) { W[j * q.n_classes + m] += c * x; });
    b[m] += c * q.bias_gain;
}

template <class Rows>
index_t multiclass_typed(const Rows& rows, const std::int32_t* label, const std::int64_t* order,
                         index_t begin, index_t end, MulticlassState& q, Watch* watch) {
    const index_t K = q.n_classes;
    for (index_t t = begin; t < end; ++t) {
        if (watch != nullptr && (t & 255) == 0 && watch->stop()) return t;
        const index_t i = order != nullptr ? order[t] : t, own = label[i];
        for (index_t m = 0; m < K; ++m) q.scores[m] = q.b[m];
        each_entry(rows, i, [&](index_t j, double x) {
            if (x != 0.0)
                for (index_t m = 0; m < K; ++m) q.scores[m] += x * q.W[j * K + m];
        });
        index_t other = own == 0 ? 1 : 0;
        for (index_t m = 0; m < K; ++m)
            if (m != own && q.scores[m] > q.scores[other]) other = m;
        const double lead = q.scores[own] - q.scores[other];
        const bool corrects = lead <= q.margin;
        q.counts.n_mistakes += lead <= 0.0;
        if (corrects) {
            ++q.counts.n_corrections;
            add_to_class(rows, i, q.rate, own, q, q.W, q.b);
            add_to_class(rows, i, -q.rate, other, q, q.W, q.b);
            if (q.sum_W != nullptr) {
                const auto before = static_cast<double>(q.counts.n_seen);
                add_to_class(rows, i, q.rate * before, own, q, q.sum_W, q.sum_b);
                add_to_class(rows, i, -q.rate * before, other, q, q.sum_W, q.sum_b);
            }
        }
        ++q.counts.n_seen;
        ++q.counts.n_steps;
        if (corrects && q.counts.pause) return t + 1;
    }
    return end;
}

inline index_t multiclass_rows(const RowsView& view, const std::int32_t* label, const std::int64_t* order,
                               index_t begin, index_t end, MulticlassState& q, Watch* watch) {
    return visit(view, [&](auto rows) { return multiclass_typed(rows, label, order, begin, end, q, watch); });
}

// One row in dual form. The scores of all rows follow every change, so that a row without a mistake costs
// nothing.
inline bool dual_row(const double* K, index_t i, double y, DualState& q) {
    const double f = q.score[i] + q.b;
    const bool mistake = y * f <= 0.0;
    q.counts.n_mistakes += mistake;
    ++q.counts.n_seen;
    ++q.counts.n_steps;
    const double c = q.squares ? q.rate * (y - f) : y * f <= q.margin ? q.rate * y : 0.0;
    if (c == 0.0) return false;
    ++q.counts.n_corrections;
    q.coefficient[i] += c;
    q.b += q.bias_gain * c;
    dense_axpy(c, K, q.score, q.n);
    return true;
}

}  // namespace maxmargin::MAXMARGIN_ISA
