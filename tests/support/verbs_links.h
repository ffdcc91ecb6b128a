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
                                                      const SegmentTable* segments = nullptr) {
  auto ports = verbs::list_ports(library, {});
  EXPECT_TRUE(ports) << ports.error().text();
  auto endpoint = verbs::Endpoint::open(ports->ports.front(), 8, 1000, segments);
  EXPECT_TRUE(endpoint) << endpoint.error().text();
  return endpoint ? *endpoint : nullptr;
}

struct LinkPair {
  LinkEnd a, b;

  explicit LinkPair(const verbs::LinkShape& shape, const verbs::QueueShape& queues = {.inline_bytes = 128},
                    const SegmentTable* segments = nullptr) {
    const auto library = fake_verbs();
    for (LinkEnd* end : {&a, &b}) {
      end->endpoint = open_endpoint(library, segments);
      auto link = verbs::Link::make(end->endpoint, shape, queues, end == &a ? 1 : 0, end == &a ? "rank 1" : "rank 0");
      EXPECT_TRUE(link) << link.error().text();
      end->link = *link;
    }
    const auto connected = a.link->connect(b.link->address());
    EXPECT_TRUE(connected) << connected.error().text();
    const auto back = b.link->connect(a.link->address());
    EXPECT_TRUE(back) << back.error().text();
  }
};

}  // namespace tutti::testing
