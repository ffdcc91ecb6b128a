// Work of a communicator that goes on beside its calls.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/system.h"

namespace tutti {

/// In whatever thread waits.
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

/// What a communicator has of it.
class BesideCalls {
 public:
  /// Null until there is some. Any thread.
  Background* background() const { return background_.load(std::memory_order_acquire); }
  /// To be called once, by the thread that makes calls.
  void attach(std::unique_ptr<Background> background) {
    background_owned_ = std::move(background);
    background_.store(background_owned_.get(), std::memory_order_release);
  }

  /// The task that watches the peers, on the service thread. Code that ends the communicator must remove it from there.
  void watched_by(std::shared_ptr<Task> watch) { watch_ = std::move(watch); }
  std::shared_ptr<Task> take_watch() { return std::move(watch_); }

 private:
  std::shared_ptr<Task> watch_;
  std::unique_ptr<Background> background_owned_;
  std::atomic<Background*> background_ = nullptr;
};

}  // namespace tutti
