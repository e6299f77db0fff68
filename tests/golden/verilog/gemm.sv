// One PE of C.
module C_pe (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic signed [31:0] ii,
  input logic signed [31:0] jj,
  input logic A_in_valid,
  input logic signed [31:0] A_in_token,
  output logic A_in_pop,
  output logic [31:0] A_in_from,
  input logic A_pass_valid,
  input logic signed [31:0] A_pass_token,
  output logic A_pass_pop,
  output logic [31:0] A_pass_from,
  input logic B_in_valid,
  input logic signed [31:0] B_in_token,
  output logic B_in_pop,
  output logic [31:0] B_in_from,
  input logic B_pass_valid,
  input logic signed [31:0] B_pass_token,
  output logic B_pass_pop,
  output logic [31:0] B_pass_from,
  input logic A_pass_space,
  output logic A_pass_push,
  output logic signed [31:0] A_pass_value,
  output logic [31:0] A_pass_to,
  input logic B_pass_space,
  output logic B_pass_push,
  output logic signed [31:0] B_pass_value,
  output logic [31:0] B_pass_to,
  input logic C_out_space,
  output logic C_out_push,
  output logic signed [31:0] C_out_value,
  output logic [31:0] C_out_to,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic signed [31:0] k;
  logic signed [31:0] ti;
  logic signed [31:0] tj;
  logic signed [31:0] next_k;
  logic signed [31:0] next_ti;
  logic signed [31:0] next_tj;
  logic finishes;
  always_comb begin
    next_k = k;
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if (reset) begin
      next_k = 0;
      next_ti = 0;
      next_tj = 0;
      finishes = !1'b1 || 3 <= 0 || 1 <= 0 || 1 <= 0;
    end else if (32'(tj + 1) < 1) begin
      next_tj = 32'(tj + 1);
    end else if (32'(ti + 1) < 1) begin
      next_ti = 32'(ti + 1);
      next_tj = 0;
    end else if (32'(k + 1) < 3) begin
      next_k = 32'(k + 1);
      next_ti = 0;
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic takes_A_in;
  logic takes_A_pass;
  logic takes_B_in;
  logic takes_B_pass;
  logic sends_A_pass;
  logic sends_B_pass;
  logic sends_C_out;
  always_comb begin
    takes_A_in = jj == 0;
    A_in_from = takes_A_in ? ii : 0;
    takes_A_pass = jj > 0;
    A_pass_from = takes_A_pass ? 32'(ii * 2 + jj) : 0;
    takes_B_in = ii == 0;
    B_in_from = takes_B_in ? jj : 0;
    takes_B_pass = ii > 0;
    B_pass_from = takes_B_pass ? 32'(ii * 2 + jj) : 0;
    sends_A_pass = jj < 1;
    A_pass_to = sends_A_pass ? 32'(ii * 2 + 32'(jj + 1)) : 0;
    sends_B_pass = ii < 1;
    B_pass_to = sends_B_pass ? 32'(32'(ii + 1) * 2 + jj) : 0;
    sends_C_out = k == 2;
    C_out_to = sends_C_out ? 32'(ii * 2 + jj) : 0;
  end

  // firing
  logic [31:0] cooldown;
  assign fires =
    !finished
    && cooldown == 0
    && (!takes_A_in || A_in_valid)
    && (!takes_A_pass || A_pass_valid)
    && (!takes_B_in || B_in_valid)
    && (!takes_B_pass || B_pass_valid)
    && (!sends_A_pass || A_pass_space)
    && (!sends_B_pass || B_pass_space)
    && (!sends_C_out || C_out_space);
  assign A_in_pop = fires && takes_A_in;
  assign A_pass_pop = fires && takes_A_pass;
  assign B_in_pop = fires && takes_B_in;
  assign B_pass_pop = fires && takes_B_pass;
  assign A_pass_push = fires && sends_A_pass;
  assign B_pass_push = fires && sends_B_pass;
  assign C_out_push = fires && sends_C_out;

  // datapath
  logic signed [31:0] accumulator [1];
  logic signed [31:0] a0;
  logic signed [31:0] a1;
  logic signed [31:0] a;
  logic signed [31:0] b0;
  logic signed [31:0] b1;
  logic signed [31:0] b;
  logic signed [31:0] previous;
  logic signed [31:0] total;
  logic accumulator_write;
  logic [31:0] accumulator_at;
  logic signed [31:0] accumulator_value;
  always_comb begin
    a0 = takes_A_in ? A_in_token : '0;
    a1 = takes_A_pass ? A_pass_token : '0;
    a = jj == 0 ? a0 : a1;
    b0 = takes_B_in ? B_in_token : '0;
    b1 = takes_B_pass ? B_pass_token : '0;
    b = ii == 0 ? b0 : b1;
    A_pass_value = a;
    B_pass_value = b;
    previous = accumulator[32'(ti * 1 + tj)];
    total = 32'((k == 0 ? 0 : previous) + 32'(a * b));
    accumulator_write = 1'b1;
    accumulator_at = 32'(ti * 1 + tj);
    accumulator_value = total;
    C_out_value = total;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset || fires) begin
      k <= next_k;
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= cooldown - 1;
    end
    if (fires) begin
      if (accumulator_write) begin
        accumulator[accumulator_at] <= accumulator_value;
      end
    end
    if (reset) begin
      cooldown <= 0;
      for (int at = 0; at < 1; at++) begin
        accumulator[at] <= '0;
      end
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
  logic [31:0] pe_A_in_from [4];
  logic pe_A_in_pop [4];
  logic [31:0] pe_A_pass_from [4];
  logic pe_A_pass_pop [4];
  logic [31:0] pe_B_in_from [4];
  logic pe_B_in_pop [4];
  logic [31:0] pe_B_pass_from [4];
  logic pe_B_pass_pop [4];
  logic [31:0] pe_A_pass_to [4];
  logic pe_A_pass_push [4];
  logic signed [31:0] pe_A_pass_value [4];
  logic [31:0] pe_B_pass_to [4];
  logic pe_B_pass_push [4];
  logic signed [31:0] pe_B_pass_value [4];
  logic [31:0] pe_C_out_to [4];
  logic pe_C_out_push [4];
  logic signed [31:0] pe_C_out_value [4];
  for (genvar pe = 0; pe < 4; pe++) begin : place
    C_pe one (
      .clock,
      .reset,
      .interval,
      .ii(32'(pe / 2)),
      .jj(32'(pe % 2)),
      .A_in_from(pe_A_in_from[pe]),
      .A_in_pop(pe_A_in_pop[pe]),
      .A_in_valid(A_in_valid[pe_A_in_from[pe]]),
      .A_in_token(A_in_token[pe_A_in_from[pe]]),
      .A_pass_from(pe_A_pass_from[pe]),
      .A_pass_pop(pe_A_pass_pop[pe]),
      .A_pass_valid(A_pass_valid[pe_A_pass_from[pe]]),
      .A_pass_token(A_pass_token[pe_A_pass_from[pe]]),
      .B_in_from(pe_B_in_from[pe]),
      .B_in_pop(pe_B_in_pop[pe]),
      .B_in_valid(B_in_valid[pe_B_in_from[pe]]),
      .B_in_token(B_in_token[pe_B_in_from[pe]]),
      .B_pass_from(pe_B_pass_from[pe]),
      .B_pass_pop(pe_B_pass_pop[pe]),
      .B_pass_valid(B_pass_valid[pe_B_pass_from[pe]]),
      .B_pass_token(B_pass_token[pe_B_pass_from[pe]]),
      .A_pass_to(pe_A_pass_to[pe]),
      .A_pass_push(pe_A_pass_push[pe]),
      .A_pass_value(pe_A_pass_value[pe]),
      .A_pass_space(A_pass_space[pe_A_pass_to[pe]]),
      .B_pass_to(pe_B_pass_to[pe]),
      .B_pass_push(pe_B_pass_push[pe]),
      .B_pass_value(pe_B_pass_value[pe]),
      .B_pass_space(B_pass_space[pe_B_pass_to[pe]]),
      .C_out_to(pe_C_out_to[pe]),
      .C_out_push(pe_C_out_push[pe]),
      .C_out_value(pe_C_out_value[pe]),
      .C_out_space(C_out_space[pe_C_out_to[pe]]),
      .fires(fires[pe]),
      .finished(finished[pe])
    );
  end

  // from PEs to channels
  always_comb begin
    for (int at = 0; at < 2; at++) begin
      A_in_pop[at] = 1'b0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_A_in_pop[pe]) begin
        A_in_pop[pe_A_in_from[pe]] = pe_A_in_pop[pe];
      end
    end
  end
  always_comb begin
    for (int at = 0; at < 4; at++) begin
      A_pass_pop[at] = 1'b0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_A_pass_pop[pe]) begin
        A_pass_pop[pe_A_pass_from[pe]] = pe_A_pass_pop[pe];
      end
    end
  end
  always_comb begin
    for (int at = 0; at < 2; at++) begin
      B_in_pop[at] = 1'b0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_B_in_pop[pe]) begin
        B_in_pop[pe_B_in_from[pe]] = pe_B_in_pop[pe];
      end
    end
  end
  always_comb begin
    for (int at = 0; at < 4; at++) begin
      B_pass_pop[at] = 1'b0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_B_pass_pop[pe]) begin
        B_pass_pop[pe_B_pass_from[pe]] = pe_B_pass_pop[pe];
      end
    end
  end
  always_comb begin
    for (int at = 0; at < 4; at++) begin
      A_pass_push[at] = 1'b0;
      A_pass_value[at] = '0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_A_pass_push[pe]) begin
        A_pass_push[pe_A_pass_to[pe]] = pe_A_pass_push[pe];
        A_pass_value[pe_A_pass_to[pe]] = pe_A_pass_value[pe];
      end
    end
  end
  always_comb begin
    for (int at = 0; at < 4; at++) begin
      B_pass_push[at] = 1'b0;
      B_pass_value[at] = '0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_B_pass_push[pe]) begin
        B_pass_push[pe_B_pass_to[pe]] = pe_B_pass_push[pe];
        B_pass_value[pe_B_pass_to[pe]] = pe_B_pass_value[pe];
      end
    end
  end
  always_comb begin
    for (int at = 0; at < 4; at++) begin
      C_out_push[at] = 1'b0;
      C_out_value[at] = '0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_C_out_push[pe]) begin
        C_out_push[pe_C_out_to[pe]] = pe_C_out_push[pe];
        C_out_value[pe_C_out_to[pe]] = pe_C_out_value[pe];
      end
    end
  end
endmodule

// One PE of C_store.
module C_store_pe (
  input logic clock,
  input logic reset,
  input logic [31:0] interval,
  input logic signed [31:0] ii,
  input logic signed [31:0] jj,
  input logic C_out_valid,
  input logic signed [31:0] C_out_token,
  output logic C_out_pop,
  output logic [31:0] C_out_from,
  output logic C_write,
  output logic [31:0] C_write_address,
  output logic signed [31:0] C_write_data,
  output logic ready,
  output logic [31:0] moved,
  input logic granted,
  output logic fires,
  output logic finished
);
  /*verilator no_inline_module*/

  // loop counters
  logic signed [31:0] ti;
  logic signed [31:0] tj;
  logic signed [31:0] next_ti;
  logic signed [31:0] next_tj;
  logic finishes;
  always_comb begin
    next_ti = ti;
    next_tj = tj;
    finishes = finished;
    if (reset) begin
      next_ti = 0;
      next_tj = 0;
      finishes = !1'b1 || 1 <= 0 || 1 <= 0;
    end else if (32'(tj + 1) < 1) begin
      next_tj = 32'(tj + 1);
    end else if (32'(ti + 1) < 1) begin
      next_ti = 32'(ti + 1);
      next_tj = 0;
    end else begin
      finishes = 1'b1;
    end
  end

  // what the present firing needs, and where
  logic takes_C_out;
  always_comb begin
    takes_C_out = 1'b1;
    C_out_from = 32'(ii * 2 + jj);
    C_write = 1'b1;
    C_write_address = 32'(32'(32'(ii * 1) + ti) * 2 + 32'(32'(jj * 1) + tj));
    moved = C_write ? 4 : 0;
  end

  // firing
  logic [31:0] cooldown;
  assign ready = !finished && cooldown == 0 && (!takes_C_out || C_out_valid);
  assign fires = ready && granted;
  assign C_out_pop = fires && takes_C_out;

  // datapath
  logic signed [31:0] value;
  always_comb begin
    value = takes_C_out ? C_out_token : '0;
    C_write_data = value;
  end

  // what a firing leaves behind
  always_ff @(posedge clock) begin
    if (reset || fires) begin
      ti <= next_ti;
      tj <= next_tj;
      finished <= finishes;
    end
    if (fires) begin
      cooldown <= interval - 1;
    end else if (cooldown != 0) begin
      cooldown <= cooldown - 1;
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
  output logic [31:0] C_write_address [4],
  output logic signed [31:0] C_write_data [4],
  output logic ready [4],
  output logic [31:0] moved [4],
  input logic granted [4],
  output logic fires [4],
  output logic finished [4]
);
  logic [31:0] pe_C_out_from [4];
  logic pe_C_out_pop [4];
  for (genvar pe = 0; pe < 4; pe++) begin : place
    C_store_pe one (
      .clock,
      .reset,
      .interval,
      .ii(32'(pe / 2)),
      .jj(32'(pe % 2)),
      .C_out_from(pe_C_out_from[pe]),
      .C_out_pop(pe_C_out_pop[pe]),
      .C_out_valid(C_out_valid[pe_C_out_from[pe]]),
      .C_out_token(C_out_token[pe_C_out_from[pe]]),
      .C_write(C_write[pe]),
      .C_write_address(C_write_address[pe]),
      .C_write_data(C_write_data[pe]),
      .ready(ready[pe]),
      .moved(moved[pe]),
      .granted(granted[pe]),
      .fires(fires[pe]),
      .finished(finished[pe])
    );
  end

  // from PEs to channels
  always_comb begin
    for (int at = 0; at < 4; at++) begin
      C_out_pop[at] = 1'b0;
    end
    for (int pe = 0; pe < 4; pe++) begin
      if (pe_C_out_pop[pe]) begin
        C_out_pop[pe_C_out_from[pe]] = pe_C_out_pop[pe];
      end
    end
  end
endmodule

// The design gemm.
//
// Latencies, capacities and intervals are constants of a chip, in cycles and tokens.
// A node fires when memory grants the access for which it is ready; what is read has to
// be there in the same cycle, or the pipeline that the latency of the channels behind
// it stands for has to begin with that of the memory.
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
  output logic [31:0] A_load_moved [2],
  input logic A_load_granted [2],
  output logic A_load_A_read [2],
  output logic [31:0] A_load_A_read_address [2],
  input logic signed [31:0] A_load_A_read_data [2],
  input logic [31:0] B_load_interval,
  output logic B_load_fires [2],
  output logic B_load_finished [2],
  output logic B_load_ready [2],
  output logic [31:0] B_load_moved [2],
  input logic B_load_granted [2],
  output logic B_load_B_read [2],
  output logic [31:0] B_load_B_read_address [2],
  input logic signed [31:0] B_load_B_read_data [2],
  input logic [31:0] C_interval,
  output logic C_fires [4],
  output logic C_finished [4],
  input logic [31:0] C_store_interval,
  output logic C_store_fires [4],
  output logic C_store_finished [4],
  output logic C_store_ready [4],
  output logic [31:0] C_store_moved [4],
  input logic C_store_granted [4],
  output logic C_store_C_write [4],
  output logic [31:0] C_store_C_write_address [4],
  output logic signed [31:0] C_store_C_write_data [4]
);
  logic A_in_push [2];
  logic signed [31:0] A_in_value [2];
  logic A_in_space [2];
  logic A_in_pop [2];
  logic A_in_valid [2];
  logic signed [31:0] A_in_token [2];
  for (genvar at = 0; at < 2; at++) begin : A_in_fifos
    fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .latency(A_in_latency),
      .capacity(A_in_capacity),
      .push(A_in_push[at]),
      .value(A_in_value[at]),
      .space(A_in_space[at]),
      .pop(A_in_pop[at]),
      .valid(A_in_valid[at]),
      .token(A_in_token[at]),
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
    fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .latency(B_in_latency),
      .capacity(B_in_capacity),
      .push(B_in_push[at]),
      .value(B_in_value[at]),
      .space(B_in_space[at]),
      .pop(B_in_pop[at]),
      .valid(B_in_valid[at]),
      .token(B_in_token[at]),
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
    fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .latency(A_pass_latency),
      .capacity(A_pass_capacity),
      .push(A_pass_push[at]),
      .value(A_pass_value[at]),
      .space(A_pass_space[at]),
      .pop(A_pass_pop[at]),
      .valid(A_pass_valid[at]),
      .token(A_pass_token[at]),
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
    fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .latency(B_pass_latency),
      .capacity(B_pass_capacity),
      .push(B_pass_push[at]),
      .value(B_pass_value[at]),
      .space(B_pass_space[at]),
      .pop(B_pass_pop[at]),
      .valid(B_pass_valid[at]),
      .token(B_pass_token[at]),
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
    fifo #(.WIDTH(32), .STORAGE(2), .PIPELINE(1)) one (
      .clock,
      .reset,
      .latency(C_out_latency),
      .capacity(C_out_capacity),
      .push(C_out_push[at]),
      .value(C_out_value[at]),
      .space(C_out_space[at]),
      .pop(C_out_pop[at]),
      .valid(C_out_valid[at]),
      .token(C_out_token[at]),
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
