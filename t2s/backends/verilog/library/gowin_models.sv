// Multipliers of Gowin as synthesis takes them, without registers inside.
module gowin_product #(parameter int WIDTH = 18) (
  input logic [WIDTH-1:0] a, b,
  input logic a_signed, b_signed,
  output logic [2*WIDTH-1:0] product
);
  logic signed [WIDTH:0] x, y;
  assign x = {a_signed & a[WIDTH-1], a};
  assign y = {b_signed & b[WIDTH-1], b};
  assign product = (2 * WIDTH)'(x * y);
endmodule

module MULT9X9 #(
  parameter AREG = 0, BREG = 0, OUT_REG = 0, PIPE_REG = 0, ASIGN_REG = 0, BSIGN_REG = 0,
  parameter SOA_REG = 0, MULT_RESET_MODE = "SYNC"
) (
  input logic [8:0] A, SIA, B, SIB,
  input logic ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
  output logic [17:0] DOUT,
  output logic [8:0] SOA, SOB
);
  gowin_product #(9) one (.a(A), .b(B), .a_signed(ASIGN), .b_signed(BSIGN), .product(DOUT));
endmodule

module MULT18X18 #(
  parameter AREG = 0, BREG = 0, OUT_REG = 0, PIPE_REG = 0, ASIGN_REG = 0, BSIGN_REG = 0,
  parameter SOA_REG = 0, MULT_RESET_MODE = "SYNC"
) (
  input logic [17:0] A, SIA, B, SIB,
  input logic ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
  output logic [35:0] DOUT,
  output logic [17:0] SOA, SOB
);
  gowin_product #(18) one (.a(A), .b(B), .a_signed(ASIGN), .b_signed(BSIGN), .product(DOUT));
endmodule

module MULT36X36 #(
  parameter AREG = 0, BREG = 0, OUT0_REG = 0, OUT1_REG = 0, PIPE_REG = 0, ASIGN_REG = 0,
  parameter BSIGN_REG = 0, MULT_RESET_MODE = "SYNC"
) (
  input logic [35:0] A, B,
  input logic ASIGN, BSIGN, CE, CLK, RESET,
  output logic [71:0] DOUT
);
  gowin_product #(36) one (.a(A), .b(B), .a_signed(ASIGN), .b_signed(BSIGN), .product(DOUT));
endmodule
