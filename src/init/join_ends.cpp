// How a rank's part in a start ends before it is complete, and how the other ranks hear why.
#include <unistd.h>

#include <new>

#include <fmt/format.h>

#include "init/join.h"
#include "init/refused_start.h"

namespace tutti {

Join::~Join() {
  if (state_ != State::begin || !bootstrap_ || ::getpid() != pid_) return;
  try {
    cannot_come({.code = Code::invalid_usage, .what = "its process has given the start up before it began"});
  } catch (const std::bad_alloc&) {  // the others reach their limit
  }
}

/// The first thing that needs descriptors gets all that are left but one, by which the root is called. Without any, the
/// call fails with a reason as good as that of `begin`.
Result<Progress> Join::start() {
  if (options_.refused) return cannot_come(*options_.refused);
  Result<Socket> kept{Socket()};
  if (bootstrap_) kept = process_.system.listen({.host = "127.0.0.1"});
  auto begun = begin();
  kept = Socket();
  if (!begun) return cannot_come(std::move(begun).error());
  state_ = State::greet;
  return Progress::moved;
}

/// The root does not know this rank yet: it is told why it will not come. What this rank has is given up first, as the
/// call needs a descriptor.
Error Join::cannot_come(Error why) {
  state_ = State::made;
  if (!bootstrap_) return why;
  gpu_proof_.reset();
  members_ = {};
  refuse_start(process_, options_.id, {.rank = options_.rank, .ranks = options_.ranks}, why, deadline_ns_);
  return why;
}

void Join::give_up(const Error& why) {
  if (!bootstrap_) return;
  const bool root_is_here = process_.pending_closes.root_of(options_.id.secret) != nullptr;
  state_ = State::made;
  if (!root_is_here && bootstrap_->placed())
    bootstrap_->fail({.code = why.code,
                      .what = fmt::format("rank {} gave up: {}", options_.rank, why.text()),
                      .peer = options_.rank});
  if (root_is_here || !bootstrap_->met())
    refuse_start(process_, options_.id, {.rank = options_.rank, .ranks = options_.ranks}, why, deadline_ns_, Hold::no);
}

/// Checked between exchanges; during an exchange, the root reports which ranks are late.
Result<Progress> Join::late() {
  Error error{.code = Code::timeout,
              .what = state_ == State::meet      ? "the limit of the start passed while kernels waited for each other"
                      : state_ == State::carrier ? "the limit of the start passed while interfaces waited for a carrier"
                      : state_ == State::prove   ? "the limit of the start passed while addresses were tried"
                                                 : "the limit of the start passed while connections were opened"};
  if (auto stuck = cannot_accept()) error.what += ": " + stuck->text();
  return end_at_once(std::move(error));
}

/// Others may be waiting for this rank elsewhere than in an exchange.
Result<Progress> Join::end_at_once(Error error) {
  exchange_->fail(Error{.code = error.code, .what = fmt::format("rank {}: {}", options_.rank, error.words())});
  return error;
}

/// Ranks whose connections cannot be accepted do not know the reason.
std::optional<Error> Join::cannot_accept() {
  if (state_ != State::prove && state_ != State::reach) return std::nullopt;
  auto server = process_.connections();
  return server ? (*server)->stuck() : std::nullopt;
}

}  // namespace tutti
