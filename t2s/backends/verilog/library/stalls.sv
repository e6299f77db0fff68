// Pseudo-random stalls of units that access memory: the hash of t2s.RandomStalls.
package stalls;
  function automatic logic holds(
    input logic [31:0] seed,
    input logic [31:0] one_in,
    input logic [31:0] instance_number,
    input logic [31:0] cycle
  );
    logic [31:0] mixed;
    if (one_in == 0) return 0;
    mixed = seed * 32'h9E3779B9 + instance_number * 32'h85EBCA6B + cycle * 32'hC2B2AE35;
    mixed = mixed ^ (mixed >> 16);
    mixed = mixed * 32'h7FEB352D;
    mixed = mixed ^ (mixed >> 15);
    mixed = mixed * 32'h846CA68B;
    mixed = mixed ^ (mixed >> 16);
    return mixed % one_in == 0;
  endfunction
endpackage
