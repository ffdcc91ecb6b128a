// Kernel bodies on a block of the host, alone or in a rehearsal of several calls in a row.
#pragma once

#include <vector>

#include "kernels/bodies.h"
#include "kernels/entries.h"
#include "kernels/extent.h"
#include "kernels/pass.h"
#include "support/host_kernels.h"

namespace tutti::testing {

/// Shared memory of a block, for any body.
struct BodyShared {
#define TUTTI_KERNEL_BODY(name) device::Shared<device::Body::name> name;
#include "kernels/bodies.inc"
  device::Operands rehearsal[2];
};

template <class T, device::Block B>
void run_body_of(B& b, BodyShared& s, device::Body body, const device::Call& call) {
  switch (body) {
// clang-format off
#define TUTTI_KERNEL_BODY(name) case device::Body::name: return device::name<T>(b, s.name, call);
#include "kernels/bodies.inc"
    // clang-format on
  }
}

/// What the user of a rank does between its calls, as far as one channel's elements go: each block does its share, so
/// that nothing but the calls themselves orders one rank's turn after another's.
template <device::Block B>
class Between {
 public:
  Between(B& b, BodyShared& s, const device::Call& call) : b_(b), s_(s), call_(call) {
    channel_ = static_cast<std::uint32_t>(b.block()) % call.channels;
  }

  void copy(const std::byte* from, std::byte* to, int groups) {
    const device::Cut& cut = call_.cut;
    for (int group = 0; group < groups; ++group)
      for (std::uint32_t part = 0; part < cut.parts; ++part)
        for (std::uint64_t tile = channel_; tile < cut.tiles; tile += call_.channels) {
          const device::Extent extent = device::extent_of(cut, part, tile);
          const std::size_t at = (static_cast<std::size_t>(group) * cut.count + extent.begin) * cut.element_bytes;
          device::Operands& o = s_.rehearsal[turn_ ^= 1];
          if (b_.thread() == 0) {
            o.sources[0] = from + at;
            o.destinations[0] = to + at;
          }
          b_.sync(device::Barrier::operands);
          device::copy_pass(b_, o, {}, extent.count * cut.element_bytes);
        }
    b_.sync(device::Barrier::operands);
  }

 private:
  B& b_;
  BodyShared& s_;
  const device::Call& call_;
  std::uint32_t channel_;
  int turn_ = 0;
};

/// All calls of a rehearsal, or the one call if there is none.
template <class T, device::Block B>
void perform_as(B& b, BodyShared& s, device::Body body, const device::Call& call, const Rehearsal* rehearsal) {
  if (rehearsal == nullptr) return run_body_of<T>(b, s, body, call);
  const std::uint32_t local = static_cast<std::uint32_t>(b.block()) / call.channels;
  const device::RankCall& rank = call.local[local];
  const Rehearsal::Rank& user = rehearsal->ranks[local];
  Between<B> between(b, s, call);
  for (int i = 0; i < rehearsal->calls; ++i) {
    const auto turn = static_cast<std::size_t>(i);
    between.copy(user.poison, rank.output, user.output_groups);
    between.copy(user.inputs + turn * user.input_bytes, user.input, user.input_groups);
    run_body_of<T>(b, s, body, call);
    b.sync(device::Barrier::operands);
    between.copy(rank.output, user.outputs + turn * user.output_bytes, user.output_groups);
  }
}

template <device::Block B>
void perform(B& b, BodyShared& s, const Launch& launch) {
  switch (launch.type) {
#define TUTTI_DEVICE_TYPE(group, enumerator, number, bytes, storage) \
  case DataType::enumerator:                                         \
    return perform_as<storage>(b, s, launch.body, *launch.call, launch.rehearsal);
#include "plan/types.inc"
    default: return;  // of the host alone
  }
}

}  // namespace tutti::testing
