// A sum, or its new term alone where it begins, in the carry cells of ECP5: the look-up table of a
// cell has a fourth input, which clears the sum on its way into the adder.
module accumulate #(
  parameter int WIDTH = 32
) (
  input logic clear,
  input logic [WIDTH-1:0] sum,
  input logic [WIDTH-1:0] value,
  output logic [WIDTH-1:0] next
);
  localparam int CELLS = (WIDTH + 1) / 2;
  logic [2*CELLS-1:0] terms, sums, nexts;
  logic [CELLS:0] carry;
  assign terms = (2 * CELLS)'(value);
  assign sums = (2 * CELLS)'(sum);
  assign next = nexts[WIDTH-1:0];
  assign carry[0] = 1'b0;
  for (genvar at = 0; at < CELLS; at++) begin : bits
    // A is the term, C the sum, D clears: A ^ (C & ~D) propagates, and A is generated
    CCU2C #(
      .INIT0(16'hAA5A),
      .INIT1(16'hAA5A),
      .INJECT1_0("NO"),
      .INJECT1_1("NO")
    ) cell_ (
      .CIN(carry[at]),
      .A0(terms[2*at]),
      .B0(1'b0),
      .C0(sums[2*at]),
      .D0(clear),
      .A1(terms[2*at+1]),
      .B1(1'b0),
      .C1(sums[2*at+1]),
      .D1(clear),
      .S0(nexts[2*at]),
      .S1(nexts[2*at+1]),
      .COUT(carry[at+1])
    );
  end
endmodule
