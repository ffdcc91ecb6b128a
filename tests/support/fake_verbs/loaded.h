// The fake, loaded as tutti loads libibverbs, and ends of connections for tests of the fake itself.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/fake_verbs/exports.h"
#include "support/fake_verbs/fake_verbs.h"

namespace tutti::testing {

/// The functions under the names that they have; all of one process.
class FakeVerbs {
 public:
  FakeVerbs() : handle_(::dlopen(TUTTI_FAKE_VERBS, RTLD_NOW | RTLD_LOCAL)) {}
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;
  ~FakeVerbs() { ::dlclose(handle_); }

  /// Through VERBS, which knows the type.
  template <typename Function>
  Function find(const char* name) const {
    auto* const found = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (found == nullptr) ADD_FAILURE() << ::dlerror();
    return found;
  }

 private:
  void* handle_;
};

inline const FakeVerbs& fake_verbs() {
  static const FakeVerbs loaded;
  return loaded;
}

/// The fake's function of that name: VERBS(ibv_open_device)(device).
#define VERBS(name) (::tutti::testing::fake_verbs().find<decltype(&(name))>(#name))

/// By what others reach an end.
struct EndAddress {
  std::uint32_t qp_num = 0;
  verbs::Gid gid = {};
  std::uint16_t lid = 0;
  std::uint64_t memory = 0;
  std::uint32_t rkey = 0;
};

struct EndShape {
  int entries = 64;
  std::uint32_t sends = 16, receives = 16, inline_bytes = 64;
  std::uint8_t rnr_retry = 7;
  unsigned access = static_cast<unsigned>(verbs::access_flag::local_write | verbs::access_flag::remote_write);
  int device = 0;
};

/// A device, a domain, a channel, one completion queue, one queue pair and some registered memory.
class End {
 public:
  explicit End(const EndShape& shape = {}) : shape_(shape), bytes(1 << 16) {
    verbs::Device** const list = VERBS(ibv_get_device_list)(nullptr);
    context = VERBS(ibv_open_device)(list[shape.device]);
    VERBS(ibv_free_device_list)(list);
    pd = VERBS(ibv_alloc_pd)(context);
    mr = VERBS(ibv_reg_mr)(pd, bytes.data(), bytes.size(), static_cast<int>(shape.access));
    channel = VERBS(ibv_create_comp_channel)(context);
    cq = VERBS(ibv_create_cq)(context, shape.entries, this, channel, 0);
    verbs::QpInit init{.qp_context = this,
                       .send_cq = cq,
                       .recv_cq = cq,
                       .cap = {shape.sends, shape.receives, 2, 2, shape.inline_bytes},
                       .qp_type = verbs::QpType::reliable};
    qp = VERBS(ibv_create_qp)(pd, &init);
    namespace q = verbs::qp_attribute;
    EXPECT_EQ(modify({.qp_state = verbs::QpState::init, .qp_access_flags = shape.access, .port_num = 1},
                     q::state | q::pkey_index | q::port | q::access_flags),
              0);
  }
  ~End() {
    VERBS(ibv_destroy_qp)(qp);
    VERBS(ibv_destroy_cq)(cq);
    VERBS(ibv_destroy_comp_channel)(channel);
    VERBS(ibv_dereg_mr)(mr);
    VERBS(ibv_dealloc_pd)(pd);
    VERBS(ibv_close_device)(context);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  int modify(verbs::QpAttributes attributes, int mask) { return VERBS(ibv_modify_qp)(qp, &attributes, mask); }

  EndAddress address() const {
    verbs::PortAttributes port{};
    EndAddress own{.qp_num = qp->qp_num, .memory = reinterpret_cast<std::uint64_t>(bytes.data()), .rkey = mr->rkey};
    VERBS(ibv_query_port)(context, 1, &port);
    VERBS(ibv_query_gid)(context, 1, port.link_layer == verbs::LinkLayer::infiniband ? 0 : gid_index(), &own.gid);
    own.lid = port.lid;
    return own;
  }

  void connect(const EndAddress& peer) {
    namespace q = verbs::qp_attribute;
    verbs::QpAttributes ready{.qp_state = verbs::QpState::ready_to_receive, .path_mtu = 3, .dest_qp_num = peer.qp_num};
    ready.ah_attr.port_num = 1;
    ready.ah_attr.dlid = peer.lid;
    ready.ah_attr.is_global = peer.lid == 0 ? 1 : 0;
    ready.ah_attr.grh.dgid = peer.gid;
    ready.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index());
    EXPECT_EQ(modify(ready, q::state | q::av | q::path_mtu | q::dest_qpn | q::rq_psn | q::max_dest_rd_atomic |
                                q::min_rnr_timer),
              0);
    EXPECT_EQ(modify({.qp_state = verbs::QpState::ready_to_send, .rnr_retry = shape_.rnr_retry},
                     q::state | q::timeout | q::retry_count | q::rnr_retry | q::sq_psn | q::max_rd_atomic),
              0);
  }

  /// A write of bytes [0, length) of this end's memory to offset `to` of the peer's.
  verbs::SendWork write(const EndAddress& peer, std::uint32_t length, std::uint64_t to, unsigned flags,
                        verbs::WorkOpcode opcode = verbs::WorkOpcode::rdma_write_with_immediate) {
    sge_ = {.addr = reinterpret_cast<std::uint64_t>(bytes.data()), .length = length, .lkey = mr->lkey};
    return {.wr_id = next_id++,
            .sg_list = &sge_,
            .num_sge = length == 0 ? 0 : 1,
            .opcode = opcode,
            .send_flags = flags,
            .immediate = 0x12345678,
            .rdma = {.remote_addr = peer.memory + to, .rkey = peer.rkey}};
  }
  int post(verbs::SendWork work) {
    verbs::SendWork* bad = nullptr;
    return context->ops.post_send(qp, &work, &bad);
  }
  int post_receive(std::uint64_t id) {
    verbs::ReceiveWork work{.wr_id = id};
    verbs::ReceiveWork* bad = nullptr;
    return context->ops.post_recv(qp, &work, &bad);
  }
  /// What there is now, one at most.
  bool poll(verbs::Completion& completion) { return context->ops.poll_cq(cq, 1, &completion) == 1; }
  /// The next completion; fails the test where none comes.
  verbs::Completion next() {
    constexpr long patience = 10'000'000;
    verbs::Completion completion{};
    for (long i = 0; i < patience; ++i) {
      if (poll(completion)) return completion;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "no completion";
    return completion;
  }

 private:
  int gid_index() const {
    verbs::Gid gid;
    return VERBS(ibv_query_gid)(context, 1, 2, &gid) == 0 ? 2 : 0;
  }
  EndShape shape_;
  verbs::Sge sge_{};

 public:
  std::vector<char> bytes;
  std::uint64_t next_id = 1;
  verbs::Context* context;
  verbs::Pd* pd;
  verbs::Mr* mr;
  verbs::CompletionChannel* channel;
  verbs::Cq* cq;
  verbs::Qp* qp;
};

/// Two ends of this process, connected.
struct EndPair {
  explicit EndPair(const EndShape& shape = {}) : a(shape), b(shape), to_a(a.address()), to_b(b.address()) {
    a.connect(to_b);
    b.connect(to_a);
  }
  End a, b;
  EndAddress to_a, to_b;
};

/// A variable of the environment until the end of a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace tutti::testing
