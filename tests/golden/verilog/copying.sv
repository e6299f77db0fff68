// One machine of source.
module source_pe (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic xs_space,
  output logic xs_push,
  output logic [39:0] xs_value,
  output logic x_read,
  output logic [31:0] x_read_address,
  input logic signed [31:0] x_read_data,
  output logic ready,
  output logic [2:0] moved,
  input logic granted,
  output logic [2:0] fault,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  localparam logic in_run = 0;
  localparam logic in_last = 1;

  // what is kept
  logic mode;
  logic signed [31:0] at;

  // mode run
  logic at_run;
  assign at_run = !finished && mode == in_run;
  logic run_0;
  assign run_0 = at_run;
  assign x_read = run_0;
  assign x_read_address = at;
  logic if_next;
  assign if_next = x_read_data != 0;
  logic rule_next;
  assign rule_next = run_0 && if_next;
  logic signed [31:0] next_at;
  assign next_at = 32'(at + 1);
  logic rule_stop;
  assign rule_stop = run_0 && !if_next;

  // mode last
  logic at_last;
  assign at_last = !finished && mode == in_last;
  logic rule_done;
  assign rule_done = at_last;

  // what the present firing needs, and where
  logic sends_xs;
  assign sends_xs = rule_next || rule_stop || rule_done;
  assign moved = (rule_next || rule_stop) ? 4 : 0;

  // firing
  logic [31:0] cooldown;
  logic decided;
  assign decided = rule_next || rule_stop || rule_done;
  assign ready = decided && cooldown == 0 && (!sends_xs || xs_space);
  assign fires = ready && granted;
  assign xs_push = fires && sends_xs;
  always_comb begin
    fault = 0;
  end

  // tokens
  logic signed [31:0] xs_data;
  logic signed [31:0] xs_tag;
  always_comb begin
    xs_data = '0;
    xs_tag = 0;
    if (rule_next) begin
      xs_data = x_read_data;
    end else if (rule_stop) begin
      xs_tag = 1;
    end else if (rule_done) begin
      xs_tag = -2;
    end
  end
  assign xs_value = {8'(xs_tag), xs_data};

  // what a firing leaves behind
  logic next_mode;
  logic ends;
  always_comb begin
    next_mode = mode;
    ends = 1'b0;
    if (rule_next) begin
      next_mode = in_run;
    end else if (rule_stop) begin
      next_mode = in_last;
    end else if (rule_done) begin
      ends = 1'b1;
    end
  end
  always_ff @(posedge clock) begin
    if (reset) begin
      mode <= in_run;
      finished <= 1'b0;
      cooldown <= 0;
      at <= '0;
    end else begin
      if (fires) begin
        mode <= next_mode;
        finished <= ends;
        if (rule_next) begin
          at <= next_at;
        end
      end
      if (fires) begin
        cooldown <= interval - 1;
      end else if (cooldown != 0) begin
        cooldown <= 32'(cooldown - 1);
      end
    end
  end
endmodule

// The load node source: one machine.
module source (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic xs_space [1],
  output logic xs_push [1],
  output logic [39:0] xs_value [1],
  output logic x_read [1],
  output logic [31:0] x_read_address [1],
  input logic signed [31:0] x_read_data [1],
  output logic ready [1],
  output logic [2:0] moved [1],
  input logic granted [1],
  output logic [2:0] fault [1],
  output logic fires [1],
  output logic finished [1]
);
  source_pe pe (
    .clock,
    .reset,
    .interval,
    .xs_space(xs_space[0]),
    .xs_push(xs_push[0]),
    .xs_value(xs_value[0]),
    .fires(fires[0]),
    .finished(finished[0]),
    .x_read(x_read[0]),
    .x_read_address(x_read_address[0]),
    .x_read_data(x_read_data[0]),
    .ready(ready[0]),
    .moved(moved[0]),
    .granted(granted[0]),
    .fault(fault[0])
  );
endmodule

// One machine of sink.
module sink_pe (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic xs_valid,
  input logic [39:0] xs_token,
  output logic xs_pop,
  output logic y_write,
  output logic [31:0] y_write_address,
  output logic signed [31:0] y_write_data,
  output logic ready,
  output logic [2:0] moved,
  input logic granted,
  output logic [2:0] fault,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  localparam logic in_take = 0;

  // heads
  logic signed [31:0] value;
  logic signed [31:0] tag;
  assign value = xs_token[31:0];
  assign tag = 32'($signed(xs_token[39:32]));

  // what is kept
  logic mode;
  logic signed [31:0] place;

  // mode take
  logic at_take;
  assign at_take = !finished && mode == in_take && xs_valid;
  logic if_store;
  assign if_store = tag == 0;
  logic rule_store;
  assign rule_store = at_take && if_store;
  assign y_write = rule_store;
  assign y_write_address = place;
  assign y_write_data = value;
  logic signed [31:0] store_place;
  assign store_place = 32'(place + 1);
  logic if_skip;
  assign if_skip = tag == 1;
  logic rule_skip;
  assign rule_skip = at_take && !if_store && if_skip;
  logic if_end;
  assign if_end = tag == -2;
  logic rule_end;
  assign rule_end = at_take && !if_store && !if_skip && if_end;

  // what the present firing needs, and where
  logic takes_xs;
  assign takes_xs = rule_store || rule_skip || rule_end;
  assign moved = rule_store ? 4 : 0;

  // firing
  logic [31:0] cooldown;
  logic decided;
  assign decided = rule_store || rule_skip || rule_end;
  assign ready = decided && cooldown == 0;
  assign fires = ready && granted;
  assign xs_pop = fires && takes_xs;
  always_comb begin
    fault = 0;
    if (at_take && !if_store && !if_skip && !if_end) begin
      fault = 1;
    end
  end

  // what a firing leaves behind
  logic next_mode;
  logic ends;
  always_comb begin
    next_mode = mode;
    ends = 1'b0;
    if (rule_store || rule_skip) begin
      next_mode = in_take;
    end else if (rule_end) begin
      ends = 1'b1;
    end
  end
  always_ff @(posedge clock) begin
    if (reset) begin
      mode <= in_take;
      finished <= 1'b0;
      cooldown <= 0;
      place <= '0;
    end else begin
      if (fires) begin
        mode <= next_mode;
        finished <= ends;
        if (rule_store) begin
          place <= store_place;
        end
      end
      if (fires) begin
        cooldown <= interval - 1;
      end else if (cooldown != 0) begin
        cooldown <= 32'(cooldown - 1);
      end
    end
  end
endmodule

// The store node sink: one machine.
module sink (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic xs_valid [1],
  input logic [39:0] xs_token [1],
  output logic xs_pop [1],
  output logic y_write [1],
  output logic [31:0] y_write_address [1],
  output logic signed [31:0] y_write_data [1],
  output logic ready [1],
  output logic [2:0] moved [1],
  input logic granted [1],
  output logic [2:0] fault [1],
  output logic fires [1],
  output logic finished [1]
);
  sink_pe pe (
    .clock,
    .reset,
    .interval,
    .xs_valid(xs_valid[0]),
    .xs_token(xs_token[0]),
    .xs_pop(xs_pop[0]),
    .fires(fires[0]),
    .finished(finished[0]),
    .y_write(y_write[0]),
    .y_write_address(y_write_address[0]),
    .y_write_data(y_write_data[0]),
    .ready(ready[0]),
    .moved(moved[0]),
    .granted(granted[0]),
    .fault(fault[0])
  );
endmodule
