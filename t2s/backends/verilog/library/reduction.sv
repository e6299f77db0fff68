// Whether something holds at one of COUNT places, or with EVERY at all of them, DEPTH cycles ago.
//
// A tree of registers: no path leads from PEs that lie far apart to one place.
module reduction #(parameter int COUNT = 1, parameter int DEPTH = 1, parameter bit EVERY = 0) (
  input logic clock,
  input logic reset,
  input logic holds [COUNT],
  output logic found
);
  for (genvar level = 0; level < DEPTH; level++) begin : tree
    localparam int PARTS = (COUNT + 4 ** level - 1) / 4 ** level;
    localparam int GROUPS = (PARTS + 3) / 4;
    logic [4*GROUPS-1:0] parts;
    logic [GROUPS-1:0] together;
    for (genvar at = 0; at < 4 * GROUPS; at++) begin : part
      if (at >= PARTS) assign parts[at] = EVERY;
      else if (level == 0) assign parts[at] = holds[at];
      else assign parts[at] = tree[level-1].together[at];
    end
    always_ff @(posedge clock) begin
      for (int at = 0; at < GROUPS; at++) begin
        if (reset) together[at] <= 1'b0;
        else together[at] <= EVERY ? &parts[4*at +: 4] : |parts[4*at +: 4];
      end
    end
  end
  assign found = tree[DEPTH-1].together[0];
endmodule
