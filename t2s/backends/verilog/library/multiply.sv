// A product of signed numbers, STAGES cycles after its operands.
module multiply #(
  parameter int LEFT = 18,
  parameter int RIGHT = 18,
  parameter int STAGES = 3
) (
  input logic clock,
  input logic signed [LEFT-1:0] left,
  input logic signed [RIGHT-1:0] right,
  output logic signed [LEFT+RIGHT-1:0] product
);
  // with two or more registers the first are those of the operands, else there are none
  logic signed [LEFT-1:0] x;
  logic signed [RIGHT-1:0] y;
  if (STAGES < 2) begin : at_once
    assign x = left;
    assign y = right;
  end else begin : registered
    always_ff @(posedge clock) begin
      x <= left;
      y <= right;
    end
  end
  localparam int AFTER = STAGES < 2 ? STAGES : STAGES - 1;
  if (AFTER == 0) begin : unregistered
    assign product = x * y;
  end else begin : pipeline
    logic signed [LEFT+RIGHT-1:0] after [AFTER];
    assign product = after[AFTER-1];
    always_ff @(posedge clock) begin
      after[0] <= x * y;
      for (int at = 1; at < AFTER; at++) after[at] <= after[at-1];
    end
  end
endmodule
