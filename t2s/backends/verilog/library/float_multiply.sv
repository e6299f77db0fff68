// The product of two numbers of IEEE 754 of 32 bits, rounded to nearest, ties to even, STAGES cycles
// after its operands.  Subnormal numbers are kept.  What is not a number is 7fc00000.
//
// Operands may be narrow: of LEFT and RIGHT bits of fraction only the first can be other than 0, 7 of
// bfloat16.  Up to 17 bits of significand fit one multiplier; wider ones take four.  Without OUTPUT
// the last register is left out: that of a register file takes its place.
//
// One operand at most is subnormal where the product is more than half of the smallest number: that
// one is shifted until its first bit is 1, and so the product has at most one zero in front.  (Muller
// et al., "Handbook of Floating-Point Arithmetic", 2nd edition, section 7.4.)
module float_multiply #(
  parameter int LEFT = 23,
  parameter int RIGHT = 23,
  parameter int STAGES = 6,
  parameter bit OUTPUT = 1'b1
) (
  input logic clock,
  input logic [31:0] left,
  input logic [31:0] right,
  output logic [31:0] product
);
  localparam int WIDE = LEFT > RIGHT ? LEFT : RIGHT;
  localparam int BITS = WIDE + 1;
  localparam int HIGH = BITS > 17 ? BITS - 17 : 0;  // bits of a second part
  localparam int INSIDE = STAGES >= 5 ? 3 : STAGES >= 3 ? 2 : 1;  // registers of the multipliers

  // operands: `one` may be subnormal, and is shifted
  typedef struct packed {
    logic [BITS-1:0] one, other;
    logic [$clog2(BITS)-1:0] zeros;
    logic [9:0] exponent;
    logic sign, invalid, infinite;
  } operands_t;
  operands_t take, taken;
  logic left_normal, right_normal;
  logic [BITS-1:0] left_digits, right_digits;
  assign left_normal = left[30:23] != 0;
  assign right_normal = right[30:23] != 0;
  assign left_digits = {left_normal, left[22-:WIDE]};
  assign right_digits = {right_normal, right[22-:WIDE]};
  logic [BITS-1:0] one;
  logic [$clog2(BITS)-1:0] zeros;
  assign one = left_normal ? right_digits : left_digits;
  leading_zeros #(.WIDTH(BITS)) of_one (.value(one), .zeros);
  always_comb begin
    take.one = one;
    take.zeros = zeros;
    take.other = left_normal ? left_digits : right_digits;
    // that of the first digit of the product, which is 1 or 0
    take.exponent = {2'b00, left[30:23]} + {2'b00, right[30:23]} - 10'd126
      + 10'(!left_normal || !right_normal);
    take.sign = left[31] ^ right[31];
    take.infinite = &left[30:23] || &right[30:23];
    take.invalid = (&left[30:23] && left[22:0] != 0) || (&right[30:23] && right[22:0] != 0)
      || (take.infinite && (left[30:0] == 0 || right[30:0] == 0));
  end
  optional_register #(.WIDTH($bits(operands_t)), .PRESENT(STAGES >= 7)) of_operands (
    .clock, .now(take), .later(taken)
  );
  logic [BITS-1:0] shifted;
  assign shifted = taken.one << taken.zeros;

  // the multipliers, and beside them the other parts of the number
  typedef struct packed {
    logic [9:0] exponent;
    logic sign, invalid, infinite;
  } ahead_t;
  ahead_t ahead, known;
  typedef struct packed {
    logic [8:0] exponent;  // from 1 to 256
    logic [5:0] down;  // how far the product is shifted to be subnormal; 32 is all of it
    logic normal;  // whether a zero in front may be shifted out
    logic sign, invalid, infinite;
  } parts_t;
  parts_t parts, beside;
  logic [2*BITS-1:0] digits;
  assign ahead = '{
    exponent: taken.exponent - 10'(taken.zeros),
    sign: taken.sign, invalid: taken.invalid, infinite: taken.infinite
  };
  optional_register #(.WIDTH($bits(ahead_t)), .PRESENT(INSIDE >= 2)) of_exponent (
    .clock, .now(ahead), .later(known)
  );
  logic signed [9:0] exponent;
  logic signed [9:0] below;
  assign exponent = known.exponent;
  assign below = 10'sd1 - exponent;
  always_comb begin
    parts.exponent = exponent < 1 ? 9'd1 : exponent > 256 ? 9'd256 : exponent[8:0];
    parts.down = exponent >= 1 ? 6'd0 : below > 31 ? 6'd32 : below[5:0];
    parts.normal = exponent > 1;
    parts.sign = known.sign;
    parts.invalid = known.invalid;
    parts.infinite = known.infinite;
  end
  pipeline_registers #(
    .WIDTH($bits(parts_t)), .CYCLES(INSIDE >= 2 ? INSIDE - 1 : 1)
  ) of_parts (.clock, .now(parts), .later(beside));
  if (HIGH == 0) begin : narrow
    logic signed [2*BITS+1:0] all;
    multiply #(.LEFT(BITS + 1), .RIGHT(BITS + 1), .STAGES(INSIDE)) of_all (
      .clock, .left({1'b0, shifted}), .right({1'b0, taken.other}), .product(all)
    );
    assign digits = all[2*BITS-1:0];
  end else begin : wide
    logic signed [35:0] low;
    logic signed [HIGH+18:0] upper_lower, lower_upper;
    logic signed [2*HIGH+1:0] high;
    multiply #(.LEFT(18), .RIGHT(18), .STAGES(INSIDE)) of_low (
      .clock, .left({1'b0, shifted[16:0]}), .right({1'b0, taken.other[16:0]}), .product(low)
    );
    multiply #(.LEFT(HIGH + 1), .RIGHT(18), .STAGES(INSIDE)) of_upper_lower (
      .clock, .left({1'b0, shifted[BITS-1:17]}), .right({1'b0, taken.other[16:0]}),
      .product(upper_lower)
    );
    multiply #(.LEFT(HIGH + 1), .RIGHT(18), .STAGES(INSIDE)) of_lower_upper (
      .clock, .left({1'b0, taken.other[BITS-1:17]}), .right({1'b0, shifted[16:0]}),
      .product(lower_upper)
    );
    multiply #(.LEFT(HIGH + 1), .RIGHT(HIGH + 1), .STAGES(INSIDE)) of_high (
      .clock, .left({1'b0, shifted[BITS-1:17]}), .right({1'b0, taken.other[BITS-1:17]}),
      .product(high)
    );
    logic [HIGH+17:0] middle;
    assign middle = (HIGH + 18)'(upper_lower[HIGH+16:0]) + (HIGH + 18)'(lower_upper[HIGH+16:0]);
    assign digits[16:0] = low[16:0];
    assign digits[2*BITS-1:17] = {high[2*HIGH-1:0], low[33:17]} + (2 * BITS - 17)'(middle);
  end

  // all digits of the product
  typedef struct packed {
    logic [2*BITS-1:0] digits;
    parts_t parts;
  } digits_t;
  digits_t added;
  optional_register #(.WIDTH($bits(digits_t)), .PRESENT(STAGES >= 6)) of_digits (
    .clock, .now({digits, beside}), .later(added)
  );

  // where they begin: a subnormal number begins later
  typedef struct packed {
    logic [25:0] number;
    logic rest;
    logic [8:0] exponent;
    logic sign, invalid, infinite;
  } placed_t;
  placed_t place, placed;
  logic first;
  logic [47:0] whole;
  logic [25:0] near;
  logic [25:0] gone [5];  // bits that have left, for each step of the shift
  if (BITS == 24) begin : full
    assign whole = added.digits;
  end else begin : filled
    assign whole = {added.digits, {(48 - 2 * BITS){1'b0}}};
  end
  assign first = !whole[47] && added.parts.normal;
  always_comb begin
    near = first ? whole[46:21] : whole[47:22];
    for (int at = 4; at >= 0; at--) begin
      gone[at] = added.parts.down[at] ? near & 26'((32'd1 << (1 << at)) - 1) : '0;
      if (added.parts.down[at]) near = near >> (1 << at);
    end
    place.number = near;
    place.rest = whole[20:0] != 0 || (!first && whole[21]) || gone[0] != 0 || gone[1] != 0
      || gone[2] != 0 || gone[3] != 0 || gone[4] != 0;
    if (added.parts.down[5]) begin
      place.number = '0;
      place.rest = 1'b1;
    end
    place.exponent = added.parts.exponent - 9'(first);
    place.sign = added.parts.sign;
    place.invalid = added.parts.invalid;
    place.infinite = added.parts.infinite;
  end
  optional_register #(.WIDTH($bits(placed_t)), .PRESENT(STAGES >= 4)) of_place (
    .clock, .now(place), .later(placed)
  );

  logic [31:0] rounded;
  float_round rounding (
    .sign(placed.sign), .exponent(placed.exponent), .significand(placed.number[25:2]),
    .half(placed.number[1]), .rest(placed.number[0] || placed.rest),
    .invalid(placed.invalid), .infinite(placed.infinite), .rounded
  );
  optional_register #(.WIDTH(32), .PRESENT(OUTPUT)) of_result (.clock, .now(rounded), .later(product));
endmodule
