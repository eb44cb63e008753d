// The BLAS routines borrowed at run time from SciPy; Fortran calling convention, 32-bit integers.
#pragma once

namespace maxmargin {

using DsyrkPointer = void (*)(char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda,
                              double* beta, double* c, int* ldc);

using DgemmPointer = void (*)(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a,
                              int* lda, double* b, int* ldb, double* beta, double* c, int* ldc);

using SgemmPointer = void (*)(char* transa, char* transb, int* m, int* n, int* k, float* alpha, float* a,
                              int* lda, float* b, int* ldb, float* beta, float* c, int* ldc);

using SsyrkPointer = void (*)(char* uplo, char* trans, int* n, int* k, float* alpha, float* a, int* lda,
                              float* beta, float* c, int* ldc);

template <class T>
using TrsmPointer = void (*)(char* side, char* uplo, char* transa, char* diag, int* m, int* n, T* alpha, T* a,
                             int* lda, T* b, int* ldb);

template <class T>
using PotrfPointer = void (*)(char* uplo, int* n, T* a, int* lda, int* info);

struct Blas {
    DsyrkPointer dsyrk = nullptr;
    DgemmPointer dgemm = nullptr;
    SsyrkPointer ssyrk = nullptr;
    SgemmPointer sgemm = nullptr;
    TrsmPointer<double> dtrsm = nullptr;
    TrsmPointer<float> strsm = nullptr;
    PotrfPointer<double> dpotrf = nullptr;
    PotrfPointer<float> spotrf = nullptr;
};

}  // namespace maxmargin
