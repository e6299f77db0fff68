// The interfaces of primitives of ECP5 that the library uses: their insides are in the chip.
(* blackbox *)
module CCU2C #(
  parameter logic [15:0] INIT0 = 16'h0000,
  parameter logic [15:0] INIT1 = 16'h0000,
  parameter INJECT1_0 = "NO",
  parameter INJECT1_1 = "NO"
) (
  input logic CIN,
  input logic A0, B0, C0, D0,
  input logic A1, B1, C1, D1,
  output logic S0, S1,
  output logic COUT
);
endmodule

(* blackbox *)
module MULT18X18D #(
  parameter REG_INPUTA_CLK = "NONE",
  parameter REG_INPUTB_CLK = "NONE",
  parameter REG_PIPELINE_CLK = "NONE",
  parameter REG_OUTPUT_CLK = "NONE",
  parameter GSR = "ENABLED"
) (
  input logic CLK0, CLK1, CLK2, CLK3, CE0, CE1, CE2, CE3, RST0, RST1, RST2, RST3,
  input logic SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  input logic A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11,
  input logic A12, A13, A14, A15, A16, A17,
  input logic B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11,
  input logic B12, B13, B14, B15, B16, B17,
  input logic C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11,
  input logic C12, C13, C14, C15, C16, C17,
  output logic P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11,
  output logic P12, P13, P14, P15, P16, P17, P18, P19, P20, P21, P22, P23,
  output logic P24, P25, P26, P27, P28, P29, P30, P31, P32, P33, P34, P35
);
endmodule
