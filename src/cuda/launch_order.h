// Runs the kernels of several communicators on one GPU in the order in which the program makes the calls.
#pragma once

#include <memory>
#include <mutex>

#include "cuda/resources.h"

namespace tutti::cuda {

/// The order of one GPU in one process. Calls that are captured take no part: a graph is launched when the program
/// says.
class LaunchOrder {
 public:
  /// Errors: cuda.
  static Result<std::shared_ptr<LaunchOrder>> make(const SharedGpu& gpu) {
    const auto current = TUTTI_TRY(Current::enter(*gpu));
    auto event = TUTTI_TRY(OwnEvent::create(gpu));
    return std::shared_ptr<LaunchOrder>(new LaunchOrder(gpu, std::move(event)));
  }

  /// To be held by a thread from `follow` to `record`.
  std::unique_lock<std::mutex> enter() { return std::unique_lock(mutex_); }
  /// Makes `stream` wait for the launch before. The context must be current. Errors: cuda.
  Result<void> follow(Stream stream) const { return gpu_->follow(stream, last_.get()); }
  /// What `stream` holds now is the launch before the next one. As follow.
  Result<void> record(Stream stream) const { return gpu_->record(last_.get(), stream); }

 private:
  LaunchOrder(SharedGpu gpu, OwnEvent last) : gpu_(std::move(gpu)), last_(std::move(last)) {}

  SharedGpu gpu_;
  OwnEvent last_;
  std::mutex mutex_;
};

}  // namespace tutti::cuda
