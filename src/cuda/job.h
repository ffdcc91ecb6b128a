// What an engine is told: which ranks it serves, and what one call asks of it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/launch_order.h"
#include "cuda/resources.h"
#include "kernels/entries.h"
#include "plan/plan.h"

namespace tutti::cuda {

struct EngineShape {
  int ranks = 1;                  ///< of the communicator
  std::vector<Rank> local;        ///< the ranks on this GPU, ascending
  int channels_max = 1;           ///< blocks that a rank may use
  std::int64_t limit_ns = 0;      ///< how long a kernel waits for a peer; 0: for ever
  std::size_t scratch_bytes = 0;  ///< for reductions with a count per rank, about; equal on all ranks
  bool specialised = true;        ///< false: only run_plan, except for plans of Access::in_line
  /// Plans are uploaded into a few large allocations that are freed only with the engine. For engines whose streams may
  /// wait long for the host: the driver may make a thread that allocates or frees memory wait for all streams.
  bool frees_late = false;
  std::shared_ptr<LaunchOrder> order = {};  ///< among other engines of the GPU; null: none
  /// By rank of the communicator, where some are elsewhere: their areas (see SyncMemory) at addresses of this GPU,
  /// zeroed before any of them begins. Empty: all ranks are local, or kernels meet none; the engine makes the areas.
  std::vector<std::byte*> areas = {};
  std::vector<std::shared_ptr<const void>> held = {};  ///< what the areas lie in, and windows

  /// Whether its kernels wait for those of other engines.
  bool synchronises() const { return !areas.empty(); }
};

/// A rank's plan in the GPU's memory.
struct DevicePlan {
  DeviceMemory memory;  ///< empty if the plan lies in the engine's memory
  const Action* actions = nullptr;
  const Place* places = nullptr;
  std::uint32_t action_count = 0;
  std::uint16_t place_count = 0;  ///< as in device::RankCall
  int scratch_groups = 0;
  device::Body body = device::Body::run_plan;  ///< the kernel that runs the plan
};

/// A plan of passes, and its copy in the GPU's memory.
struct LocalPlan {
  const Plan* plan = nullptr;  ///< null: none
  std::shared_ptr<const DevicePlan> uploaded;
};

/// What a rank does with its own memory in a reduction with a count per rank, besides the exchange of blocks.
struct LocalReduction {
  std::size_t count = 0;           ///< elements of the rank's result
  std::size_t largest = 0;         ///< of any rank's result; equal on all ranks
  std::size_t own_at = 0;          ///< where its own contribution to that begins in its input, in elements
  std::size_t input_elements = 0;  ///< from the beginning of the input to the end of the last block
  LocalPlan combine;
  LocalPlan scale;
};

/// The part of a collective that is the same on all ranks.
struct CollectiveJob {
  const Plan* plan = nullptr;  ///< any local rank's
  /// Through windows, in place of `plan`, which goes through slots: where all ranks offer their buffers. Null: none.
  const Plan* windows = nullptr;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;                       ///< elements of a group
  bool passes_only = false;                    ///< each part is a range of passes of a plan; run_plan runs it
  const device::PeerBuffers* table = nullptr;  ///< see device::Call
  /// What all ranks must have equal, where some are elsewhere, given the channels that the engine chooses.
  std::function<std::uint64_t(std::uint32_t channels)> signature = {};
  std::int64_t limit_ns = 0;  ///< in place of EngineShape's; 0: that
  bool exchange = false;      ///< `plan` is empty; each part has transfers, and in reductions `reduction`
};

/// The sends and receives of a rank that is alone in its engine.
struct MessagesJob {
  std::span<const Stream> streams;            ///< all different, not empty; the kernel runs on the first
  std::span<const device::Message> messages;  ///< by queue (Message::queue), none to or from the rank itself
  /// Copies on this GPU.
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
  };
  std::span<const Copy> copies;
};

/// What a rank offers to the kernels of the other ranks.
struct WindowOffer {
  std::uint64_t input = device::Offer::none;
  std::uint64_t output = device::Offer::none;
  std::byte* const* mapped = nullptr;     ///< WindowTable::data
  std::shared_ptr<const void> held = {};  ///< by the graph, if the call is captured: keeps the offer valid
};

/// One rank's part of a collective, in the order of EngineShape::local.
struct Part {
  Stream stream = nullptr;
  std::shared_ptr<const DevicePlan> plan;
  std::size_t staged = 0;  ///< bytes of the rank's input, which is copied first; 0: it is not
  std::uint32_t first_action = 0;
  std::uint32_t action_count = UINT32_MAX;  ///< at most
  std::byte* scratch = nullptr;             ///< null: use the engine's scratch
  /// With CollectiveJob::exchange: by peer. In reductions the engine says where what they receive goes.
  std::span<const device::Transfer> transfers = {};
  LocalReduction reduction = {};
  /// With CollectiveJob::windows.
  std::shared_ptr<const DevicePlan> windows = {};
  WindowOffer offer = {};
};
using Parts = std::span<const Part>;
using Buffers = std::span<const device::PeerBuffers>;  ///< of all ranks of the communicator

}  // namespace tutti::cuda
