// The memories between a host and the units of a design.  Elements of a tensor are numbers FIRST to
// FIRST + ROWS * LANES - 1 of the host; a bank has those of one lane of a unit's words.

// Whether a bank has an element of the host, and in which row.
module bank_row #(
  parameter int BITS = 4,
  parameter int ROWS = 16,
  parameter int ADDRESS = 8,
  parameter int FIRST = 0,
  parameter int LANES = 1,
  parameter int LANE = 0
) (
  input logic [ADDRESS-1:0] host,
  output logic here,
  output logic [BITS-1:0] row
);
  logic [31:0] offset;
  assign offset = 32'(host) - FIRST;
  assign here = 32'(host) >= FIRST && offset < ROWS * LANES && offset % LANES == LANE;
  assign row = BITS'(offset / LANES);
endmodule

// What one load unit reads in one lane: a word comes DELAY cycles after its address.
module input_bank #(
  parameter int WIDTH = 8,
  parameter int BITS = 4,
  parameter int ROWS = 16,
  parameter int DELAY = 1,
  parameter int ADDRESS = 8,
  parameter int FIRST = 0,
  parameter int LANES = 1,
  parameter int LANE = 0
) (
  input logic clock,
  input logic write,
  input logic [ADDRESS-1:0] host,
  input logic [31:0] value,
  input logic [BITS-1:0] address,
  output logic [WIDTH-1:0] data
);
  logic [BITS-1:0] row;
  logic here;
  logic [WIDTH-1:0] words [ROWS];
  bank_row #(
    .BITS(BITS), .ROWS(ROWS), .ADDRESS(ADDRESS), .FIRST(FIRST), .LANES(LANES), .LANE(LANE)
  ) place (.host, .here, .row);
  always_ff @(posedge clock) begin
    if (write && here) words[row] <= value[WIDTH-1:0];
  end
  if (DELAY == 0) begin : at_once
    assign data = words[address];
  end else begin : later
    logic [WIDTH-1:0] kept [DELAY];
    assign data = kept[DELAY-1];
    always_ff @(posedge clock) begin
      kept[0] <= words[address];
      for (int at = 1; at < DELAY; at++) kept[at] <= kept[at-1];
    end
  end
endmodule

// What one store unit stores in one lane, and whether it has: `found` and `result` come two cycles
// after the number of an element.
module output_bank #(
  parameter int WIDTH = 8,
  parameter int BITS = 4,
  parameter int ROWS = 16,
  parameter int ADDRESS = 8,
  parameter int FIRST = 0,
  parameter int LANES = 1,
  parameter int LANE = 0
) (
  input logic clock,
  input logic clear,
  input logic [ADDRESS-1:0] host,
  input logic write,
  input logic [BITS-1:0] address,
  input logic [WIDTH-1:0] value,
  output logic found,
  output logic [31:0] result
);
  logic [BITS-1:0] row;
  logic here, was_here;
  logic [WIDTH:0] words [ROWS];
  logic [WIDTH:0] word;
  bank_row #(
    .BITS(BITS), .ROWS(ROWS), .ADDRESS(ADDRESS), .FIRST(FIRST), .LANES(LANES), .LANE(LANE)
  ) place (.host, .here, .row);
  always_ff @(posedge clock) begin
    if (clear ? here : write) begin
      words[clear ? row : address] <= clear ? '0 : {1'b1, value};
    end
    word <= words[row];
    was_here <= here;
    found <= was_here && word[WIDTH];
    result <= was_here && word[WIDTH] ? 32'(word[WIDTH-1:0]) : '0;
  end
endmodule
