// The memories between masters of an AXI4 bus and the units of a design.  A row has the bits of a
// beat of the bus, PER elements of HELD bits each, the first one lowest.

// What one load unit reads: rows are written whole, and LANES elements come DELAY cycles after the
// address of the first of them.
module input_rows #(
  parameter int DATA = 32,
  parameter int ROWS = 4,
  parameter int BITS = 4,
  parameter int WIDTH = 8,
  parameter int HELD = 8,
  parameter int LANES = 1,
  parameter int DELAY = 1
) (
  input logic clock,
  input logic write,
  input logic [31:0] row,
  input logic [DATA-1:0] value,
  input logic [BITS-1:0] address,
  output logic [LANES-1:0][WIDTH-1:0] data
);
  localparam int PER = DATA / HELD;
  localparam int AT = ROWS > 1 ? $clog2(ROWS) : 1;
  localparam int SLOTS = PER / LANES;
  localparam int SLOT = SLOTS > 1 ? $clog2(SLOTS) : 1;
  logic [DATA-1:0] rows [ROWS];
  logic [AT-1:0] read_row;
  logic [SLOT-1:0] slot;
  assign read_row = AT'(32'(address) / PER);
  assign slot = SLOT'(32'(address) % PER / LANES);
  always_ff @(posedge clock) begin
    if (write) rows[row[AT-1:0]] <= value;
  end
  logic [DATA-1:0] word;
  logic [SLOT-1:0] chosen;
  logic [LANES-1:0][WIDTH-1:0] found;
  for (genvar lane = 0; lane < LANES; lane++) begin : lanes
    assign found[lane] = word[(32'(chosen) * LANES + lane) * HELD +: WIDTH];
  end
  if (DELAY == 0) begin : at_once
    assign word = rows[read_row];
    assign chosen = slot;
    assign data = found;
  end else begin : later
    always_ff @(posedge clock) begin
      word <= rows[read_row];
      chosen <= slot;
    end
    if (DELAY == 1) begin : as_read
      assign data = found;
    end else begin : registered
      delay #(.WIDTH(LANES * WIDTH), .CYCLES(DELAY - 1)) rest (
        .clock, .reset(1'b0), .now(found), .later(data)
      );
    end
  end
endmodule

// What one store unit stores, and which elements it has: `stored` and `word` come two cycles after
// the number of a row.  Rows are cleared one by one before a run.
module output_rows #(
  parameter int DATA = 32,
  parameter int ROWS = 4,
  parameter int BITS = 4,
  parameter int WIDTH = 8,
  parameter int HELD = 8,
  parameter int LANES = 1
) (
  input logic clock,
  input logic clear,
  input logic [31:0] row,
  input logic write,
  input logic [BITS-1:0] address,
  input logic [LANES-1:0][WIDTH-1:0] value,
  output logic [DATA/HELD-1:0] stored,
  output logic [DATA-1:0] word
);
  localparam int PER = DATA / HELD;
  localparam int AT = ROWS > 1 ? $clog2(ROWS) : 1;
  localparam int SLOTS = PER / LANES;
  for (genvar slot = 0; slot < SLOTS; slot++) begin : slots
    logic [LANES*WIDTH:0] words [ROWS];
    logic [LANES*WIDTH:0] read;
    logic here;
    assign here = 32'(address) % PER / LANES == slot;
    always_ff @(posedge clock) begin
      if (clear || (write && here)) begin
        words[clear ? row[AT-1:0] : AT'(32'(address) / PER)] <= clear ? '0 : {1'b1, value};
      end
      read <= words[row[AT-1:0]];
    end
    for (genvar lane = 0; lane < LANES; lane++) begin : lanes
      localparam int ELEMENT = slot * LANES + lane;
      always_ff @(posedge clock) begin
        stored[ELEMENT] <= read[LANES*WIDTH];
        word[ELEMENT*HELD +: HELD] <= read[LANES*WIDTH] ? HELD'(read[lane*WIDTH +: WIDTH]) : '0;
      end
    end
  end
endmodule

// A row of a tensor, of the rows of all units that store it.  An element of several units is of
// none of them: `conflict` says so.
module united_rows #(
  parameter int UNITS = 1,
  parameter int DATA = 32,
  parameter int PER = 4
) (
  input logic [PER-1:0] stored [UNITS],
  input logic [DATA-1:0] words [UNITS],
  output logic [PER-1:0] once,
  output logic [DATA-1:0] word,
  output logic conflict
);
  logic [PER-1:0] seen, twice;
  always_comb begin
    seen = '0;
    twice = '0;
    word = '0;
    for (int unit = 0; unit < UNITS; unit++) begin
      twice |= seen & stored[unit];
      seen |= stored[unit];
      word |= words[unit];
    end
    once = seen & ~twice;
    conflict = |twice;
  end
endmodule
