// 16-bit floats: kept in 16 bits, computed in float, and rounded to nearest even after each
// operation.  Functions of the C library are computed in double.

#ifndef T2S_FLOAT16_H
#define T2S_FLOAT16_H

#include <cstdint>
#include <hls_math.h>

union t2s_float_bits {
    float value;
    std::uint32_t bits;
};

union t2s_double_bits {
    double value;
    std::uint64_t bits;
};

// IEEE's binary16: 5 bits of exponent, 10 of mantissa.
struct float16 {
    std::uint16_t bits;

    float16() = default;
    float16(float value) : bits(rounded(value)) {}
    float16(double value) : bits(rounded(to_odd(value))) {}
    template <typename Integer>
    float16(Integer value) : bits(rounded(static_cast<float>(value))) {}

    operator float() const {
        t2s_float_bits result;
        const std::uint32_t rest = bits & 0x7FFFu;
        if (rest >= 0x7C00u)  // infinities and NaN
            result.bits = rest << 13 | 0x7F800000u;
        else if (rest >= 0x0400u)
            result.bits = (rest << 13) + 0x38000000u;
        else  // a multiple of 2^-24
            result.value = static_cast<float>(rest) * 5.9604644775390625e-8f;
        result.bits |= static_cast<std::uint32_t>(bits & 0x8000u) << 16;
        return result.value;
    }

private:
    static std::uint16_t rounded(float value) {
        t2s_float_bits number;
        number.value = value;
        const std::uint32_t sign = number.bits >> 16 & 0x8000u;
        number.bits &= 0x7FFFFFFFu;
        std::uint32_t result;
        if (number.bits > 0x7F800000u)
            result = 0x7E00u;
        else if (number.bits >= 0x47800000u)  // 65536
            result = 0x7C00u;
        else if (number.bits >= 0x38800000u)  // 2^-14, the least that is normal
            result = (number.bits - 0x38000000u + 0xFFFu + (number.bits >> 13 & 1u)) >> 13;
        else {  // the sum has the multiple of 2^-24 in its last bits
            number.value += 0.5f;
            result = number.bits - 0x3F000000u;
        }
        return static_cast<std::uint16_t>(sign | result);
    }

    // A float whose last bit says that bits were lost, so that the second rounding is right.
    static float to_odd(double value) {
        t2s_double_bits number;
        number.value = value;
        const std::uint64_t lost = number.bits & 0x1FFFFFFFu;
        number.bits = (number.bits ^ lost) | (lost ? 0x20000000u : 0u);
        return static_cast<float>(number.value);
    }
};

// The upper half of a float: 8 bits of exponent, 7 of mantissa.
struct bfloat16 {
    std::uint16_t bits;

    bfloat16() = default;
    template <typename Number>
    bfloat16(Number value) : bits(rounded(static_cast<float>(value))) {}

    operator float() const {
        t2s_float_bits result;
        result.bits = static_cast<std::uint32_t>(bits) << 16;
        return result.value;
    }

private:
    static std::uint16_t rounded(float value) {
        t2s_float_bits number;
        number.value = value;
        const std::uint32_t top = number.bits >> 16;
        if ((number.bits & 0x7FFFFFFFu) > 0x7F800000u)
            return static_cast<std::uint16_t>((top & 0x8000u) | 0x7FC0u);
        return static_cast<std::uint16_t>((number.bits + 0x7FFFu + (top & 1u)) >> 16);
    }
};

#define T2S_OPERATOR(type, sign)                                                                   \
    inline type operator sign(type a, type b) {                                                    \
        return type(static_cast<float>(a) sign static_cast<float>(b));                             \
    }
#define T2S_FROM(wide, type, name)                                                                 \
    inline type name(type a) { return type(hls::name(static_cast<wide>(a))); }
#define T2S_FLOAT16(type)                                                                          \
    T2S_OPERATOR(type, +)                                                                          \
    T2S_OPERATOR(type, -)                                                                          \
    T2S_OPERATOR(type, *)                                                                          \
    T2S_OPERATOR(type, /)                                                                          \
    inline type operator-(type a) { return type(-static_cast<float>(a)); }                         \
    namespace hls {                                                                                \
    T2S_FROM(float, type, sqrt)                                                                    \
    T2S_FROM(float, type, floor)                                                                   \
    T2S_FROM(float, type, ceil)                                                                    \
    T2S_FROM(float, type, fabs)                                                                    \
    T2S_FROM(double, type, rsqrt)                                                                  \
    T2S_FROM(double, type, exp)                                                                    \
    T2S_FROM(double, type, log)                                                                    \
    T2S_FROM(double, type, tanh)                                                                   \
    inline type fma(type a, type b, type c) {                                                      \
        return type(hls::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))); \
    }                                                                                              \
    }

T2S_FLOAT16(float16)
T2S_FLOAT16(bfloat16)

#undef T2S_OPERATOR
#undef T2S_FROM
#undef T2S_FLOAT16

#endif
