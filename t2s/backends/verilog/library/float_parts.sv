// Parts of the operators on floating-point numbers.

// A register of a pipeline that never waits, or none.
module optional_register #(
  parameter int WIDTH = 1,
  parameter bit PRESENT = 1'b1
) (
  input logic clock,
  input logic [WIDTH-1:0] now,
  output logic [WIDTH-1:0] later
);
  if (PRESENT) begin : kept
    always_ff @(posedge clock) later <= now;
  end else begin : wired
    assign later = now;
  end
endmodule

// How many zeros are before the first 1 of up to 32 bits; any number if there is none.
module leading_zeros #(
  parameter int WIDTH = 24
) (
  input logic [WIDTH-1:0] value,
  output logic [$clog2(WIDTH)-1:0] zeros
);
  // groups of four, of which the first that is not zero is chosen
  logic [31:0] digits;
  logic [7:0] none;
  logic [1:0] inside_group [8];
  logic [4:0] found;
  assign digits = 32'(value) << (32 - WIDTH);
  for (genvar at = 0; at < 8; at++) begin : groups
    logic [3:0] group;
    assign group = digits[31-4*at-:4];
    assign none[at] = group == 0;
    assign inside_group[at] = {group[3:2] == 0, !group[3] && (group[2] || !group[1])};
  end
  assign found[4] = &none[3:0];
  assign found[3] = found[4] ? &none[5:4] : &none[1:0];
  assign found[2] = none[{found[4:3], 1'b0}];
  assign found[1:0] = inside_group[found[4:2]];
  assign zeros = found[$clog2(WIDTH)-1:0];
endmodule

// A number from its parts, rounded to nearest, ties to even; an exponent that is too large is
// infinity.  A significand that does not begin with 1 belongs to a subnormal number or to zero.
module float_round (
  input logic sign,
  input logic [8:0] exponent,
  input logic [23:0] significand,
  input logic half,
  input logic rest,
  input logic invalid,
  input logic infinite,
  output logic [31:0] rounded
);
  logic up;
  logic [30:0] magnitude;
  assign up = half && (rest || significand[0]);
  // a carry out of the fraction is the exponent's
  assign magnitude = {significand[23] ? exponent[7:0] : 8'd0, significand[22:0]} + 31'(up);
  always_comb begin
    rounded = {sign, magnitude};
    if (infinite || (significand[23] && exponent >= 9'd255)) rounded = {sign, 8'd255, 23'd0};
    if (invalid) rounded = 32'h7fc00000;
  end
endmodule

// Registers of a pipeline that never waits; there is one at least.
module pipeline_registers #(
  parameter int WIDTH = 1,
  parameter int CYCLES = 1
) (
  input logic clock,
  input logic [WIDTH-1:0] now,
  output logic [WIDTH-1:0] later
);
  logic [WIDTH-1:0] kept [CYCLES];
  assign later = kept[CYCLES-1];
  always_ff @(posedge clock) begin
    kept[0] <= now;
    for (int at = 1; at < CYCLES; at++) kept[at] <= kept[at-1];
  end
endmodule
