// What a signal was CYCLES cycles ago; zero before the start.
module delay #(
  parameter int WIDTH = 1,
  parameter int CYCLES = 1
) (
  input logic clock,
  input logic reset,
  input logic [WIDTH-1:0] now,
  output logic [WIDTH-1:0] later
);
  logic [WIDTH-1:0] kept [CYCLES];
  assign later = kept[CYCLES-1];
  always_ff @(posedge clock) begin
    for (int at = 0; at < CYCLES; at++) begin
      kept[at] <= reset ? '0 : at == 0 ? now : kept[at-1];
    end
  end
endmodule
