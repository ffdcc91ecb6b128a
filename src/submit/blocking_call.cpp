#include "submit/blocking_call.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "base/uncancelled.h"
#include "collective/small_call.h"
#include "progress/access_lease.h"
#include "progress/drive.h"
#include "submit/operations.h"

namespace tutti {
namespace {

/// A place in the communicator's order of calls, where the route asks for one; the destructor gives it up.
class Turn {
 public:
  Turn(Communicator& communicator, Route route)
      : communicator_(communicator), ticket_(route.takes_turn() ? communicator.order().take_ticket() : 0) {}
  ~Turn() {
    if (ticket_ != 0) communicator_.order().complete();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool come() const { return !taken() || communicator_.order().turn_of(ticket_); }
  bool taken() const { return ticket_ != 0; }

 private:
  Communicator& communicator_;
  std::uint64_t ticket_;
};

/// Marks the failure as told to the user, takes the caller's buffers back, and returns `why`.
Result<void> failed(Communicator& communicator, const Operation& call, Error why) {
  const Uncancelled to_the_end;
  communicator.failure().mark_reported();
  take_back_buffers(communicator, call.leased());
  return why;
}

}  // namespace

[[gnu::noinline]] Result<void> run_in_turn(Communicator& communicator, const Request& request,
                                           std::uint64_t published) {
  std::optional<Uncancelled> whole;  // calls inside a host wait at no cancellation point
  if (communicator.members().spans_hosts()) whole.emplace();
  HeldOperation call;
  make_collective(call, communicator, request, published);
  std::optional<Turn> turn(std::in_place, communicator, request.route);
  const auto abandon = [&](const Error& why) {
    if (!communicator.failed()) communicator.fail(why);
    call->abandon(why);
    return communicator.failure().error();
  };
  bool begun = false;
  const auto fail = [&](Error why) {
    // While it is this call's turn: without one, another thread's call may use the channels.
    if (begun && turn->taken() && communicator.failed()) communicator.links().channels().stop();
    turn.reset();  // before waiting for the buffers
    return failed(communicator, *call, std::move(why));
  };
  Operation* const operation = &*call;
  Waiter waiter(communicator.process(), {&operation, 1}, communicator.members().while_waiting);
  while (!communicator.failed()) {
    if (turn->come()) {
      begun = true;
      auto progress = call->advance();
      if (!progress) {
        if (!communicator.failed()) communicator.fail(progress.error());
        return fail(std::move(progress).error());
      }
      if (*progress == Progress::done) return {};
      if (*progress == Progress::moved) {
        waiter.reset();
        continue;
      }
    }
    if (auto paused = waiter.pause(); !paused) return fail(abandon(paused.error()));
  }
  return fail(abandon(communicator.failure().error()));
}

Result<void> run_alone(Communicator& communicator, const Request& request) {
  std::uint64_t published = 0;
  // Nothing else runs, and nothing can begin meanwhile, because one thread at a time uses a communicator. This is asked
  // first: a call of a stream that is under way may be changing what `serves` reads.
  if (communicator.order().idle() && SmallCall::serves(communicator, request)) [[likely]] {
    SmallCall call(communicator, request);
    if (call.run()) return {};
    published = call.published();
  }
  return run_in_turn(communicator, request, published);
}

}  // namespace tutti
