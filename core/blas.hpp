// The BLAS routines borrowed at run time from SciPy; Fortran calling convention, 32-bit integers.
#pragma once

namespace maxmargin {

using DsyrkPointer = void (*)(char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda,
                              double* beta, double* c, int* ldc);

using DgemmPointer = void (*)(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a,
                              int* lda, double* b, int* ldb, double* beta, double* c, int* ldc);

struct Blas {
    DsyrkPointer dsyrk = nullptr;
    DgemmPointer dgemm = nullptr;
};

}  // namespace maxmargin
