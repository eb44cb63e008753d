// Dense loops in 16 fixed lanes, so that the compiler can vectorise sums without reordering them.
// Everything lives in the namespace of the instruction set it is compiled for.
#pragma once
#include "rows.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline constexpr int lanes = 16;

inline double fold(const double* sum) {
    double total = 0.0;
    for (int k = 0; k < 4; ++k) total += (sum[k] + sum[k + 4]) + (sum[k + 8] + sum[k + 12]);
    return total;
}

template <class A, class B>
inline double dense_dot(const A* a, const B* b, index_t n) {
    double sum[lanes] = {};
    index_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (int k = 0; k < lanes; ++k)
            sum[k] += static_cast<double>(a[j + k]) * static_cast<double>(b[j + k]);
    for (int k = 0; j < n; ++j, ++k) sum[k] += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    return fold(sum);
}

template <class T>
inline void dense_axpy(double c, const T* x, double* out, index_t n) {
    for (index_t j = 0; j < n; ++j) out[j] += c * static_cast<double>(x[j]);
}

// Four rows at once: out is read and written once instead of four times.
template <class T>
inline void dense_axpy4(const double* c, const T* const* x, double* out, index_t n) {
    const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    for (index_t j = 0; j < n; ++j)
        out[j] += (c[0] * static_cast<double>(x0[j]) + c[1] * static_cast<double>(x1[j])) +
                  (c[2] * static_cast<double>(x2[j]) + c[3] * static_cast<double>(x3[j]));
}

}  // namespace maxmargin::MAXMARGIN_ISA
