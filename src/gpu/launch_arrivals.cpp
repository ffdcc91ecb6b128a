#include "gpu/launch_arrivals.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "call/mismatch.h"

namespace tutti {
namespace {

constexpr std::uint64_t remembered = 64;

Error mixed(Rank host, Rank device) {
  return {.code = Code::invalid_usage,
          .what = fmt::format("in one call rank {} has host memory and rank {} device memory: all ranks of a call must "
                              "use the same kind of memory",
                              host, device)};
}

}  // namespace

std::size_t LaunchArrivals::index_of(Rank rank) const {
  return static_cast<std::size_t>(std::ranges::find(ranks_, rank) - ranks_.begin());
}

Result<void> LaunchArrivals::host_call(Rank rank, bool host_staged) {
  Member& own = member(rank);
  own.host_calls |= std::uint64_t{1} << (++own.calls % remembered);
  if (!host_staged) own.driver = std::this_thread::get_id();
  for (const Member& peer : members_)
    if (peer.waiting && peer.calls == own.calls) return mixed(rank, rank_of(peer));
  return {};
}

Result<bool> LaunchArrivals::arrive(Rank rank, const GpuOffer& offer) {
  Member& own = member(rank);
  assert(!own.waiting);
  own.host_calls &= ~(std::uint64_t{1} << (++own.calls % remembered));
  own.driver = std::this_thread::get_id();
  own.offer = offer;
  own.waiting = true;
  ++arrived_;
  for (const Member& peer : members_)
    if (peer.calls >= own.calls && peer.calls < own.calls + remembered &&
        (peer.host_calls >> (own.calls % remembered) & 1) != 0) {
      withdraw(rank);  // the other ranks learn of it from this rank's failure
      return mixed(rank_of(peer), rank);
    }
  return arrived_ == static_cast<int>(members_.size());
}

void LaunchArrivals::end() {
  for (Member& one : members_) {
    one.waiting = false;
    one.offer = {};  // it keeps buffers from being unmapped
  }
  arrived_ = 0;
}

void LaunchArrivals::withdraw(Rank rank) {
  Member& own = member(rank);
  if (!own.waiting) return;
  own.waiting = false;
  own.offer = {};
  --arrived_;
}

Rank LaunchArrivals::missing(Rank rank) const {
  if (!member(rank).waiting) return -1;
  for (const Member& one : members_)
    if (!one.waiting) return rank_of(one);
  return -1;
}

bool LaunchArrivals::waits_for_itself(Rank rank) const {
  if (!member(rank).waiting) return false;
  for (const Member& one : members_)
    if (!one.waiting && one.driver != std::this_thread::get_id()) return false;
  return true;
}

Result<void> LaunchArrivals::compare() const {
  const Request& first = *members_.front().offer.request;
  for (const Member& one : members_) {
    const Request& request = *one.offer.request;
    if (request.signature() == first.signature()) continue;
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("ranks make different calls: rank {} {}, rank {} {}", ranks_.front(),
                                     call_text(first.signature()), rank_of(one), call_text(request.signature()))};
  }
  return {};
}

}  // namespace tutti
