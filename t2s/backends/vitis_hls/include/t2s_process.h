// How the functions of a dataflow region are called: as such for the HLS compiler and for AMD's
// C simulation, side by side where hls_stream.h is that of t2s.

#ifndef T2S_PROCESS_H
#define T2S_PROCESS_H

#include <hls_stream.h>

#if defined(__SYNTHESIS__)
#define T2S_PROTOCOL_ERROR(machine)
#else
#include <cstdio>
#include <cstdlib>
#define T2S_PROTOCOL_ERROR(machine)                                                                \
    (std::fprintf(stderr, "protocol error: %s\n", machine), std::exit(5))
#endif

#if defined(T2S_SIDE_BY_SIDE) && !defined(__SYNTHESIS__)
#define T2S_STREAMS(streams) t2s_simulation::name_all(streams, #streams)
#define T2S_PROCESS(function, ...)                                                                 \
    t2s_simulation::Scheduler::get().add(#function, [&] { function(__VA_ARGS__); })
#define T2S_END                                                                                    \
    if (!t2s_simulation::Scheduler::get().run())                                                   \
        std::exit(2);
#else
#define T2S_STREAMS(streams)
#define T2S_PROCESS(function, ...) function(__VA_ARGS__)
#define T2S_END
#endif

#endif
