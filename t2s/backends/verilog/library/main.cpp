// Drives the clock of the testbench until it finishes.
//
// Built with --trace-fst or --trace, and run with +waves.file=NAME, it writes waveforms: of all
// cycles, or from +waves.first= to +waves.last=.  Cycle c begins at 10 c ns.
#include <verilated.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "Vtestbench.h"

#if VM_TRACE
#if VM_TRACE_FST
#include <verilated_fst_c.h>
using Waves = VerilatedFstC;
#else
#include <verilated_vcd_c.h>
using Waves = VerilatedVcdC;
#endif

static std::string option(VerilatedContext& context, const std::string& name) {
  const std::string found = context.commandArgsPlusMatch((name + "=").c_str());
  return found.empty() ? found : found.substr(name.size() + 2);
}

static uint64_t number(const std::string& text, uint64_t otherwise) {
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}
#endif

int main(int argument_count, char** arguments) {
  VerilatedContext context;
  context.commandArgs(argument_count, arguments);
  Vtestbench testbench{&context};
#if VM_TRACE
  const std::string file = option(context, "waves.file");
  const uint64_t first = number(option(context, "waves.first"), 1);
  const uint64_t last = number(option(context, "waves.last"), UINT64_MAX);
  context.traceEverOn(true);
  Waves waves;
  uint64_t cycle = 0;
  if (!file.empty()) {
    testbench.trace(&waves, 99);
    waves.set_time_unit("1ns");
    waves.set_time_resolution("1ns");
    waves.open(file.c_str());
  }
  const auto look = [&](uint64_t after) {
    if (!file.empty() && cycle >= first && cycle <= last) waves.dump(10 * cycle + after);
  };
#else
  const auto look = [](int) {};
#endif
  while (!context.gotFinish()) {
    testbench.clock = 0;
    testbench.eval();
    look(5);
    testbench.clock = 1;
    testbench.eval();
#if VM_TRACE
    ++cycle;
#endif
    look(0);
  }
#if VM_TRACE
  if (!file.empty()) waves.close();
#endif
  testbench.final();
  return 0;
}
