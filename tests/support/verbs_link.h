// What tests of a pair of links share: messages of one value, and waits that end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>

#include "support/verbs_links.h"

namespace tutti::verbs {

class VerbsLink : public ::testing::Test {
 protected:
  static constexpr std::int64_t patience_ns = 60'000'000'000;

  VerbsLink() {
    ::setenv("FAKE_VERBS_SEED", "0", 1);
    library_ = testing::fake_verbs();
    testing::fake_control<void()>(*library_, "fake_verbs_reset")();
  }

  void fault(const char* text) const {
    ASSERT_EQ(testing::fake_control<int(const char*)>(*library_, "fake_verbs_fault")(text), 0) << text;
  }
  FakeVerbsCounters counters() const {
    FakeVerbsCounters all{};
    testing::fake_control<void(FakeVerbsCounters*)>(*library_, "fake_verbs_counters")(&all);
    return all;
  }
  FakeVerbsLive live() const {
    FakeVerbsLive all{};
    testing::fake_control<void(FakeVerbsLive*)>(*library_, "fake_verbs_live")(&all);
    return all;
  }

 public:
  template <class Condition>
  static bool comes(Condition condition) {
    for (const std::int64_t end = real_system().now_ns() + patience_ns; real_system().now_ns() < end;) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }

 protected:
  /// Sends one message that begins with `value`, once there is a slot.
  static void send(Link& link, std::uint32_t value, std::size_t bytes = sizeof(std::uint32_t)) {
    std::span<std::byte> slot;
    ASSERT_TRUE(comes([&] {
      auto got = link.out().acquire();
      EXPECT_TRUE(got) << got.error().text();
      if (got) slot = *got;
      return !got || !slot.empty();
    }));
    if (slot.empty()) return;
    std::fill_n(slot.begin(), bytes, static_cast<std::byte>(value));
    if (bytes >= sizeof value) std::memcpy(slot.data(), &value, sizeof value);
    ASSERT_TRUE(link.out().commit(bytes));
  }
  static void flush(Link& link) {
    ASSERT_TRUE(comes([&] {
      auto all = link.out().flush();
      EXPECT_TRUE(all) << all.error().text();
      return !all || *all;
    }));
  }
  static void expect_next(Link& link, std::uint32_t value, std::size_t bytes = sizeof(std::uint32_t)) {
    std::span<const std::byte> message;
    ASSERT_TRUE(comes([&] {
      auto got = link.in().peek(bytes);
      EXPECT_TRUE(got) << got.error().text();
      if (got) message = *got;
      return !got || message.data() != nullptr;
    }));
    ASSERT_EQ(message.size(), bytes);
    std::uint32_t found = 0;
    std::memcpy(&found, message.data(), sizeof found);
    EXPECT_EQ(found, value);
    for (std::size_t i = sizeof value; i < bytes; ++i) ASSERT_EQ(message[i], static_cast<std::byte>(value)) << i;
    ASSERT_TRUE(link.in().release());
  }
  /// The error that the link comes to.
  static Error ends(Link& link) {
    Error error;
    EXPECT_TRUE(comes([&] {
      auto got = link.in().peek(1);
      if (!got) error = got.error();
      return !got;
    }));
    return error;
  }

  std::shared_ptr<const Library> library_;
};

}  // namespace tutti::verbs
