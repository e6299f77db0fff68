// Primitives of ECP5 that the library uses: black boxes for synthesis, and models for simulation.
`ifdef SYNTHESIS
(* blackbox *)
`endif
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
`ifndef SYNTHESIS
  // the table of four inputs propagates the carry, and its lowest four bits generate it
  logic propagate0, propagate1, generate0, generate1, middle;
  assign propagate0 = INIT0[{D0, C0, B0, A0}];
  assign propagate1 = INIT1[{D1, C1, B1, A1}];
  assign generate0 = INIT0[{2'b00, B0, A0}];
  assign generate1 = INIT1[{2'b00, B1, A1}];
  assign middle = propagate0 ? CIN : generate0;
  assign COUT = propagate1 ? middle : generate1;
  assign S0 = propagate0 ^ CIN;
  assign S1 = propagate1 ^ middle;
`endif
endmodule

`ifdef SYNTHESIS
(* blackbox *)
`endif
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
`ifndef SYNTHESIS
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19,
    P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} =
    product[35:0];
  logic signed [18:0] a, b, x, y;  // with a bit above, which is 0 for numbers without a sign
  logic signed [37:0] p, q, product;
  assign a = {SIGNEDA && A17, A17, A16, A15, A14, A13, A12, A11, A10, A9,
    A8, A7, A6, A5, A4, A3, A2, A1, A0};
  assign b = {SIGNEDB && B17, B17, B16, B15, B14, B13, B12, B11, B10, B9,
    B8, B7, B6, B5, B4, B3, B2, B1, B0};
  if (REG_INPUTA_CLK == "CLK0") begin : registered_a
    always_ff @(posedge CLK0) x <= a;
  end else begin : plain_a
    assign x = a;
  end
  if (REG_INPUTB_CLK == "CLK0") begin : registered_b
    always_ff @(posedge CLK0) y <= b;
  end else begin : plain_b
    assign y = b;
  end
  assign p = x * y;
  if (REG_PIPELINE_CLK == "CLK0") begin : registered_product
    always_ff @(posedge CLK0) q <= p;
  end else begin : plain_product
    assign q = p;
  end
  if (REG_OUTPUT_CLK == "CLK0") begin : registered_output
    always_ff @(posedge CLK0) product <= q;
  end else begin : plain_output
    assign product = q;
  end
`endif
endmodule
