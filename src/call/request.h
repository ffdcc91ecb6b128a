// One call with checked arguments and all defaults filled in, and its path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plan/types.h"
#include "transport/call_descriptor.h"

namespace tutti {

struct Layout;
struct PeerRequest;
struct Request;

/// By which path a call goes: route() in src/submit decides it, and whoever carries the call out obeys.
enum class Path : std::uint8_t {
  nothing,        ///< of no elements where some rank has a GPU: no rank carries it out or counts it
  inside_host,    ///< host memory of ranks on one host: inline, windows, copies by the kernel, or slots
  across_hosts,   ///< host memory of ranks on several hosts: messages over their connections
  single_launch,  ///< device memory: one kernel for the ranks of a process that share a GPU
  synchronising,  ///< device memory: kernels that wait for each other on their GPUs
  released,       ///< device memory: kernels that access peers' memory, each once the host releases it
  staged,         ///< device memory: copied to host memory, carried out there, and copied back
  last = staged
};

struct Route {
  Path path = Path::inside_host;
  bool offers_windows = false;  ///< synchronising kernels may access the caller's buffers if all ranks offer them

  bool on_device() const { return path >= Path::single_launch; }
  /// The call's stream waits until the host has carried it out.
  bool queued() const { return path == Path::released || path == Path::staged; }
  /// The call is one kernel, in the order in which ranks queue.
  bool one_kernel() const { return path == Path::single_launch || path == Path::synchronising; }
  /// The call waits for its turn among the communicator's calls. Synchronising kernels share nothing with calls that
  /// the host carries out.
  bool takes_turn() const { return path != Path::synchronising && path != Path::nothing; }
};

/// A call on device memory for which its stream waits until the host has carried it out. Made by src/gpu for a request,
/// which owns it.
class QueuedCall {
 public:
  virtual ~QueuedCall() = default;

  /// Whether the stream has come to the call: the work queued before it has ended, and its input can be read.
  virtual bool landed() const = 0;
  /// Names the buffers on which the host carries the call out, instead of the caller's. Requires landed().
  virtual void bind(Request& request) const = 0;
  virtual void bind(PeerRequest& request) const = 0;

  /// The call has ended, successfully or not: lets its stream go on. May be called any number of times.
  virtual void finish() = 0;
};

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
