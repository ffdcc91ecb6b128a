// A call on device memory for which its stream waits until the host has carried it out.
#pragma once

namespace tutti {

struct PeerRequest;
struct Request;

/// Made by src/gpu for a request, which owns it.
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

}  // namespace tutti
