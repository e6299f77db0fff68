// Floating-point operators on bit patterns, as IEEE 754 and t2s define them.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace {

template <typename Number, typename Pattern>
Number number_of(Pattern pattern) {
  Number number;
  std::memcpy(&number, &pattern, sizeof number);
  return number;
}

template <typename Pattern, typename Number>
Pattern pattern_of(Number number) {
  Pattern pattern;
  std::memcpy(&pattern, &number, sizeof pattern);
  return pattern;
}

// Truncation towards zero, within the range of an integer of that many bits; NaN becomes 0.
long long to_signed(double value, int bits) {
  if (std::isnan(value)) return 0;
  const double bound = std::ldexp(1.0, bits - 1);
  const long long highest = static_cast<long long>((1ULL << (bits - 1)) - 1);
  if (value >= bound) return highest;
  if (value <= -bound) return -highest - 1;
  return static_cast<long long>(value);
}

unsigned long long to_unsigned(double value, int bits) {
  if (std::isnan(value) || value <= 0) return 0;
  if (value >= std::ldexp(1.0, bits)) return bits == 64 ? ~0ULL : (1ULL << bits) - 1;
  return static_cast<unsigned long long>(value);
}

}  // namespace

#define T2S_TWO(NAME, SUFFIX, NUMBER, PATTERN, RESULT)                      \
  PATTERN t2s_##NAME##_##SUFFIX(PATTERN a_bits, PATTERN b_bits) {           \
    const NUMBER a = number_of<NUMBER>(a_bits), b = number_of<NUMBER>(b_bits); \
    return pattern_of<PATTERN>(static_cast<NUMBER>(RESULT));                \
  }
#define T2S_ONE(NAME, SUFFIX, NUMBER, PATTERN, RESULT)       \
  PATTERN t2s_##NAME##_##SUFFIX(PATTERN a_bits) {            \
    const NUMBER a = number_of<NUMBER>(a_bits);              \
    return pattern_of<PATTERN>(static_cast<NUMBER>(RESULT)); \
  }
#define T2S_THREE(NAME, SUFFIX, NUMBER, PATTERN, RESULT)                    \
  PATTERN t2s_##NAME##_##SUFFIX(PATTERN a_bits, PATTERN b_bits, PATTERN c_bits) { \
    const NUMBER a = number_of<NUMBER>(a_bits), b = number_of<NUMBER>(b_bits); \
    const NUMBER c = number_of<NUMBER>(c_bits);                             \
    return pattern_of<PATTERN>(static_cast<NUMBER>(RESULT));                \
  }
#define T2S_COMPARE(NAME, SUFFIX, NUMBER, PATTERN, OPERATOR)                    \
  unsigned char t2s_##NAME##_##SUFFIX(PATTERN a, PATTERN b) {                   \
    return number_of<NUMBER>(a) OPERATOR number_of<NUMBER>(b);                  \
  }
#define T2S_FLOATS(SUFFIX, NUMBER, PATTERN)                                             \
  T2S_TWO(add, SUFFIX, NUMBER, PATTERN, a + b)                                          \
  T2S_TWO(subtract, SUFFIX, NUMBER, PATTERN, a - b)                                     \
  T2S_TWO(multiply, SUFFIX, NUMBER, PATTERN, a * b)                                     \
  T2S_TWO(divide, SUFFIX, NUMBER, PATTERN, a / b)                                       \
  T2S_TWO(minimum, SUFFIX, NUMBER, PATTERN, b < a ? b : a)                              \
  T2S_TWO(maximum, SUFFIX, NUMBER, PATTERN, b > a ? b : a)                              \
  T2S_ONE(negate, SUFFIX, NUMBER, PATTERN, -a)                                          \
  T2S_ONE(absolute, SUFFIX, NUMBER, PATTERN, std::fabs(a))                              \
  T2S_ONE(square_root, SUFFIX, NUMBER, PATTERN, std::sqrt(a))                           \
  T2S_ONE(reciprocal_square_root, SUFFIX, NUMBER, PATTERN,                              \
          1.0 / std::sqrt(static_cast<double>(a)))                                      \
  T2S_ONE(floor, SUFFIX, NUMBER, PATTERN, std::floor(a))                                \
  T2S_ONE(ceiling, SUFFIX, NUMBER, PATTERN, std::ceil(a))                               \
  T2S_THREE(fused_multiply_add, SUFFIX, NUMBER, PATTERN, std::fma(a, b, c))             \
  T2S_COMPARE(equal, SUFFIX, NUMBER, PATTERN, ==)                                       \
  T2S_COMPARE(not_equal, SUFFIX, NUMBER, PATTERN, !=)                                   \
  T2S_COMPARE(less, SUFFIX, NUMBER, PATTERN, <)                                         \
  T2S_COMPARE(less_equal, SUFFIX, NUMBER, PATTERN, <=)                                  \
  T2S_COMPARE(greater, SUFFIX, NUMBER, PATTERN, >)                                      \
  T2S_COMPARE(greater_equal, SUFFIX, NUMBER, PATTERN, >=)                               \
  PATTERN t2s_from_signed_##SUFFIX(long long a) {                                       \
    return pattern_of<PATTERN>(static_cast<NUMBER>(a));                                 \
  }                                                                                     \
  PATTERN t2s_from_unsigned_##SUFFIX(unsigned long long a) {                            \
    return pattern_of<PATTERN>(static_cast<NUMBER>(a));                                 \
  }                                                                                     \
  long long t2s_to_signed_##SUFFIX(PATTERN a, int bits) {                               \
    return to_signed(number_of<NUMBER>(a), bits);                                       \
  }                                                                                     \
  unsigned long long t2s_to_unsigned_##SUFFIX(PATTERN a, int bits) {                    \
    return to_unsigned(number_of<NUMBER>(a), bits);                                     \
  }                                                                                     \
  unsigned char t2s_to_bool_##SUFFIX(PATTERN a) { return number_of<NUMBER>(a) != 0; }

extern "C" {
T2S_FLOATS(f32, float, unsigned int)
T2S_FLOATS(f64, double, unsigned long long)
// functions of C
unsigned long long t2s_widen(unsigned int a) {
  return pattern_of<unsigned long long>(static_cast<double>(number_of<float>(a)));
}
unsigned int t2s_narrow(unsigned long long a) {
  return pattern_of<unsigned int>(static_cast<float>(number_of<double>(a)));
}
}
