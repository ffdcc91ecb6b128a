// The secret of an id is in no log, and not in the memory of a process once its start is over.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/launch_ranks.h"
#include "support/log_file.h"

namespace tutti::testing {
namespace {

constexpr std::size_t secret_at = 12, secret_bytes = 32;  // in an id
constexpr unsigned char mask = 0xa5;

/// A part of an id that this process does not have in its memory itself.
using Masked = std::vector<unsigned char>;
Masked masked(const char* bytes, std::size_t count) {
  Masked part(count);
  std::ranges::transform(bytes, bytes + count, part.begin(),
                         [](char c) { return static_cast<unsigned char>(c) ^ mask; });
  return part;
}

bool is_at(const volatile unsigned char* at, const Masked& part) {
  for (std::size_t i = 0; i < part.size(); ++i)
    if ((at[i] ^ mask) != part[i]) return false;
  return true;
}

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

/// Memory of this process alone that it may write, without the stack of its first thread, where this test has copies.
std::vector<Range> own_memory() {
  std::vector<Range> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, node, name;
    words >> range >> rights >> offset >> device >> node >> name;
    if (rights != "rw-p" || name == "[stack]") continue;
    const std::size_t dash = range.find('-');
    all.push_back({std::stoull(range.substr(0, dash), nullptr, 16), std::stoull(range.substr(dash + 1), nullptr, 16)});
  }
  return all;
}

__attribute__((no_sanitize("address", "thread"))) int places_of(const Masked& part) {
  int places = 0;
  for (const Range& range : own_memory()) {
    const auto* at = reinterpret_cast<const volatile unsigned char*>(range.begin);
    const auto* const end = reinterpret_cast<const volatile unsigned char*>(range.end);
    for (; at + part.size() <= end; ++at)
      if ((*at ^ mask) == part[0] && is_at(at, part)) ++places;
  }
  return places;
}

/// The service thread may have a last look at the start.
void expect_nowhere(const Masked& part) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int places = 0;
  do places = places_of(part);
  while (places > 0 && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(places, 0);
}

std::string hex_of(const Masked& part) {
  std::string text;
  for (const unsigned char byte : part) text += fmt::format("{:02x}", static_cast<unsigned>(byte ^ mask));
  return text;
}

/// Neither as they are, nor as digits.
void expect_not_in(const std::string& text, const Masked& part) {
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(text.find(hex_of(part).substr(0, 16)), std::string::npos);
  const auto* const bytes = reinterpret_cast<const volatile unsigned char*>(text.data());
  for (std::size_t at = 0; at + part.size() <= text.size(); ++at) EXPECT_FALSE(is_at(bytes + at, part));
}

TEST(Secret, IsNowhereInMemoryAfterTheStart) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    Masked secret, beginning;
    tuttiComm_t comm = nullptr, part = nullptr;
    {
      const tuttiUniqueId id = seat.next_id();
      secret = masked(id.internal + secret_at, secret_bytes);
      beginning = masked(id.internal, secret_at);
      ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 2, id, seat.rank())));
    }
    ASSERT_TRUE(seat.meet());
    expect_nowhere(secret);
    ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &part, nullptr)));
    ASSERT_TRUE(seat.meet());
    expect_nowhere(beginning);
    EXPECT_TRUE(ok(tuttiCommDestroy(part)));
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
    expect_nowhere(secret);
  });
}

TEST(Secret, IsInNoLog) {
  for (const char* const transport : {"auto", "socket"})
    launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG_SUBSYS=ALL", std::string("TUTTI_TRANSPORT=") + transport}},
                 [](Seat& seat) {
                   const LogFile log;
                   ::setenv("TUTTI_DEBUG", "TRACE", 1);
                   const tuttiUniqueId id = seat.next_id();
                   tuttiComm_t comm = nullptr, part = nullptr;
                   ASSERT_TRUE(ok(tuttiCommInitRank(&comm, 2, id, seat.rank())));
                   ASSERT_TRUE(ok(tuttiCommSplit(comm, 0, seat.rank(), &part, nullptr)));
                   EXPECT_TRUE(ok(tuttiCommDestroy(part)));
                   EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
                   expect_not_in(log.text(), masked(id.internal + secret_at, secret_bytes));
                 });
}

}  // namespace
}  // namespace tutti::testing
