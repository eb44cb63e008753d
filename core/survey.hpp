// What one visit to all values of the rows says: finite or not, sizes of rows and columns, and a digest.
#pragma once
#include "products.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// Infinities and NaNs times 0 are NaN; everything else is 0.
template <class T>
bool finite_values(const T* x, index_t n) {
    T sum[lanes] = {};
    index_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (int k = 0; k < lanes; ++k) sum[k] += x[j + k] * T{0};
    for (int k = 0; j < n; ++j, ++k) sum[k] += x[j] * T{0};
    T total{};
    for (int k = 0; k < lanes; ++k) total += sum[k];
    return total == T{0};
}

constexpr std::uint64_t digest_factor = 0x9e3779b97f4a7c15ULL;  // odd, and its bits are spread well

inline std::uint64_t bits_of(double value) {
    std::uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
// Sums lose what is carried out at the top: sign and exponent count among the lower bits, too.
inline std::uint64_t folded(double value) {
    const std::uint64_t bits = bits_of(value);
    return bits ^ (bits >> 31);
}
inline std::uint64_t bits_of(float value) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline std::uint64_t folded(float value) { return bits_of(value); }

// A number that depends on all bits of x and their places: Fletcher's two sums, a pair for each lane.
template <class T>
std::uint64_t digest_of(const T* x, index_t n) {
    std::uint64_t sum[lanes] = {}, sums[lanes] = {};
    index_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (int k = 0; k < lanes; ++k) sum[k] += folded(x[j + k]), sums[k] += sum[k];
    for (int k = 0; j < n; ++j, ++k) sum[k] += folded(x[j]), sums[k] += sum[k];
    std::uint64_t mixed = 0;
    for (int k = 0; k < lanes; ++k) mixed = (mixed * digest_factor + sum[k]) * digest_factor + sums[k];
    return mixed;
}

// Values that are looked at together, several times, while they are in the cache.
inline constexpr index_t survey_values = 1 << 14;

template <class Rows>
index_t survey_parts(const Rows& rows) {
    // Column sizes of dense rows are summed up part by part.
    const index_t size = Rows::dense ? rows.n_cols : index_t{1};
    return parts_for(rows.n_rows, size, rows.n_values() + rows.n_rows);
}

// body(begin, end) for blocks of rows between two rows; a row that is longer is a block of its own.
template <class Rows, class Body>
void for_blocks(const Rows& rows, index_t begin, index_t end, Body body) {
    for (index_t from = begin, to; from < end; from = to) {
        for (to = from + 1; to < end && rows.place(to + 1) - rows.place(from) <= survey_values;) ++to;
        body(from, to);
    }
}

inline std::uint64_t mix(std::uint64_t digest, std::uint64_t more) { return digest * digest_factor + more; }

// The digest of all values, part by part and block by block.
inline std::uint64_t digest(const RowsView& view, const Execution& how) {
    return visit(view, [&](auto rows) {
        const index_t n_parts = survey_parts(rows);
        Buffer parts(n_parts);
        for_tasks(n_parts, worth(how, rows.n_values()), [&](index_t p) {
            std::uint64_t own = 0;
            for_blocks(rows, part_begin(p, n_parts, rows.n_rows), part_begin(p + 1, n_parts, rows.n_rows),
                       [&](index_t from, index_t to) {
                           const index_t place = rows.place(from);
                           own = mix(own, digest_of(rows.values + place, rows.place(to) - place));
                       });
            __builtin_memcpy(parts + p, &own, sizeof own);
        });
        std::uint64_t total = 0;
        for (index_t p = 0; p < n_parts; ++p) total = mix(total, bits_of(parts.data()[p]));
        return total;
    });
}

template <class T>
double largest_of(const T* x, index_t n, double before) {
    T most[lanes];
    for (int k = 0; k < lanes; ++k) most[k] = static_cast<T>(before);
    const auto size = [](T a) { return static_cast<T>(__builtin_fabs(a)); };  // a mask, not a comparison
    index_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (int k = 0; k < lanes; ++k) most[k] = size(x[j + k]) > most[k] ? size(x[j + k]) : most[k];
    for (int k = 0; j < n; ++j, ++k) most[k] = size(x[j]) > most[k] ? size(x[j]) : most[k];
    double total = before;
    for (int k = 0; k < lanes; ++k) total = larger(total, static_cast<double>(most[k]));
    return total;
}

// Everything that is asked of all values before a fit, in one visit: see Survey.
inline Survey survey(const RowsView& view, double* squared_norms, double* column_squares,
                     const Execution& how) {
    return visit(view, [&](auto rows) {
        using Typed = decltype(rows);
        const index_t n_parts = survey_parts(rows), d = Typed::dense ? rows.n_cols : index_t{0};
        Parts columns(column_squares, n_parts, d);
        Buffer found(4 * n_parts);  // infinite values, largest value, longest row, digest
        for_tasks(n_parts, worth(how, rows.n_values()), [&](index_t p) {
            double *own = found + 4 * p, *sums = columns[p];
            std::uint64_t of_part = 0;
            for_blocks(rows, part_begin(p, n_parts, rows.n_rows), part_begin(p + 1, n_parts, rows.n_rows),
                       [&](index_t from, index_t to) {
                           const index_t place = rows.place(from), n = rows.place(to) - place;
                           const auto* values = rows.values + place;
                           own[1] = largest_of(values, n, own[1]);
                           of_part = mix(of_part, digest_of(values, n));
                           double odd = 0.0;
                           for (index_t i = from; i < to; ++i) {
                               squared_norms[i] = rows.squared_norm(i);
                               own[2] =
                                   larger(own[2], static_cast<double>(rows.place(i + 1) - rows.place(i)));
                               rows.add_squares(i, sums);
                               odd += squared_norms[i] * 0.0;
                           }
                           // A norm that is finite has finite numbers; one that is not may have overflown.
                           if (odd != 0.0 && !finite_values(values, n)) own[0] = 1.0;
                       });
            __builtin_memcpy(own + 3, &of_part, sizeof of_part);
        });
        columns.add_up();
        Survey all;
        for (index_t p = 0; p < n_parts; ++p) {
            const double* own = found + 4 * p;
            all.finite = all.finite && own[0] == 0.0;
            all.largest = larger(all.largest, own[1]);
            all.longest_row = larger(all.longest_row, static_cast<index_t>(own[2]));
            all.digest = mix(all.digest, bits_of(own[3]));
        }
        return all;
    });
}

}  // namespace maxmargin::MAXMARGIN_ISA
