// What is new of gone ranks goes to the peers once, and to this rank once where nobody speaks for them.
#include "net/gossip.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

bool nobody_speaks(int) {
  return false;
}

TEST(Gossip, AreToldOnce) {
  Gossip news;
  EXPECT_FALSE(news.take_message());
  EXPECT_TRUE(news.add({.rank = 3, .words = "rank 3 lost"}));
  const auto message = news.take_message();
  ASSERT_TRUE(message);
  EXPECT_FALSE(news.add({.rank = 3, .words = "rank 3 lost"})) << "known";
  EXPECT_FALSE(news.take_message());
  EXPECT_TRUE(news.take().empty()) << "this rank has found it itself";
  EXPECT_EQ(news.size(), 1u);

  Gossip other;
  ASSERT_TRUE(other.merge(*message, nobody_speaks));
  EXPECT_TRUE(other.take_message()) << "its peers are to hear it too";
  const auto heard = other.take();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard.front().rank, 3);
  EXPECT_EQ(heard.front().words, "rank 3 lost");
  EXPECT_TRUE(other.take().empty());
  ASSERT_TRUE(other.merge(*message, nobody_speaks));
  EXPECT_FALSE(other.take_message()) << "nothing of it is new";
}

TEST(Gossip, WhoSpeaksForItselfIsNotRead) {
  Gossip news, other;
  for (const int rank : {3, 4}) news.add({.rank = rank, .left = true});
  ASSERT_TRUE(other.merge(*news.take_message(), [](int rank) { return rank == 3; }));
  const auto heard = other.take();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard.front().rank, 4);
  EXPECT_EQ(other.size(), 2u);
  EXPECT_TRUE(other.take_message());
}

TEST(Gossip, WhatIsNoGossipIsRefused) {
  Gossip news;
  EXPECT_FALSE(news.merge(Bytes(3), nobody_speaks));
  EXPECT_EQ(news.size(), 0u);
}

}  // namespace
}  // namespace tutti
