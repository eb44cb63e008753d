// Errors of a hyperplane on all rows, as a pocket counts them again and again.
// Dense rows of few columns are kept in float32, each times its label, in blocks of 64 whose columns lie
// together: a sweep multiplies whole registers. Where a score is within rounding of 0 the rows themselves
// decide, so that the count is that of double precision.
#pragma once
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// Counting stops once there are `most` errors: the pocket only asks whether there are fewer.
template <class Rows>
index_t errors_of(const Rows& rows, const double* y, const double* w, double b, index_t most) {
    index_t errors = 0;
    for (index_t i = 0; i < rows.n_rows && errors < most; ++i) errors += y[i] * (rows.dot(i, w) + b) <= 0.0;
    return errors;
}

inline index_t count_errors(const RowsView& view, const double* y, const double* w, double b, index_t most) {
    return visit(view, [&](auto rows) { return errors_of(rows, y, w, b, most); });
}

// Registers of eight numbers; the baseline splits them.
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef std::int32_t EightMarks __attribute__((vector_size(32)));
inline constexpr int registers = static_cast<int>(packed_rows) / 8;

// Block after block, column after column; y itself is the last column. Places without a row hold NaN, which
// is neither an error nor in doubt.
template <class T>
void pack_dense(const DenseRows<T>& rows, const double* y, float* packed) {
    const index_t d = rows.n_cols;
    const float none = __builtin_nanf("");
    for (index_t place = 0; place < packed_blocks(rows.n_rows) * packed_rows; ++place) {
        float* out = packed + place / packed_rows * packed_rows * (d + 1) + place % packed_rows;
        const bool there = place < rows.n_rows;
        for (index_t j = 0; j < d; ++j)
            out[j * packed_rows] =
                there ? static_cast<float>(y[place] * static_cast<double>(rows.row(place)[j])) : none;
        out[d * packed_rows] = there ? static_cast<float>(y[place]) : none;
    }
}
template <class T, class I>
void pack_dense(const CsrRows<T, I>&, const double*, float*) {}

inline void pack_rows(const RowsView& view, const double* y, float* packed) {
    visit(view, [&](auto rows) { pack_dense(rows, y, packed); });
}

inline void block_scores(const float* block, const float* w, index_t d, Eight* score) {
    Eight sum[registers] = {};
    for (index_t j = 0; j <= d; ++j) {
        const Eight* column = reinterpret_cast<const Eight*>(block + j * packed_rows);
        for (int r = 0; r < registers; ++r) sum[r] += w[j] * column[r];
    }
    for (int r = 0; r < registers; ++r) score[r] = sum[r];
}

inline index_t total(const EightMarks& marks) {
    index_t sum = 0;
    for (int k = 0; k < 8; ++k) sum -= marks[k];
    return sum;
}

// Errors by the packed rows; `packed.w` is scratch for d + 1 numbers.
template <class Rows>
index_t packed_errors(const Rows& rows, const double* y, const PackedRows& packed, const double* w, double b,
                      index_t most) {
    const index_t d = rows.n_cols;
    double size = b * b;
    for (index_t j = 0; j < d; ++j) {
        packed.w[j] = static_cast<float>(w[j]);
        size += w[j] * w[j];
    }
    packed.w[d] = static_cast<float>(b);
    size = __builtin_sqrt(size);
    if (!(size < 1e18 && packed.reach < 1e18)) return errors_of(rows, y, w, b, most);
    // Roundings of the numbers, the products and d + 1 additions, twice over; and numbers below float32.
    const double rounding = static_cast<double>(d + 4) * 1.2e-7 * packed.reach * size + 1e-36 * (1.0 + size);
    const float doubt = static_cast<float>(rounding);
    index_t errors = 0;
    for (index_t block = 0; block < packed_blocks(rows.n_rows) && errors < most; ++block) {
        Eight score[registers];
        block_scores(packed.values + block * packed_rows * (d + 1), packed.w, d, score);
        EightMarks wrong = {}, unsure = {};
        for (int r = 0; r < registers; ++r) {
            wrong += score[r] < -doubt;
            unsure |= (score[r] >= -doubt) & (score[r] <= doubt);
        }
        errors += total(wrong);
        if (total(unsure) == 0) continue;
        for (index_t k = 0; k < packed_rows; ++k) {
            const index_t i = block * packed_rows + k;
            const float f = score[k / 8][k % 8];
            if (f >= -doubt && f <= doubt) errors += y[i] * (rows.dot(i, w) + b) <= 0.0;
        }
    }
    return errors;
}

}  // namespace maxmargin::MAXMARGIN_ISA
