#include "collective/small_call.h"

#include <cstring>
#include <span>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti {
namespace {

/// How long a rank waits for a peer's descriptor here. Longer waits, which include looking after peers that died, are
/// the business of the operation that continues the call.
constexpr int polls_before_pausing = 32;
constexpr int polls_max = 256;
/// With more ranks than cores: the peer cannot go on before this rank gives up its core.
constexpr int yields_max = 64;
constexpr std::int64_t slow_yield_ns = 1'000'000;  // on a loaded machine: what continues the call looks at limits

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

void copy(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

/// All that needs no data of the peers is done while their data is on its way.
bool SmallCall::run() {
  // Where each rank waits for all others, it notices that one of them is gone.
  const bool needs_all =
      facts_.input == Holders::everybody && facts_.output == Holders::everybody && facts_.computes != Computes::prefix;
  if (!needs_all && communicator_.failure().gone().any()) return false;
  if (!publish()) return false;
  prepare();
  if (!open_needed()) return false;
  communicator_.order().note_completed(sequence_);  // nobody needs anything more, whether this rank gets further or not
  finish();
  return true;
}

bool SmallCall::publish() {
  CallDescriptors& lines = communicator_.links().descriptors();
  if (request_.collective != Collective::barrier)
    input_bytes_ = request_.group_bytes() *
                   static_cast<std::size_t>(facts_.input_groups == GroupCount::one ? 1 : communicator_.ranks());
  const auto may = lines.may_enter(lines.published() + 1, DescriptorRings::is_compact(input_bytes_));
  if (!may || !*may) return false;
  sequence_ = communicator_.order().next_sequence();
  CallDescriptor& mine = lines.begin(sequence_);
  mine.signature = request_.signature();
  if (input_bytes_ > 0 && holds(facts_.input, communicator_.rank(), request_.root)) {
    std::byte* const to = lines.payload(sequence_, input_bytes_);
    if (lines.streams(input_bytes_))
      copy_pass(request_.input, {&to, 1}, input_bytes_, Loop::nontemporal);
    else
      std::memcpy(to, request_.input, input_bytes_);
  }
  lines.publish(mine, sequence_);
  communicator_.links().ring_all();
  return true;
}

/// How many ranks' inputs, from rank 0 on, a reduction combines here.
int SmallCall::combined() const {
  return ranks_combined(request_.collective, communicator_.ranks(), communicator_.rank());
}

/// A reduction combines the inputs in the order of ranks, as one_shot does.
void SmallCall::prepare() {
  PastCalls& past = communicator_.past_calls();
  past.note_used(past.small_algorithm(request_.collective),
                 communicator_.links().channels().transport(Access::in_line));
  output_ = request_.output;
  if (facts_.computes == Computes::nothing || request_.count == 0 || !has_output_) return;
  const int ranks = combined();
  const std::size_t skipped = own_part();
  for (Rank rank = 0; rank < ranks; ++rank)
    sources_[static_cast<std::size_t>(rank)] = {.at = input_of(rank) + skipped, .scaled = false, .scalar = 0};
  pass_.emplace(Pass{.sources = std::span<const Source>(sources_).first(static_cast<std::size_t>(ranks)),
                     .destinations = {&output_, 1},
                     .count = request_.count,
                     .type = request_.type,
                     .op = request_.op,
                     .divisor = request_.op == ReduceOp::avg ? ranks : 1,
                     .user = request_.user});
}

bool SmallCall::open_needed() {
  const Rank self = communicator_.rank();
  if (!has_output_) return true;
  if (facts_.input == Holders::root) return self == request_.root || open(request_.root);
  const int needed = facts_.computes == Computes::prefix ? combined() : communicator_.ranks();
  for (Rank peer = 0; peer < needed; ++peer)
    if (peer != self && !open(peer)) return false;
  return true;
}

/// False: it took long.
bool SmallCall::yield() {
  System& system = communicator_.process().system;
  if (yielded_ns_ == 0) yielded_ns_ = system.now_ns();
  system.yield();
  const std::int64_t now = system.now_ns();
  return now - std::exchange(yielded_ns_, now) < slow_yield_ns;
}

/// False: its descriptor did not come soon.
bool SmallCall::await(Rank peer) {
  const bool crowded = communicator_.members().oversubscribed;
  for (int polls = 0; !communicator_.links().descriptors().has_arrived(peer, sequence_); ++polls) {
    if (polls == (crowded ? yields_max : polls_max)) return false;
    if (crowded && !yield()) return false;
    if (!crowded && polls >= polls_before_pausing) pause();
  }
  return true;
}

bool SmallCall::open(Rank peer) {
  CallDescriptors& lines = communicator_.links().descriptors();
  if (!lines.has_arrived(peer, sequence_) && !await(peer)) return false;
  const auto line = lines.open(peer, sequence_);
  return line && *line != nullptr;
}

void SmallCall::finish() {
  if (request_.count == 0 || !has_output_) return;
  if (request_.collective == Collective::barrier) return;
  if (facts_.computes != Computes::nothing) return pass_->run();
  const std::size_t group = request_.group_bytes(), skipped = own_part();
  if (facts_.input == Holders::root) return copy(input_of(request_.root) + skipped, output_, group);
  std::byte* to = output_;
  for (Rank rank = 0; rank < communicator_.ranks(); ++rank, to += group) copy(input_of(rank) + skipped, to, group);
}

/// Where the part of an input begins that is this rank's: its own group, where there is one for each rank.
std::size_t SmallCall::own_part() const {
  if (facts_.input_groups == GroupCount::one) return 0;
  return static_cast<std::size_t>(communicator_.rank()) * request_.group_bytes();
}

const std::byte* SmallCall::input_of(Rank rank) const {
  if (rank == communicator_.rank()) return request_.input;
  return std::as_const(communicator_.links().descriptors()).payload(rank, sequence_, input_bytes_);
}

}  // namespace tutti
