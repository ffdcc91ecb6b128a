#include "submit/blocking_call.h"

#include "base/uncancelled.h"
#include "progress/access_lease.h"
#include "progress/drive.h"

namespace tutti {
namespace {

/// A place in the communicator's order, given up at the end whatever happens.
class Turn {
 public:
  explicit Turn(Communicator& communicator) : communicator_(communicator), ticket_(communicator.take_ticket()) {}
  ~Turn() { communicator_.complete(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool come() const { return communicator_.turn_of(ticket_); }

 private:
  Communicator& communicator_;
  std::uint64_t ticket_;
};

Result<void> run(Communicator& communicator, CollectiveCall& call) {
  const Turn turn(communicator);
  Operation* const operation = &call;
  Waiter waiter(communicator.process(), {&operation, 1});
  while (!communicator.failed()) {
    if (turn.come()) {
      auto progress = call.advance();
      if (!progress) return std::move(progress).error();
      if (*progress == Progress::done) return {};
      if (*progress == Progress::moved) {
        waiter.reset();
        continue;
      }
    }
    if (auto paused = waiter.pause(); !paused) return call.abandon(std::move(paused).error());
  }
  return call.abandon(communicator.failure());
}

}  // namespace

Result<void> run_alone(Communicator& communicator, const Request& request) {
  CollectiveCall call(communicator, request);
  auto ran = run(communicator, call);
  if (ran) return ran;
  const Uncancelled to_the_end;
  communicator.say_told();
  take_back_buffers(communicator, call.leased());
  return ran;
}

}  // namespace tutti
