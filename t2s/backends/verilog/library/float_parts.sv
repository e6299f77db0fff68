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

// How many zeros are ahead the first 1; WIDTH - 1 or more if there is none.
module leading_zeros #(
  parameter int WIDTH = 24
) (
  input logic [WIDTH-1:0] value,
  output logic [$clog2(WIDTH)-1:0] zeros
);
  // halves, quarters, ...: whether the first one of two is all zeros chooses between them
  localparam int LEVELS = $clog2(WIDTH);
  logic [(1<<LEVELS)-1:0] window [LEVELS+1];
  assign window[LEVELS] = {value, {((1 << LEVELS) - WIDTH){1'b1}}};
  for (genvar level = LEVELS - 1; level >= 0; level--) begin : halves
    localparam int HALF = 1 << level;
    logic none;
    assign none = window[level+1][2*HALF-1:HALF] == 0;
    assign zeros[level] = none;
    assign window[level] = (1 << LEVELS)'(
      none ? window[level+1][HALF-1:0] : window[level+1][2*HALF-1:HALF]
    );
  end
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
