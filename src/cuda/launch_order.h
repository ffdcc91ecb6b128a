// Runs the kernels of several communicators on one GPU in the order in which the program makes the calls.
#pragma once

#include <memory>
#include <mutex>

#include "cuda/resources.h"

namespace tutti::cuda {

/// The order of one GPU in one process. Calls that are captured take no part: a graph is launched when the program
/// says.
struct LaunchOrder {
  OwnEvent last;     ///< the launch before
  std::mutex mutex;  ///< held by a thread from the wait for `last` until `last` is its own launch

  /// Errors: cuda.
  static Result<std::shared_ptr<LaunchOrder>> make(const SharedGpu& gpu) {
    const auto current = TUTTI_TRY(Current::enter(*gpu));
    auto order = std::make_shared<LaunchOrder>();
    order->last = TUTTI_TRY(OwnEvent::create(gpu));
    return order;
  }
};

}  // namespace tutti::cuda
