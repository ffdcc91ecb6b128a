// Interface of a call on device memory, for code that knows nothing about GPUs.
#pragma once

#include <cstddef>

namespace tutti {

class Communicator;
class HeldOperation;
struct Request;

/// Made by src/gpu for a request, which owns it.
class DeviceCall {
 public:
  virtual ~DeviceCall() = default;

  /// Makes the operation of a collective whose turn has come. All three outlive the operation.
  virtual void make(HeldOperation& made, Communicator& communicator, Request& request) = 0;

  /// True if the host carries the call out; false if kernels do, in the order in which they are queued.
  virtual bool through_host() const = 0;

  /// False: the call shares nothing with calls that the host carries out, so it need not wait for its turn among them.
  virtual bool takes_turn() const { return true; }

  /// For a send or receive: its buffer in host memory; nullptr until the work queued before the call has ended.
  virtual std::byte* transfer_buffer() const { return nullptr; }

  /// The call has ended, successfully or not: lets its stream go on. May be called any number of times.
  virtual void finish() {}
};

}  // namespace tutti
