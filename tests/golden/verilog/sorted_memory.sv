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

// One machine of n2.
module n2_pe (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic s1_valid,
  input logic [39:0] s1_token,
  output logic s1_pop,
  output logic [31:0] s1_from,
  input logic s3_space,
  output logic s3_push,
  output logic [39:0] s3_value,
  output logic [31:0] s3_to,
  output logic [2:0] fault,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  localparam logic in_run = 0;
  localparam logic in_drain = 1;

  // heads
  logic signed [31:0] s1_value;
  logic signed [31:0] s1_tag;
  assign s1_value = s1_token[31:0];
  assign s1_tag = 32'($signed(s1_token[39:32]));

  // what is kept
  logic mode;
  logic points_add;
  logic points_drop;
  logic signed [31:0] points_key_0;
  logic signed [31:0] points_value;
  logic signed [31:0] points_count;
  logic signed [31:0] points_first_key_0;
  logic signed [31:0] points_first_value;
  logic points_full;

  // mode run
  logic at_run;
  assign at_run = !finished && mode == in_run && s1_valid;
  logic if_add;
  assign if_add = s1_tag == 0;
  logic rule_add;
  assign rule_add = at_run && if_add;
  logic signed [31:0] add_points_value;
  assign add_points_value = 1;
  logic rule_full;
  assign rule_full = at_run && !if_add;

  // mode drain
  logic at_drain;
  assign at_drain = !finished && mode == in_drain;
  logic drain_0;
  assign drain_0 = at_drain;
  logic if_drain;
  assign if_drain = points_count > 0;
  logic rule_drain;
  assign rule_drain = drain_0 && if_drain;
  logic signed [31:0] drain_s3;
  assign drain_s3 = 32'(32'(points_first_key_0 * 10) + points_first_value);
  logic rule_end;
  assign rule_end = drain_0 && !if_drain;

  // what the present firing needs, and where
  logic takes_s1;
  assign takes_s1 = rule_add || rule_full;
  assign s1_from = 0;
  logic sends_s3;
  assign sends_s3 = rule_drain || rule_end;
  assign s3_to = 0;

  // firing
  logic [31:0] cooldown;
  logic decided;
  assign decided = rule_add || rule_full || rule_drain || rule_end;
  assign fires = decided && cooldown == 0 && (!sends_s3 || s3_space);
  assign s1_pop = fires && takes_s1;
  assign s3_push = fires && sends_s3;
  assign fault = fires && points_full ? 3'd2 : 0;
  assign points_add = rule_add;
  assign points_drop = rule_drain;
  assign points_key_0 = rule_add ? s1_value : '0;
  assign points_value = rule_add ? add_points_value : '0;
  n2_pe_points points_memory (
    .clock,
    .reset,
    .enable(fires),
    .add(points_add),
    .drop(points_drop),
    .key_0(points_key_0),
    .value(points_value),
    .count(points_count),
    .first_key_0(points_first_key_0),
    .first_value(points_first_value),
    .full(points_full)
  );

  // tokens
  logic signed [31:0] s3_data;
  logic signed [31:0] s3_tag;
  always_comb begin
    s3_data = '0;
    s3_tag = 0;
    if (rule_drain) begin
      s3_data = drain_s3;
    end else if (rule_end) begin
      s3_tag = -2;
    end
  end
  assign s3_value = {8'(s3_tag), s3_data};

  // what a firing leaves behind
  logic next_mode;
  logic ends;
  always_comb begin
    next_mode = mode;
    ends = 1'b0;
    if (rule_add) begin
      next_mode = in_run;
    end else if (rule_full || rule_drain) begin
      next_mode = in_drain;
    end else if (rule_end) begin
      ends = 1'b1;
    end
  end
  always_ff @(posedge clock) begin
    if (reset) begin
      mode <= in_run;
      finished <= 1'b0;
      cooldown <= 0;
    end else if (fires) begin
      mode <= next_mode;
      finished <= ends;
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= cooldown - 1;
    end
  end
endmodule

