// The later one of two cycles: the last firing, and the end of the last store if there was one.
// Both stand still when the result is read, so each step has a register; a comparison of all bits in
// one would be slower than a PE.
module later_cycle #(parameter int LATENCY = 0) (
  input logic clock,
  input logic [31:0] firing,
  input logic [31:0] store,
  output logic [31:0] later
);
  logic [31:0] complete;
  logic stored;
  logic more_above, as_much_above, more_below;
  logic after;
  always_ff @(posedge clock) begin
    complete <= store + LATENCY;
    stored <= |store;
    more_above <= complete[31:16] > firing[31:16];
    as_much_above <= complete[31:16] == firing[31:16];
    more_below <= complete[15:0] > firing[15:0];
    after <= stored && (more_above || (as_much_above && more_below));
    later <= after ? complete : firing;
  end
endmodule
