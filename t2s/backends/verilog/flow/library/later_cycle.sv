// The later one of two cycles: the last firing, and the end of the last store if there was one.
// Both stand still when the result is read, so each step has a register.
module later_cycle #(parameter int LATENCY = 0) (
  input logic clock,
  input logic [31:0] firing,
  input logic [31:0] store,
  output logic [31:0] later
);
  logic [31:0] complete;
  logic stored;
  logic after;
  always_ff @(posedge clock) begin
    complete <= store + LATENCY;
    stored <= |store;
    after <= stored && complete > firing;
    later <= after ? complete : firing;
  end
endmodule
