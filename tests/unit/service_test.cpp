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
struct Gate {
  std::atomic<bool> armed = false;
  std::atomic<const Task*> inside = nullptr;
  std::atomic<bool> released = false;
};

class Passing final : public Task {
 public:
  Passing(Gate& gate, std::atomic<int>& destroyed) : gate_(gate), destroyed_(destroyed) {}
  ~Passing() override { ++destroyed_; }
  bool advance() override {
    if (!gate_.armed.exchange(false)) return true;
    gate_.inside = this;
    gate_.inside.notify_all();
    gate_.released.wait(false);
    return true;
  }
  std::int64_t poll_set(std::vector<PollItem>&) override { return 0; }

 private:
  Gate& gate_;
  std::atomic<int>& destroyed_;
};

/// Also while the thread is busy with another task: else what the task holds goes at some later time, in that thread.
TEST(Service, DoesNotHoldATaskThatHasBeenRemoved) {
  // Never destroyed, as in a program: its service thread does not end.
  Service& service = (new Process(real_system(), Config::good_from_process(), Service::Mode::threaded))->service;
  for (int round = 0; round < 20; ++round) {
    Gate gate;
    std::atomic<int> destroyed = 0;
    std::array<std::shared_ptr<Task>, 3> tasks;
    for (auto& task : tasks) {
      task = std::make_shared<Passing>(gate, destroyed);
      ASSERT_TRUE(service.add(task));
    }
    gate.armed = true;
    service.wake();
    gate.inside.wait(nullptr);
    for (auto& task : tasks) {
      if (task.get() == gate.inside) continue;
      service.remove(task.get());
      task.reset();
    }
    EXPECT_EQ(destroyed, 2);
    gate.released = true;
    gate.released.notify_all();
    for (auto& task : tasks) {
      if (task) service.remove(task.get());
      task.reset();
    }
    EXPECT_EQ(destroyed, 3);
  }
}

}  // namespace
}  // namespace tutti
