// exp of whole arrays: Cody and Waite's reduction to |r| ≤ ln(2)/2, a polynomial, and a power of two put
// together from bits. Right to two units in the last place between −708 and 700 (float: −87 and 80);
// arguments below give the value at the lower end, which is less than 1e-37 in float and 1e-307 in double.
#pragma once
#include "vectors.hpp"

namespace maxmargin::MAXMARGIN_ISA {

template <class T>
struct Reduction;

template <>
struct Reduction<double> {
    static constexpr double lowest = -708.0, round = 0x1.8p52, log2e = 0x1.71547652b82fep0;
    static constexpr double ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
    static constexpr int mantissa = 52, bias = 1023, terms = 14;
};

template <>
struct Reduction<float> {
    static constexpr float lowest = -87.0f, round = 0x1.8p23f, log2e = 0x1.715476p0f;
    static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    static constexpr int mantissa = 23, bias = 127, terms = 8;
};

template <class T>
inline Vector<T> exponential(Vector<T> x) {
    using R = Reduction<T>;
    using Bits = typename VectorOf<T>::Bits;
    x = x < R::lowest ? all(R::lowest) : x;
    const Vector<T> shifted = x * R::log2e + R::round, n = shifted - R::round;
    const Vector<T> r = (x - n * R::ln2_high) - n * R::ln2_low;
    T factorial = 1;
    for (int k = 2; k < R::terms; ++k) factorial *= static_cast<T>(k);
    Vector<T> p = all(T(1) / factorial);
#pragma GCC unroll 16
    for (int k = R::terms - 1; k > 0; --k) {
        factorial /= static_cast<T>(k);
        p = p * r + T(1) / factorial;
    }
    // The last bits of `shifted` are n as a whole number.
    Bits bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << R::mantissa) + (static_cast<decltype(bits[0] + 0)>(R::bias) << R::mantissa);
    Vector<T> power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return p * power;
}

template <class T>
inline void exponentials(T* x, index_t n) {
    index_t j = 0;
    for (; j + width<T> <= n; j += width<T>) store(x + j, exponential<T>(load(x + j)));
    if (j == n) return;
    Vector<T> rest{};
    for (index_t k = j; k < n; ++k) rest[k - j] = x[k];
    rest = exponential<T>(rest);
    for (index_t k = j; k < n; ++k) x[k] = rest[k - j];
}

}  // namespace maxmargin::MAXMARGIN_ISA
