// Vectors as wide as the instruction set has them, by name: for loops whose comparisons, choices and bits the
// compiler does not vectorise by itself.
#pragma once
#include <cstdint>

#include "rows.hpp"

namespace maxmargin::MAXMARGIN_ISA {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <class T>
inline constexpr int width = vector_bytes / static_cast<int>(sizeof(T));

typedef double Doubles __attribute__((vector_size(vector_bytes)));
typedef float Singles __attribute__((vector_size(vector_bytes)));
typedef float HalfSingles __attribute__((vector_size(vector_bytes / 2)));  // as many as Doubles has numbers

template <class T>
struct VectorOf;
template <>
struct VectorOf<double> {
    using type = Doubles;
    typedef std::uint64_t Bits __attribute__((vector_size(vector_bytes)));
};
template <>
struct VectorOf<float> {
    using type = Singles;
    typedef std::uint32_t Bits __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
inline Vector<T> all(T value) {
    return value - Vector<T>{};
}
template <class T>
inline Vector<T> load(const T* p) {
    Vector<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class T>
inline void store(T* p, Vector<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}
inline Doubles load_doubles(const double* p) { return load(p); }
inline Doubles load_doubles(const float* p) {
    HalfSingles v;
    __builtin_memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Doubles);
}

}  // namespace maxmargin::MAXMARGIN_ISA
