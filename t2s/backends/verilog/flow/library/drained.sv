// Whether a design has been done for CYCLES cycles: then its results are compared and counted.
module drained #(parameter int CYCLES = 16) (
  input logic clock,
  input logic reset,
  input logic done,
  output logic over
);
  logic [$clog2(CYCLES+1)-1:0] quiet;
  assign over = int'(quiet) == CYCLES;
  always_ff @(posedge clock) begin
    if (reset || !done) quiet <= '0;
    else if (!over) quiet <= quiet + 1'b1;
  end
endmodule
