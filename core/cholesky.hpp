// A Cholesky factor by tiles, so that several threads work on it while BLAS itself is held at one. Only the
// lower triangle is read and written.
#pragma once
#include "kernel_tiles.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline void factor_corner(const Blas& blas, double* A, int n, int stride, int& info) {
    char upper = 'U';  // column-major upper = row-major lower
    blas.dpotrf(&upper, &n, A, &stride, &info);
}
inline void factor_corner(const Blas& blas, float* A, int n, int stride, int& info) {
    char upper = 'U';
    blas.spotrf(&upper, &n, A, &stride, &info);
}

inline void divide_by(const Blas& blas, double* corner, double* tile, int n_corner, int n, int stride) {
    char left = 'L', upper = 'U', trans = 'T', plain = 'N';
    double one = 1.0;
    blas.dtrsm(&left, &upper, &trans, &plain, &n_corner, &n, &one, corner, &stride, tile, &stride);
}
inline void divide_by(const Blas& blas, float* corner, float* tile, int n_corner, int n, int stride) {
    char left = 'L', upper = 'U', trans = 'T', plain = 'N';
    float one = 1.0f;
    blas.strsm(&left, &upper, &trans, &plain, &n_corner, &n, &one, corner, &stride, tile, &stride);
}

// C −= A Bᵀ of row-major tiles
inline void take_product(const Blas& blas, double* A, double* B, double* C, int n_a, int n_b, int n,
                         int stride) {
    char trans = 'T', plain = 'N';
    double minus = -1.0, one = 1.0;
    blas.dgemm(&trans, &plain, &n_b, &n_a, &n, &minus, B, &stride, A, &stride, &one, C, &stride);
}
inline void take_product(const Blas& blas, float* A, float* B, float* C, int n_a, int n_b, int n,
                         int stride) {
    char trans = 'T', plain = 'N';
    float minus = -1.0f, one = 1.0f;
    blas.sgemm(&trans, &plain, &n_b, &n_a, &n, &minus, B, &stride, A, &stride, &one, C, &stride);
}

// The lower triangle of C −= A Aᵀ; the other one stays what it is.
inline void take_square(const Blas& blas, double* A, double* C, int n_a, int n, int stride) {
    char upper = 'U', trans = 'T';
    double minus = -1.0, one = 1.0;
    blas.dsyrk(&upper, &trans, &n_a, &n, &minus, A, &stride, &one, C, &stride);
}
inline void take_square(const Blas& blas, float* A, float* C, int n_a, int n, int stride) {
    char upper = 'U', trans = 'T';
    float minus = -1.0f, one = 1.0f;
    blas.ssyrk(&upper, &trans, &n_a, &n, &minus, A, &stride, &one, C, &stride);
}

inline constexpr index_t factor_tile = 256;

template <class T>
bool cholesky(T* A, index_t n, const Blas& blas, const Execution& how) {
    const index_t bands = pieces(n, factor_tile);
    const auto size = [&](index_t band) {
        return static_cast<int>(smaller(factor_tile, n - band * factor_tile));
    };
    const auto tile = [&](index_t i, index_t j) { return A + i * factor_tile * n + j * factor_tile; };
    const int stride = static_cast<int>(n);
    for (index_t k = 0; k < bands; ++k) {
        int info = 0;
        factor_corner(blas, tile(k, k), size(k), stride, info);
        if (info != 0) return false;
        const index_t rest = bands - k - 1;
        for_tasks(rest, worth(how, rest * (index_t{1} << 24)), [&](index_t t) {
            divide_by(blas, tile(k, k), tile(k + 1 + t, k), size(k), size(k + 1 + t), stride);
        });
        for_tasks(rest * (rest + 1) / 2, worth(how, rest * (index_t{1} << 24)), [&](index_t task) {
            index_t i = 0;
            while ((i + 1) * (i + 2) / 2 <= task) ++i;
            const index_t j = k + 1 + task - i * (i + 1) / 2;
            i += k + 1;
            if (i == j) return take_square(blas, tile(i, k), tile(i, i), size(i), size(k), stride);
            take_product(blas, tile(i, k), tile(j, k), tile(i, j), size(i), size(j), size(k), stride);
        });
    }
    return true;
}

}  // namespace maxmargin::MAXMARGIN_ISA
