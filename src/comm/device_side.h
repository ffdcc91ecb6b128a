// A communicator's interface to its rank's GPU, independent of how calls on device memory are carried out.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace tutti {

struct PeerRequest;
struct Request;

/// Thread-safe, except for host_call and count.
class DeviceSide {
 public:
  virtual ~DeviceSide() = default;

  /// Makes waiting kernels give up, and kernels that begin later do nothing. Called under a lock of the communicator:
  /// it must neither wait nor call the communicator.
  virtual void abort() = 0;
  /// True if no queued work is running or will run.
  virtual bool idle() const = 0;
  /// Why a kernel gave up; empty if none did.
  virtual std::optional<Error> trouble() const = 0;
  /// The CUDA error of the last call, from which other ranks only learn that this rank failed; empty if there was none.
  virtual std::optional<Error> cause() const = 0;
  /// A call on host memory begins; `on_behalf`: it serves a call on device memory. Errors: invalid_usage (another rank
  /// makes the same call by kernels).
  virtual Result<void> host_call(bool on_behalf) = 0;
  /// Counts a call that this rank queues: ranks on the same GPU order their work by the numbers of each other's calls.
  virtual void count(const Request& request) = 0;
  virtual void count(const PeerRequest& request) = 0;
  /// The communicator has failed with `error`, which is told to the user: waits a little for kernels to end, and adds
  /// what they waited for, or that they go on.
  virtual void explain_ending(Error& error) = 0;
  /// One phrase on how calls on device memory are carried out. For explanations.
  virtual std::string explain() const = 0;
};

}  // namespace tutti
