// The copy of a tensor that one load unit reads: a word comes DELAY cycles after its address.
module image #(
  parameter int WIDTH = 8,
  parameter int BITS = 4,
  parameter int DEPTH = 16,
  parameter int DELAY = 1,
  parameter string FILE = ""
) (
  input logic clock,
  input logic [BITS-1:0] address,
  output logic [WIDTH-1:0] data
);
  if (DELAY == 0) begin : at_once
    logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    assign data = words[address];
  end else begin : in_block_ram
    (* rom_style = "block" *) logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    logic [WIDTH-1:0] head;
    always_ff @(posedge clock) head <= words[address];
    if (DELAY == 1) begin : as_read
      assign data = head;
    end else begin : later
      delay #(.WIDTH(WIDTH), .CYCLES(DELAY - 1)) rest (.clock, .reset(1'b0), .now(head), .later(data));
    end
  end
endmodule
