// The low WIDTH bits of a product of numbers of WIDTH bits, STAGES cycles after them, in three
// multipliers of about half of the bits.  The first registers are those of the multipliers; with
// three or more there is one behind the sum of their products, and more than four follow it.
module multiply_wide #(
  parameter int WIDTH = 32,
  parameter int STAGES = 3
) (
  input logic clock,
  input logic signed [WIDTH-1:0] left,
  input logic signed [WIDTH-1:0] right,
  output logic signed [WIDTH-1:0] product
);
  localparam int HIGH = WIDTH / 2;
  localparam int LOW = WIDTH - HIGH;
  localparam int INSIDE = STAGES < 3 ? STAGES : STAGES == 3 ? 2 : 3;
  localparam int BEHIND = STAGES - INSIDE;
  logic signed [LOW:0] left_low, right_low;  // with a sign, which is 0
  logic signed [HIGH-1:0] left_high, right_high;
  assign left_low = {1'b0, left[LOW-1:0]};
  assign right_low = {1'b0, right[LOW-1:0]};
  assign left_high = left[WIDTH-1:LOW];
  assign right_high = right[WIDTH-1:LOW];

  logic signed [2*LOW+1:0] low;
  logic signed [WIDTH:0] across, back;
  multiply #(.LEFT(LOW + 1), .RIGHT(LOW + 1), .STAGES(INSIDE)) low_by_low (
    .clock, .left(left_low), .right(right_low), .product(low)
  );
  multiply #(.LEFT(LOW + 1), .RIGHT(HIGH), .STAGES(INSIDE)) low_by_high (
    .clock, .left(left_low), .right(right_high), .product(across)
  );
  multiply #(.LEFT(HIGH), .RIGHT(LOW + 1), .STAGES(INSIDE)) high_by_low (
    .clock, .left(left_high), .right(right_low), .product(back)
  );

  // what lies above of the products across does not count, nor does high by high
  logic [WIDTH-1:0] sum;
  assign sum = {low[WIDTH-1:LOW] + across[HIGH-1:0] + back[HIGH-1:0], low[LOW-1:0]};
  if (BEHIND == 0) begin : direct
    assign product = sum;
  end else begin : registered
    logic [WIDTH-1:0] after [BEHIND];
    assign product = after[BEHIND-1];
    always_ff @(posedge clock) begin
      after[0] <= sum;
      for (int at = 1; at < BEHIND; at++) after[at] <= after[at-1];
    end
  end
endmodule
