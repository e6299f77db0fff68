// The copy of a tensor that one load unit reads: a word comes DELAY cycles after its address.
//
// It is a block RAM, or with TABLE or without a delay look-up tables, behind a register of the address.
// The register at the output of a block RAM is not inferred.  With T2S_OUTPUT_REGISTER it is left
// out here, for the flow to turn on in the cells.
module image #(
  parameter int WIDTH = 8,
  parameter int BITS = 4,
  parameter int DEPTH = 16,
  parameter int DELAY = 1,
  parameter bit TABLE = 0,
  parameter string FILE = ""
) (
  input logic clock,
  input logic [BITS-1:0] address,
  output logic [WIDTH-1:0] data
);
`ifdef T2S_OUTPUT_REGISTER
  localparam int REST = DELAY - 2;
`else
  localparam int REST = DELAY - 1;
`endif
  if (DELAY == 0) begin : at_once
    logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    assign data = words[address];
  end else if (TABLE) begin : tables
    (* rom_style = "logic" *) logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    logic [BITS-1:0] at;
    always_ff @(posedge clock) at <= address;
    if (DELAY == 1) begin : as_found
      assign data = words[at];
    end else begin : behind
      delay #(.WIDTH(WIDTH), .CYCLES(DELAY - 1)) rest (
        .clock, .reset(1'b0), .now(words[at]), .later(data)
      );
    end
  end else if (DELAY == 1) begin : read
    (* rom_style = "block" *) logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    always_ff @(posedge clock) data <= words[address];
  end else begin : registered
    (* rom_style = "block" *) logic [WIDTH-1:0] words [DEPTH];
    initial $readmemh(FILE, words);
    logic [WIDTH-1:0] head;
    always_ff @(posedge clock) head <= words[address];
    if (REST == 0) begin : as_read
      assign data = head;
    end else begin : later
      delay #(.WIDTH(WIDTH), .CYCLES(REST)) rest (.clock, .reset(1'b0), .now(head), .later(data));
    end
  end
endmodule
