// The registers of a kernel on an AXI4-Lite bus of 32 bits, as ap_ctrl_hs has them, and the order of
// a run: tensors are read and old results cleared, the design runs, results are written.
//
// Offset 0: 1 starts a run; bit 0 is 1 until it has ended, bit 1 from its end on until it is read,
// bit 2 is 1 between runs, and bit 3 is what bit 1 is.  From offset 16 on the addresses of TENSORS
// tensors, 64 bits each, whose lowest IGNORED bits are 0; behind them three words about the last
// run: the cycles of the design, those from its start to its end with all copies, and what went
// wrong: bit 0 an answer of the bus, bit 1 an element that several units stored.
module axi_control #(
  parameter int TENSORS = 1,
  parameter int IGNORED = 2,
  parameter int ROWS = 1
) (
  input logic clock,
  input logic reset,
  input logic [11:0] awaddr,
  input logic awvalid,
  output logic awready,
  input logic [31:0] wdata,
  input logic [3:0] wstrb,
  input logic wvalid,
  output logic wready,
  output logic [1:0] bresp,
  output logic bvalid,
  input logic bready,
  input logic [11:0] araddr,
  input logic arvalid,
  output logic arready,
  output logic [31:0] rdata,
  output logic [1:0] rresp,
  output logic rvalid,
  input logic rready,
  output logic [63:0] addresses [TENSORS],
  // reading of tensors, and clearing of ROWS rows
  output logic read,
  input logic all_read,
  output logic clear,
  output logic [31:0] clear_row,
  // the design: it is reset while it does not run
  output logic run,
  input logic over,
  input logic [31:0] cycles,
  // writing of results
  output logic write,
  input logic all_written,
  input logic failed,
  input logic conflict
);
  localparam int CYCLES = 4 + 2 * TENSORS;  // words of 32 bits
  localparam int ELAPSED = CYCLES + 1;
  localparam int WRONG = CYCLES + 2;
  typedef enum logic [1:0] {IDLE, READ, RUN, WRITE} state_t;
  state_t state;
  logic cleared, ended;
  logic [31:0] taken, elapsed;
  logic [1:0] wrong;
  logic [9:0] read_word, write_word;
  logic [31:0] word;
  assign bresp = 2'b00;
  assign rresp = 2'b00;
  assign run = state == RUN;
  assign clear = state == READ && !cleared;
  // both parts of a write are taken together
  assign awready = awvalid && wvalid && !bvalid;
  assign wready = awready;
  assign write_word = awaddr[11:2];
  assign arready = !rvalid;
  assign read_word = araddr[11:2];

  always_comb begin
    word = '0;
    if (read_word == 0) word = {28'd0, ended, state == IDLE, ended, state != IDLE};
    for (int at = 0; at < TENSORS; at++) begin
      if (int'(read_word) == 4 + 2 * at) word = addresses[at][31:0];
      if (int'(read_word) == 5 + 2 * at) word = addresses[at][63:32];
    end
    if (int'(read_word) == CYCLES) word = taken;
    if (int'(read_word) == ELAPSED) word = elapsed;
    if (int'(read_word) == WRONG) word = 32'(wrong);
  end

  always_ff @(posedge clock) begin
    read <= 1'b0;
    write <= 1'b0;
    if (bready) bvalid <= 1'b0;
    if (rready) rvalid <= 1'b0;
    if (arvalid && arready) begin
      rvalid <= 1'b1;
      rdata <= word;
      if (read_word == 0) ended <= 1'b0;
    end
    if (awready) begin
      bvalid <= 1'b1;
      if (state == IDLE) begin
        for (int at = 0; at < TENSORS; at++) begin
          for (int place = 0; place < 8; place++) begin
            if (int'(write_word) == 4 + 2 * at + place / 4 && wstrb[place % 4]) begin
              addresses[at][8 * place +: 8] <= wdata[8 * (place % 4) +: 8];
            end
          end
          addresses[at][IGNORED-1:0] <= '0;
        end
        if (write_word == 0 && wstrb[0] && wdata[0]) begin
          state <= READ;
          read <= 1'b1;
          clear_row <= '0;
          cleared <= 1'b0;
          ended <= 1'b0;
        end
      end
    end
    elapsed <= read ? 1 : elapsed + 32'(state != IDLE);
    if (state == READ) begin
      if (!cleared) begin
        clear_row <= clear_row + 1;
        cleared <= clear_row == ROWS - 1;
      end
      if (cleared && all_read && !read) state <= RUN;
    end
    if (run && over) begin
      state <= WRITE;
      write <= 1'b1;
      taken <= cycles;
    end
    if (state == WRITE && all_written && !write) begin
      state <= IDLE;
      ended <= 1'b1;
      wrong <= {conflict, failed};
    end
    if (reset) begin
      state <= IDLE;
      ended <= 1'b0;
      bvalid <= 1'b0;
      rvalid <= 1'b0;
      taken <= '0;
      elapsed <= '0;
      wrong <= '0;
      for (int at = 0; at < TENSORS; at++) addresses[at] <= '0;
    end
  end
endmodule
