// Work of a communicator that goes on beside its calls, in whatever thread waits.
#pragma once

namespace tutti {

class Background {
 public:
  virtual ~Background() = default;
  /// Whether there is work that `progress` may carry on. Any thread.
  virtual bool active() const = 0;
  /// Does what can be done now. True if there was something. Any thread; another one may be in it.
  virtual bool progress() = 0;
  /// The communicator ends: fails what is still under way. Nothing else is called any more.
  virtual void close() = 0;
};

}  // namespace tutti
