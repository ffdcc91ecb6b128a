// What the environment says about the fake's devices and its fabric. The variables are explained in fake_verbs.h.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace tutti::testing::fake_verbs {

enum class Link { ethernet, infiniband, iwarp };

struct Settings {
  std::string fabric;  ///< path; empty: the process's own
  int devices = 1;
  Link link = Link::ethernet;
  std::uint32_t address = 0;  ///< IPv4, in the host's byte order
  std::uint16_t lid = 0;
  std::set<int> ports_down;
  int mtu = 3;
  std::uint32_t max_inline = 0, max_qp_wr = 0, max_cqe = 0;
  std::uint64_t memlock_bytes = 0;  ///< 0: no limit
  std::int64_t retry_ns = 0, rnr_ns = 0;
  std::int64_t deaf_ns = 0;
  bool windows = true;
  bool refuses_binds = false;
  std::uint64_t seed = 0;  ///< 0: nothing is scrambled
};

Settings read_settings();

}  // namespace tutti::testing::fake_verbs
