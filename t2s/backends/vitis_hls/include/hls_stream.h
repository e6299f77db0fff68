// hls::stream for a C++ compiler without Vitis: bounded and blocking, as on the chip.
//
// The processes of a dataflow region run side by side, as coroutines of one thread: see
// t2s_process.h.  A stream is as deep as its type says (2 if it does not), or T2S_DEPTH if that
// macro is more.  If all processes wait, each is named with the stream it waits for.

#ifndef T2S_HLS_STREAM_H
#define T2S_HLS_STREAM_H

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#ifndef T2S_DEPTH
#define T2S_DEPTH 0
#endif
#ifndef T2S_STACK
#define T2S_STACK (std::size_t(1) << 23)
#endif
#define T2S_SIDE_BY_SIDE

namespace t2s_simulation {

#if defined(__x86_64__)
// Saves the registers that a call preserves on the stack, and goes on with another stack.
extern "C" void t2s_switch(void **from, void *to);
__asm__(R"(
.text
.weak t2s_switch
.type t2s_switch, @function
t2s_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
#endif

struct Process {
    std::string name;
    std::function<void()> body;
    char *stack = nullptr;
#if defined(__x86_64__)
    void *context = nullptr;
#else
    ucontext_t context;
#endif
    bool done = false;
    const char *waits = nullptr;  // "reads" or "writes"
    const std::string *stream = nullptr;
};

class Scheduler {
public:
    static Scheduler &get() {
        static Scheduler scheduler;
        return scheduler;
    }

    void add(const char *name, std::function<void()> body) {
        processes_.push_back(std::unique_ptr<Process>(new Process));
        Process &process = *processes_.back();
        process.name = name;
        process.body = std::move(body);
        void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) {
            std::fprintf(stderr, "no memory for the stack of %s\n", name);
            std::exit(1);
        }
        process.stack = static_cast<char *>(stack);
#if defined(__x86_64__)
        void **top = reinterpret_cast<void **>(process.stack + STACK) - 2;
        *top = reinterpret_cast<void *>(&Scheduler::enter);  // the first switch returns to it
        process.context = top - 6;
#else
        getcontext(&process.context);
        process.context.uc_stack.ss_sp = process.stack;
        process.context.uc_stack.ss_size = STACK;
        process.context.uc_link = nullptr;
        makecontext(&process.context, &Scheduler::enter, 0);
#endif
        ready_.push_back(&process);
    }

    Process *running() const { return running_; }

    void wake(Process *process) { ready_.push_back(process); }

    void block(const char *what, const std::string &stream) {
        running_->waits = what;
        running_->stream = &stream;
        leave();
    }

    // Runs all processes to their end; returns false and says who waits if they cannot go on.
    bool run() {
        while (!ready_.empty()) {
            running_ = ready_.front();
            ready_.pop_front();
#if defined(__x86_64__)
            t2s_switch(&main_, running_->context);
#else
            swapcontext(&main_, &running_->context);
#endif
        }
        running_ = nullptr;
        bool finished = true;
        for (const auto &process : processes_)
            if (!process->done) {
                finished = false;
                std::fprintf(stderr, "waiting: %s %s %s\n", process->name.c_str(), process->waits,
                             process->stream->c_str());
            }
        for (const auto &process : processes_)
            munmap(process->stack, STACK);
        processes_.clear();
        return finished;
    }

private:
    static const std::size_t STACK = (T2S_STACK) / 4096 * 4096;  // pages are taken as they are used

    static void enter() {
        Scheduler &scheduler = get();
        scheduler.running_->body();
        scheduler.running_->done = true;
        scheduler.leave();
    }

    void leave() {
#if defined(__x86_64__)
        t2s_switch(&running_->context, main_);
#else
        swapcontext(&running_->context, &main_);
#endif
    }

    std::vector<std::unique_ptr<Process>> processes_;
    std::deque<Process *> ready_;
    Process *running_ = nullptr;
#if defined(__x86_64__)
    void *main_ = nullptr;
#else
    ucontext_t main_;
#endif
};

inline std::size_t &left_over() {
    static std::size_t tokens = 0;
    return tokens;
}

}  // namespace t2s_simulation

namespace hls {

template <typename T, int DEPTH = 0>
class stream;

template <typename T>
class stream<T, 0> {
public:
    stream() : stream("stream") {}
    explicit stream(const char *name) : name_(name), depth_(T2S_DEPTH > 2 ? T2S_DEPTH : 2) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    ~stream() {
        if (tokens_.empty())
            return;
        t2s_simulation::left_over() += tokens_.size();
        std::fprintf(stderr, "left over: %zu tokens in %s\n", tokens_.size(), name_.c_str());
    }

    void set_name(const char *name) { name_ = name; }

    T read() {
        t2s_simulation::Scheduler &scheduler = t2s_simulation::Scheduler::get();
        while (tokens_.empty()) {
            if (!scheduler.running()) {
                std::fprintf(stderr, "read while empty: %s\n", name_.c_str());
                std::exit(3);
            }
            reader_ = scheduler.running();
            scheduler.block("reads", name_);
        }
        T token = tokens_.front();
        tokens_.pop_front();
        if (writer_) {
            scheduler.wake(writer_);
            writer_ = nullptr;
        }
        return token;
    }

    void read(T &token) { token = read(); }

    bool read_nb(T &token) {
        const bool there = !tokens_.empty();
        if (there)
            token = read();
        return there;
    }

    void write(const T &token) {
        t2s_simulation::Scheduler &scheduler = t2s_simulation::Scheduler::get();
        while (scheduler.running() && tokens_.size() >= depth_) {
            writer_ = scheduler.running();
            scheduler.block("writes", name_);
        }
        tokens_.push_back(token);
        if (reader_) {
            scheduler.wake(reader_);
            reader_ = nullptr;
        }
    }

    bool empty() const { return tokens_.empty(); }

    std::size_t size() const { return tokens_.size(); }

protected:
    stream(const char *name, std::size_t depth) : name_(name), depth_(depth) {}

private:
    std::deque<T> tokens_;
    std::string name_;
    std::size_t depth_;
    t2s_simulation::Process *reader_ = nullptr;
    t2s_simulation::Process *writer_ = nullptr;
};

// As AMD's: a function that takes stream<T> & takes streams of every depth.
template <typename T, int DEPTH>
class stream : public stream<T, 0> {
public:
    stream() : stream("stream") {}
    explicit stream(const char *name)
        : stream<T, 0>(name, T2S_DEPTH > DEPTH ? T2S_DEPTH : DEPTH) {}
};

}  // namespace hls

namespace t2s_simulation {

template <typename T, int DEPTH>
void name_all(hls::stream<T, DEPTH> &stream, const std::string &name) {
    stream.set_name(name.c_str());
}

template <typename S, std::size_t COUNT>
void name_all(S (&streams)[COUNT], const std::string &name) {
    for (std::size_t at = 0; at < COUNT; ++at)
        name_all(streams[at], name + "[" + std::to_string(at) + "]");
}

}  // namespace t2s_simulation

#endif
