// Who asks for a segment hears why there is none, waits only as long as it may, and believes no hostile server.
#include "transport/fd_server.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "support/descriptors.h"
#include "support/raw_client.h"

namespace tutti {
namespace {

using testing::key_of;
using testing::open_descriptors;
using testing::raw_listen;
using testing::raw_send;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t patient_ns = 60'000 * ms;
const std::function<bool()> never = [] { return false; };

TEST(FetchSegment, SaysThatNobodyServes) {
  const auto fetched = fetch_segment("tutti-nobody-has-this-name", key_of(1), {.id = 1}, patient_ns, never);
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, Code::remote);
}

TEST(FetchSegment, RefusesNamesThatCannotBe) {
  for (const std::string& name : {std::string(), std::string(108, 'x'), std::string(100'000, 'x')})
    EXPECT_EQ(fetch_segment(name, key_of(1), {.id = 1}, patient_ns, never).error().code, Code::remote);
}

TEST(FetchSegment, WaitsOnlyAsLongAsItMay) {
  const UniqueFd mute = raw_listen("tutti-test-mute-" + std::to_string(::getpid()));
  const auto fetched =
      fetch_segment("tutti-test-mute-" + std::to_string(::getpid()), key_of(1), {.id = 1}, 60 * ms, never);
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, Code::timeout);
}

TEST(FetchSegment, EndsWhenItIsGivenUp) {
  const std::string name = "tutti-test-given-up-" + std::to_string(::getpid());
  const UniqueFd mute = raw_listen(name);
  int asked = 0;
  const auto fetched = fetch_segment(name, key_of(1), {.id = 1}, INT64_MAX, [&asked] { return ++asked == 3; });
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, Code::remote);
  EXPECT_EQ(asked, 3);
}

/// Answers one request with whatever `bytes` and as many descriptors as asked for.
void answer_once(const UniqueFd& listener, std::string_view bytes, std::size_t descriptors) {
  const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  FdRequest request;
  EXPECT_EQ(::recv(client.get(), &request, sizeof request, 0), static_cast<ssize_t>(sizeof request));
  const UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC));
  EXPECT_TRUE(raw_send(client, bytes, std::vector<int>(descriptors, fd.get())));
}

TEST(FetchSegment, BelievesNoHostileServerAndKeepsNothingOfIt) {
  const std::string name = "tutti-test-hostile-" + std::to_string(::getpid());
  const auto before = open_descriptors();
  {
    const UniqueFd listener = raw_listen(name);
    const FdReply granted{.status = FdStatus::granted, .bytes = 4096};
    const FdReply odd{.status = static_cast<FdStatus>(99), .bytes = 4096};
    const std::string_view good(reinterpret_cast<const char*>(&granted), sizeof granted);
    const std::string_view strange(reinterpret_cast<const char*>(&odd), sizeof odd);
    for (const auto& answer :
         {std::pair(good, 0u), std::pair(good, 2u), std::pair(good, 16u), std::pair(strange, 1u)}) {
      std::thread server([&] { answer_once(listener, answer.first, answer.second); });
      const auto fetched = fetch_segment(name, key_of(1), {.id = 1}, patient_ns, never);
      server.join();
      ASSERT_FALSE(fetched);
      EXPECT_EQ(fetched.error().code, Code::remote);
      if (answer.first == strange) {
        EXPECT_NE(fetched.error().what.find("an answer that does not exist (99)"), std::string::npos);
      }
    }
    // What is no reply at all is as good as none: it asks again.
    const std::string longer = std::string(good) + "x";
    const std::string other(sizeof granted, 'x');
    for (const std::string& bytes : {std::string("short"), longer, other}) {
      std::thread server([&] {
        answer_once(listener, bytes, 3);
        answer_once(listener, good, 1);
      });
      const auto fetched = fetch_segment(name, key_of(1), {.id = 1}, patient_ns, never);
      server.join();
      EXPECT_TRUE(fetched) << fetched.error().text();
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace tutti
