// One PE of C.
module C_pe (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic A_in_valid,
  input logic signed [31:0] A_in_token,
  output logic A_in_pop,
  input logic B_in_valid,
  input logic signed [31:0] B_in_token,
  output logic B_in_pop,
  input logic A_pass_space,
  output logic A_pass_push,
  output logic signed [31:0] A_pass_value,
  input logic B_pass_space,
  output logic B_pass_push,
  output logic signed [31:0] B_pass_value,
  input logic C_out_space,
  output logic C_out_push,
  output logic signed [31:0] C_out_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic [1:0] k;
  logic ti;
  logic tj;
  logic [1:0] next_k;
  logic next_ti;
  logic next_tj;
  logic finishes;
  always_comb begin
    next_k = k;
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if ($signed(32'(tj)) != 0) begin
      next_tj = 1'(tj + 1);
    end else if ($signed(32'(ti)) != 0) begin
      next_ti = 1'(ti + 1);
      next_tj = 0;
    end else if ($signed(32'(k)) != 2) begin
      next_k = 2'(k + 1);
      next_ti = 0;
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_out;
  always_comb begin
    sends_C_out = $signed(32'(k)) == 2;
  end

  // firing
  logic [31:0] cooldown;
  assign fires =
    !finished
    && cooldown == 0
    && A_in_valid
    && B_in_valid
    && A_pass_space
    && B_pass_space
    && (!sends_C_out || C_out_space);
  assign A_in_pop = fires;
  assign B_in_pop = fires;
  assign A_pass_push = fires;
  assign B_pass_push = fires;
  assign C_out_push = fires && sends_C_out;

  // datapath
  logic signed [31:0] accumulator;
  logic signed [31:0] a0;
  logic signed [31:0] a1;
  logic signed [31:0] a;
  logic signed [31:0] b0;
  logic signed [31:0] b1;
  logic signed [31:0] b;
  logic signed [31:0] previous;
  logic signed [31:0] total;
  logic accumulator_write;
  logic signed [31:0] accumulator_value;
  always_comb begin
    a0 = A_in_token;
    a1 = 0;
    a = a0;
    b0 = B_in_token;
    b1 = 0;
    b = b0;
    A_pass_value = a;
    B_pass_value = b;
    previous = accumulator;
    total = 32'(($signed(32'(k)) == 0 ? 0 : previous) + 32'(a * b));
    accumulator_write = 1'b1;
    accumulator_value = total;
    C_out_value = total;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      ti <= 0;
      tj <= 0;
      finished <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= 32'(cooldown - 1);
    end
    if (fires && accumulator_write) begin
      accumulator <= accumulator_value;
    end
    if (reset) begin
      cooldown <= 0;
      accumulator <= '0;
    end
  end
endmodule

// One PE of C.
module C_pe_2 (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic A_pass_valid,
  input logic signed [31:0] A_pass_token,
  output logic A_pass_pop,
  input logic B_in_valid,
  input logic signed [31:0] B_in_token,
  output logic B_in_pop,
  input logic B_pass_space,
  output logic B_pass_push,
  output logic signed [31:0] B_pass_value,
  input logic C_out_space,
  output logic C_out_push,
  output logic signed [31:0] C_out_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic [1:0] k;
  logic ti;
  logic tj;
  logic [1:0] next_k;
  logic next_ti;
  logic next_tj;
  logic finishes;
  always_comb begin
    next_k = k;
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if ($signed(32'(tj)) != 0) begin
      next_tj = 1'(tj + 1);
    end else if ($signed(32'(ti)) != 0) begin
      next_ti = 1'(ti + 1);
      next_tj = 0;
    end else if ($signed(32'(k)) != 2) begin
      next_k = 2'(k + 1);
      next_ti = 0;
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_out;
  always_comb begin
    sends_C_out = $signed(32'(k)) == 2;
  end

  // firing
  logic [31:0] cooldown;
  assign fires =
    !finished
    && cooldown == 0
    && A_pass_valid
    && B_in_valid
    && B_pass_space
    && (!sends_C_out || C_out_space);
  assign A_pass_pop = fires;
  assign B_in_pop = fires;
  assign B_pass_push = fires;
  assign C_out_push = fires && sends_C_out;

  // datapath
  logic signed [31:0] accumulator;
  logic signed [31:0] a0;
  logic signed [31:0] a1;
  logic signed [31:0] a;
  logic signed [31:0] b0;
  logic signed [31:0] b1;
  logic signed [31:0] b;
  logic signed [31:0] previous;
  logic signed [31:0] total;
  logic accumulator_write;
  logic signed [31:0] accumulator_value;
  always_comb begin
    a0 = 0;
    a1 = A_pass_token;
    a = a1;
    b0 = B_in_token;
    b1 = 0;
    b = b0;
    B_pass_value = b;
    previous = accumulator;
    total = 32'(($signed(32'(k)) == 0 ? 0 : previous) + 32'(a * b));
    accumulator_write = 1'b1;
    accumulator_value = total;
    C_out_value = total;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      ti <= 0;
      tj <= 0;
      finished <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= 32'(cooldown - 1);
    end
    if (fires && accumulator_write) begin
      accumulator <= accumulator_value;
    end
    if (reset) begin
      cooldown <= 0;
      accumulator <= '0;
    end
  end
endmodule

// One PE of C.
module C_pe_3 (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic A_in_valid,
  input logic signed [31:0] A_in_token,
  output logic A_in_pop,
  input logic B_pass_valid,
  input logic signed [31:0] B_pass_token,
  output logic B_pass_pop,
  input logic A_pass_space,
  output logic A_pass_push,
  output logic signed [31:0] A_pass_value,
  input logic C_out_space,
  output logic C_out_push,
  output logic signed [31:0] C_out_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic [1:0] k;
  logic ti;
  logic tj;
  logic [1:0] next_k;
  logic next_ti;
  logic next_tj;
  logic finishes;
  always_comb begin
    next_k = k;
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if ($signed(32'(tj)) != 0) begin
      next_tj = 1'(tj + 1);
    end else if ($signed(32'(ti)) != 0) begin
      next_ti = 1'(ti + 1);
      next_tj = 0;
    end else if ($signed(32'(k)) != 2) begin
      next_k = 2'(k + 1);
      next_ti = 0;
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_out;
  always_comb begin
    sends_C_out = $signed(32'(k)) == 2;
  end

  // firing
  logic [31:0] cooldown;
  assign fires =
    !finished
    && cooldown == 0
    && A_in_valid
    && B_pass_valid
    && A_pass_space
    && (!sends_C_out || C_out_space);
  assign A_in_pop = fires;
  assign B_pass_pop = fires;
  assign A_pass_push = fires;
  assign C_out_push = fires && sends_C_out;

  // datapath
  logic signed [31:0] accumulator;
  logic signed [31:0] a0;
  logic signed [31:0] a1;
  logic signed [31:0] a;
  logic signed [31:0] b0;
  logic signed [31:0] b1;
  logic signed [31:0] b;
  logic signed [31:0] previous;
  logic signed [31:0] total;
  logic accumulator_write;
  logic signed [31:0] accumulator_value;
  always_comb begin
    a0 = A_in_token;
    a1 = 0;
    a = a0;
    b0 = 0;
    b1 = B_pass_token;
    b = b1;
    A_pass_value = a;
    previous = accumulator;
    total = 32'(($signed(32'(k)) == 0 ? 0 : previous) + 32'(a * b));
    accumulator_write = 1'b1;
    accumulator_value = total;
    C_out_value = total;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      ti <= 0;
      tj <= 0;
      finished <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= 32'(cooldown - 1);
    end
    if (fires && accumulator_write) begin
      accumulator <= accumulator_value;
    end
    if (reset) begin
      cooldown <= 0;
      accumulator <= '0;
    end
  end
endmodule

// One PE of C.
module C_pe_4 (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic A_pass_valid,
  input logic signed [31:0] A_pass_token,
  output logic A_pass_pop,
  input logic B_pass_valid,
  input logic signed [31:0] B_pass_token,
  output logic B_pass_pop,
  input logic C_out_space,
  output logic C_out_push,
  output logic signed [31:0] C_out_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic [1:0] k;
  logic ti;
  logic tj;
  logic [1:0] next_k;
  logic next_ti;
  logic next_tj;
  logic finishes;
  always_comb begin
    next_k = k;
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if ($signed(32'(tj)) != 0) begin
      next_tj = 1'(tj + 1);
    end else if ($signed(32'(ti)) != 0) begin
      next_ti = 1'(ti + 1);
      next_tj = 0;
    end else if ($signed(32'(k)) != 2) begin
      next_k = 2'(k + 1);
      next_ti = 0;
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_out;
  always_comb begin
    sends_C_out = $signed(32'(k)) == 2;
  end

  // firing
  logic [31:0] cooldown;
  assign fires =
    !finished
    && cooldown == 0
    && A_pass_valid
    && B_pass_valid
    && (!sends_C_out || C_out_space);
  assign A_pass_pop = fires;
  assign B_pass_pop = fires;
  assign C_out_push = fires && sends_C_out;

  // datapath
  logic signed [31:0] accumulator;
  logic signed [31:0] a0;
  logic signed [31:0] a1;
  logic signed [31:0] a;
  logic signed [31:0] b0;
  logic signed [31:0] b1;
  logic signed [31:0] b;
  logic signed [31:0] previous;
  logic signed [31:0] total;
  logic accumulator_write;
  logic signed [31:0] accumulator_value;
  always_comb begin
    a0 = 0;
    a1 = A_pass_token;
    a = a1;
    b0 = 0;
    b1 = B_pass_token;
    b = b1;
    previous = accumulator;
    total = 32'(($signed(32'(k)) == 0 ? 0 : previous) + 32'(a * b));
    accumulator_write = 1'b1;
    accumulator_value = total;
    C_out_value = total;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      ti <= 0;
      tj <= 0;
      finished <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= 32'(cooldown - 1);
    end
    if (fires && accumulator_write) begin
      accumulator <= accumulator_value;
    end
    if (reset) begin
      cooldown <= 0;
      accumulator <= '0;
    end
  end
endmodule

// The compute node C: 2 x 2 PEs.
module C (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic A_in_valid [2],
  input logic signed [31:0] A_in_token [2],
  output logic A_in_pop [2],
  input logic A_pass_valid [4],
  input logic signed [31:0] A_pass_token [4],
  output logic A_pass_pop [4],
  input logic B_in_valid [2],
  input logic signed [31:0] B_in_token [2],
  output logic B_in_pop [2],
  input logic B_pass_valid [4],
  input logic signed [31:0] B_pass_token [4],
  output logic B_pass_pop [4],
  input logic A_pass_space [4],
  output logic A_pass_push [4],
  output logic signed [31:0] A_pass_value [4],
  input logic B_pass_space [4],
  output logic B_pass_push [4],
  output logic signed [31:0] B_pass_value [4],
  input logic C_out_space [4],
  output logic C_out_push [4],
  output logic signed [31:0] C_out_value [4],
  output logic fires [4],
  output logic finished [4]
);
  C_pe pe_0_0 (
    .clock,
    .reset,
    .interval,
    .A_in_valid(A_in_valid[0]),
    .A_in_token(A_in_token[0]),
    .A_in_pop(A_in_pop[0]),
    .B_in_valid(B_in_valid[0]),
    .B_in_token(B_in_token[0]),
    .B_in_pop(B_in_pop[0]),
    .A_pass_space(A_pass_space[1]),
    .A_pass_push(A_pass_push[1]),
    .A_pass_value(A_pass_value[1]),
    .B_pass_space(B_pass_space[2]),
    .B_pass_push(B_pass_push[2]),
    .B_pass_value(B_pass_value[2]),
    .C_out_space(C_out_space[0]),
    .C_out_push(C_out_push[0]),
    .C_out_value(C_out_value[0]),
    .fires(fires[0]),
    .finished(finished[0])
  );
  C_pe_2 pe_0_1 (
    .clock,
    .reset,
    .interval,
    .A_pass_valid(A_pass_valid[1]),
    .A_pass_token(A_pass_token[1]),
    .A_pass_pop(A_pass_pop[1]),
    .B_in_valid(B_in_valid[1]),
    .B_in_token(B_in_token[1]),
    .B_in_pop(B_in_pop[1]),
    .B_pass_space(B_pass_space[3]),
    .B_pass_push(B_pass_push[3]),
    .B_pass_value(B_pass_value[3]),
    .C_out_space(C_out_space[1]),
    .C_out_push(C_out_push[1]),
    .C_out_value(C_out_value[1]),
    .fires(fires[1]),
    .finished(finished[1])
  );
  C_pe_3 pe_1_0 (
    .clock,
    .reset,
    .interval,
    .A_in_valid(A_in_valid[1]),
    .A_in_token(A_in_token[1]),
    .A_in_pop(A_in_pop[1]),
    .B_pass_valid(B_pass_valid[2]),
    .B_pass_token(B_pass_token[2]),
    .B_pass_pop(B_pass_pop[2]),
    .A_pass_space(A_pass_space[3]),
    .A_pass_push(A_pass_push[3]),
    .A_pass_value(A_pass_value[3]),
    .C_out_space(C_out_space[2]),
    .C_out_push(C_out_push[2]),
    .C_out_value(C_out_value[2]),
    .fires(fires[2]),
    .finished(finished[2])
  );
  C_pe_4 pe_1_1 (
    .clock,
    .reset,
    .interval,
    .A_pass_valid(A_pass_valid[3]),
    .A_pass_token(A_pass_token[3]),
    .A_pass_pop(A_pass_pop[3]),
    .B_pass_valid(B_pass_valid[3]),
    .B_pass_token(B_pass_token[3]),
    .B_pass_pop(B_pass_pop[3]),
    .C_out_space(C_out_space[3]),
    .C_out_push(C_out_push[3]),
    .C_out_value(C_out_value[3]),
    .fires(fires[3]),
    .finished(finished[3])
  );

  // from PEs to channels
  assign A_pass_pop[0] = 1'b0;
  assign A_pass_pop[2] = 1'b0;
  assign B_pass_pop[0] = 1'b0;
  assign B_pass_pop[1] = 1'b0;
  assign A_pass_push[0] = 1'b0;
  assign A_pass_value[0] = '0;
  assign A_pass_push[2] = 1'b0;
  assign A_pass_value[2] = '0;
  assign B_pass_push[0] = 1'b0;
  assign B_pass_value[0] = '0;
  assign B_pass_push[1] = 1'b0;
  assign B_pass_value[1] = '0;
endmodule

// One PE of C_store.
module C_store_pe #(parameter int ii = 0, parameter int jj = 0) (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic C_out_valid,
  input logic signed [31:0] C_out_token,
  output logic C_out_pop,
  output logic C_write,
  output logic [1:0] C_write_address,
  output logic signed [31:0] C_write_data,
  output logic ready,
  output logic [2:0] moved,
  input logic granted,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic ti;
  logic tj;
  logic next_ti;
  logic next_tj;
  logic finishes;
  always_comb begin
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if ($signed(32'(tj)) != 0) begin
      next_tj = 1'(tj + 1);
    end else if ($signed(32'(ti)) != 0) begin
      next_ti = 1'(ti + 1);
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  always_comb begin
    C_write = 1'b1;
    C_write_address = 2'(32'(32'(ii + $signed(32'(ti))) * 2 + 32'(jj + $signed(32'(tj)))));
    moved = 4;
  end

  // firing
  logic [31:0] cooldown;
  assign ready = !finished && cooldown == 0 && C_out_valid;
  assign fires = ready && granted;
  assign C_out_pop = fires;

  // datapath
  logic signed [31:0] value;
  always_comb begin
    value = C_out_token;
    C_write_data = value;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      ti <= 0;
      tj <= 0;
      finished <= 1'b0;
    end else if (fires) begin
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= 32'(cooldown - 1);
    end
    if (reset) begin
      cooldown <= 0;
    end
  end
endmodule

// The store node C_store: 2 x 2 PEs.
module C_store (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic C_out_valid [4],
  input logic signed [31:0] C_out_token [4],
  output logic C_out_pop [4],
  output logic C_write [4],
  output logic [1:0] C_write_address [4],
  output logic signed [31:0] C_write_data [4],
  output logic ready [4],
  output logic [2:0] moved [4],
  input logic granted [4],
  output logic fires [4],
  output logic finished [4]
);
  C_store_pe #(.ii(0), .jj(0)) pe_0_0 (
    .clock,
    .reset,
    .interval,
    .C_out_valid(C_out_valid[0]),
    .C_out_token(C_out_token[0]),
    .C_out_pop(C_out_pop[0]),
    .fires(fires[0]),
    .finished(finished[0]),
    .C_write(C_write[0]),
    .C_write_address(C_write_address[0]),
    .C_write_data(C_write_data[0]),
    .ready(ready[0]),
    .moved(moved[0]),
    .granted(granted[0])
  );
  C_store_pe #(.ii(0), .jj(1)) pe_0_1 (
    .clock,
    .reset,
    .interval,
    .C_out_valid(C_out_valid[1]),
    .C_out_token(C_out_token[1]),
    .C_out_pop(C_out_pop[1]),
    .fires(fires[1]),
    .finished(finished[1]),
    .C_write(C_write[1]),
    .C_write_address(C_write_address[1]),
    .C_write_data(C_write_data[1]),
    .ready(ready[1]),
    .moved(moved[1]),
    .granted(granted[1])
  );
  C_store_pe #(.ii(1), .jj(0)) pe_1_0 (
    .clock,
    .reset,
    .interval,
    .C_out_valid(C_out_valid[2]),
    .C_out_token(C_out_token[2]),
    .C_out_pop(C_out_pop[2]),
    .fires(fires[2]),
    .finished(finished[2]),
    .C_write(C_write[2]),
    .C_write_address(C_write_address[2]),
    .C_write_data(C_write_data[2]),
    .ready(ready[2]),
    .moved(moved[2]),
    .granted(granted[2])
  );
  C_store_pe #(.ii(1), .jj(1)) pe_1_1 (
    .clock,
    .reset,
    .interval,
    .C_out_valid(C_out_valid[3]),
    .C_out_token(C_out_token[3]),
    .C_out_pop(C_out_pop[3]),
    .fires(fires[3]),
    .finished(finished[3]),
    .C_write(C_write[3]),
    .C_write_address(C_write_address[3]),
    .C_write_data(C_write_data[3]),
    .ready(ready[3]),
    .moved(moved[3]),
    .granted(granted[3])
  );
endmodule

// The design gemm.
//
// Latencies, capacities and intervals are in cycles and tokens.
// A node fires when memory grants the access for which it is ready.
module gemm_top (
  input logic clock,
  input logic reset,
  input logic [31:0] A_in_latency,
  input logic [31:0] A_in_capacity,
  output logic [31:0] A_in_held [2],
  input logic [31:0] B_in_latency,
  input logic [31:0] B_in_capacity,
  output logic [31:0] B_in_held [2],
  input logic [31:0] A_pass_latency,
  input logic [31:0] A_pass_capacity,
  output logic [31:0] A_pass_held [4],
  input logic [31:0] B_pass_latency,
  input logic [31:0] B_pass_capacity,
  output logic [31:0] B_pass_held [4],
  input logic [31:0] C_out_latency,
  input logic [31:0] C_out_capacity,
  output logic [31:0] C_out_held [4],
  input logic [31:0] A_load_interval,
  output logic A_load_fires [2],
  output logic A_load_finished [2],
  output logic A_load_ready [2],
  output logic [2:0] A_load_moved [2],
  input logic A_load_granted [2],
  output logic A_load_A_read [2],
  output logic [2:0] A_load_A_read_address [2],
  input logic signed [31:0] A_load_A_read_data [2],
  input logic [31:0] B_load_interval,
  output logic B_load_fires [2],
  output logic B_load_finished [2],
  output logic B_load_ready [2],
  output logic [2:0] B_load_moved [2],
  input logic B_load_granted [2],
  output logic B_load_B_read [2],
  output logic [2:0] B_load_B_read_address [2],
  input logic signed [31:0] B_load_B_read_data [2],
  input logic [31:0] C_interval,
  output logic C_fires [4],
  output logic C_finished [4],
  input logic [31:0] C_store_interval,
  output logic C_store_fires [4],
  output logic C_store_finished [4],
  output logic C_store_ready [4],
  output logic [2:0] C_store_moved [4],
  input logic C_store_granted [4],
  output logic C_store_C_write [4],
  output logic [1:0] C_store_C_write_address [4],
  output logic signed [31:0] C_store_C_write_data [4]
);
  logic A_in_push [2];
  logic signed [31:0] A_in_value [2];
  logic A_in_space [2];
  logic A_in_pop [2];
  logic A_in_valid [2];
  logic signed [31:0] A_in_token [2];
  for (genvar at = 0; at < 2; at++) begin : A_in_fifos
    adjustable_fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .push(A_in_push[at]),
      .value(A_in_value[at]),
      .space(A_in_space[at]),
      .pop(A_in_pop[at]),
      .valid(A_in_valid[at]),
      .token(A_in_token[at]),
      .latency(A_in_latency),
      .capacity(A_in_capacity),
      .held(A_in_held[at])
    );
  end
  logic B_in_push [2];
  logic signed [31:0] B_in_value [2];
  logic B_in_space [2];
  logic B_in_pop [2];
  logic B_in_valid [2];
  logic signed [31:0] B_in_token [2];
  for (genvar at = 0; at < 2; at++) begin : B_in_fifos
    adjustable_fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .push(B_in_push[at]),
      .value(B_in_value[at]),
      .space(B_in_space[at]),
      .pop(B_in_pop[at]),
      .valid(B_in_valid[at]),
      .token(B_in_token[at]),
      .latency(B_in_latency),
      .capacity(B_in_capacity),
      .held(B_in_held[at])
    );
  end
  logic A_pass_push [4];
  logic signed [31:0] A_pass_value [4];
  logic A_pass_space [4];
  logic A_pass_pop [4];
  logic A_pass_valid [4];
  logic signed [31:0] A_pass_token [4];
  for (genvar at = 0; at < 4; at++) begin : A_pass_fifos
    adjustable_fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .push(A_pass_push[at]),
      .value(A_pass_value[at]),
      .space(A_pass_space[at]),
      .pop(A_pass_pop[at]),
      .valid(A_pass_valid[at]),
      .token(A_pass_token[at]),
      .latency(A_pass_latency),
      .capacity(A_pass_capacity),
      .held(A_pass_held[at])
    );
  end
  logic B_pass_push [4];
  logic signed [31:0] B_pass_value [4];
  logic B_pass_space [4];
  logic B_pass_pop [4];
  logic B_pass_valid [4];
  logic signed [31:0] B_pass_token [4];
  for (genvar at = 0; at < 4; at++) begin : B_pass_fifos
    adjustable_fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .push(B_pass_push[at]),
      .value(B_pass_value[at]),
      .space(B_pass_space[at]),
      .pop(B_pass_pop[at]),
      .valid(B_pass_valid[at]),
      .token(B_pass_token[at]),
      .latency(B_pass_latency),
      .capacity(B_pass_capacity),
      .held(B_pass_held[at])
    );
  end
  logic C_out_push [4];
  logic signed [31:0] C_out_value [4];
  logic C_out_space [4];
  logic C_out_pop [4];
  logic C_out_valid [4];
  logic signed [31:0] C_out_token [4];
  for (genvar at = 0; at < 4; at++) begin : C_out_fifos
    adjustable_fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .push(C_out_push[at]),
      .value(C_out_value[at]),
      .space(C_out_space[at]),
      .pop(C_out_pop[at]),
      .valid(C_out_valid[at]),
      .token(C_out_token[at]),
      .latency(C_out_latency),
      .capacity(C_out_capacity),
      .held(C_out_held[at])
    );
  end
  A_load A_load_node (
    .clock,
    .reset,
    .interval(A_load_interval),
    .A_in_space,
    .A_in_push,
    .A_in_value,
    .A_read(A_load_A_read),
    .A_read_address(A_load_A_read_address),
    .A_read_data(A_load_A_read_data),
    .ready(A_load_ready),
    .moved(A_load_moved),
    .granted(A_load_granted),
    .fires(A_load_fires),
    .finished(A_load_finished)
  );
  B_load B_load_node (
    .clock,
    .reset,
    .interval(B_load_interval),
    .B_in_space,
    .B_in_push,
    .B_in_value,
    .B_read(B_load_B_read),
    .B_read_address(B_load_B_read_address),
    .B_read_data(B_load_B_read_data),
    .ready(B_load_ready),
    .moved(B_load_moved),
    .granted(B_load_granted),
    .fires(B_load_fires),
    .finished(B_load_finished)
  );
  C C_node (
    .clock,
    .reset,
    .interval(C_interval),
    .A_in_valid,
    .A_in_token,
    .A_in_pop,
    .A_pass_valid,
    .A_pass_token,
    .A_pass_pop,
    .B_in_valid,
    .B_in_token,
    .B_in_pop,
    .B_pass_valid,
    .B_pass_token,
    .B_pass_pop,
    .A_pass_space,
    .A_pass_push,
    .A_pass_value,
    .B_pass_space,
    .B_pass_push,
    .B_pass_value,
    .C_out_space,
    .C_out_push,
    .C_out_value,
    .fires(C_fires),
    .finished(C_finished)
  );
  C_store C_store_node (
    .clock,
    .reset,
    .interval(C_store_interval),
    .C_out_valid,
    .C_out_token,
    .C_out_pop,
    .C_write(C_store_C_write),
    .C_write_address(C_store_C_write_address),
    .C_write_data(C_store_C_write_data),
    .ready(C_store_ready),
    .moved(C_store_moved),
    .granted(C_store_granted),
    .fires(C_store_fires),
    .finished(C_store_finished)
  );
endmodule
