// Compares what one store unit stores with the result that is expected there.
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
  logic written;
  logic [WIDTH-1:0] expected;
  logic [WIDTH-1:0] stored;
  always_ff @(posedge clock) begin
    expected <= words[address];
    stored <= value;
    written <= write && !reset;
    wrong <= !reset && (wrong || (written && stored != expected));
  end
endmodule
