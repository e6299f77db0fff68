// A product of signed numbers of up to 18 bits, STAGES cycles after its operands, in one multiplier
// of ECP5: its registers are those of the operands, of the pipeline inside, and of the product, and
// a fourth is made of flip-flops.
module multiply #(
  parameter int LEFT = 18,
  parameter int RIGHT = 18,
  parameter int STAGES = 3
) (
  input logic clock,
  input logic signed [LEFT-1:0] left,
  input logic signed [RIGHT-1:0] right,
  output logic signed [LEFT+RIGHT-1:0] product
);
  localparam OPERANDS = STAGES >= 2 ? "CLK0" : "NONE";
  localparam PIPELINE = STAGES >= 3 ? "CLK0" : "NONE";
  logic signed [17:0] x, y;
  logic [35:0] p;
  assign x = 18'(left);
  assign y = 18'(right);
  if (STAGES == 4) begin : behind
    always_ff @(posedge clock) product <= p[LEFT+RIGHT-1:0];
  end else begin : direct
    assign product = p[LEFT+RIGHT-1:0];
  end
  MULT18X18D #(
    .REG_INPUTA_CLK(OPERANDS),
    .REG_INPUTB_CLK(OPERANDS),
    .REG_PIPELINE_CLK(PIPELINE),
    .REG_OUTPUT_CLK("CLK0"),
    .GSR("DISABLED")
  ) multiplier (
    .CLK0(clock), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
    .CE0(1'b1), .CE1(1'b1), .CE2(1'b1), .CE3(1'b1),
    .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
    .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
    .A0(x[0]), .A1(x[1]), .A2(x[2]), .A3(x[3]), .A4(x[4]), .A5(x[5]),
    .A6(x[6]), .A7(x[7]), .A8(x[8]), .A9(x[9]), .A10(x[10]), .A11(x[11]),
    .A12(x[12]), .A13(x[13]), .A14(x[14]), .A15(x[15]), .A16(x[16]), .A17(x[17]),
    .B0(y[0]), .B1(y[1]), .B2(y[2]), .B3(y[3]), .B4(y[4]), .B5(y[5]),
    .B6(y[6]), .B7(y[7]), .B8(y[8]), .B9(y[9]), .B10(y[10]), .B11(y[11]),
    .B12(y[12]), .B13(y[13]), .B14(y[14]), .B15(y[15]), .B16(y[16]), .B17(y[17]),
    .C0(1'b0), .C1(1'b0), .C2(1'b0), .C3(1'b0), .C4(1'b0), .C5(1'b0),
    .C6(1'b0), .C7(1'b0), .C8(1'b0), .C9(1'b0), .C10(1'b0), .C11(1'b0),
    .C12(1'b0), .C13(1'b0), .C14(1'b0), .C15(1'b0), .C16(1'b0), .C17(1'b0),
    .P0(p[0]), .P1(p[1]), .P2(p[2]), .P3(p[3]), .P4(p[4]), .P5(p[5]),
    .P6(p[6]), .P7(p[7]), .P8(p[8]), .P9(p[9]), .P10(p[10]), .P11(p[11]),
    .P12(p[12]), .P13(p[13]), .P14(p[14]), .P15(p[15]), .P16(p[16]), .P17(p[17]),
    .P18(p[18]), .P19(p[19]), .P20(p[20]), .P21(p[21]), .P22(p[22]), .P23(p[23]),
    .P24(p[24]), .P25(p[25]), .P26(p[26]), .P27(p[27]), .P28(p[28]), .P29(p[29]),
    .P30(p[30]), .P31(p[31]), .P32(p[32]), .P33(p[33]), .P34(p[34]), .P35(p[35])
  );
endmodule
