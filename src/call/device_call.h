// A call on device memory, as rooms that know no GPU see it.
#pragma once

#include <cstddef>

namespace tutti {

class Communicator;
class HeldOperation;
struct Request;

/// Made in src/gpu together with the request, which owns it.
class DeviceCall {
 public:
  virtual ~DeviceCall() = default;

  /// Makes the operation of a collective whose turn has come. All three outlive the operation.
  virtual void make(HeldOperation& made, Communicator& communicator, Request& request) = 0;

  /// Whether the host carries the call out. Otherwise kernels do, in the order in which they are queued.
  virtual bool through_host() const = 0;

  /// Of a send or receive: its buffer in memory of the host; nullptr until what was queued before it has ended.
  virtual std::byte* transfer_buffer() const { return nullptr; }

  /// The call is over, whatever became of it: its stream goes on. May be called any number of times.
  virtual void finish() {}
};

}  // namespace tutti
