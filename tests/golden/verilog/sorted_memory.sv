// A sorted memory: up to 1024 points of one key, the first one first.
module n2_pe_points (
  input logic clock,
  input logic reset,
  input logic enable,
  input logic add,
  input logic drop,
  input logic signed [31:0] key_0,
  input logic signed [31:0] value,
  output logic signed [31:0] count,
  output logic signed [31:0] first_key_0,
  output logic signed [31:0] first_value,
  output logic full
);
  /*verilator no_inline_module*/
  logic signed [31:0] keys_0 [1024];
  logic signed [31:0] values [1024];
  logic signed [31:0] place;
  logic present;
  always_comb begin
    place = 0;
    present = 1'b0;
    if (add) begin
      for (int at = 0; at < 1024; at++) begin
        if (at < count) begin
          if (keys_0[at] < key_0) begin
            place = at + 1;
          end
          if (keys_0[at] == key_0) begin
            present = 1'b1;
          end
        end
      end
    end
  end
  assign first_key_0 = count == 0 ? '0 : keys_0[0];
  assign first_value = count == 0 ? '0 : values[0];
  assign full = add && !present && count == 1024;

  // one point comes or goes
  always_ff @(posedge clock) begin
    if (reset) begin
      count <= 0;
    end else if (enable) begin
      if (add) begin
        if (present) begin
          values[place] <= 32'(values[place] + value);
        end else begin
          for (int at = 0; at < 1023; at++) begin
            if (at >= place) begin
              keys_0[at + 1] <= keys_0[at];
              values[at + 1] <= values[at];
            end
          end
          keys_0[place] <= key_0;
          values[place] <= value;
          count <= count + 1;
        end
      end else if (drop && count != 0) begin
        for (int at = 0; at < 1023; at++) begin
          keys_0[at] <= keys_0[at + 1];
          values[at] <= values[at + 1];
        end
        count <= count - 1;
      end
    end
  end
endmodule

