// The fake libibverbs in one process: does it move bytes, complete, wake and refuse as hardware does?
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>
#include <vector>

#include "support/fake_verbs/loaded.h"

namespace tutti::testing {
namespace {

using verbs::DoneOpcode;
using verbs::Status;
using verbs::WorkOpcode;
namespace send_flag = verbs::send_flag;

TEST(FakeVerbs, WritesWithImmediate) {
  EndPair pair;
  ASSERT_EQ(pair.b.post_receive(7), 0);
  pair.a.bytes[0] = 'x';
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 100, 50, send_flag::signaled)), 0);
  const verbs::Completion received = pair.b.next();
  EXPECT_EQ(received.wr_id, 7u);
  EXPECT_EQ(received.status, Status::success);
  EXPECT_EQ(received.opcode, DoneOpcode::receive_rdma_with_immediate);
  EXPECT_EQ(received.immediate, 0x12345678u);
  EXPECT_EQ(received.byte_len, 100u);
  EXPECT_NE(received.wc_flags & verbs::with_immediate, 0u);
  EXPECT_EQ(pair.b.bytes[50], 'x');
  const verbs::Completion sent = pair.a.next();
  EXPECT_EQ(sent.status, Status::success);
  EXPECT_EQ(sent.opcode, DoneOpcode::rdma_write);
}

TEST(FakeVerbs, InlineMessagesAreCopiedAtThePostAndOthersAtTheDelivery) {
  EndPair pair;
  for (const bool is_inline : {true, false}) {
    pair.a.bytes[0] = 'x';
    const unsigned flags = is_inline ? send_flag::inlined : 0;
    ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, flags)), 0);  // waits for a receive
    pair.a.bytes[0] = 'y';
    ASSERT_EQ(pair.b.post_receive(1), 0);
    EXPECT_EQ(pair.b.next().status, Status::success);
    EXPECT_EQ(pair.b.bytes[0], is_inline ? 'x' : 'y');
  }
}

TEST(FakeVerbs, WaitsForAReceiveAsLongAsItMay) {
  EndShape impatient;
  impatient.rnr_retry = 2;
  EndPair pair(impatient);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0);
  const verbs::Completion failed = pair.a.next();
  EXPECT_EQ(failed.status, Status::rnr_retries_exceeded);
  EXPECT_EQ(failed.wr_id, 1u);
}

TEST(FakeVerbs, AForeignKeyStopsBothSides) {
  EndPair pair;
  ASSERT_EQ(pair.b.post_receive(5), 0);
  EndAddress wrong = pair.to_b;
  wrong.rkey = pair.a.mr->rkey;  // of another domain
  ASSERT_EQ(pair.a.post(pair.a.write(wrong, 8, 0, 0, WorkOpcode::rdma_write)), 0);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 8, 0, 0)), 0);
  EXPECT_EQ(pair.a.next().status, Status::remote_access_error);
  EXPECT_EQ(pair.a.next().status, Status::flushed);
  const verbs::Completion flushed = pair.b.next();
  EXPECT_EQ(flushed.status, Status::flushed);
  EXPECT_EQ(flushed.wr_id, 5u);
  verbs::AsyncEvent event{};
  ASSERT_EQ(VERBS(ibv_get_async_event)(pair.b.context, &event), 0);
  EXPECT_EQ(event.type, verbs::EventType::qp_access_error);
  EXPECT_EQ(event.qp, pair.b.qp);
}

TEST(FakeVerbs, ChecksTheBoundsOfARegion) {
  for (const std::uint64_t beyond : {std::uint64_t{1 << 16} - 7, ~std::uint64_t{0} - 100}) {
    EndPair pair;
    ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 8, beyond, 0, WorkOpcode::rdma_write)), 0);
    EXPECT_EQ(pair.a.next().status, Status::remote_access_error);
  }
}

TEST(FakeVerbs, DeregisteredMemoryIsNotWritten) {
  EndPair pair;
  std::vector<char> more(64);
  verbs::Mr* const mr = VERBS(ibv_reg_mr)(pair.b.pd, more.data(), more.size(), 3);
  EndAddress to = pair.to_b;
  to.memory = reinterpret_cast<std::uint64_t>(more.data());
  to.rkey = mr->rkey;
  ASSERT_EQ(pair.a.post(pair.a.write(to, 64, 0, send_flag::signaled, WorkOpcode::rdma_write)), 0);
  EXPECT_EQ(pair.a.next().status, Status::success);
  VERBS(ibv_dereg_mr)(mr);
  ASSERT_EQ(pair.a.post(pair.a.write(to, 64, 0, 0, WorkOpcode::rdma_write)), 0);
  EXPECT_EQ(pair.a.next().status, Status::remote_access_error);
}

TEST(FakeVerbs, MemoryThatIsSentMustBeRegistered) {
  EndPair pair;
  verbs::SendWork work = pair.a.write(pair.to_b, 8, 0, 0, WorkOpcode::rdma_write);
  work.sg_list->lkey = pair.b.mr->lkey;
  ASSERT_EQ(pair.a.post(work), 0);
  EXPECT_EQ(pair.a.next().status, Status::local_protection_error);
}

TEST(FakeVerbs, SendsFillTheMemoryOfReceives) {
  EndPair pair;
  verbs::Sge sge{.addr = pair.to_b.memory + 9, .length = 4, .lkey = pair.b.mr->lkey};
  verbs::ReceiveWork receive{.wr_id = 3, .sg_list = &sge, .num_sge = 1};
  verbs::ReceiveWork* bad = nullptr;
  ASSERT_EQ(pair.b.context->ops.post_recv(pair.b.qp, &receive, &bad), 0);
  pair.a.bytes[3] = 'z';
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 4, 0, 0, WorkOpcode::send)), 0);
  const verbs::Completion received = pair.b.next();
  EXPECT_EQ(received.opcode, DoneOpcode::receive);
  EXPECT_EQ(received.byte_len, 4u);
  EXPECT_EQ(pair.b.bytes[12], 'z');
  ASSERT_EQ(pair.b.context->ops.post_recv(pair.b.qp, &receive, &bad), 0);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 5, 0, 0, WorkOpcode::send)), 0);
  EXPECT_EQ(pair.b.next().status, Status::local_length_error);
  EXPECT_EQ(pair.a.next().status, Status::remote_invalid_request);
}

TEST(FakeVerbs, StoppingFlushesWhatIsPosted) {
  EndPair pair;
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0);  // waits for a receive
  ASSERT_EQ(pair.a.post_receive(20), 0);
  ASSERT_EQ(pair.a.modify({.qp_state = verbs::QpState::error}, verbs::qp_attribute::state), 0);
  const verbs::Completion first = pair.a.next(), second = pair.a.next();
  EXPECT_EQ(first.status, Status::flushed);
  EXPECT_EQ(second.status, Status::flushed);
  EXPECT_EQ(first.wr_id + second.wr_id, 21u);
  ASSERT_EQ(pair.a.post_receive(30), 0);
  EXPECT_EQ(pair.a.next().wr_id, 30u);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0);
  EXPECT_EQ(pair.a.next().status, Status::flushed);
}

TEST(FakeVerbs, PartOfAChainIsAcceptedAndPollsMakeRoom) {
  EndShape small;
  small.sends = 4;
  EndPair pair(small);
  std::vector<verbs::SendWork> chain(6, pair.a.write(pair.to_b, 1, 0, 0, WorkOpcode::rdma_write));
  for (std::size_t i = 0; i < chain.size(); ++i) {
    chain[i].wr_id = i;
    if (i + 1 < chain.size()) chain[i].next = &chain[i + 1];
  }
  chain[2].send_flags = send_flag::signaled;
  verbs::SendWork* bad = nullptr;
  EXPECT_EQ(pair.a.context->ops.post_send(pair.a.qp, chain.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &chain[4]);
  EXPECT_EQ(pair.a.context->ops.post_send(pair.a.qp, &chain[4], &bad), ENOMEM);  // done, but not polled
  EXPECT_EQ(pair.a.next().wr_id, 2u);
  EXPECT_EQ(pair.a.context->ops.post_send(pair.a.qp, &chain[4], &bad), 0);
  EXPECT_EQ(pair.a.context->ops.post_send(pair.a.qp, &chain[5], &bad), 0);  // places of 0, 1 and 2; 3 still has its
  EXPECT_EQ(pair.a.context->ops.post_send(pair.a.qp, &chain[5], &bad), ENOMEM);
}

TEST(FakeVerbs, EventsAreEdges) {
  EndPair pair;
  const auto send = [&] { ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0); };
  ::fcntl(pair.b.channel->fd, F_SETFL, O_NONBLOCK);
  verbs::Cq* cq = nullptr;
  void* context = nullptr;
  const auto event = [&] { return VERBS(ibv_get_cq_event)(pair.b.channel, &cq, &context) == 0; };
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(pair.b.post_receive(id), 0);
  send();
  EXPECT_FALSE(event());  // not armed
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(pair.b.context->ops.req_notify_cq(pair.b.cq, 0), 0);
  EXPECT_FALSE(event());  // what came before it was armed is no event
  send();
  send();
  pollfd item{.fd = pair.b.channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&item, 1, 0), 1);
  EXPECT_TRUE(event());
  EXPECT_EQ(cq, pair.b.cq);
  EXPECT_EQ(context, &pair.b);
  EXPECT_FALSE(event());  // one for both
  VERBS(ibv_ack_cq_events)(cq, 1);
}

TEST(FakeVerbs, ASleeperIsWoken) {
  EndPair pair;
  ASSERT_EQ(pair.b.context->ops.req_notify_cq(pair.b.cq, 0), 0);
  ASSERT_EQ(pair.b.post_receive(1), 0);
  std::thread sender([&] { EXPECT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0); });
  verbs::Cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(VERBS(ibv_get_cq_event)(pair.b.channel, &cq, &context), 0);
  VERBS(ibv_ack_cq_events)(cq, 1);
  EXPECT_EQ(pair.b.next().wr_id, 1u);
  sender.join();
}

TEST(FakeVerbs, AFullCompletionQueueBreaks) {
  EndShape small;
  small.entries = 2;
  EndPair pair(small);
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, send_flag::signaled, WorkOpcode::rdma_write)), 0);
  verbs::AsyncEvent event{};
  ASSERT_EQ(VERBS(ibv_get_async_event)(pair.a.context, &event), 0);
  EXPECT_EQ(event.type, verbs::EventType::cq_error);
  EXPECT_EQ(event.cq, pair.a.cq);
}

TEST(FakeVerbs, StatesFollowEachOther) {
  End end;
  namespace q = verbs::qp_attribute;
  EXPECT_EQ(end.modify({.qp_state = verbs::QpState::ready_to_send}, q::state), EINVAL);
  EXPECT_EQ(end.modify({.qp_state = verbs::QpState::ready_to_receive}, q::state), EINVAL);  // where to?
  EXPECT_EQ(end.post(end.write({}, 1, 0, 0)), EINVAL);
  EXPECT_EQ(end.modify({.qp_state = verbs::QpState::reset}, q::state), 0);
  EXPECT_EQ(end.post_receive(1), EINVAL);
}

/// Two threads, each of which waits for the other's message.
void exchange(EndPair& pair, std::uint64_t rounds) {
  const auto play = [rounds](End& own, const EndAddress& peer, bool first) {
    for (std::uint64_t id = 0; id < 2; ++id) ASSERT_EQ(own.post_receive(id), 0);
    std::uint64_t sent = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto send = [&] {
        own.bytes[0] = static_cast<char>(round);
        ASSERT_EQ(own.post(own.write(peer, 8, 64, send_flag::signaled)), 0);
      };
      if (first) send();
      verbs::Completion done = own.next();
      for (; done.opcode == DoneOpcode::rdma_write; done = own.next()) ++sent;
      ASSERT_EQ(done.opcode, DoneOpcode::receive_rdma_with_immediate);
      ASSERT_EQ(own.bytes[64], static_cast<char>(round));
      ASSERT_EQ(own.post_receive(round), 0);
      if (!first) send();
    }
    for (; sent < rounds; ++sent) ASSERT_EQ(own.next().opcode, DoneOpcode::rdma_write);
  };
  std::thread other(play, std::ref(pair.b), pair.to_a, false);
  play(pair.a, pair.to_b, true);
  other.join();
}

/// Room for all that may be under way, as completions of sends may be late.
constexpr EndShape roomy{.entries = 4096, .sends = 1024};

TEST(FakeVerbs, ThreadsExchangeMessages) {
  EndPair pair(roomy);
  exchange(pair, 1000);
}

TEST(FakeVerbs, ScrambledThreadsExchangeTheSame) {
  for (const char* const seed : {"1", "2", "3"}) {
    const Variable scrambled("FAKE_VERBS_SEED", seed);
    EndPair pair(roomy);
    exchange(pair, 100);
  }
}

/// What others may be writing: the system copies it, so that no race of ours is reported.
char peek(char& place) {
  char value = 0;
  iovec to{&value, 1}, from{&place, 1};
  EXPECT_EQ(::process_vm_readv(::getpid(), &to, 1, &from, 1, 0), 1);
  return value;
}

TEST(FakeVerbs, ScrambledMemoryHoldsJunkAndQueuePairsOvertake) {
  const Variable scrambled("FAKE_VERBS_SEED", "5");
  EndPair first, second;
  int junk = 0, overtaken = 0;
  for (int round = 0; round < 400; ++round) {
    first.b.bytes[0] = second.b.bytes[0] = 'o';
    ASSERT_EQ(first.b.post_receive(1), 0);
    ASSERT_EQ(second.b.post_receive(2), 0);
    first.a.bytes[0] = 'n';
    ASSERT_EQ(first.a.post(first.a.write(first.to_b, 1, 0, send_flag::signaled)), 0);
    ASSERT_EQ(second.a.post(second.a.write(second.to_b, 1, 0, send_flag::signaled)), 0);
    verbs::Completion done{};
    if (second.b.poll(done) && !first.b.poll(done)) ++overtaken;
    if (static_cast<unsigned char>(peek(first.b.bytes[0])) == 0xa5) ++junk;
    while (peek(first.b.bytes[0]) != 'n') (void)first.a.context->ops.poll_cq(first.b.cq, 0, &done);
    ASSERT_EQ(first.a.next().status, Status::success);
    ASSERT_EQ(second.a.next().status, Status::success);
    while (first.b.poll(done)) continue;
    while (second.b.poll(done)) continue;
  }
  EXPECT_GT(junk, 0);
  EXPECT_GT(overtaken, 0);
}

}  // namespace
}  // namespace tutti::testing
