// A testbench of design: for simulation only.
module testbench (
  input logic clock
);
  logic reset = 1'b1;
  logic signed [63:0] store_latency;
  logic signed [63:0] rate;
  logic signed [63:0] unit;
  logic signed [63:0] seed;
  logic signed [63:0] one_in;
  logic signed [63:0] max_cycles;
  logic signed [63:0] quiet;
  logic [31:0] A_latency;
  logic [31:0] A_capacity;
  logic [31:0] B_latency;
  logic [31:0] B_capacity;
  logic [31:0] load_interval;
  logic [31:0] compute_interval;
  logic [31:0] store_interval;
  logic [31:0] A_held [1];
  logic [31:0] B_held [1];
  logic load_fires [1];
  logic load_finished [1];
  logic load_ready [1];
  logic [2:0] load_moved [1];
  logic load_granted [1];
  logic load_X_read [1];
  logic [1:0] load_X_read_address [1];
  logic signed [31:0] load_X_read_data [1];
  logic compute_fires [1];
  logic compute_finished [1];
  logic store_fires [1];
  logic store_finished [1];
  logic store_ready [1];
  logic [2:0] store_moved [1];
  logic store_granted [1];
  logic store_Y_write [1];
  logic [1:0] store_Y_write_address [1];
  logic signed [31:0] store_Y_write_data [1];
  logic signed [63:0] cycle;
  logic signed [63:0] last_firing;
  logic signed [63:0] last_store;
  logic signed [63:0] quiet_cycles;
  logic running;
  logic [31:0] ended;
  logic signed [63:0] credit;
  logic signed [63:0] left;
  logic signed [63:0] served_turns;
  logic signed [63:0] serving_turns;
  logic signed [63:0] given_turns;
  logic signed [63:0] giving_turns;
  logic signed [63:0] owed [2];
  logic signed [63:0] load_turn [1];
  logic signed [63:0] load_taken_turn [1];
  logic load_joins [1];
  logic signed [63:0] store_turn [1];
  logic signed [63:0] store_taken_turn [1];
  logic store_joins [1];
  logic signed [63:0] load_firings [1];
  logic signed [63:0] load_first [1];
  logic signed [63:0] load_last [1];
  logic signed [63:0] compute_firings [1];
  logic signed [63:0] compute_first [1];
  logic signed [63:0] compute_last [1];
  logic signed [63:0] store_firings [1];
  logic signed [63:0] store_first [1];
  logic signed [63:0] store_last [1];
  logic [31:0] memory_X [4];
  logic [31:0] memory_Y [4];
  initial begin
    store_latency = 64'sd0;
    void'($value$plusargs("store_latency=%d", store_latency));
    rate = 64'sd0;
    void'($value$plusargs("rate=%d", rate));
    unit = 64'sd1;
    void'($value$plusargs("unit=%d", unit));
    seed = 64'sd0;
    void'($value$plusargs("seed=%d", seed));
    one_in = 64'sd0;
    void'($value$plusargs("one_in=%d", one_in));
    max_cycles = 64'sd0;
    void'($value$plusargs("max_cycles=%d", max_cycles));
    quiet = 64'sd100000;
    void'($value$plusargs("quiet=%d", quiet));
    A_latency = 1;
    void'($value$plusargs("A_latency=%d", A_latency));
    A_capacity = 2;
    void'($value$plusargs("A_capacity=%d", A_capacity));
    B_latency = 1;
    void'($value$plusargs("B_latency=%d", B_latency));
    B_capacity = 2;
    void'($value$plusargs("B_capacity=%d", B_capacity));
    load_interval = 1;
    void'($value$plusargs("load_interval=%d", load_interval));
    compute_interval = 1;
    void'($value$plusargs("compute_interval=%d", compute_interval));
    store_interval = 1;
    void'($value$plusargs("store_interval=%d", store_interval));
    $readmemh("memory_X.hex", memory_X);
    for (int at = 0; at < 4; at++) begin
      memory_Y[at] = 0;
    end
  end
  design_top design_ (
    .clock,
    .reset,
    .A_latency,
    .A_capacity,
    .A_held,
    .B_latency,
    .B_capacity,
    .B_held,
    .load_interval,
    .load_fires,
    .load_finished,
    .load_ready,
    .load_moved,
    .load_granted,
    .load_X_read,
    .load_X_read_address,
    .load_X_read_data,
    .compute_interval,
    .compute_fires,
    .compute_finished,
    .store_interval,
    .store_fires,
    .store_finished,
    .store_ready,
    .store_moved,
    .store_granted,
    .store_Y_write,
    .store_Y_write_address,
    .store_Y_write_data
  );

  // memory: read at once, written at the end of the cycle
  always_comb begin
    for (int p = 0; p < 1; p++) begin
      load_X_read_data[p] = memory_X[load_X_read_address[p]];
    end
  end
  always_ff @(posedge clock) begin
    for (int p = 0; p < 1; p++) begin
      if (!reset && store_fires[p] && store_Y_write[p]) begin
        memory_Y[store_Y_write_address[p]] <= store_Y_write_data[p];
      end
    end
  end

  // bandwidth and stalls of memory: first come, first served
  always_comb begin
    left = credit;
    serving_turns = served_turns;
    giving_turns = given_turns;
    for (int at = 0; at < 2; at++) begin
      if (serving_turns < given_turns && left > 64'sd0) begin
        left = left - owed[(serving_turns + 64'sd1) % 2];
        serving_turns = serving_turns + 64'sd1;
      end
    end
    for (int p = 0; p < 1; p++) begin
      load_granted[p] = 1'b0;
      load_joins[p] = 1'b0;
      load_taken_turn[p] = 64'sd0;
      if (load_turn[p] != 64'sd0) begin
        load_granted[p] = load_turn[p] <= serving_turns;
      end else if (load_ready[p] && !stalls::holds(32'(seed), 32'(one_in), p, 32'(cycle))) begin
        if (load_moved[p] == 0 || rate == 64'sd0) begin
          load_granted[p] = 1'b1;
        end else if (left > 64'sd0) begin
          load_granted[p] = 1'b1;
          left = left - $signed(64'(load_moved[p])) * unit;
        end else begin
          load_joins[p] = 1'b1;
          giving_turns = giving_turns + 64'sd1;
          load_taken_turn[p] = giving_turns;
        end
      end
    end
    for (int p = 0; p < 1; p++) begin
      store_granted[p] = 1'b0;
      store_joins[p] = 1'b0;
      store_taken_turn[p] = 64'sd0;
      if (store_turn[p] != 64'sd0) begin
        store_granted[p] = store_turn[p] <= serving_turns;
      end else if (store_ready[p] && !stalls::holds(32'(seed), 32'(one_in), p + 2, 32'(cycle))) begin
        if (store_moved[p] == 0 || rate == 64'sd0) begin
          store_granted[p] = 1'b1;
        end else if (left > 64'sd0) begin
          store_granted[p] = 1'b1;
          left = left - $signed(64'(store_moved[p])) * unit;
        end else begin
          store_joins[p] = 1'b1;
          giving_turns = giving_turns + 64'sd1;
          store_taken_turn[p] = giving_turns;
        end
      end
    end
  end
  always_ff @(posedge clock) begin
    if (reset) begin
      credit <= rate;
      served_turns <= 64'sd0;
      given_turns <= 64'sd0;
      for (int p = 0; p < 1; p++) begin
        load_turn[p] <= 64'sd0;
      end
      for (int p = 0; p < 1; p++) begin
        store_turn[p] <= 64'sd0;
      end
    end else begin
      credit <= left > 64'sd0 ? rate : left + rate;
      served_turns <= serving_turns;
      given_turns <= giving_turns;
      for (int p = 0; p < 1; p++) begin
        if (load_joins[p]) begin
          load_turn[p] <= load_taken_turn[p];
          owed[load_taken_turn[p] % 2] <= $signed(64'(load_moved[p])) * unit;
        end else if (load_granted[p]) begin
          load_turn[p] <= 64'sd0;
        end
      end
      for (int p = 0; p < 1; p++) begin
        if (store_joins[p]) begin
          store_turn[p] <= store_taken_turn[p];
          owed[store_taken_turn[p] % 2] <= $signed(64'(store_moved[p])) * unit;
        end else if (store_granted[p]) begin
          store_turn[p] <= 64'sd0;
        end
      end
    end
  end

  // what happens, and the end
  always_comb begin
    running = 1'b0;
    for (int p = 0; p < 1; p++) begin
      if (!load_finished[p]) begin
        running = 1'b1;
      end
    end
    for (int p = 0; p < 1; p++) begin
      if (!compute_finished[p]) begin
        running = 1'b1;
      end
    end
    for (int p = 0; p < 1; p++) begin
      if (!store_finished[p]) begin
        running = 1'b1;
      end
    end
  end
  always_ff @(posedge clock) begin
    if (reset) begin
      last_firing <= 0;
      last_store <= 0;
      quiet_cycles <= 0;
      ended <= 0;
      reset <= 1'b0;
      cycle <= 1;
      for (int p = 0; p < 1; p++) begin
        load_firings[p] <= 0;
        load_first[p] <= 0;
        load_last[p] <= 0;
      end
      for (int p = 0; p < 1; p++) begin
        compute_firings[p] <= 0;
        compute_first[p] <= 0;
        compute_last[p] <= 0;
      end
      for (int p = 0; p < 1; p++) begin
        store_firings[p] <= 0;
        store_first[p] <= 0;
        store_last[p] <= 0;
      end
    end else begin
      cycle <= cycle + 1;
      quiet_cycles <= quiet_cycles + 1;
      for (int p = 0; p < 1; p++) begin
        if (load_fires[p]) begin
          load_firings[p] <= load_firings[p] + 1;
          load_last[p] <= cycle;
          if (load_firings[p] == 64'sd0) begin
            load_first[p] <= cycle;
          end
          last_firing <= cycle;
          quiet_cycles <= 0;
        end
      end
      for (int p = 0; p < 1; p++) begin
        if (compute_fires[p]) begin
          compute_firings[p] <= compute_firings[p] + 1;
          compute_last[p] <= cycle;
          if (compute_firings[p] == 64'sd0) begin
            compute_first[p] <= cycle;
          end
          last_firing <= cycle;
          quiet_cycles <= 0;
        end
      end
      for (int p = 0; p < 1; p++) begin
        if (store_fires[p]) begin
          store_firings[p] <= store_firings[p] + 1;
          store_last[p] <= cycle;
          if (store_firings[p] == 64'sd0) begin
            store_first[p] <= cycle;
          end
          last_firing <= cycle;
          quiet_cycles <= 0;
          if (store_Y_write[p]) begin
            last_store <= cycle;
          end
        end
      end
      if (!running) begin
        ended <= 1;
        $finish();
      end else if (quiet_cycles >= quiet) begin
        ended <= 2;
        $finish();
      end else if (max_cycles != 64'sd0 && cycle > max_cycles) begin
        ended <= 3;
        $finish();
      end
    end
  end
  final begin
    $display("t2s run %0d %0d", ended, (last_store != 64'sd0 && last_store + store_latency > last_firing) ? last_store + store_latency : last_firing);
    for (int p = 0; p < 1; p++) begin
      $display("t2s pe %0d %0d %0d", load_firings[p], load_first[p], load_last[p]);
    end
    for (int p = 0; p < 1; p++) begin
      $display("t2s pe %0d %0d %0d", compute_firings[p], compute_first[p], compute_last[p]);
    end
    for (int p = 0; p < 1; p++) begin
      $display("t2s pe %0d %0d %0d", store_firings[p], store_first[p], store_last[p]);
    end
    for (int at = 0; at < 1; at++) begin
      $display("t2s held %0d", A_held[at]);
    end
    for (int at = 0; at < 1; at++) begin
      $display("t2s held %0d", B_held[at]);
    end
    $writememh("memory_Y.out", memory_Y);
  end
endmodule
