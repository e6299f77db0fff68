// Integer operators whose meaning differs from that of SystemVerilog's own.
//
// Division and remainder round towards minus infinity, and are 0 where the divisor is 0; the
// quotient of the smallest number and -1 wraps around.  The amount of a shift has no sign.
//
// Those on floating-point numbers of 32 bits need no arithmetic: signs, orders, and conversions to
// and from bfloat16, the upper half; that of what is not a number is 7fc0, with its sign.
`define T2S_ORDER(TYPE, NAME) \
  function automatic TYPE minimum_``NAME(input TYPE a, input TYPE b); \
    return b < a ? b : a; \
  endfunction \
  function automatic TYPE maximum_``NAME(input TYPE a, input TYPE b); \
    return b > a ? b : a; \
  endfunction

`define T2S_SIGNED(TYPE, NAME) \
  `T2S_ORDER(TYPE, NAME) \
  function automatic TYPE shift_left_``NAME(input TYPE a, input TYPE b); \
    return a << b; \
  endfunction \
  function automatic TYPE shift_right_``NAME(input TYPE a, input TYPE b); \
    return a >>> b; \
  endfunction \
  function automatic TYPE floor_divide_``NAME(input TYPE a, input TYPE b); \
    TYPE quotient; \
    if (b == 0) return 0; \
    if (b == -1) return -a; \
    quotient = a / b; \
    if (a % b != 0 && (a < 0) != (b < 0)) quotient = quotient - 1; \
    return quotient; \
  endfunction \
  function automatic TYPE modulo_``NAME(input TYPE a, input TYPE b); \
    TYPE remainder; \
    if (b == 0 || b == -1) return 0; \
    remainder = a % b; \
    if (remainder != 0 && (remainder < 0) != (b < 0)) remainder = remainder + b; \
    return remainder; \
  endfunction \
  function automatic TYPE absolute_``NAME(input TYPE a); \
    return a < 0 ? -a : a; \
  endfunction

`define T2S_UNSIGNED(TYPE, NAME) \
  `T2S_ORDER(TYPE, NAME) \
  function automatic TYPE shift_left_``NAME(input TYPE a, input TYPE b); \
    return a << b; \
  endfunction \
  function automatic TYPE shift_right_``NAME(input TYPE a, input TYPE b); \
    return a >> b; \
  endfunction \
  function automatic TYPE floor_divide_``NAME(input TYPE a, input TYPE b); \
    return b == 0 ? 0 : a / b; \
  endfunction \
  function automatic TYPE modulo_``NAME(input TYPE a, input TYPE b); \
    return b == 0 ? 0 : a % b; \
  endfunction \
  function automatic TYPE absolute_``NAME(input TYPE a); \
    return a; \
  endfunction

package operators;
  typedef logic signed [7:0] s8_t;
  typedef logic signed [15:0] s16_t;
  typedef logic signed [31:0] s32_t;
  typedef logic signed [63:0] s64_t;
  typedef logic [7:0] u8_t;
  typedef logic [15:0] u16_t;
  typedef logic [31:0] u32_t;
  typedef logic [63:0] u64_t;
  `T2S_SIGNED(s8_t, s8)
  `T2S_SIGNED(s16_t, s16)
  `T2S_SIGNED(s32_t, s32)
  `T2S_SIGNED(s64_t, s64)
  `T2S_UNSIGNED(u8_t, u8)
  `T2S_UNSIGNED(u16_t, u16)
  `T2S_UNSIGNED(u32_t, u32)
  `T2S_UNSIGNED(u64_t, u64)
  function automatic logic is_number_f32(input u32_t a);
    return a[30:0] <= 31'h7f800000;
  endfunction
  function automatic u32_t negate_f32(input u32_t a);
    return {!a[31], a[30:0]};
  endfunction
  function automatic u32_t absolute_f32(input u32_t a);
    return {1'b0, a[30:0]};
  endfunction
  function automatic logic equal_f32(input u32_t a, input u32_t b);
    return is_number_f32(a) && is_number_f32(b) && (a == b || (a[30:0] == 0 && b[30:0] == 0));
  endfunction
  function automatic logic not_equal_f32(input u32_t a, input u32_t b);
    return !equal_f32(a, b);
  endfunction
  function automatic logic less_f32(input u32_t a, input u32_t b);
    logic below;
    below = a[31] != b[31] ? a[31] && (a[30:0] != 0 || b[30:0] != 0)
      : a[31] ? b[30:0] < a[30:0] : a[30:0] < b[30:0];
    return is_number_f32(a) && is_number_f32(b) && below;
  endfunction
  function automatic logic less_equal_f32(input u32_t a, input u32_t b);
    return is_number_f32(a) && is_number_f32(b) && !less_f32(b, a);
  endfunction
  function automatic logic greater_f32(input u32_t a, input u32_t b);
    return less_f32(b, a);
  endfunction
  function automatic logic greater_equal_f32(input u32_t a, input u32_t b);
    return less_equal_f32(b, a);
  endfunction
  function automatic u32_t minimum_f32(input u32_t a, input u32_t b);
    return less_f32(b, a) ? b : a;
  endfunction
  function automatic u32_t maximum_f32(input u32_t a, input u32_t b);
    return less_f32(a, b) ? b : a;
  endfunction
  function automatic u32_t widen_b16(input u16_t a);
    return {a, 16'd0};
  endfunction
  function automatic u16_t round_b16(input u32_t a);
    logic up;
    up = a[15] && (a[14:0] != 0 || a[16]);
    return is_number_f32(a) ? a[31:16] + u16_t'(up) : {a[31], 15'h7fc0};
  endfunction
endpackage
