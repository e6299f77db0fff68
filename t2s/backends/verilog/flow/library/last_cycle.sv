// The last cycle in which something happened, that many cycles before it was seen; 0 if it never did.
module last_cycle #(parameter int BEFORE = 0) (
  input logic clock,
  input logic reset,
  input logic [31:0] cycle,
  input logic happens,
  output logic [31:0] last
);
  logic happened;
  logic [31:0] when;
  always_ff @(posedge clock) begin
    happened <= happens && !reset;
    when <= cycle - BEFORE;
    if (reset) last <= 0;
    else if (happened) last <= when;
  end
endmodule
