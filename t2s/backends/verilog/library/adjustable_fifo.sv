// A FIFO with registered handshakes, and with the pipeline of its sender in front of it.
//
// A value that is pushed in one cycle is a valid token `latency` cycles later; a slot that is
// popped has space in the next cycle; `capacity` counts the tokens in the pipeline too.  Both are
// constants in hardware, latency from 1 to PIPELINE + 1, capacity from 1 to STORAGE.  Where the
// capacity is larger than STORAGE the design has to get by with less, and the FIFO says so if not.
module adjustable_fifo #(
  parameter int WIDTH = 32,
  parameter int STORAGE = 2,
  parameter int PIPELINE = 1
) (
  input logic clock,
  input logic reset,
  input logic [31:0] latency,
  input logic [31:0] capacity,
  input logic push,
  input logic [WIDTH-1:0] value,
  output logic space,
  input logic pop,
  output logic valid,
  output logic [WIDTH-1:0] token,
  output logic [31:0] held
);
  /*verilator no_inline_module*/
  logic [WIDTH-1:0] slots [STORAGE];
  logic [31:0] write_at, read_at, visible;
  logic [PIPELINE-1:0] traveling;  // bit n: a value was pushed n + 1 cycles ago
  logic arriving;

  assign arriving = latency == 1 ? push : traveling[latency - 2];
  assign space = held < capacity;
  assign valid = visible != 0;
  assign token = slots[read_at];

  always_ff @(posedge clock) begin
    traveling <= PIPELINE'({traveling, push});
    held <= held + 32'(push) - 32'(pop);
    visible <= visible + 32'(arriving) - 32'(pop);
    if (push) begin
      slots[write_at] <= value;
      write_at <= write_at == STORAGE - 1 ? 0 : write_at + 1;
    end
    if (pop) begin
      read_at <= read_at == STORAGE - 1 ? 0 : read_at + 1;
    end
`ifndef SYNTHESIS
    if (push && !reset && held == STORAGE) $fatal(1, "%m has no room: it holds %0d tokens", STORAGE);
`endif
    if (reset) begin
      traveling <= '0;
      held <= 0;
      visible <= 0;
      write_at <= 0;
      read_at <= 0;
    end
  end
endmodule
