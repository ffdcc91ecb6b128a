// Opens a memory window and closes it, to see whether the device can.
#include <utility>

#include "transport/verbs/queue_pair.h"

namespace tutti::verbs {
namespace {

constexpr std::int64_t limit_ns = 200'000'000;
constexpr int looks_min = 1'000;  // on a machine on which this thread had no core meanwhile
constexpr std::size_t bytes = 4096;

/// Gets the completions of the only queue pair.
struct Outcome final : CompletionSink {
  explicit Outcome(const Library& of) : library(of) {}
  void complete(const Completion& completion) override {
    if (completion.status == Status::success)
      queue->complete(WorkWord{static_cast<std::uint32_t>(completion.wr_id)});
    else if (!trouble)
      trouble = text(library, completion.status);
  }
  void fail(const Error& error) override {
    if (!trouble) trouble = error.text();
  }

  const Library& library;
  QueuePair* queue = nullptr;
  std::optional<std::string> trouble;
};

/// Nothing: a window was opened and closed.
Result<void> open_and_close(const Port& port) {
  auto endpoint = TUTTI_TRY(Endpoint::open(port, 1, 8));
  auto memory = TUTTI_TRY(RegisteredMemory::make(endpoint, bytes, access_flag::local_write | access_flag::window_bind));
  Outcome outcome(endpoint->library());
  auto sink = TUTTI_TRY(endpoint->attach(&outcome));
  auto queue = TUTTI_TRY(QueuePair::create(endpoint, {.sends = 4, .receives = 1}, sink, 0));
  outcome.queue = queue.get();
  TUTTI_TRY(queue->connect(queue->address(), port.address()));
  const auto window = MemoryWindow::make(endpoint);
  if (!window) return Error{.code = Code::system, .what = "no window can be made"};
  window->open(*queue, memory.region(), {memory.data(), memory.bytes()});
  window->close();
  TUTTI_TRY(queue->post());
  System& system = real_system();
  const std::int64_t until_ns = system.now_ns() + limit_ns;
  for (int looks = 0; looks < looks_min || system.now_ns() < until_ns; ++looks) {
    endpoint->poll();
    if (window->is_closed() || outcome.trouble) break;
    if (looks % 64 == 63) system.yield();
  }
  if (outcome.trouble) return Error{.code = Code::system, .what = *outcome.trouble};
  if (!window->is_closed()) return Error{.code = Code::timeout, .what = "the device does not answer"};
  return {};
}

}  // namespace

bool WindowTrial::passes(const Port& port) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(tried_, true))
    if (auto done = open_and_close(port); !done) trouble_ = done.error().text();
  return !trouble_;
}

std::optional<std::string> WindowTrial::take_trouble() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(taken_, tried_)) return std::nullopt;
  return trouble_;
}

}  // namespace tutti::verbs
