// One call with checked arguments and all defaults filled in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "call/queued_call.h"
#include "call/route.h"
#include "plan/types.h"
#include "transport/call_descriptor.h"

namespace tutti {

struct Layout;

/// The form of a collective.
enum class Form : std::uint8_t {
  plain,           ///< one count
  counts,          ///< a count per rank
  scatter_gather,  ///< tuttiScatterGather without an equivalent collective
  released,        ///< of a signature alone: plain, and Path::released
  last = released
};

struct Request {
  Collective collective = Collective::barrier;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t count = 0;  ///< elements of one group
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint64_t scalar = 0;  ///< pre-multiplied sum: the factor, as bits of the type
  UserFunction user = {};    ///< of ReduceOp::user
  Rank root = 0;
  std::shared_ptr<const Layout> layout = {};  ///< forms counts and scatter_gather; then `count` is only compared
  Form form = Form::plain;
  bool output_over_input = false;  ///< with a layout: see output_aside
  Route route = {};
  std::uint32_t lists = 0;                  ///< scatter_gather: fingerprint of the lists of ranks
  void* stream = nullptr;                   ///< of a call on device memory: a CUstream
  std::shared_ptr<QueuedCall> queued = {};  ///< of a route that is queued

  std::size_t group_bytes() const { return count * size_of(type); }
  bool copies_input() const { return copies_in_place(collective) && input == output; }
  /// A reduce-scatter with its result at the start of its input, where other ranks' blocks are: writes to memory aside,
  /// and to the output once no rank reads the input any more.
  bool output_aside(Rank rank) const {
    if (collective != Collective::reduce_scatter) return false;
    return layout ? output_over_input : rank > 0 && input == output;
  }
  Signature signature() const {
    return {.collective = static_cast<std::uint8_t>(collective),
            .type = static_cast<std::uint8_t>(type),
            .op = static_cast<std::uint8_t>(op),
            .form = static_cast<std::uint8_t>(route.path == Path::released ? Form::released : form),
            .root = form == Form::scatter_gather ? lists : static_cast<std::uint32_t>(root),
            .count = count};
  }
};

struct PeerRequest {
  bool send = true;
  std::byte* data = nullptr;  ///< only read by a send
  std::size_t bytes = 0;
  DataType type = DataType::uint8;
  Rank peer = 0;
  Route route = {};
  void* stream = nullptr;                   ///< as in Request
  std::shared_ptr<QueuedCall> queued = {};  ///< as in Request
};

}  // namespace tutti
