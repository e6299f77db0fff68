// Masters of an AXI4 bus that copy a tensor of BEATS beats: one of them reads it, one writes it.
// `address` is that of the first byte, a multiple of the bytes of a beat.

// The bursts of a tensor, one after the other: none is longer than the bus allows, and none crosses
// a boundary of 4 KiB.
module bursts #(
  parameter int DATA = 32,
  parameter int BEATS = 16
) (
  input logic clock,
  input logic reset,
  input logic start,
  input logic [63:0] address,
  input logic next,
  output logic more,
  output logic [63:0] at,
  output logic [7:0] length
);
  localparam int BYTES = DATA / 8;
  localparam int PAGE = 4096 / BYTES;
  localparam int MOST = PAGE < 256 ? PAGE : 256;
  logic [31:0] left, in_page, beats;
  assign more = left != 0;
  assign in_page = PAGE - 32'(at[11:0]) / BYTES;
  assign length = 8'(beats - 1);
  always_comb begin
    beats = left < in_page ? left : in_page;
    if (beats > MOST) beats = MOST;
  end
  always_ff @(posedge clock) begin
    if (next) begin
      left <= left - beats;
      at <= at + 64'(beats * BYTES);
    end
    if (start) begin
      left <= BEATS;
      at <= address;
    end
    if (reset) left <= '0;
  end
endmodule

// Reads a tensor, row by row; `done` from its last row on until the next start.
module axi_reader #(
  parameter int DATA = 32,
  parameter int BEATS = 16
) (
  input logic clock,
  input logic reset,
  input logic start,
  input logic [63:0] address,
  output logic [63:0] araddr,
  output logic [7:0] arlen,
  output logic arvalid,
  input logic arready,
  input logic [DATA-1:0] rdata,
  input logic [1:0] rresp,
  input logic rvalid,
  output logic rready,
  output logic write,
  output logic [31:0] row,
  output logic [DATA-1:0] value,
  output logic done,
  output logic failed
);
  logic [31:0] received;
  bursts #(.DATA(DATA), .BEATS(BEATS)) plan (
    .clock, .reset, .start, .address, .next(arvalid && arready), .more(arvalid), .at(araddr),
    .length(arlen)
  );
  assign rready = received != BEATS;
  always_ff @(posedge clock) begin
    write <= rvalid && rready;
    row <= received;
    value <= rdata;
    // the last row is written one cycle after it came
    done <= received == BEATS;
    if (rvalid && rready) begin
      received <= received + 1;
      if (rresp != 0) failed <= 1'b1;
    end
    if (start) begin
      received <= '0;
      done <= 1'b0;
      failed <= 1'b0;
    end
    if (reset) begin
      received <= BEATS;
      write <= 1'b0;
      failed <= 1'b0;
    end
  end
endmodule

// Writes a tensor: `once` and `word` are what is in a row, two cycles after its number, and only
// elements that were stored are written.
module axi_writer #(
  parameter int DATA = 32,
  parameter int BEATS = 16,
  parameter int PER = 4
) (
  input logic clock,
  input logic reset,
  input logic start,
  input logic [63:0] address,
  output logic [63:0] awaddr,
  output logic [7:0] awlen,
  output logic awvalid,
  input logic awready,
  output logic [DATA-1:0] wdata,
  output logic [DATA/8-1:0] wstrb,
  output logic wlast,
  output logic wvalid,
  input logic wready,
  input logic [1:0] bresp,
  input logic bvalid,
  output logic bready,
  output logic [31:0] row,
  input logic [PER-1:0] once,
  input logic [DATA-1:0] word,
  input logic conflict,
  output logic done,
  output logic failed,
  output logic conflicts
);
  localparam int ROOM = 8;  // rows that are read ahead of the bus, those on their way included
  localparam int BYTES = DATA / 8;
  typedef struct packed {
    logic [PER-1:0] once;
    logic [DATA-1:0] word;
  } row_t;
  row_t rows [ROOM];
  row_t head;
  logic running, sends, ask, more;
  logic [1:0] asked;  // bit n: a row was asked for n + 1 cycles ago
  logic [31:0] sent, come, unanswered;
  logic [7:0] length, beat;
  logic [63:0] at;
  logic bursts_left;
  // addresses go ahead of data as the bus takes them, so each has its own walk over the bursts
  bursts #(.DATA(DATA), .BEATS(BEATS)) addresses (
    .clock, .reset, .start, .address, .next(awvalid && awready), .more(awvalid), .at(awaddr),
    .length(awlen)
  );
  bursts #(.DATA(DATA), .BEATS(BEATS)) data (
    .clock, .reset, .start, .address, .next(sends && wlast), .more(bursts_left), .at, .length
  );
  assign ask = running && row != BEATS && row - sent < ROOM;
  assign more = come != sent;
  assign head = rows[sent[$clog2(ROOM)-1:0]];
  assign wdata = head.word;
  assign wlast = beat == length;
  assign wvalid = more;
  assign sends = wvalid && wready;
  assign bready = running;
  for (genvar byte_at = 0; byte_at < BYTES; byte_at++) begin : strobes
    assign wstrb[byte_at] = head.once[byte_at * PER / BYTES];
  end
  always_ff @(posedge clock) begin
    asked <= {asked[0], ask};
    if (ask) row <= row + 1;
    if (asked[1]) begin
      rows[come[$clog2(ROOM)-1:0]] <= {once, word};
      come <= come + 1;
      if (conflict) conflicts <= 1'b1;
    end
    if (sends) begin
      sent <= sent + 1;
      beat <= wlast ? '0 : beat + 1'b1;
    end
    unanswered <= unanswered + 32'(sends && wlast) - 32'(bvalid && bready);
    if (bvalid && bready && bresp != 0) failed <= 1'b1;
    if (running && sent == BEATS && !awvalid && unanswered == 0) begin
      running <= 1'b0;
      done <= 1'b1;
    end
    if (start) begin
      running <= 1'b1;
      done <= 1'b0;
      failed <= 1'b0;
      conflicts <= 1'b0;
      row <= '0;
      sent <= '0;
      come <= '0;
      beat <= '0;
      asked <= '0;
      unanswered <= '0;
    end
    if (reset) begin
      running <= 1'b0;
      failed <= 1'b0;
      conflicts <= 1'b0;
      row <= '0;
      sent <= '0;
      come <= '0;
      asked <= '0;
    end
  end
endmodule
