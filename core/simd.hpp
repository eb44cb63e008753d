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
    // The rest in sums of its own: one that is indexed by a variable would keep all of them in memory.
    double some[4] = {}, last = 0.0;
    for (; j + 4 <= n; j += 4)
        for (int k = 0; k < 4; ++k) some[k] += static_cast<double>(a[j + k]) * static_cast<double>(b[j + k]);
    for (; j < n; ++j) last += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    return (fold(sum) + ((some[0] + some[2]) + (some[1] + some[3]))) + last;
}

// out += c x, then the product of out and b: the same sums as by dense_dot, but out is read once.
template <class T>
inline double dense_axpy_dot(double c, const T* x, double* out, const T* b, index_t n) {
    double sum[lanes] = {};
    index_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (int k = 0; k < lanes; ++k) {
            const double moved = out[j + k] + c * static_cast<double>(x[j + k]);
            out[j + k] = moved;
            sum[k] += static_cast<double>(b[j + k]) * moved;
        }
    double some[4] = {}, last = 0.0;
    for (; j + 4 <= n; j += 4)
        for (int k = 0; k < 4; ++k) {
            const double moved = out[j + k] + c * static_cast<double>(x[j + k]);
            out[j + k] = moved;
            some[k] += static_cast<double>(b[j + k]) * moved;
        }
    for (; j < n; ++j) {
        out[j] += c * static_cast<double>(x[j]);
        last += static_cast<double>(b[j]) * out[j];
    }
    return (fold(sum) + ((some[0] + some[2]) + (some[1] + some[3]))) + last;
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
