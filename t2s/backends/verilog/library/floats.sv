// Floating-point operators on bit patterns, in C: for simulation only.
//
// A chip takes its own cores in their place; their latencies are those of the channels behind them.
package floats;
  import "DPI-C" pure function int unsigned t2s_add_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_subtract_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_multiply_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_divide_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_minimum_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_maximum_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_negate_f32(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_absolute_f32(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_square_root_f32(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_reciprocal_square_root_f32(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_floor_f32(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_ceiling_f32(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_fused_multiply_add_f32(input int unsigned a, input int unsigned b, input int unsigned c);
  import "DPI-C" pure function bit t2s_equal_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function bit t2s_not_equal_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function bit t2s_less_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function bit t2s_less_equal_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function bit t2s_greater_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function bit t2s_greater_equal_f32(input int unsigned a, input int unsigned b);
  import "DPI-C" pure function int unsigned t2s_from_signed_f32(input longint a);
  import "DPI-C" pure function int unsigned t2s_from_unsigned_f32(input longint unsigned a);
  import "DPI-C" pure function longint t2s_to_signed_f32(input int unsigned a, input int bits);
  import "DPI-C" pure function longint unsigned t2s_to_unsigned_f32(input int unsigned a, input int bits);
  import "DPI-C" pure function bit t2s_to_bool_f32(input int unsigned a);
  import "DPI-C" pure function longint unsigned t2s_add_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_subtract_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_multiply_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_divide_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_minimum_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_maximum_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_negate_f64(input longint unsigned a);
  import "DPI-C" pure function longint unsigned t2s_absolute_f64(input longint unsigned a);
  import "DPI-C" pure function longint unsigned t2s_square_root_f64(input longint unsigned a);
  import "DPI-C" pure function longint unsigned t2s_reciprocal_square_root_f64(input longint unsigned a);
  import "DPI-C" pure function longint unsigned t2s_floor_f64(input longint unsigned a);
  import "DPI-C" pure function longint unsigned t2s_ceiling_f64(input longint unsigned a);
  import "DPI-C" pure function longint unsigned t2s_fused_multiply_add_f64(input longint unsigned a, input longint unsigned b, input longint unsigned c);
  import "DPI-C" pure function bit t2s_equal_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function bit t2s_not_equal_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function bit t2s_less_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function bit t2s_less_equal_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function bit t2s_greater_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function bit t2s_greater_equal_f64(input longint unsigned a, input longint unsigned b);
  import "DPI-C" pure function longint unsigned t2s_from_signed_f64(input longint a);
  import "DPI-C" pure function longint unsigned t2s_from_unsigned_f64(input longint unsigned a);
  import "DPI-C" pure function longint t2s_to_signed_f64(input longint unsigned a, input int bits);
  import "DPI-C" pure function longint unsigned t2s_to_unsigned_f64(input longint unsigned a, input int bits);
  import "DPI-C" pure function bit t2s_to_bool_f64(input longint unsigned a);
  // functions of C
  import "DPI-C" pure function longint unsigned t2s_widen(input int unsigned a);
  import "DPI-C" pure function int unsigned t2s_narrow(input longint unsigned a);
endpackage
