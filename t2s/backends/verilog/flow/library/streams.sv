// The ends of AXI4-Streams at the units of a design, and what starts its runs.

// A stream of words to a load unit.  A word is taken by a firing, and comes DELAY cycles after that.
module input_stream #(
  parameter int WIDTH = 8,
  parameter int DELAY = 1
) (
  input logic clock,
  input logic reset,
  input logic [WIDTH-1:0] tdata,
  input logic tvalid,
  output logic tready,
  output logic there,
  input logic take,
  output logic [WIDTH-1:0] data
);
  logic [WIDTH-1:0] first, second;
  logic [1:0] held;
  logic put;
  assign tready = held != 2;
  assign there = held != 0;
  assign put = tvalid && tready;
  always_ff @(posedge clock) begin
    if (put && (held == 0 || take)) first <= tdata;
    else if (take) first <= second;
    if (put) second <= tdata;
    held <= reset ? 2'd0 : held + 2'(put) - 2'(take);
  end
  if (DELAY == 0) begin : at_once
    assign data = first;
  end else begin : later
    delay #(.WIDTH(WIDTH), .CYCLES(DELAY)) rest (.clock, .reset(1'b0), .now(first), .later(data));
  end
endmodule

// A stream of the words that a store unit stores, LAST in a run.  A word comes STAGE cycles after
// its firing, so that there has to be space for so many that are on their way.
module output_stream #(
  parameter int WIDTH = 8,
  parameter int STAGE = 0,
  parameter int LAST = 1
) (
  input logic clock,
  input logic reset,
  input logic run,
  output logic space,
  input logic put,
  input logic [WIDTH-1:0] data,
  output logic [WIDTH-1:0] tdata,
  output logic tvalid,
  output logic tlast,
  input logic tready
);
  localparam int WORDS = STAGE + (LAST == 1 ? 1 : 2);
  logic [WIDTH:0] words [WORDS+1];
  logic [$clog2(WORDS+1)-1:0] held, after;
  logic [$clog2(LAST+1)-1:0] sent;
  logic take;
  assign {tlast, tdata} = words[0];
  assign tvalid = held != 0;
  assign take = tvalid && tready;
  assign after = held - $bits(held)'(take);
  assign space = int'(held) + STAGE < WORDS;
  assign words[WORDS] = '0;
  always_ff @(posedge clock) begin
    for (int at = 0; at < WORDS; at++) begin
      if (put && int'(after) == at) words[at] <= {int'(sent) == LAST - 1, data};
      else if (take) words[at] <= words[at+1];
    end
    held <= reset ? '0 : after + $bits(held)'(put);
    sent <= reset || !run ? '0 : sent + $bits(sent)'(put);
  end
endmodule

// Begins a run when every stream has a word, and ends it when the design's results are counted.
module stream_run (
  input logic clock,
  input logic reset,
  input logic there,
  input logic over,
  input logic [31:0] counted,
  output logic run,
  output logic [31:0] cycles
);
  always_ff @(posedge clock) begin
    if (!run) run <= there;
    else if (over) begin
      run <= 1'b0;
      cycles <= counted;
    end
    if (reset) begin
      run <= 1'b0;
      cycles <= '0;
    end
  end
endmodule
