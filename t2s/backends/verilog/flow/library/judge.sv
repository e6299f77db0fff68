// Compares what one store unit stores with the result that is expected there.
//
// A block RAM is slow, and so is a comparison of all bits: each has a register behind it.
module judge #(
  parameter int WIDTH = 8,
  parameter int BITS = 4,
  parameter int DEPTH = 16,
  parameter string FILE = ""
) (
  input logic clock,
  input logic reset,
  input logic write,
  input logic [BITS-1:0] address,
  input logic [WIDTH-1:0] value,
  output logic wrong
);
  logic [WIDTH-1:0] words [DEPTH];
  initial $readmemh(FILE, words);
  logic written, compared, differs;
  logic [WIDTH-1:0] head, expected;
  logic [WIDTH-1:0] stored, given;
  always_ff @(posedge clock) begin
    head <= words[address];
    stored <= value;
    written <= write && !reset;
    expected <= head;
    given <= stored;
    compared <= written && !reset;
    differs <= compared && !reset && given != expected;
    wrong <= !reset && (wrong || differs);
  end
endmodule
