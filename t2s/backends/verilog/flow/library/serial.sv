// Sends one line again and again: "t2s pass 0000002a" or "t2s fail 0000002a", the cycles in hexadecimal.
module serial #(parameter int CLOCKS = 217) (
  input logic clock,
  input logic reset,
  input logic done,
  input logic passed,
  input logic [31:0] cycles,
  output logic transmit
);
  logic [$clog2(CLOCKS)-1:0] clocks;
  logic [3:0] bits;
  logic [4:0] position;
  logic [3:0] digit;
  logic [7:0] character;
  logic [7:0] letter;
  logic [31:0] turned;
  logic waits;
  logic tick;
  logic turns;

  // the digits come round: after eight of them the register has its first value
  assign digit = turned[31:28];
  always_comb begin
    case (position)
      0: character = "t";
      1: character = "2";
      2: character = "s";
      3: character = " ";
      4: character = passed ? "p" : "f";
      5: character = "a";
      6: character = passed ? "s" : "i";
      7: character = passed ? "s" : "l";
      8: character = " ";
      17: character = 8'h0d;
      18: character = 8'h0a;
      default: character = digit < 10 ? "0" + 8'(digit) : "a" + 8'(digit - 4'd10);
    endcase
  end

  // a start bit, eight data bits with the lowest first, and stop bits; what decides is in registers,
  // since nothing here may limit the clock of the design
  always_ff @(posedge clock) begin
    waits <= reset || !done;
    letter <= character;
    clocks <= waits || tick ? 0 : clocks + 1'b1;
    tick <= !waits && !tick && int'(clocks) == CLOCKS - 2;
    turns <= tick && bits == 11 && position > 8 && position < 17;
    turned <= waits ? cycles : turns ? {turned[27:0], turned[31:28]} : turned;
    if (waits) begin
      bits <= 0;
      position <= 0;
      transmit <= 1'b1;
    end else if (tick) begin
      bits <= bits == 11 ? 4'd0 : bits + 4'd1;
      transmit <= bits == 0 ? 1'b0 : bits > 8 ? 1'b1 : letter[3'(bits - 4'd1)];
      if (bits == 11) position <= position == 18 ? 5'd0 : position + 5'd1;
    end
  end
endmodule
