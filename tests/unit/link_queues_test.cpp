// The queue pairs of a link, over the fake devices: credits travel with writes, and a failure ends windows too.
#include "support/verbs_link.h"

namespace tutti::verbs {
namespace {

struct QueuesEnd final : CompletionSink {
  static constexpr LinkShape shape{.slots = 2, .slot_bytes = 4096};

  explicit QueuesEnd(std::shared_ptr<Endpoint> on)
      : endpoint(std::move(on)),
        ring(*RegisteredMemory::make(endpoint, shape.ring_bytes(),
                                     access_flag::local_write | access_flag::remote_write)),
        queues(endpoint, shape, {.rank = 5, .name = "rank 5"}),
        sink(*endpoint->attach(this)) {
    EXPECT_TRUE(queues.create({.inline_bytes = 64}, sink));
  }
  ~QueuesEnd() override { endpoint->detach(sink); }

  void complete(const Completion& completion) override {
    const WorkWord word{static_cast<std::uint32_t>(completion.wr_id)};
    if (word.is_receive()) received.push_back(Immediate::unpack(__builtin_bswap32(completion.immediate)));
  }
  void fail(const Error& error) override { queues.fail(error); }

  std::shared_ptr<Endpoint> endpoint;
  RegisteredMemory ring;
  LinkQueues queues;
  std::uint32_t sink;
  std::vector<Immediate> received;
};

struct VerbsQueues : VerbsLink {
  SegmentTable segments;
};

TEST_F(VerbsQueues, TheNextWriteTellsOfFreeSlots) {
  QueuesEnd a(testing::open_endpoint(library_)), b(testing::open_endpoint(library_));
  ASSERT_TRUE(a.queues.connect(b.queues.address(b.ring)));
  ASSERT_TRUE(b.queues.connect(a.queues.address(a.ring)));
  a.queues.owe(2);
  a.queues.owe(1);
  const Destination to = a.queues.in_ring(0);
  for (const std::uint32_t message : {8u, 9u})
    a.queues.add(a.queues.of(0), {.memory = {}, .remote_address = to.address, .rkey = to.key, .is_inline = true},
                 {.message = message});
  EXPECT_EQ(a.queues.owed(), 0u);
  EXPECT_TRUE(a.queues.have_waiting());
  ASSERT_TRUE(a.queues.post());
  ASSERT_TRUE(comes([&] { return b.endpoint->poll(), b.received.size() == 2; }));
  EXPECT_EQ(b.received[0].message, 8u);
  EXPECT_EQ(b.received[0].credits, 3u);
  EXPECT_EQ(b.received[1].credits, 0u) << "it has been told";
}

TEST_F(VerbsQueues, TheFirstFailureStaysAndEndsTheWindows) {
  QueuesEnd end(testing::open_endpoint(library_, &segments));
  ASSERT_TRUE(end.queues.opens_windows());
  ASSERT_TRUE(end.queues.make_window(1));
  ASSERT_NE(end.queues.window(1), nullptr);
  end.queues.fail(end.queues.broken("first"));
  end.queues.fail(end.queues.broken("second"));
  EXPECT_EQ(end.queues.window(1), nullptr);
  ASSERT_TRUE(end.queues.error());
  EXPECT_NE(end.queues.error()->what.find("rank 5"), std::string::npos);
  EXPECT_NE(end.queues.error()->what.find("first"), std::string::npos);
  EXPECT_EQ(end.queues.error()->peer, 5);
}

}  // namespace
}  // namespace tutti::verbs
