// Compares what one store unit stores with the result that is expected there.
//
// Units lie far from the memories, a block RAM is slow, and so is a comparison of all bits: each has
// a register behind it.  Results of few words are in look-up tables.
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
  localparam int MOST_IN_TABLES = 64;
  localparam int READ = DEPTH > MOST_IN_TABLES ? 2 : 1;
  localparam int BYTES = (WIDTH + 7) / 8;
  logic written, compared;
  logic [BITS-1:0] place;
  logic [WIDTH-1:0] stored, given, expected;
  logic [8*BYTES-1:0] difference;
  logic [BYTES-1:0] unequal;
  logic differs;
  if (DEPTH > MOST_IN_TABLES) begin : block
    image #(.WIDTH(WIDTH), .BITS(BITS), .DEPTH(DEPTH), .DELAY(READ), .FILE(FILE)) results (
      .clock,
      .address(place),
      .data(expected)
    );
  end else begin : tables
    logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    always_ff @(posedge clock) expected <= words[place];
  end
  delay #(.WIDTH(WIDTH), .CYCLES(READ)) values (.clock, .reset(1'b0), .now(stored), .later(given));
  delay #(.WIDTH(1), .CYCLES(READ)) writes (.clock, .reset, .now(written), .later(compared));
  assign difference = (8 * BYTES)'(given ^ expected);
  always_ff @(posedge clock) begin
    place <= address;
    stored <= value;
    written <= write && !reset;
    for (int at = 0; at < BYTES; at++) begin
      unequal[at] <= compared && !reset && |difference[8*at +: 8];
    end
    differs <= |unequal;
    if (reset) wrong <= 1'b0;
    else if (differs) wrong <= 1'b1;
  end
endmodule
