// Two connected links over the fake devices of support/fake_verbs, both ends in this process.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/fake_verbs/fake_verbs.h"
#include "transport/verbs/link.h"

namespace tutti::testing {

inline std::shared_ptr<const verbs::Library> fake_verbs() {
  auto library = verbs::Library::load(TUTTI_FAKE_VERBS);
  EXPECT_TRUE(library) << library.error().text();
  return library ? *library : nullptr;
}

/// A function of the fake library.
template <class Function>
Function* fake_control(const verbs::Library& library, const char* name) {
  return library.dylib.symbol<Function>(name);
}

/// One end's device, and the link that it makes there.
struct LinkEnd {
  std::shared_ptr<verbs::Endpoint> endpoint;
  std::shared_ptr<verbs::Link> link;
};

inline std::shared_ptr<verbs::Endpoint> open_endpoint(const std::shared_ptr<const verbs::Library>& library,
                                                      const SegmentTable* segments = nullptr,
                                                      const std::shared_ptr<RegisteredRanges>& ranges = {}) {
  auto ports = verbs::list_ports(library, {.verbs_library = TUTTI_FAKE_VERBS});
  EXPECT_TRUE(ports) << ports.error().text();
  auto endpoint = verbs::Endpoint::open(ports->ports.front(), 8, 1000, {.segments = segments, .ranges = ranges});
  EXPECT_TRUE(endpoint) << endpoint.error().text();
  return endpoint ? *endpoint : nullptr;
}

struct LinkPair {
  LinkEnd a, b;

  explicit LinkPair(verbs::LinkShape shape, const verbs::QueueShape& queues = {.inline_bytes = 128},
                    const SegmentTable* segments = nullptr, const std::shared_ptr<RegisteredRanges>& ranges = {}) {
    const auto library = fake_verbs();
    for (LinkEnd* end : {&a, &b}) {
      end->endpoint = open_endpoint(library, segments, ranges);
      if (end->endpoint->port.iwarp) shape.queue_pairs = 1;
      auto link = verbs::Link::make(end->endpoint, shape, queues, end == &a ? 1 : 0, end == &a ? "rank 1" : "rank 0");
      EXPECT_TRUE(link) << link.error().text();
      end->link = *link;
    }
    const auto connected = a.link->connect(b.link->address());
    EXPECT_TRUE(connected) << connected.error().text();
    const auto back = b.link->connect(a.link->address());
    EXPECT_TRUE(back) << back.error().text();
    if (a.link->iwarp()) join();
  }

  /// As the agreement of two ranks does it.
  void join() {
    const verbs::CmToken token{std::byte{1}, std::byte{2}};
    const auto at = b.link->listen(token);
    ASSERT_TRUE(at) << at.error().text();
    const auto called = a.link->call(*at, token);
    ASSERT_TRUE(called) << called.error().text();
    for (bool a_joined = false, b_joined = false; !a_joined || !b_joined;) {
      const auto at_a = a.link->joined(), at_b = b.link->joined();
      ASSERT_TRUE(at_a) << at_a.error().text();
      ASSERT_TRUE(at_b) << at_b.error().text();
      a_joined = *at_a;
      b_joined = *at_b;
    }
    ASSERT_TRUE(a.link->probe());
    for (bool probed = false; !probed;) {
      const auto done = a.link->probed();
      ASSERT_TRUE(done) << done.error().text();
      probed = *done;
    }
  }
};

}  // namespace tutti::testing
