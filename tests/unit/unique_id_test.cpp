// An id survives its 128 bytes, and nothing but an id does.
#include "net/unique_id.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tutti {
namespace {

UniqueId sample(const std::string& host = "10.0.0.9") {
  UniqueId id{.root = {.host = host, .port = 40123}};
  for (std::size_t i = 0; i < id.secret.size(); ++i) id.secret[i] = static_cast<std::byte>(i * 7 + 1);
  return id;
}

TEST(UniqueId, SurvivesItsBytes) {
  for (const char* host : {"10.0.0.9", "::1", "2001:db8:1111:2222:3333:4444:5555:6666", "fe80::1%eth0"}) {
    const UniqueId id = sample(host);
    const auto decoded = UniqueId::decode(id.encode().data());
    ASSERT_TRUE(decoded) << decoded.error().text();
    EXPECT_EQ(decoded->root, id.root);
    EXPECT_EQ(decoded->secret, id.secret);
  }
}

TEST(UniqueId, CarriesEveryAddressThatFits) {
  UniqueId id = sample();
  id.also = {"2001:db8:1111:2222:3333:4444:5555:6666", "10.1.0.9", "fe80::1%enp129s0f0"};
  auto decoded = UniqueId::decode(id.encode().data());
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(decoded->also, id.also);
  EXPECT_EQ(decoded->where(),
            "10.0.0.9 or 2001:db8:1111:2222:3333:4444:5555:6666 or 10.1.0.9 or fe80::1%enp129s0f0, port 40123");

  id.also.assign(50, "10.2.0.1");
  id.also.insert(id.also.begin(), "no.number");
  decoded = UniqueId::decode(id.encode().data());
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(decoded->also.size(), 14u) << "15 in all, as the header says";
  EXPECT_EQ(decoded->root.host, "10.0.0.9");
}

TEST(UniqueId, TriesEachAddressInTurn) {
  UniqueId id = sample();
  EXPECT_EQ(id.candidate(0), id.root);
  EXPECT_EQ(id.candidate(5), id.root);
  EXPECT_EQ(id.where(), "10.0.0.9 port 40123");
  id.also = {"::1"};
  EXPECT_EQ(id.candidate(0), id.root);
  EXPECT_EQ(id.candidate(1), (SocketAddress{.host = "::1", .port = 40123}));
  EXPECT_EQ(id.candidate(2), id.root);
}

TEST(UniqueId, EveryDamagedByteIsSeen) {
  auto id = sample();
  id.also = {"fd00::9", "fe80::1%eth0"};
  const auto bytes = id.encode();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int flip = 1; flip < 256; ++flip) {
      auto damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto decoded = UniqueId::decode(damaged.data());
      ASSERT_FALSE(decoded) << "byte " << i << " with " << flip;
      ASSERT_EQ(decoded.error().code, Code::invalid_argument);
    }
}

TEST(UniqueId, OtherBytesAreNone) {
  std::array<char, 128> bytes{};
  EXPECT_NE(UniqueId::decode(bytes.data()).error().what.find("these bytes are not an id"), std::string::npos);
  bytes = sample().encode();
  bytes[8] = 9;
  EXPECT_NE(UniqueId::decode(bytes.data()).error().what.find("another version"), std::string::npos);
  const auto named = sample("some.host").encode();
  EXPECT_FALSE(UniqueId::decode(named.data())) << "only numeric addresses";
}

TEST(UniqueId, FingerprintsDifferAndHideTheSecret) {
  const UniqueId id = sample();
  UniqueId other = id;
  other.secret[31] ^= std::byte{1};
  EXPECT_EQ(id.fingerprint().size(), 8u);
  EXPECT_EQ(id.fingerprint(), sample().fingerprint());
  EXPECT_NE(id.fingerprint(), other.fingerprint());
}

TEST(Secret, IsFreshEachTime) {
  std::set<Secret> seen;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(*fresh_secret()).second);
}

TEST(Secret, FromTextIsTheSameEverywhere) {
  EXPECT_EQ(*secret_from_text("correct horse battery"), *secret_from_text("correct horse battery"));
  EXPECT_NE(*secret_from_text("correct horse battery"), *secret_from_text("correct horse batterz"));
  EXPECT_EQ(secret_from_text("too short").error().code, Code::invalid_argument);
  EXPECT_EQ(secret_from_text("too short").error().what.find("too short"), std::string::npos) << "shows the secret";
}

}  // namespace
}  // namespace tutti
