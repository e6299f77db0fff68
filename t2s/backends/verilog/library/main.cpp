// Drives the clock of the testbench until it finishes.
#include <verilated.h>

#include "Vtestbench.h"

int main(int argument_count, char** arguments) {
  VerilatedContext context;
  context.commandArgs(argument_count, arguments);
  Vtestbench testbench{&context};
  while (!context.gotFinish()) {
    testbench.clock = 0;
    testbench.eval();
    testbench.clock = 1;
    testbench.eval();
  }
  testbench.final();
  return 0;
}
