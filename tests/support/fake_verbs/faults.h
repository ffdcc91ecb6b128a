// What fails on purpose, and what was counted: both of the whole process.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "fake_verbs.h"

namespace tutti::testing::fake_verbs {

enum class Point {
  open_device,
  alloc_pd,
  reg_mr,
  alloc_mw,
  create_comp_channel,
  create_cq,
  create_qp,
  modify_qp,
  query_port,
  query_gid,
  post_send,
  post_recv,
  req_notify,
  poll_cq,
  status,
  port_down,
  device_fatal,
  cq_error,
  qp_fatal,
  count
};

/// The faults that are still to come. Thread-safe.
class Faults {
 public:
  /// As fake_verbs_fault; false: nothing was added.
  bool add(const std::string& text);
  void clear();
  /// What this call of a point is to fail with; 0: it is to work.
  int hit(Point point) { return armed_.load(std::memory_order_relaxed) == 0 ? 0 : count(point); }

 private:
  struct Fault {
    Point point;
    std::uint64_t after;  ///< calls; 0: over
    int what;
  };
  int count(Point point);

  std::atomic<int> armed_{0};
  std::mutex lock_;
  std::vector<Fault> faults_;
};

struct Counters {
  std::atomic<std::uint64_t> posts{0}, requests{0}, requests_with_immediate{0}, requests_inline{0}, signaled{0},
      bytes_written{0}, bytes_inline{0}, receives{0}, receive_posts{0}, polls{0}, completions{0}, arms{0},
      registrations{0}, binds{0}, bytes_through_windows{0};
  // What there is now.
  std::atomic<std::uint64_t> registered_bytes{0}, contexts{0}, domains{0}, regions{0}, channels{0},
      completion_queues{0}, queue_pairs{0}, windows{0};
};

Faults& faults();
Counters& counters();

/// Counters are read when all is quiet.
inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

}  // namespace tutti::testing::fake_verbs
