#include "api/handles.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti {
namespace {

struct Thing {
  int value = 0;
};

constexpr std::int64_t second_ns = 1'000'000'000;

TEST(Handles, FindWhatWasOpenedUntilItIsClosed) {
  HandleTable<Thing> table;
  void* const handle = table.open(std::make_shared<Thing>(Thing{7}));
  ASSERT_NE(handle, nullptr);
  {
    auto use = table.use(handle);
    ASSERT_TRUE(use);
    EXPECT_EQ(use->value, 7);
  }
  EXPECT_EQ(table.close(real_system(), handle, second_ns)->value, 7);
  EXPECT_FALSE(table.use(handle));
  EXPECT_EQ(table.close(real_system(), handle, second_ns), nullptr);
}

TEST(Handles, AClosedHandleStaysClosedWhenItsPlaceIsUsedAgain) {
  HandleTable<Thing> table;
  void* const first = table.open(std::make_shared<Thing>());
  table.close(real_system(), first, second_ns);
  for (int i = 0; i < 1000; ++i) {
    void* const next = table.open(std::make_shared<Thing>(Thing{i}));
    EXPECT_NE(next, first);
    EXPECT_FALSE(table.use(first));
    EXPECT_EQ(table.use(next)->value, i);
    table.close(real_system(), next, second_ns);
  }
}

TEST(Handles, RefuseWhatWasNeverOpened) {
  HandleTable<Thing> table;
  int local = 0;
  EXPECT_FALSE(table.use(nullptr));
  EXPECT_FALSE(table.use(&local));
  EXPECT_FALSE(table.use(reinterpret_cast<void*>(0x75)));
  EXPECT_FALSE(table.use(reinterpret_cast<void*>(~std::uintptr_t{0})));
  for (std::uintptr_t bits = 1; bits != 0; bits <<= 1) EXPECT_FALSE(table.use(reinterpret_cast<void*>(bits | 0x75)));
}

TEST(Handles, ClosingWaitsForThoseInside) {
  HandleTable<Thing> table;
  void* const handle = table.open(std::make_shared<Thing>());
  std::atomic<bool> inside = false;
  std::atomic<bool> leave = false;
  std::atomic<bool> left = false;
  std::thread user([&] {
    auto use = table.use(handle);
    inside = true;
    while (!leave) std::this_thread::yield();
    left = true;
  });
  while (!inside) std::this_thread::yield();
  std::thread releaser([&] { leave = true; });
  auto thing = table.close(real_system(), handle, 60 * second_ns);
  EXPECT_TRUE(left);
  EXPECT_NE(thing, nullptr);
  user.join();
  releaser.join();
}

TEST(Handles, OneWhoStaysTooLongKeepsTheObject) {
  HandleTable<Thing> table;
  void* const handle = table.open(std::make_shared<Thing>(Thing{3}));
  auto use = table.use(handle);
  auto closed = table.close(real_system(), handle, 0);
  EXPECT_EQ(closed->value, 3);
  closed.reset();
  EXPECT_EQ(use->value, 3);
}

}  // namespace
}  // namespace tutti
