// The sum of two numbers of IEEE 754 of 32 bits, rounded to nearest, ties to even, STAGES cycles
// after its operands.  Subnormal numbers are kept.  What is not a number is 7fc00000.
//
// Without OUTPUT the last register is left out: that of a register file takes its place.
//
// The larger operand stays where it is and the smaller one is shifted to it, with three bits behind
// the last place, the third of which stands for all that follow.  The sum is shifted until its first
// bit is 1, or its exponent the smallest one.  (Muller et al., "Handbook of Floating-Point
// Arithmetic", 2nd edition, section 7.3.)
module float_add #(
  parameter int STAGES = 6,
  parameter bit OUTPUT = 1'b1
) (
  input logic clock,
  input logic [31:0] left,
  input logic [31:0] right,
  output logic [31:0] sum
);
  // the larger operand, and by how much the smaller one is shifted
  logic swap, later;  // the right operand is larger; its exponent is
  logic left_normal, right_normal;
  logic [7:0] left_exponent, right_exponent;  // that of subnormal numbers is 1
  assign left_normal = left[30:23] != 0;
  assign right_normal = right[30:23] != 0;
  assign left_exponent = left[30:23] | 8'(!left_normal);
  assign right_exponent = right[30:23] | 8'(!right_normal);
  assign swap = left[30:0] < right[30:0];
  assign later = left[30:23] < right[30:23];
  typedef struct packed {
    logic [22:0] fraction, smaller_fraction;
    logic [7:0] exponent, distance;
    logic larger_hidden, smaller_hidden, sign, subtract, invalid, infinite;
  } ordered_t;
  ordered_t order, ordered;
  always_comb begin
    order.fraction = swap ? right[22:0] : left[22:0];
    order.smaller_fraction = swap ? left[22:0] : right[22:0];
    order.sign = swap ? right[31] : left[31];
    // exponents, both differences too, do not wait for the comparison of fractions
    order.larger_hidden = left_normal || right_normal;
    order.smaller_hidden = later ? left_normal : right_normal;
    order.exponent = later ? right_exponent : left_exponent;
    order.distance = later ? right_exponent - left_exponent : left_exponent - right_exponent;
    order.subtract = left[31] ^ right[31];
    order.infinite = &left[30:23] || &right[30:23];
    order.invalid = (&left[30:23] && left[22:0] != 0) || (&right[30:23] && right[22:0] != 0)
      || (&left[30:23] && &right[30:23] && order.subtract);
  end
  optional_register #(.WIDTH($bits(ordered_t)), .PRESENT(STAGES >= 2)) of_order (
    .clock, .now(order), .later(ordered)
  );

  // the smaller operand, shifted
  typedef struct packed {
    logic [26:0] larger, smaller;
    logic [7:0] exponent;
    logic sign, subtract, invalid, infinite;
  } aligned_t;
  aligned_t align, aligned;
  logic [25:0] moved;
  logic [25:0] places [6];  // bits that have left, for each step of the shift
  always_comb begin
    moved = {ordered.smaller_hidden, ordered.smaller_fraction, 2'b00};
    places[5] = '0;
    for (int at = 4; at >= 0; at--) begin
      places[at] = ordered.distance[at] ? moved & 26'((32'd1 << (1 << at)) - 1) : '0;
      if (ordered.distance[at]) moved = moved >> (1 << at);
    end
    align.smaller = {moved, 1'b0};
    align.smaller[0] = places[0] != 0 || places[1] != 0 || places[2] != 0 || places[3] != 0
      || places[4] != 0;
    if (ordered.distance[7:5] != 0) begin
      align.smaller = {26'd0, ordered.smaller_hidden || ordered.smaller_fraction != 0};
    end
    align.larger = {ordered.larger_hidden, ordered.fraction, 3'b000};
    align.exponent = ordered.exponent;
    align.sign = ordered.sign;
    align.subtract = ordered.subtract;
    align.invalid = ordered.invalid;
    align.infinite = ordered.infinite;
  end
  optional_register #(.WIDTH($bits(aligned_t)), .PRESENT(STAGES >= 4)) of_alignment (
    .clock, .now(align), .later(aligned)
  );

  // the sum of what is aligned
  typedef struct packed {
    logic [27:0] total, limit;
    logic [7:0] exponent;
    logic sign, subtract, invalid, infinite;
  } added_t;
  added_t add, added;
  always_comb begin
    // one carry chain: the complement of what is subtracted, and a carry into its last place
    add.total = 28'(({1'b0, aligned.larger, 1'b1}
      + {aligned.subtract, {27{aligned.subtract}} ^ aligned.smaller, aligned.subtract}) >> 1);
    // a 1 where the shift of a subnormal sum ends
    add.limit = aligned.exponent < 28 ? 28'h8000000 >> aligned.exponent[4:0] : '0;
    add.exponent = aligned.exponent;
    add.sign = aligned.sign;
    add.subtract = aligned.subtract;
    add.invalid = aligned.invalid;
    add.infinite = aligned.infinite;
  end
  optional_register #(.WIDTH($bits(added_t)), .PRESENT(STAGES >= 3)) of_sum (
    .clock, .now(add), .later(added)
  );

  // how far it is shifted
  typedef struct packed {
    logic [27:0] total;
    logic [8:0] exponent;
    logic [4:0] shift;
    logic sign, invalid, infinite;
  } counted_t;
  counted_t count, counted;
  logic [4:0] zeros;
  leading_zeros #(.WIDTH(28)) of_total (
    .value(added.total | added.limit), .zeros
  );
  always_comb begin
    count.total = added.total;
    count.shift = zeros;
    count.exponent = 9'(added.exponent) + 9'd1;
    count.sign = added.sign && !(added.subtract && added.total == 0);
    count.invalid = added.invalid;
    count.infinite = added.infinite;
  end
  optional_register #(.WIDTH($bits(counted_t)), .PRESENT(STAGES >= 5)) of_count (
    .clock, .now(count), .later(counted)
  );

  // the shifted sum
  typedef struct packed {
    logic [27:0] total;
    logic [8:0] exponent;
    logic sign, invalid, infinite;
  } shifted_t;
  shifted_t shift, shifted;
  always_comb begin
    shift.total = counted.total << counted.shift;
    shift.exponent = counted.exponent - 9'(counted.shift);
    shift.sign = counted.sign;
    shift.invalid = counted.invalid;
    shift.infinite = counted.infinite;
  end
  optional_register #(.WIDTH($bits(shifted_t)), .PRESENT(STAGES >= 6)) of_shift (
    .clock, .now(shift), .later(shifted)
  );

  logic [31:0] rounded;
  float_round rounding (
    .sign(shifted.sign), .exponent(shifted.exponent), .significand(shifted.total[27:4]),
    .half(shifted.total[3]), .rest(shifted.total[2:0] != 0),
    .invalid(shifted.invalid), .infinite(shifted.infinite), .rounded
  );
  optional_register #(.WIDTH(32), .PRESENT(OUTPUT)) of_result (.clock, .now(rounded), .later(sum));
endmodule
