// The ends of AXI4-Streams at pins: a byte for each clock, the lowest byte of a word first.

// Bytes that a host writes become words.
module byte_input #(parameter int BYTES = 1) (
  input logic clock,
  input logic reset,
  input logic write,
  input logic [7:0] value,
  output logic ready,
  output logic [8*BYTES-1:0] tdata,
  output logic tvalid,
  input logic tready
);
  if (BYTES == 1) begin : single
    assign tdata = value;
    assign tvalid = write;
    assign ready = tready;
  end else begin : several
    logic [8*(BYTES-1)-1:0] kept;
    logic [$clog2(BYTES)-1:0] at;
    logic last;
    assign last = int'(at) == BYTES - 1;
    assign ready = !last || tready;
    assign tvalid = write && last;
    assign tdata = {value, kept};
    always_ff @(posedge clock) begin
      if (write && !last) kept <= (8 * (BYTES - 1))'({value, kept} >> 8);
      if (write && ready) at <= last ? '0 : at + 1'b1;
      if (reset) at <= '0;
    end
  end
endmodule

// Words become bytes that a host reads.
module byte_output #(parameter int BYTES = 1) (
  input logic clock,
  input logic reset,
  input logic read,
  output logic [7:0] value,
  output logic valid,
  input logic [8*BYTES-1:0] tdata,
  input logic tvalid,
  output logic tready
);
  assign valid = tvalid;
  if (BYTES == 1) begin : single
    assign value = tdata;
    assign tready = read;
  end else begin : several
    logic [$clog2(BYTES)-1:0] at;
    assign value = tdata[8*at +: 8];
    assign tready = read && int'(at) == BYTES - 1;
    always_ff @(posedge clock) begin
      if (read && tvalid) at <= tready ? '0 : at + 1'b1;
      if (reset) at <= '0;
    end
  end
endmodule
