// Kernels run by the CPU: the same bodies that a GPU gets, on real threads or on fibers.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "support/fiber_block.h"

namespace tutti::testing {

/// Several calls in a row by one launch, each rank going from one to the next without waiting for others: it fills its
/// output with poison, writes its next input, makes the call, takes its output.
struct Rehearsal {
  struct Rank {
    std::byte* input = nullptr;         ///< the call's
    const std::byte* inputs = nullptr;  ///< of all calls, one after the other, to be copied there
    std::byte* outputs = nullptr;       ///< what the calls' outputs are copied to
    const std::byte* poison = nullptr;  ///< output_bytes of it
    std::size_t input_bytes = 0;
    std::size_t output_bytes = 0;
    int input_groups = 0;
    int output_groups = 0;
  };
  int calls = 1;
  std::vector<Rank> ranks;  ///< as in Call::local
};

struct Launch {
  device::Body body = device::Body::run_plan;
  DataType type = DataType::uint8;  ///< of the entry
  const device::Call* call = nullptr;
  const Rehearsal* rehearsal = nullptr;
  int blocks() const { return static_cast<int>(call->local_ranks * call->channels); }
};

/// With so many real threads per block. Returns when all of them have.
void run_on_threads(const Launch& launch, int threads);

/// On fibers; see FiberOptions (whose `blocks` are set here). False: nobody could go on, and they were left behind.
bool run_on_fibers(const Launch& launch, FiberOptions options);
/// The same with a body broken on purpose; of int32 alone.
bool run_on_fibers(const Launch& launch, const FiberOptions& options, device::Fault fault);

/// What a driver's launch of the entry of that name does: blocks of so many real threads. False: no such entry.
bool launch_by_name(std::string_view entry, const device::Call& call, int threads = 2);

}  // namespace tutti::testing
