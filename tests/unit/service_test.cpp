// The service thread runs tasks that others own.
#include "process/service.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>

#include "process/process.h"

namespace tutti {
namespace {

/// What both tasks of a test share: the first that runs once this is armed stays until it is released.
struct Held {
  std::atomic<bool> armed = false;
  std::atomic<const Task*> inside = nullptr;
  std::atomic<bool> released = false;
};

class Passing final : public Task {
 public:
  Passing(Held& held, std::atomic<int>& destroyed) : held_(held), destroyed_(destroyed) {}
  ~Passing() override { ++destroyed_; }
  bool advance() override {
    if (!held_.armed.exchange(false)) return true;
    held_.inside = this;
    held_.inside.notify_all();
    held_.released.wait(false);
    return true;
  }
  std::int64_t poll_set(std::vector<PollItem>&) override { return 0; }

 private:
  Held& held_;
  std::atomic<int>& destroyed_;
};

/// Also while the thread is busy with another task: else what the task holds goes at some later time, in that thread.
TEST(Service, DoesNotHoldATaskThatHasBeenRemoved) {
  // Never destroyed, as in a program: its service thread does not end.
  Service& service = (new Process(real_system(), Config::good_from_process(), Service::Mode::threaded))->service;
  for (int round = 0; round < 20; ++round) {
    Held held;
    std::atomic<int> destroyed = 0;
    std::array<std::shared_ptr<Task>, 3> tasks;
    for (auto& task : tasks) {
      task = std::make_shared<Passing>(held, destroyed);
      ASSERT_TRUE(service.add(task));
    }
    held.armed = true;
    service.wake();
    held.inside.wait(nullptr);
    for (auto& task : tasks) {
      if (task.get() == held.inside) continue;
      service.remove(task.get());
      task.reset();
    }
    EXPECT_EQ(destroyed, 2);
    held.released = true;
    held.released.notify_all();
    for (auto& task : tasks) {
      if (task) service.remove(task.get());
      task.reset();
    }
    EXPECT_EQ(destroyed, 3);
  }
}

}  // namespace
}  // namespace tutti
