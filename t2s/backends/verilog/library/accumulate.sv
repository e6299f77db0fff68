// A sum, or its new term alone where it begins.
module accumulate #(
  parameter int WIDTH = 32
) (
  input logic clear,
  input logic [WIDTH-1:0] sum,
  input logic [WIDTH-1:0] value,
  output logic [WIDTH-1:0] next
);
  assign next = (clear ? '0 : sum) + value;
endmodule
