// Signs of life between hosts, on a seeded clock and network: who is silent for too long is lost, and nobody else.
#include "comm/control_links.h"

#include <gtest/gtest.h>

#include "init/peer_info.h"
#include "support/seeds.h"
#include "support/sim_system.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t silence_ms = 4'000;
const SocketAddress meeting_point{.host = "10.0.0.1", .port = 4711};

/// One rank's links, and the peer's end of the only one: another rank's links, or the test.
class OneLink : public ::testing::Test {
 protected:
  void open(std::int64_t limit_ms = silence_ms) {
    auto listener = *system_.listen(meeting_point);
    Socket peer = *system_.connect(meeting_point);
    Socket own;
    while (!own) {
      system_.poll({}, ms);
      own = *system_.accept(listener);
    }
    own_ = make(std::move(own), mirror_, limit_ms);
    peer_.emplace(system_, std::move(peer));
  }
  std::unique_ptr<ControlLinks> make(Socket socket, const std::shared_ptr<MirroredHeader>& mirror,
                                     std::int64_t limit_ms) {
    std::vector<ControlLinks::Link> links;
    links.push_back({.rank = 1, .wire = Wire(system_, std::move(socket)), .mirror = mirror, .who = "rank 1/2"});
    return std::make_unique<ControlLinks>(system_, std::move(links), limit_ms * ms, /*start_ns=*/30'000 * ms);
  }

  /// As the service thread would, for so long or until the peer is lost; how long it took.
  std::int64_t run(std::int64_t for_ms) {
    const std::int64_t begin = system_.now_ns();
    while (system_.now_ns() < begin + for_ms * ms) {
      own_->advance();
      if (lost()) break;
      std::vector<PollItem> items;
      const std::int64_t next = std::min(own_->poll_set(items), begin + for_ms * ms);
      system_.poll(items, std::max<std::int64_t>(0, next - system_.now_ns()));
    }
    return (system_.now_ns() - begin) / ms;
  }

  bool lost() const {
    const RankState state = mirror_->header().state.load();
    return state == RankState::lost || state == RankState::silent;
  }

  /// What the peer says, as documented: state, kind, text.
  void say(RankState state, std::uint32_t kind, std::string_view text = "") {
    ByteWriter writer;
    writer.number(static_cast<std::uint32_t>(state));
    writer.number(kind);
    writer.text(text);
    peer_->queue(std::move(writer).take());
    for (auto sent = peer_->flush(); !sent || !*sent; sent = peer_->flush()) {
      ASSERT_TRUE(sent);
      system_.poll({}, ms);
    }
  }
  /// The state in the next frame that came to the peer.
  std::optional<RankState> heard() {
    for (int turn = 0; turn < 100; ++turn) {
      const auto bytes = peer_->take(12);
      if (bytes && *bytes) return static_cast<RankState>(ByteReader(**bytes).number<std::uint32_t>());
      system_.poll({}, ms);
    }
    return std::nullopt;
  }

  SimSystem system_{{.seed = seeds(1).front()}};
  std::shared_ptr<MirroredHeader> mirror_ = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  std::unique_ptr<ControlLinks> own_;
  std::optional<Wire> peer_;
};

TEST_F(OneLink, WhoFallsSilentIsLostWithinTheLimit) {
  open();
  for (int beat = 0; beat < 20; ++beat) {
    say(RankState::open, 0);
    run(1'500);
    ASSERT_FALSE(lost()) << "after " << beat << " beats";
  }
  say(RankState::open, 0);
  EXPECT_GE(run(60'000), silence_ms);
  ASSERT_TRUE(lost());
  const std::string words = get_text(mirror_->header().message);
  EXPECT_TRUE(words.starts_with("rank 1/2 lost: it does not answer any more: nothing was received for 4.4 s")) << words;
}

TEST_F(OneLink, TheLimitIsKept) {
  open();
  say(RankState::open, 0);
  run(100);
  say(RankState::open, 0);
  EXPECT_LE(run(60'000), silence_ms + 1'000);
  EXPECT_TRUE(lost());
}

/// A route that is cut in one direction: TCP goes on sending the beats of a peer that hears nothing until it times out.
TEST_F(OneLink, TheLimitIsKeptWhereAPeerIsStillHeardForAWhileAfterACut) {
  constexpr int still_heard_ms = 450;
  open();
  say(RankState::open, 0);
  run(still_heard_ms);
  say(RankState::open, 0);
  EXPECT_LE(run(60'000), silence_ms + 1'000 - still_heard_ms);
  EXPECT_TRUE(lost());
}

/// Its service thread may not run yet: the start gives it time.
TEST_F(OneLink, WhoWasNeverHeardIsGivenMoreTime) {
  open();
  run(25'000);
  EXPECT_FALSE(lost());
  run(10'000);
  EXPECT_TRUE(lost());
}

TEST_F(OneLink, WhoIsLookedAtByADebuggerMayBeSilent) {
  open();
  say(RankState::open, 1);
  run(3'600'000);
  EXPECT_FALSE(lost());
  say(RankState::open, 0);
  run(60'000);
  EXPECT_TRUE(lost());
}

/// What came meanwhile is read first, and a pause of this side counts once.
TEST_F(OneLink, WhoWasStoppedItselfBlamesNobody) {
  open();
  say(RankState::open, 0);
  run(2'500);
  for (int pause = 0; pause < 3; ++pause) {
    system_.poll({}, 3'600'000 * ms);
    say(RankState::open, 0);
    run(2'500);
    ASSERT_FALSE(lost());
  }
}

TEST_F(OneLink, WhoComesBackHearsWhatBecameOfIt) {
  open();
  say(RankState::open, 0);
  run(60'000);
  ASSERT_TRUE(lost());
  own_->announce({.state = RankState::failed, .culprit = 1});
  std::optional<RankState> state = heard();
  ASSERT_EQ(state, RankState::open) << "beats came first";
  while (state == RankState::open) state = heard();
  EXPECT_EQ(state, RankState::failed);
  own_->leave({});
  EXPECT_FALSE(own_->advance()) << "a lost rank keeps nobody";
}

TEST_F(OneLink, NothingIsSentWhereSilenceIsAllowed) {
  open(0);
  run(3'600'000);
  EXPECT_FALSE(lost());
  EXPECT_FALSE(heard());
}

/// Who speaks of its end is not lost afterwards.
TEST_F(OneLink, WhoHasLeftMayBeSilent) {
  open();
  say(RankState::closed, 0, std::string(17, '\0'));
  run(60'000);
  EXPECT_EQ(mirror_->header().state.load(), RankState::closed);
}

TEST_F(OneLink, HowRanksEndedIsToldAsItIs) {
  open();
  const auto theirs = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  auto other = make(std::move(*peer_).take_socket(), theirs, silence_ms);
  const RankEnd own{.state = RankState::failed,
                    .code = static_cast<std::uint32_t>(Code::timeout),
                    .ends_all = true,
                    .culprit = 5,
                    .completed = std::uint64_t{1} << 40,
                    .words = std::string(5'000, 'x')};
  own_->announce(own);
  for (int turn = 0; turn < 1'000 && theirs->header().state.load() == RankState::open; ++turn) {
    own_->advance();
    other->advance();
    system_.poll({}, ms);
  }
  const RankEnd told = RankEnd::read(theirs->header());
  EXPECT_EQ(told.state, own.state);
  EXPECT_EQ(told.code, own.code);
  EXPECT_TRUE(told.ends_all);
  EXPECT_EQ(told.culprit, own.culprit);
  EXPECT_EQ(told.completed, own.completed);
  EXPECT_EQ(told.words, own.words.substr(0, told.words.size()));
  EXPECT_GT(told.words.size(), 2'000u);
}

/// Also after this rank has failed, and each once.
TEST_F(OneLink, WhatIsHeardOfOthersIsPassedOn) {
  open();
  const auto theirs = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  auto other = make(std::move(*peer_).take_socket(), theirs, silence_ms);
  own_->announce({.state = RankState::failed, .culprit = 3, .words = "rank 3/900 lost"});
  for (int twice = 0; twice < 2; ++twice) {
    own_->send_gone({.rank = 3, .words = "rank 3/900 lost"});
    own_->send_gone({.rank = 801, .culprit = 3, .words = "rank 801/900 has failed"});
    own_->send_gone({.rank = 4, .left = true});
    own_->send_gone({.rank = 5, .words = "rank 5/900 lost"});
  }
  std::vector<GoneRank> heard;
  for (int turn = 0; turn < 1'000; ++turn) {
    own_->advance();
    other->advance();
    for (GoneRank& gone : other->take_gone()) heard.push_back(std::move(gone));
    system_.poll({}, ms);
  }
  EXPECT_TRUE(own_->take_gone().empty()) << "it has heard its own words";
  std::ranges::sort(heard, {}, &GoneRank::rank);
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_EQ(heard[0].rank, 3);
  EXPECT_EQ(heard[0].culprit, 3);
  EXPECT_EQ(heard[0].words, "rank 3/900 lost");
  EXPECT_EQ(heard[1].rank, 4);
  EXPECT_TRUE(heard[1].left);
  EXPECT_EQ(heard[2].rank, 5);
  EXPECT_EQ(heard[2].words, "rank 5/900 lost") << "a loss of its own";
  EXPECT_EQ(heard[3].rank, 801);
  EXPECT_EQ(heard[3].culprit, 3);
  EXPECT_EQ(heard[3].words, "rank 3/900 lost") << "its cause";
}

TEST_F(OneLink, AnEndThatIsCutShortIsNone) {
  open();
  say(RankState::closed, 0, std::string(16, '\0'));
  run(1'000);
  EXPECT_TRUE(lost());
}

/// The numbers next to those that exist, and far from them.
TEST_F(OneLink, AStateOrKindThatDoesNotExistEndsTheConnection) {
  const auto state = [](std::uint32_t number) { return static_cast<RankState>(number); };
  constexpr auto after_last = static_cast<std::uint32_t>(ControlFrame::last) + 1;
  for (const auto& [told, kind] : {std::pair(state(8), 0u),
                                   {state(~0u), 0u},
                                   {state(0x8000'0001), 0u},
                                   {state(0), 0u},
                                   {RankState::lost, 0u},
                                   {RankState::damaged, 0u},
                                   {RankState::open, after_last},
                                   {RankState::open, 256u},
                                   {RankState::open, ~0u},
                                   {RankState::closed, after_last}}) {
    mirror_ = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
    open();
    say(told, kind, std::string(17, '\0'));
    run(1'000);
    EXPECT_TRUE(lost()) << static_cast<std::uint32_t>(told) << ", " << kind;
    EXPECT_NE(std::string_view(mirror_->header().message.data()).find("invalid control message"), std::string::npos)
        << mirror_->header().message.data();
  }
}

TEST_F(OneLink, TwoThatBeatHearEachOther) {
  open();
  const auto theirs = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  auto other = make(std::move(*peer_).take_socket(), theirs, silence_ms);
  for (int turn = 0; turn < 1'000; ++turn) {
    own_->advance();
    other->advance();
    system_.poll({}, 100 * ms);
  }
  EXPECT_FALSE(lost());
  EXPECT_EQ(theirs->header().state.load(), RankState::open);
}

TEST_F(OneLink, WhoIsAskedTellsWhatItHasCalled) {
  open();
  const auto mine = mirror_;
  const auto theirs = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  auto other = make(std::move(*peer_).take_socket(), theirs, silence_ms);
  auto history = std::make_shared<CallHistory>();
  other->answers_from(history);
  CallSummary last;
  for (std::uint64_t sequence = 1; sequence <= CallHistory::kept + 3; ++sequence)
    last = history->add({.sequence = sequence, .signature = {.collective = 1, .root = 2, .count = sequence * 7}});
  EXPECT_FALSE(history->find(3)) << "too long ago";
  const CallSummary asking{.last = {.sequence = 5, .signature = {.collective = 1}}, .hash = 4711};
  own_->send_summary(asking, /*ask=*/true);
  for (int turn = 0; turn < 1'000 && mine->header().calls.load()->sequence() == 0; ++turn) {
    other->advance();
    own_->advance();
    system_.poll({}, ms);
  }
  EXPECT_EQ(theirs->header().calls.load()->hash, asking.hash);
  EXPECT_EQ(mine->header().calls.load()->hash, last.hash);
  EXPECT_EQ(mine->header().calls.load()->sequence(), last.sequence());
}

/// Told when it changes, and to nobody who does not read: the word of then, once it does.
TEST_F(OneLink, ForWhomARankWaitsIsTold) {
  open();
  const auto theirs = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  EXPECT_EQ(theirs->header().waits.load(), waits::unknown);
  auto other = make(std::move(*peer_).take_socket(), theirs, silence_ms);
  for (const std::uint32_t word : {waits::for_nobody, waits::for_rank(0), waits::for_rank(1'000'000), waits::unknown}) {
    for (int again = 0; again < 10'000; ++again) {
      own_->send_wait(again % 2 == 0 ? word : waits::for_rank(7));
      own_->send_wait(word);
    }
    for (int turn = 0; turn < 1'000 && theirs->header().waits.load() != word; ++turn) {
      own_->send_wait(word);
      other->advance();
      own_->advance();
      system_.poll({}, ms);
    }
    EXPECT_EQ(theirs->header().waits.load(), word);
  }
  EXPECT_FALSE(lost());
}

/// A word of the wrong length.
TEST_F(OneLink, AWaitThatIsNoneEndsTheConnection) {
  open();
  say(RankState::open, static_cast<std::uint32_t>(ControlFrame::waits), std::string(3, '\0'));
  run(1'000);
  EXPECT_TRUE(lost());
}

TEST_F(OneLink, CallsAreToldInAsManyFramesAsTheyNeed) {
  open();
  const auto theirs = std::make_shared<MirroredHeader>(AreaShape{.ranks = 2});
  auto other = make(std::move(*peer_).take_socket(), theirs, silence_ms);
  std::vector<CallMark> marks;
  for (std::uint64_t sequence = 1; sequence <= 1'000; ++sequence)
    marks.push_back({.sequence = sequence, .signature = {.collective = 1, .count = sequence * 7}});
  own_->send_calls(1, marks);
  std::vector<CallMark> told;
  for (int turn = 0; turn < 10'000 && told.size() < marks.size(); ++turn) {
    own_->advance();
    other->advance();
    system_.poll({}, ms);
    for (const PeerCalls& calls : other->take_calls()) told.insert(told.end(), calls.marks.begin(), calls.marks.end());
  }
  ASSERT_EQ(told.size(), marks.size());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    EXPECT_EQ(told[i].sequence, marks[i].sequence);
    EXPECT_EQ(told[i].signature, marks[i].signature);
  }
}

}  // namespace
}  // namespace tutti
