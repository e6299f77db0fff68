// A slave of a Wishbone bus (classic cycles of 32 bits, addresses count words) beside a design and
// its memories: a host writes inputs, starts the design, waits, and reads results and cycles.
//
// Word 0 starts the design when 1 is written into it, and reads as 1 while it runs, 2 once it has
// run; word 1 is the cycles of the last run.  From word 1 << ADDRESS on are the elements: INPUTS of
// them are written, the others up to ELEMENTS are read.  All else is an error on the bus, and so is
// an element while the design runs, and one that several units have stored.
module wishbone #(
  parameter int ADDRESS = 8,
  parameter int INPUTS = 1,
  parameter int ELEMENTS = 2
) (
  input logic clock,
  input logic reset,
  input logic wb_cyc,
  input logic wb_stb,
  input logic wb_we,
  input logic [ADDRESS:0] wb_adr,
  input logic [3:0] wb_sel,
  input logic [31:0] wb_dat_w,
  output logic [31:0] wb_dat_r,
  output logic wb_ack,
  output logic wb_err,
  // the memories: what is read is there two cycles after its address
  output logic write,
  output logic clear,
  output logic [ADDRESS-1:0] address,
  output logic [31:0] value,
  input logic conflict,
  input logic [31:0] result,
  // the design: it is reset while it does not run
  output logic run,
  input logic over,
  input logic [31:0] cycles
);
  typedef enum logic [1:0] {IDLE, READ, CLEAR, RUN} state_t;
  state_t state;
  logic finished;
  logic [1:0] waited;  // bit n: the address of a read has been there for n + 1 cycles
  logic [31:0] taken;
  logic request, element, whole, writable, readable;
  assign request = wb_cyc && wb_stb && !wb_ack && !wb_err;
  assign element = wb_adr[ADDRESS];
  assign whole = wb_sel == 4'b1111;
  assign writable = {1'b0, wb_adr[ADDRESS-1:0]} < (ADDRESS + 1)'(INPUTS);
  assign readable = !writable && {1'b0, wb_adr[ADDRESS-1:0]} < (ADDRESS + 1)'(ELEMENTS);
  assign clear = state == CLEAR;
  assign run = state == RUN;

  always_ff @(posedge clock) begin
    wb_ack <= 1'b0;
    wb_err <= 1'b0;
    write <= 1'b0;
    waited <= {waited[0], state == READ && waited == 0};
    if (request && state != READ) begin
      // registers answer at any time
      if (!element && !wb_we && wb_adr <= 1) begin
        wb_dat_r <= wb_adr[0] ? taken : {30'd0, finished, run || clear};
        wb_ack <= 1'b1;
      end else if (state != IDLE || (wb_we && !whole)) begin
        wb_err <= 1'b1;
      end else if (element && wb_we && writable) begin
        write <= 1'b1;
        address <= wb_adr[ADDRESS-1:0];
        value <= wb_dat_w;
        wb_ack <= 1'b1;
      end else if (element && !wb_we && readable) begin
        address <= wb_adr[ADDRESS-1:0];
        state <= READ;
      end else if (!element && wb_we && wb_adr == 0) begin
        if (wb_dat_w[0]) begin
          state <= CLEAR;
          address <= ADDRESS'(INPUTS);
          finished <= 1'b0;
        end
        wb_ack <= 1'b1;
      end else begin
        wb_err <= 1'b1;
      end
    end
    if (state == READ && waited[1]) begin
      state <= IDLE;
      wb_dat_r <= result;
      wb_ack <= !conflict;
      wb_err <= conflict;
    end
    if (state == CLEAR) begin
      address <= address + 1'b1;
      if (address == ADDRESS'(ELEMENTS - 1)) state <= RUN;
    end
    if (state == RUN && over) begin
      state <= IDLE;
      taken <= cycles;
      finished <= 1'b1;
    end
    if (reset) begin
      state <= IDLE;
      finished <= 1'b0;
      taken <= '0;
    end
  end
endmodule
