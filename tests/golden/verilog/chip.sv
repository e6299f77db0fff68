// One PE of C.
module C_pe (
  input logic clock,
  input logic reset,
  input logic A_load_to_C_valid,
  input logic signed [15:0] A_load_to_C_token,
  output logic A_load_to_C_pop,
  input logic B_load_to_C_valid,
  input logic signed [15:0] B_load_to_C_token,
  output logic B_load_to_C_pop,
  input logic A_along_j_space,
  output logic A_along_j_push,
  output logic signed [15:0] A_along_j_value,
  input logic B_along_i_space,
  output logic B_along_i_push,
  output logic signed [15:0] B_along_i_value,
  input logic C_to_C_store_space,
  output logic C_to_C_store_push,
  output logic signed [31:0] C_to_C_store_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  logic part_after_1;
  logic part_after_2;
  logic part_after_3;
  logic fires_after_1;
  logic fires_after_2;
  logic fires_after_3;

  // loop counters
  logic [2:0] k;
  logic [2:0] next_k;
  logic finishes;
  always_comb begin
    next_k = k;
    finishes = finished;
    if ($signed(32'(k)) != 4) begin
      next_k = 3'(k + 1);
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_to_C_store;
  logic coming_sends_C_to_C_store;
  always_comb begin
    coming_sends_C_to_C_store = $signed(32'(next_k)) == 4;
  end

  // firing
  assign fires = A_load_to_C_valid && B_load_to_C_valid && A_along_j_space && B_along_i_space;
  assign A_load_to_C_pop = fires;
  assign B_load_to_C_pop = fires;
  assign A_along_j_push = fires;
  assign B_along_i_push = fires;
  assign C_to_C_store_push = fires && sends_C_to_C_store;

  // datapath
  logic signed [31:0] C_partial;
  logic signed [15:0] A_entering;
  logic signed [15:0] A_passed;
  logic signed [15:0] A;
  logic signed [15:0] B_entering;
  logic signed [15:0] B_passed;
  logic signed [15:0] B;
  logic signed [31:0] carried;
  logic part;
  logic signed [31:0] previous;
  logic signed [31:0] sum;
  logic signed [31:0] product;
  logic signed [31:0] part_2;
  logic signed [31:0] C;
  logic C_partial_write;
  logic signed [31:0] C_partial_value;
  multiply #(.LEFT(16), .RIGHT(16), .STAGES(3)) multiplier (
    .clock,
    .left(16'(A)),
    .right(16'(B)),
    .product
  );
  accumulate #(.WIDTH(32)) accumulator (
    .clear(part_after_3),
    .sum(carried),
    .value(part_2),
    .next(sum)
  );
  always_comb begin
    A_entering = A_load_to_C_token;
    A_passed = 16'sd0;
    A = A_entering;
    A_along_j_value = A;
    B_entering = B_load_to_C_token;
    B_passed = 16'sd0;
    B = B_entering;
    B_along_i_value = B;
    carried = C_partial;
    part = $signed(32'(k)) == 0;
    previous = part_after_3 ? 0 : carried;
    part_2 = 32'(product);
    C = sum;
    C_partial_write = 1'b1;
    C_partial_value = C;
    C_to_C_store_value = C_partial;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      finished <= 1'b0;
      sends_C_to_C_store <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      finished <= finishes;
      sends_C_to_C_store <= coming_sends_C_to_C_store;
    end
    if (fires_after_3 && C_partial_write) begin
      C_partial <= C_partial_value;
    end
    part_after_1 <= part;
    part_after_2 <= part_after_1;
    part_after_3 <= part_after_2;
    fires_after_1 <= fires;
    fires_after_2 <= fires_after_1;
    fires_after_3 <= fires_after_2;
    if (reset) begin
      C_partial <= '0;
      fires_after_1 <= '0;
      fires_after_2 <= '0;
      fires_after_3 <= '0;
    end
  end
endmodule

// One PE of C.
module C_pe_2 (
  input logic clock,
  input logic reset,
  input logic A_along_j_valid,
  input logic signed [15:0] A_along_j_token,
  output logic A_along_j_pop,
  input logic B_load_to_C_valid,
  input logic signed [15:0] B_load_to_C_token,
  output logic B_load_to_C_pop,
  input logic B_along_i_space,
  output logic B_along_i_push,
  output logic signed [15:0] B_along_i_value,
  input logic C_to_C_store_space,
  output logic C_to_C_store_push,
  output logic signed [31:0] C_to_C_store_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  logic part_after_1;
  logic part_after_2;
  logic part_after_3;
  logic fires_after_1;
  logic fires_after_2;
  logic fires_after_3;

  // loop counters
  logic [2:0] k;
  logic [2:0] next_k;
  logic finishes;
  always_comb begin
    next_k = k;
    finishes = finished;
    if ($signed(32'(k)) != 4) begin
      next_k = 3'(k + 1);
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_to_C_store;
  logic coming_sends_C_to_C_store;
  always_comb begin
    coming_sends_C_to_C_store = $signed(32'(next_k)) == 4;
  end

  // firing
  assign fires = A_along_j_valid && B_load_to_C_valid && B_along_i_space;
  assign A_along_j_pop = fires;
  assign B_load_to_C_pop = fires;
  assign B_along_i_push = fires;
  assign C_to_C_store_push = fires && sends_C_to_C_store;

  // datapath
  logic signed [31:0] C_partial;
  logic signed [15:0] A_entering;
  logic signed [15:0] A_passed;
  logic signed [15:0] A;
  logic signed [15:0] B_entering;
  logic signed [15:0] B_passed;
  logic signed [15:0] B;
  logic signed [31:0] carried;
  logic part;
  logic signed [31:0] previous;
  logic signed [31:0] sum;
  logic signed [31:0] product;
  logic signed [31:0] part_2;
  logic signed [31:0] C;
  logic C_partial_write;
  logic signed [31:0] C_partial_value;
  multiply #(.LEFT(16), .RIGHT(16), .STAGES(3)) multiplier (
    .clock,
    .left(16'(A)),
    .right(16'(B)),
    .product
  );
  accumulate #(.WIDTH(32)) accumulator (
    .clear(part_after_3),
    .sum(carried),
    .value(part_2),
    .next(sum)
  );
  always_comb begin
    A_entering = 16'sd0;
    A_passed = A_along_j_token;
    A = A_passed;
    B_entering = B_load_to_C_token;
    B_passed = 16'sd0;
    B = B_entering;
    B_along_i_value = B;
    carried = C_partial;
    part = $signed(32'(k)) == 0;
    previous = part_after_3 ? 0 : carried;
    part_2 = 32'(product);
    C = sum;
    C_partial_write = 1'b1;
    C_partial_value = C;
    C_to_C_store_value = C_partial;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      finished <= 1'b0;
      sends_C_to_C_store <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      finished <= finishes;
      sends_C_to_C_store <= coming_sends_C_to_C_store;
    end
    if (fires_after_3 && C_partial_write) begin
      C_partial <= C_partial_value;
    end
    part_after_1 <= part;
    part_after_2 <= part_after_1;
    part_after_3 <= part_after_2;
    fires_after_1 <= fires;
    fires_after_2 <= fires_after_1;
    fires_after_3 <= fires_after_2;
    if (reset) begin
      C_partial <= '0;
      fires_after_1 <= '0;
      fires_after_2 <= '0;
      fires_after_3 <= '0;
    end
  end
endmodule

// One PE of C.
module C_pe_3 (
  input logic clock,
  input logic reset,
  input logic A_load_to_C_valid,
  input logic signed [15:0] A_load_to_C_token,
  output logic A_load_to_C_pop,
  input logic B_along_i_valid,
  input logic signed [15:0] B_along_i_token,
  output logic B_along_i_pop,
  input logic A_along_j_space,
  output logic A_along_j_push,
  output logic signed [15:0] A_along_j_value,
  input logic C_to_C_store_space,
  output logic C_to_C_store_push,
  output logic signed [31:0] C_to_C_store_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  logic part_after_1;
  logic part_after_2;
  logic part_after_3;
  logic fires_after_1;
  logic fires_after_2;
  logic fires_after_3;

  // loop counters
  logic [2:0] k;
  logic [2:0] next_k;
  logic finishes;
  always_comb begin
    next_k = k;
    finishes = finished;
    if ($signed(32'(k)) != 4) begin
      next_k = 3'(k + 1);
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_to_C_store;
  logic coming_sends_C_to_C_store;
  always_comb begin
    coming_sends_C_to_C_store = $signed(32'(next_k)) == 4;
  end

  // firing
  assign fires = A_load_to_C_valid && B_along_i_valid && A_along_j_space;
  assign A_load_to_C_pop = fires;
  assign B_along_i_pop = fires;
  assign A_along_j_push = fires;
  assign C_to_C_store_push = fires && sends_C_to_C_store;

  // datapath
  logic signed [31:0] C_partial;
  logic signed [15:0] A_entering;
  logic signed [15:0] A_passed;
  logic signed [15:0] A;
  logic signed [15:0] B_entering;
  logic signed [15:0] B_passed;
  logic signed [15:0] B;
  logic signed [31:0] carried;
  logic part;
  logic signed [31:0] previous;
  logic signed [31:0] sum;
  logic signed [31:0] product;
  logic signed [31:0] part_2;
  logic signed [31:0] C;
  logic C_partial_write;
  logic signed [31:0] C_partial_value;
  multiply #(.LEFT(16), .RIGHT(16), .STAGES(3)) multiplier (
    .clock,
    .left(16'(A)),
    .right(16'(B)),
    .product
  );
  accumulate #(.WIDTH(32)) accumulator (
    .clear(part_after_3),
    .sum(carried),
    .value(part_2),
    .next(sum)
  );
  always_comb begin
    A_entering = A_load_to_C_token;
    A_passed = 16'sd0;
    A = A_entering;
    A_along_j_value = A;
    B_entering = 16'sd0;
    B_passed = B_along_i_token;
    B = B_passed;
    carried = C_partial;
    part = $signed(32'(k)) == 0;
    previous = part_after_3 ? 0 : carried;
    part_2 = 32'(product);
    C = sum;
    C_partial_write = 1'b1;
    C_partial_value = C;
    C_to_C_store_value = C_partial;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      finished <= 1'b0;
      sends_C_to_C_store <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      finished <= finishes;
      sends_C_to_C_store <= coming_sends_C_to_C_store;
    end
    if (fires_after_3 && C_partial_write) begin
      C_partial <= C_partial_value;
    end
    part_after_1 <= part;
    part_after_2 <= part_after_1;
    part_after_3 <= part_after_2;
    fires_after_1 <= fires;
    fires_after_2 <= fires_after_1;
    fires_after_3 <= fires_after_2;
    if (reset) begin
      C_partial <= '0;
      fires_after_1 <= '0;
      fires_after_2 <= '0;
      fires_after_3 <= '0;
    end
  end
endmodule

// One PE of C.
module C_pe_4 (
  input logic clock,
  input logic reset,
  input logic A_along_j_valid,
  input logic signed [15:0] A_along_j_token,
  output logic A_along_j_pop,
  input logic B_along_i_valid,
  input logic signed [15:0] B_along_i_token,
  output logic B_along_i_pop,
  input logic C_to_C_store_space,
  output logic C_to_C_store_push,
  output logic signed [31:0] C_to_C_store_value,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/
  logic part_after_1;
  logic part_after_2;
  logic part_after_3;
  logic fires_after_1;
  logic fires_after_2;
  logic fires_after_3;

  // loop counters
  logic [2:0] k;
  logic [2:0] next_k;
  logic finishes;
  always_comb begin
    next_k = k;
    finishes = finished;
    if ($signed(32'(k)) != 4) begin
      next_k = 3'(k + 1);
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic sends_C_to_C_store;
  logic coming_sends_C_to_C_store;
  always_comb begin
    coming_sends_C_to_C_store = $signed(32'(next_k)) == 4;
  end

  // firing
  assign fires = A_along_j_valid && B_along_i_valid;
  assign A_along_j_pop = fires;
  assign B_along_i_pop = fires;
  assign C_to_C_store_push = fires && sends_C_to_C_store;

  // datapath
  logic signed [31:0] C_partial;
  logic signed [15:0] A_entering;
  logic signed [15:0] A_passed;
  logic signed [15:0] A;
  logic signed [15:0] B_entering;
  logic signed [15:0] B_passed;
  logic signed [15:0] B;
  logic signed [31:0] carried;
  logic part;
  logic signed [31:0] previous;
  logic signed [31:0] sum;
  logic signed [31:0] product;
  logic signed [31:0] part_2;
  logic signed [31:0] C;
  logic C_partial_write;
  logic signed [31:0] C_partial_value;
  multiply #(.LEFT(16), .RIGHT(16), .STAGES(3)) multiplier (
    .clock,
    .left(16'(A)),
    .right(16'(B)),
    .product
  );
  accumulate #(.WIDTH(32)) accumulator (
    .clear(part_after_3),
    .sum(carried),
    .value(part_2),
    .next(sum)
  );
  always_comb begin
    A_entering = 16'sd0;
    A_passed = A_along_j_token;
    A = A_passed;
    B_entering = 16'sd0;
    B_passed = B_along_i_token;
    B = B_passed;
    carried = C_partial;
    part = $signed(32'(k)) == 0;
    previous = part_after_3 ? 0 : carried;
    part_2 = 32'(product);
    C = sum;
    C_partial_write = 1'b1;
    C_partial_value = C;
    C_to_C_store_value = C_partial;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset) begin
      k <= 0;
      finished <= 1'b0;
      sends_C_to_C_store <= 1'b0;
    end else if (fires) begin
      k <= next_k;
      finished <= finishes;
      sends_C_to_C_store <= coming_sends_C_to_C_store;
    end
    if (fires_after_3 && C_partial_write) begin
      C_partial <= C_partial_value;
    end
    part_after_1 <= part;
    part_after_2 <= part_after_1;
    part_after_3 <= part_after_2;
    fires_after_1 <= fires;
    fires_after_2 <= fires_after_1;
    fires_after_3 <= fires_after_2;
    if (reset) begin
      C_partial <= '0;
      fires_after_1 <= '0;
      fires_after_2 <= '0;
      fires_after_3 <= '0;
    end
  end
endmodule

// The compute node C: 2 x 2 PEs.
module C (
  input logic clock,
  input logic reset,
  input logic A_load_to_C_valid [2],
  input logic signed [15:0] A_load_to_C_token [2],
  output logic A_load_to_C_pop [2],
  input logic A_along_j_valid [4],
  input logic signed [15:0] A_along_j_token [4],
  output logic A_along_j_pop [4],
  input logic B_load_to_C_valid [2],
  input logic signed [15:0] B_load_to_C_token [2],
  output logic B_load_to_C_pop [2],
  input logic B_along_i_valid [4],
  input logic signed [15:0] B_along_i_token [4],
  output logic B_along_i_pop [4],
  input logic A_along_j_space [4],
  output logic A_along_j_push [4],
  output logic signed [15:0] A_along_j_value [4],
  input logic B_along_i_space [4],
  output logic B_along_i_push [4],
  output logic signed [15:0] B_along_i_value [4],
  input logic C_to_C_store_space [4],
  output logic C_to_C_store_push [4],
  output logic signed [31:0] C_to_C_store_value [4],
  output logic fires [4],
  output logic finished [4]
);
  C_pe pe_0_0 (
    .clock,
    .reset,
    .A_load_to_C_valid(A_load_to_C_valid[0]),
    .A_load_to_C_token(A_load_to_C_token[0]),
    .A_load_to_C_pop(A_load_to_C_pop[0]),
    .B_load_to_C_valid(B_load_to_C_valid[0]),
    .B_load_to_C_token(B_load_to_C_token[0]),
    .B_load_to_C_pop(B_load_to_C_pop[0]),
    .A_along_j_space(A_along_j_space[1]),
    .A_along_j_push(A_along_j_push[1]),
    .A_along_j_value(A_along_j_value[1]),
    .B_along_i_space(B_along_i_space[2]),
    .B_along_i_push(B_along_i_push[2]),
    .B_along_i_value(B_along_i_value[2]),
    .C_to_C_store_space(C_to_C_store_space[0]),
    .C_to_C_store_push(C_to_C_store_push[0]),
    .C_to_C_store_value(C_to_C_store_value[0]),
    .fires(fires[0]),
    .finished(finished[0])
  );
  C_pe_2 pe_0_1 (
    .clock,
    .reset,
    .A_along_j_valid(A_along_j_valid[1]),
    .A_along_j_token(A_along_j_token[1]),
    .A_along_j_pop(A_along_j_pop[1]),
    .B_load_to_C_valid(B_load_to_C_valid[1]),
    .B_load_to_C_token(B_load_to_C_token[1]),
    .B_load_to_C_pop(B_load_to_C_pop[1]),
    .B_along_i_space(B_along_i_space[3]),
    .B_along_i_push(B_along_i_push[3]),
    .B_along_i_value(B_along_i_value[3]),
    .C_to_C_store_space(C_to_C_store_space[1]),
    .C_to_C_store_push(C_to_C_store_push[1]),
    .C_to_C_store_value(C_to_C_store_value[1]),
    .fires(fires[1]),
    .finished(finished[1])
  );
  C_pe_3 pe_1_0 (
    .clock,
    .reset,
    .A_load_to_C_valid(A_load_to_C_valid[1]),
    .A_load_to_C_token(A_load_to_C_token[1]),
    .A_load_to_C_pop(A_load_to_C_pop[1]),
    .B_along_i_valid(B_along_i_valid[2]),
    .B_along_i_token(B_along_i_token[2]),
    .B_along_i_pop(B_along_i_pop[2]),
    .A_along_j_space(A_along_j_space[3]),
    .A_along_j_push(A_along_j_push[3]),
    .A_along_j_value(A_along_j_value[3]),
    .C_to_C_store_space(C_to_C_store_space[2]),
    .C_to_C_store_push(C_to_C_store_push[2]),
    .C_to_C_store_value(C_to_C_store_value[2]),
    .fires(fires[2]),
    .finished(finished[2])
  );
  C_pe_4 pe_1_1 (
    .clock,
    .reset,
    .A_along_j_valid(A_along_j_valid[3]),
    .A_along_j_token(A_along_j_token[3]),
    .A_along_j_pop(A_along_j_pop[3]),
    .B_along_i_valid(B_along_i_valid[3]),
    .B_along_i_token(B_along_i_token[3]),
    .B_along_i_pop(B_along_i_pop[3]),
    .C_to_C_store_space(C_to_C_store_space[3]),
    .C_to_C_store_push(C_to_C_store_push[3]),
    .C_to_C_store_value(C_to_C_store_value[3]),
    .fires(fires[3]),
    .finished(finished[3])
  );

  // from PEs to channels
  assign A_along_j_pop[0] = 1'b0;
  assign A_along_j_pop[2] = 1'b0;
  assign B_along_i_pop[0] = 1'b0;
  assign B_along_i_pop[1] = 1'b0;
  assign A_along_j_push[0] = 1'b0;
  assign A_along_j_value[0] = '0;
  assign A_along_j_push[2] = 1'b0;
  assign A_along_j_value[2] = '0;
  assign B_along_i_push[0] = 1'b0;
  assign B_along_i_value[0] = '0;
  assign B_along_i_push[1] = 1'b0;
  assign B_along_i_value[1] = '0;
endmodule

// The design C.
//
// Latencies, capacities and intervals are in cycles and tokens.
// A node fires when memory grants the access for which it is ready.
module C_top (
  input logic clock,
  input logic reset,
  output logic A_load_fires [2],
  output logic A_load_finished [2],
  output logic A_load_ready [2],
  output logic [1:0] A_load_moved [2],
  input logic A_load_granted [2],
  output logic A_load_A_read [2],
  output logic [3:0] A_load_A_read_address [2],
  input logic signed [15:0] A_load_A_read_data [2],
  output logic B_load_fires [2],
  output logic B_load_finished [2],
  output logic B_load_ready [2],
  output logic [1:0] B_load_moved [2],
  input logic B_load_granted [2],
  output logic B_load_B_read [2],
  output logic [3:0] B_load_B_read_address [2],
  input logic signed [15:0] B_load_B_read_data [2],
  output logic C_fires [4],
  output logic C_finished [4],
  output logic C_store_fires [4],
  output logic C_store_finished [4],
  output logic C_store_ready [4],
  output logic [2:0] C_store_moved [4],
  input logic C_store_granted [4],
  output logic C_store_C_write [4],
  output logic [1:0] C_store_C_write_address [4],
  output logic signed [31:0] C_store_C_write_data [4]
);
  logic A_load_to_C_push [2];
  logic signed [15:0] A_load_to_C_value [2];
  logic A_load_to_C_space [2];
  logic A_load_to_C_pop [2];
  logic A_load_to_C_valid [2];
  logic signed [15:0] A_load_to_C_token [2];
  for (genvar at = 0; at < 2; at++) begin : A_load_to_C_fifos
    fifo #(.WIDTH(16), .LATENCY(3), .CAPACITY(4), .LATE(2)) one (
      .clock,
      .reset,
      .push(A_load_to_C_push[at]),
      .value(A_load_to_C_value[at]),
      .space(A_load_to_C_space[at]),
      .pop(A_load_to_C_pop[at]),
      .valid(A_load_to_C_valid[at]),
      .token(A_load_to_C_token[at])
    );
  end
  logic B_load_to_C_push [2];
  logic signed [15:0] B_load_to_C_value [2];
  logic B_load_to_C_space [2];
  logic B_load_to_C_pop [2];
  logic B_load_to_C_valid [2];
  logic signed [15:0] B_load_to_C_token [2];
  for (genvar at = 0; at < 2; at++) begin : B_load_to_C_fifos
    fifo #(.WIDTH(16), .LATENCY(3), .CAPACITY(4), .LATE(2)) one (
      .clock,
      .reset,
      .push(B_load_to_C_push[at]),
      .value(B_load_to_C_value[at]),
      .space(B_load_to_C_space[at]),
      .pop(B_load_to_C_pop[at]),
      .valid(B_load_to_C_valid[at]),
      .token(B_load_to_C_token[at])
    );
  end
  logic C_to_C_store_push [4];
  logic signed [31:0] C_to_C_store_value [4];
  logic C_to_C_store_space [4];
  logic C_to_C_store_pop [4];
  logic C_to_C_store_valid [4];
  logic signed [31:0] C_to_C_store_token [4];
  for (genvar at = 0; at < 4; at++) begin : C_to_C_store_fifos
    fifo #(.WIDTH(32), .LATENCY(5), .CAPACITY(1), .LATE(4), .FILLS(0)) one (
      .clock,
      .reset,
      .push(C_to_C_store_push[at]),
      .value(C_to_C_store_value[at]),
      .space(C_to_C_store_space[at]),
      .pop(C_to_C_store_pop[at]),
      .valid(C_to_C_store_valid[at]),
      .token(C_to_C_store_token[at])
    );
  end
  logic A_along_j_push [4];
  logic signed [15:0] A_along_j_value [4];
  logic A_along_j_space [4];
  logic A_along_j_pop [4];
  logic A_along_j_valid [4];
  logic signed [15:0] A_along_j_token [4];
  for (genvar at = 0; at < 4; at++) begin : A_along_j_fifos
    fifo #(.WIDTH(16), .LATENCY(1), .CAPACITY(2), .LATE(0)) one (
      .clock,
      .reset,
      .push(A_along_j_push[at]),
      .value(A_along_j_value[at]),
      .space(A_along_j_space[at]),
      .pop(A_along_j_pop[at]),
      .valid(A_along_j_valid[at]),
      .token(A_along_j_token[at])
    );
  end
  logic B_along_i_push [4];
  logic signed [15:0] B_along_i_value [4];
  logic B_along_i_space [4];
  logic B_along_i_pop [4];
  logic B_along_i_valid [4];
  logic signed [15:0] B_along_i_token [4];
  for (genvar at = 0; at < 4; at++) begin : B_along_i_fifos
    fifo #(.WIDTH(16), .LATENCY(1), .CAPACITY(2), .LATE(0)) one (
      .clock,
      .reset,
      .push(B_along_i_push[at]),
      .value(B_along_i_value[at]),
      .space(B_along_i_space[at]),
      .pop(B_along_i_pop[at]),
      .valid(B_along_i_valid[at]),
      .token(B_along_i_token[at])
    );
  end
  A_load A_load_node (
    .clock,
    .reset,
    .A_load_to_C_space,
    .A_load_to_C_push,
    .A_load_to_C_value,
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
    .B_load_to_C_space,
    .B_load_to_C_push,
    .B_load_to_C_value,
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
    .A_load_to_C_valid,
    .A_load_to_C_token,
    .A_load_to_C_pop,
    .A_along_j_valid,
    .A_along_j_token,
    .A_along_j_pop,
    .B_load_to_C_valid,
    .B_load_to_C_token,
    .B_load_to_C_pop,
    .B_along_i_valid,
    .B_along_i_token,
    .B_along_i_pop,
    .A_along_j_space,
    .A_along_j_push,
    .A_along_j_value,
    .B_along_i_space,
    .B_along_i_push,
    .B_along_i_value,
    .C_to_C_store_space,
    .C_to_C_store_push,
    .C_to_C_store_value,
    .fires(C_fires),
    .finished(C_finished)
  );
  C_store C_store_node (
    .clock,
    .reset,
    .C_to_C_store_valid,
    .C_to_C_store_token,
    .C_to_C_store_pop,
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

// The design C, to be started; it is reset while it waits for that.
module C_chip (
  input logic clock,
  input logic reset,
  output logic A_load_fires [2],
  output logic A_load_finished [2],
  output logic A_load_ready [2],
  output logic [1:0] A_load_moved [2],
  input logic A_load_granted [2],
  output logic A_load_A_read [2],
  output logic [3:0] A_load_A_read_address [2],
  input logic signed [15:0] A_load_A_read_data [2],
  output logic B_load_fires [2],
  output logic B_load_finished [2],
  output logic B_load_ready [2],
  output logic [1:0] B_load_moved [2],
  input logic B_load_granted [2],
  output logic B_load_B_read [2],
  output logic [3:0] B_load_B_read_address [2],
  input logic signed [15:0] B_load_B_read_data [2],
  output logic C_fires [4],
  output logic C_finished [4],
  output logic C_store_fires [4],
  output logic C_store_finished [4],
  output logic C_store_ready [4],
  output logic [2:0] C_store_moved [4],
  input logic C_store_granted [4],
  output logic C_store_C_write [4],
  output logic [1:0] C_store_C_write_address [4],
  output logic signed [31:0] C_store_C_write_data [4],
  input logic start,
  output logic done
);
  logic idle;
  logic rests;
  logic ended;
  assign rests = reset || (idle && !start);
  always_ff @(posedge clock) begin
    if (reset) begin
      idle <= 1'b1;
    end else if (start) begin
      idle <= 1'b0;
    end
  end
  C_top design_ (
    .clock,
    .reset(rests),
    .A_load_fires,
    .A_load_finished,
    .A_load_ready,
    .A_load_moved,
    .A_load_granted,
    .A_load_A_read,
    .A_load_A_read_address,
    .A_load_A_read_data,
    .B_load_fires,
    .B_load_finished,
    .B_load_ready,
    .B_load_moved,
    .B_load_granted,
    .B_load_B_read,
    .B_load_B_read_address,
    .B_load_B_read_data,
    .C_fires,
    .C_finished,
    .C_store_fires,
    .C_store_finished,
    .C_store_ready,
    .C_store_moved,
    .C_store_granted,
    .C_store_C_write,
    .C_store_C_write_address,
    .C_store_C_write_data
  );
  logic A_load_finished_together;
  reduction #(.COUNT(2), .DEPTH(1), .EVERY(1)) A_load_finished_together_tree (
    .clock,
    .reset(rests),
    .holds(A_load_finished),
    .found(A_load_finished_together)
  );
  logic B_load_finished_together;
  reduction #(.COUNT(2), .DEPTH(1), .EVERY(1)) B_load_finished_together_tree (
    .clock,
    .reset(rests),
    .holds(B_load_finished),
    .found(B_load_finished_together)
  );
  logic C_finished_together;
  reduction #(.COUNT(4), .DEPTH(1), .EVERY(1)) C_finished_together_tree (
    .clock,
    .reset(rests),
    .holds(C_finished),
    .found(C_finished_together)
  );
  logic C_store_finished_together;
  reduction #(.COUNT(4), .DEPTH(1), .EVERY(1)) C_store_finished_together_tree (
    .clock,
    .reset(rests),
    .holds(C_store_finished),
    .found(C_store_finished_together)
  );
  assign ended =
    A_load_finished_together
    && B_load_finished_together
    && C_finished_together
    && C_store_finished_together;
  assign done = ended;
endmodule
