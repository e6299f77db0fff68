// How the functions of a dataflow region are called: as such for the HLS compiler and for AMD's
// C simulation, side by side where hls_stream.h is that of t2s.

#ifndef T2S_PROCESS_H
#define T2S_PROCESS_H

#include <hls_stream.h>

// T2S_STOP ends a simulation with an error; T2S_INSIDE is an index, which a simulation checks;
// T2S_POLL reads a token if there is one, and says so: a simulation waits for it instead.
#if defined(__SYNTHESIS__)
#define T2S_STOP(message)
#define T2S_INSIDE(index, extent) (index)
#define T2S_POLL(stream, token) ((stream).read_nb(token))
#else
#include <cstdio>
#include <cstdlib>
#define T2S_STOP(message) (std::fprintf(stderr, "stopped: %s\n", message), std::exit(5))
#define T2S_INSIDE(index, extent) t2s_inside(index, extent, __func__, #extent)
#define T2S_POLL(stream, token) ((token) = (stream).read(), true)
template <typename T>
static inline T t2s_inside(T index, long long extent, const char *where, const char *what) {
    if (static_cast<long long>(index) < 0 || static_cast<long long>(index) >= extent) {
        std::fprintf(stderr, "stopped: %s uses element %lld, and %s is %lld\n", where,
                     static_cast<long long>(index), what, extent);
        std::exit(5);
    }
    return index;
}
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
