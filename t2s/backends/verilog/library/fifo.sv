// A FIFO with registered handshakes, whose latency and capacity are constants.
//
// `push` says that a token is sent, and takes a slot.  Its value comes LATE cycles after it, out of
// the pipeline of the sender, and is a valid token LATENCY cycles after the push: what is between
// are registers here.  A slot that is popped has space in the next cycle.  `space` and `valid` are
// registers, so that no path leads from one end to the other.  Without FILLS no more than CAPACITY
// tokens ever come, so that there always is space.
module fifo #(
  parameter int WIDTH = 32,
  parameter int CAPACITY = 2,
  parameter int LATENCY = 1,
  parameter int LATE = 0,
  parameter bit FILLS = 1
) (
  input logic clock,
  input logic reset,
  input logic push,
  input logic [WIDTH-1:0] value,
  output logic space,
  input logic pop,
  output logic valid,
  output logic [WIDTH-1:0] token
);
  /*verilator no_inline_module*/
  localparam int DELAY = LATENCY - 1 - LATE;

  // what is pushed, when it arrives
  logic arriving;
  logic [WIDTH-1:0] arrived;
  if (LATENCY == 1) begin : at_once
    assign arriving = push;
  end else begin : later
    logic [LATENCY-2:0] traveling;  // bit n: a value was pushed n + 1 cycles ago
    assign arriving = traveling[LATENCY-2];
    always_ff @(posedge clock) begin
      if (reset) traveling <= '0;
      else traveling <= (LATENCY - 1)'({traveling, push});
    end
  end
  if (DELAY == 0) begin : in_time
    assign arrived = value;
  end else begin : delayed
    logic [WIDTH-1:0] delay [DELAY];
    assign arrived = delay[DELAY-1];
    always_ff @(posedge clock) begin
      delay[0] <= value;
      for (int at = 1; at < DELAY; at++) delay[at] <= delay[at-1];
    end
  end

  if (CAPACITY == 1) begin : single
    logic held;
    assign space = !FILLS || !held;
    always_ff @(posedge clock) begin
      if (reset) begin
        held <= 1'b0;
        valid <= 1'b0;
      end else begin
        held <= held ? !pop : push;
        valid <= valid ? !pop : arriving;
      end
      if (!valid) token <= arrived;
    end
  end else if (CAPACITY == 2 && LATENCY == 1) begin : pair
    logic more;  // there are two tokens
    logic [WIDTH-1:0] second;
    assign space = !FILLS || !more;
    always_ff @(posedge clock) begin
      if (reset) begin
        valid <= 1'b0;
        more <= 1'b0;
      end else begin
        valid <= push || (valid && (more || !pop));
        more <= more ? !pop : valid && push && !pop;
      end
      if (!valid || pop) token <= more ? second : arrived;
      if (!more) second <= arrived;
    end
  end else begin : rows
    localparam int INDEX = $clog2(CAPACITY);
    localparam int COUNT = $clog2(CAPACITY + 1);
    logic [WIDTH-1:0] slots [1 << INDEX];
    logic [INDEX-1:0] write_at, read_at;
    logic [COUNT-1:0] held, visible, next_held, next_visible;
    logic room;
    assign space = !FILLS || room;
    assign token = slots[read_at];
    always_comb begin
      // one adder each: what goes up and down in a cycle has two
      next_held = push == pop ? held : push ? held + 1'b1 : held - 1'b1;
      next_visible = arriving == pop ? visible : arriving ? visible + 1'b1 : visible - 1'b1;
    end
    always_ff @(posedge clock) begin
      if (arriving) slots[write_at] <= arrived;
      if (reset) begin
        held <= '0;
        visible <= '0;
        write_at <= '0;
        read_at <= '0;
        room <= 1'b1;
        valid <= 1'b0;
      end else begin
        held <= next_held;
        visible <= next_visible;
        write_at <= write_at + INDEX'(arriving);
        read_at <= read_at + INDEX'(pop);
        room <= next_held != COUNT'(CAPACITY);
        valid <= next_visible != 0;
      end
    end
  end
`ifndef SYNTHESIS
  always_ff @(posedge clock) begin
    if (!reset && push && !space) $fatal(1, "%m has no room: it holds %0d tokens", CAPACITY);
    if (!reset && pop && !valid) $fatal(1, "%m has no token");
  end
`endif
endmodule
