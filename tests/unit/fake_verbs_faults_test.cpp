// What the fake libibverbs can be told: kinds of devices, limits, faults; and what it counts.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "support/fake_verbs/loaded.h"

namespace tutti::testing {
namespace {

using verbs::Status;
using verbs::WorkOpcode;
namespace send_flag = verbs::send_flag;

class FakeVerbsFaults : public ::testing::Test {
 protected:
  FakeVerbsFaults() { VERBS(fake_verbs_reset)(); }
  ~FakeVerbsFaults() override { VERBS(fake_verbs_reset)(); }
  static void fault(const char* text) { ASSERT_EQ(VERBS(fake_verbs_fault)(text), 0); }
};

TEST_F(FakeVerbsFaults, WordsThatAreNotKnownAddNothing) {
  for (const char* const text : {"post_send", "post_send:0:EIO", "post_sent:1:EIO", "post_send:1:EWHAT", "reg_mr:1:0"})
    EXPECT_EQ(VERBS(fake_verbs_fault)(text), -1) << text;
  EndPair pair;
}

TEST_F(FakeVerbsFaults, TheSecondPostFails) {
  EndPair pair;
  fault("post_send:2:EIO");
  const auto post = [&] {
    return pair.a.post(pair.a.write(pair.to_b, 1, 0, send_flag::signaled, WorkOpcode::rdma_write));
  };
  EXPECT_EQ(post(), 0);
  EXPECT_EQ(post(), EIO);
  EXPECT_EQ(post(), 0);
  EXPECT_EQ(pair.a.next().wr_id, 1u);
  EXPECT_EQ(pair.a.next().wr_id, 3u);
}

TEST_F(FakeVerbsFaults, TheThirdRequestCompletesWithAStatus) {
  EndPair pair;
  fault("status:3:12");
  for (int i = 0; i < 4; ++i) ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0, WorkOpcode::rdma_write)), 0);
  const verbs::Completion failed = pair.a.next();
  EXPECT_EQ(failed.wr_id, 3u);
  EXPECT_EQ(failed.status, Status::retries_exceeded);
  EXPECT_EQ(pair.a.next().status, Status::flushed);
}

TEST_F(FakeVerbsFaults, ResourcesAreRefused) {
  End end;
  fault("reg_mr:1:ENOMEM,create_qp:2:ENOSPC,create_cq:1:12,alloc_pd:1:EPERM,create_comp_channel:1:EMFILE");
  const auto says = [](const void* made, int code) { return made == nullptr && errno == code; };
  EXPECT_TRUE(says(VERBS(ibv_reg_mr)(end.pd, end.bytes.data(), 10, 1), ENOMEM));
  EXPECT_TRUE(says(VERBS(ibv_create_cq)(end.context, 10, nullptr, nullptr, 0), ENOMEM));
  EXPECT_TRUE(says(VERBS(ibv_alloc_pd)(end.context), EPERM));
  EXPECT_TRUE(says(VERBS(ibv_create_comp_channel)(end.context), EMFILE));
  verbs::QpInit init{.send_cq = end.cq, .recv_cq = end.cq, .cap = {1, 1, 1, 1, 0}, .qp_type = verbs::QpType::reliable};
  verbs::Qp* const first = VERBS(ibv_create_qp)(end.pd, &init);
  EXPECT_NE(first, nullptr);
  EXPECT_TRUE(says(VERBS(ibv_create_qp)(end.pd, &init), ENOSPC));
  EXPECT_EQ(VERBS(ibv_destroy_cq)(end.cq), EBUSY);
  EXPECT_EQ(VERBS(ibv_dealloc_pd)(end.pd), EBUSY);
  EXPECT_EQ(VERBS(ibv_destroy_comp_channel)(end.channel), EBUSY);
  EXPECT_EQ(VERBS(ibv_destroy_qp)(first), 0);
}

TEST_F(FakeVerbsFaults, APortGoesDownAndNobodyAnswers) {
  const Variable soon("FAKE_VERBS_RETRY_MS", "5");
  EndPair pair;
  fault("port_down:2");
  const auto post = [&] {
    return pair.a.post(pair.a.write(pair.to_b, 1, 0, send_flag::signaled, WorkOpcode::rdma_write));
  };
  EXPECT_EQ(post(), 0);
  EXPECT_EQ(pair.a.next().status, Status::success);
  EXPECT_EQ(post(), 0);
  EXPECT_EQ(pair.a.next().status, Status::retries_exceeded);
  verbs::AsyncEvent event{};
  ASSERT_EQ(VERBS(ibv_get_async_event)(pair.b.context, &event), 0);
  EXPECT_EQ(event.type, verbs::EventType::port_error);
  EXPECT_EQ(event.port_num, 1);
  verbs::PortAttributes port{};
  ASSERT_EQ(VERBS(ibv_query_port)(pair.b.context, 1, &port), 0);
  EXPECT_EQ(port.state, verbs::PortState::down);
  VERBS(fake_verbs_set_port)(0, 1);
  ASSERT_EQ(VERBS(ibv_get_async_event)(pair.b.context, &event), 0);
  EXPECT_EQ(event.type, verbs::EventType::port_active);
}

TEST_F(FakeVerbsFaults, WhoAsksForSomebodyElseIsNotAnswered) {
  const Variable soon("FAKE_VERBS_RETRY_MS", "5");
  End a, b;
  EndAddress to_b = b.address();
  b.connect(a.address());
  to_b.gid[15] ^= 1;
  a.connect(to_b);
  ASSERT_EQ(a.post(a.write(to_b, 1, 0, 0, WorkOpcode::rdma_write)), 0);
  EXPECT_EQ(a.next().status, Status::retries_exceeded);
}

TEST_F(FakeVerbsFaults, IwarpTakesNoImmediates) {
  const Variable link("FAKE_VERBS_LINK", "iwarp");
  EndPair pair;
  EXPECT_LT(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0);
  EXPECT_LT(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0, WorkOpcode::send_with_immediate)), 0);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, send_flag::signaled, WorkOpcode::rdma_write)), 0);
  EXPECT_EQ(pair.a.next().status, Status::success);
  verbs::QpInit init{
      .send_cq = pair.a.cq, .recv_cq = pair.a.cq, .cap = {1, 1, 1, 1, 128}, .qp_type = verbs::QpType::reliable};
  EXPECT_EQ(VERBS(ibv_create_qp)(pair.a.pd, &init), nullptr);
}

TEST_F(FakeVerbsFaults, InfiniBandHasLids) {
  const Variable link("FAKE_VERBS_LINK", "infiniband");
  EndPair pair;
  EXPECT_EQ(pair.to_b.lid, 17);
  ASSERT_EQ(pair.b.post_receive(1), 0);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 1, 0, 0)), 0);
  EXPECT_EQ(pair.b.next().status, Status::success);
}

TEST_F(FakeVerbsFaults, DevicesHaveAddressesOfTheirOwn) {
  const Variable number("FAKE_VERBS_DEVICES", "2"), down("FAKE_VERBS_PORT_DOWN", "1");
  End first;
  EndShape shape;
  shape.device = 1;
  End second(shape);
  EXPECT_NE(first.address().gid, second.address().gid);
  verbs::PortAttributes port{};
  ASSERT_EQ(VERBS(ibv_query_port)(second.context, 1, &port), 0);
  EXPECT_EQ(port.state, verbs::PortState::down);
  ASSERT_EQ(VERBS(ibv_query_port)(first.context, 1, &port), 0);
  EXPECT_EQ(port.state, verbs::PortState::active);
  verbs::GidEntry entry{};
  ASSERT_EQ(VERBS(_ibv_query_gid_ex)(first.context, 1, 2, &entry, 0, sizeof entry), 0);
  EXPECT_EQ(entry.gid_type, verbs::GidType::roce_v2);
  EXPECT_EQ(entry.gid[12], 127);
  EXPECT_EQ(VERBS(_ibv_query_gid_ex)(first.context, 1, 3, &entry, 0, sizeof entry), EINVAL);
}

TEST_F(FakeVerbsFaults, RegisteredMemoryHasALimit) {
  const Variable limit("FAKE_VERBS_MEMLOCK", "100000");
  End end;
  std::vector<char> more(40'000);
  EXPECT_EQ(VERBS(ibv_reg_mr)(end.pd, more.data(), more.size(), 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  verbs::Mr* const less = VERBS(ibv_reg_mr)(end.pd, more.data(), 30'000, 1);
  ASSERT_NE(less, nullptr);
  FakeVerbsLive live{};
  VERBS(fake_verbs_live)(&live);
  EXPECT_EQ(live.registered_bytes, 65'536u + 30'000u);
  EXPECT_EQ(live.queue_pairs, 1u);
  VERBS(ibv_dereg_mr)(less);
}

TEST_F(FakeVerbsFaults, MemoryThatIsNotThereIsNotRegistered) {
  End end;
  EXPECT_EQ(VERBS(ibv_reg_mr)(end.pd, reinterpret_cast<void*>(4096), 4096, 1), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

TEST_F(FakeVerbsFaults, RegionsHaveAddressesOfTheirOwn) {
  EndPair pair;
  constexpr std::uint64_t iova = 0x1000'0000'0000;
  verbs::Mr* const mr = VERBS(ibv_reg_mr_iova2)(pair.b.pd, pair.b.bytes.data(), 100, iova, 3);
  ASSERT_NE(mr, nullptr);
  pair.a.bytes[0] = 'i';
  const EndAddress to{.qp_num = 0, .memory = iova, .rkey = mr->rkey};
  ASSERT_EQ(pair.a.post(pair.a.write(to, 1, 99, send_flag::signaled, WorkOpcode::rdma_write)), 0);
  EXPECT_EQ(pair.a.next().status, Status::success);
  EXPECT_EQ(pair.b.bytes[99], 'i');
  VERBS(ibv_dereg_mr)(mr);
}

TEST_F(FakeVerbsFaults, EverythingIsCounted) {
  EndPair pair;
  ASSERT_EQ(pair.b.post_receive(1), 0);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 60, 0, send_flag::inlined)), 0);
  ASSERT_EQ(pair.a.post(pair.a.write(pair.to_b, 100, 0, send_flag::signaled, WorkOpcode::rdma_write)), 0);
  ASSERT_EQ(pair.a.context->ops.req_notify_cq(pair.a.cq, 0), 0);
  verbs::Completion done{};
  ASSERT_TRUE(pair.a.poll(done));
  FakeVerbsCounters counters{};
  VERBS(fake_verbs_counters)(&counters);
  EXPECT_EQ(counters.posts, 2u);
  EXPECT_EQ(counters.requests, 2u);
  EXPECT_EQ(counters.requests_with_immediate, 1u);
  EXPECT_EQ(counters.requests_inline, 1u);
  EXPECT_EQ(counters.signaled, 1u);
  EXPECT_EQ(counters.bytes_written, 160u);
  EXPECT_EQ(counters.bytes_inline, 60u);
  EXPECT_EQ(counters.receives, 1u);
  EXPECT_EQ(counters.polls, 1u);
  EXPECT_EQ(counters.completions, 1u);
  EXPECT_EQ(counters.arms, 1u);
  EXPECT_EQ(counters.registrations, 2u);
}

TEST_F(FakeVerbsFaults, NothingIsLeft) {
  { EndPair pair; }
  FakeVerbsLive live{};
  VERBS(fake_verbs_live)(&live);
  EXPECT_EQ(live.contexts + live.domains + live.regions + live.channels + live.completion_queues + live.queue_pairs,
            0u);
  EXPECT_EQ(live.registered_bytes, 0u);
}

}  // namespace
}  // namespace tutti::testing
