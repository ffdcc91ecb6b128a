// What a communicator asks of its rank's GPU, whatever calls on device memory are made of.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace tutti {

struct PeerRequest;
struct Request;

/// All but host_call and count: any thread.
class DeviceSide {
 public:
  virtual ~DeviceSide() = default;

  /// Ends kernels that wait.
  virtual void abort() = 0;
  /// Nothing that was queued runs any more, or ever will.
  virtual bool idle() const = 0;
  /// Why a kernel gave up.
  virtual std::optional<Error> trouble() const = 0;
  /// What the GPU met in the last call, where others only learn that this rank is lost.
  virtual std::optional<Error> cause() const = 0;
  /// A call on host memory begins; `on_behalf`: it serves one on device memory. Errors: invalid_usage (another rank
  /// makes the same call by kernels).
  virtual Result<void> host_call(bool on_behalf) = 0;
  /// This rank queues a call; ranks on the same GPU go by the order of each other's calls.
  virtual void count(const Request& request) = 0;
  virtual void count(const PeerRequest& request) = 0;
  /// How calls on device memory are carried out, in a sentence. For explanations.
  virtual std::string explain() const = 0;
};

}  // namespace tutti
