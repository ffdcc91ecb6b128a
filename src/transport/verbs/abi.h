// The part of libibverbs' binary interface that tutti uses, declared here so that tutti builds without rdma-core and
// loads the library where it is installed. Layouts and numbers are those of rdma-core's <infiniband/verbs.h>, which
// have not changed since 2006 (IBVERBS_1.1); verbs_abi_test compares them with the header where that is installed.
#pragma once

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti::verbs {

using Gid = std::array<std::uint8_t, 16>;

enum class PortState : int { nop, down, init, armed, active, active_defer };
enum class LinkLayer : std::uint8_t { unspecified, infiniband, ethernet, last = ethernet };
enum class GidType : std::uint32_t { infiniband, roce_v1, roce_v2 };
enum class QpType : int { reliable = 2 };
enum class QpState : int { reset, init, ready_to_receive, ready_to_send, sq_drain, sq_error, error };
enum class Transport : int { unknown = -1, infiniband = 0, iwarp = 1 };

/// ibv_qp_attr_mask
namespace qp_attribute {
inline constexpr int state = 1 << 0, access_flags = 1 << 3, pkey_index = 1 << 4, port = 1 << 5, av = 1 << 7,
                     path_mtu = 1 << 8, timeout = 1 << 9, retry_count = 1 << 10, rnr_retry = 1 << 11, rq_psn = 1 << 12,
                     max_rd_atomic = 1 << 13, min_rnr_timer = 1 << 15, sq_psn = 1 << 16, max_dest_rd_atomic = 1 << 17,
                     dest_qpn = 1 << 20;
}  // namespace qp_attribute

/// ibv_access_flags
namespace access_flag {
inline constexpr int local_write = 1, remote_write = 1 << 1, window_bind = 1 << 4;
}

/// ibv_device_cap_flags
namespace device_capability {
inline constexpr unsigned windows_2a = 1 << 23, windows_2b = 1 << 24;
}

/// ibv_send_flags
namespace send_flag {
inline constexpr unsigned signaled = 1 << 1, inlined = 1 << 3;
}

/// ibv_wr_opcode
enum class WorkOpcode : int {
  rdma_write = 0,
  rdma_write_with_immediate = 1,
  send = 2,
  send_with_immediate = 3,
  invalidate = 7,
  bind_window = 8
};
/// ibv_wc_opcode
enum class DoneOpcode : int {
  send = 0,
  rdma_write = 1,
  bind_window = 5,
  invalidate = 6,
  receive = 1 << 7,
  receive_rdma_with_immediate = (1 << 7) + 1
};
/// ibv_wc_status; the others are named by ibv_wc_status_str
enum class Status : int {
  success = 0,
  local_length_error = 1,
  local_qp_operation_error = 2,
  local_protection_error = 4,
  flushed = 5,
  window_bind_error = 6,
  remote_invalid_request = 9,
  remote_access_error = 10,
  remote_operation_error = 11,
  retries_exceeded = 12,
  rnr_retries_exceeded = 13,
  fatal = 19,
  general = 21
};
/// ibv_wc_flags
inline constexpr unsigned with_immediate = 1 << 1;

/// ibv_event_type
enum class EventType : int {
  cq_error = 0,
  qp_fatal = 1,
  qp_request_error = 2,
  qp_access_error = 3,
  device_fatal = 8,
  port_active = 9,
  port_error = 10
};

struct Context;
struct Cq;
struct Qp;
struct Srq;

/// The beginning of ibv_device, which is that of older versions, too.
struct Device {
  void* unused[2];
  int node_type;
  Transport transport;
};

struct Pd {
  Context* context;
  std::uint32_t handle;
};
struct Mr {
  Context* context;
  Pd* pd;
  void* addr;
  std::size_t length;
  std::uint32_t handle;
  std::uint32_t lkey;
  std::uint32_t rkey;
};
/// ibv_mw, and its type for windows that requests bind and invalidate
enum class WindowType : int { two = 2 };
struct Window {
  Context* context;
  Pd* pd;
  std::uint32_t rkey;
  std::uint32_t handle;
  WindowType type;
};
struct CompletionChannel {
  Context* context;
  int fd;
  int refcnt;
};
struct Cq {
  Context* context;
  CompletionChannel* channel;
  void* cq_context;
  std::uint32_t handle;
  int cqe;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  std::uint32_t comp_events_completed;
  std::uint32_t async_events_completed;
};
struct Qp {
  Context* context;
  void* qp_context;
  Pd* pd;
  Cq* send_cq;
  Cq* recv_cq;
  Srq* srq;
  std::uint32_t handle;
  std::uint32_t qp_num;
  QpState state;
  QpType qp_type;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  std::uint32_t events_completed;
};

struct Sge {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};
struct SendWork {
  std::uint64_t wr_id;
  SendWork* next;
  Sge* sg_list;
  int num_sge;
  WorkOpcode opcode;
  unsigned send_flags;
  std::uint32_t immediate;  ///< in network byte order; of an invalidation the key
  struct {
    std::uint64_t remote_addr;
    std::uint32_t rkey;
    std::uint32_t padding;
    std::uint64_t unused[2];  ///< of other operations
  } rdma;
  std::uint64_t unused;  ///< of other types of queue pair
  struct {
    Window* window;
    std::uint32_t rkey;
    std::uint32_t padding;
    Mr* mr;
    std::uint64_t addr;
    std::uint64_t length;
    unsigned access;
    std::uint32_t unused;
  } bind;
};
struct ReceiveWork {
  std::uint64_t wr_id;
  ReceiveWork* next;
  Sge* sg_list;
  int num_sge;
};
struct Completion {
  std::uint64_t wr_id;
  Status status;
  DoneOpcode opcode;  ///< undefined unless status is success
  std::uint32_t vendor_err;
  std::uint32_t byte_len;
  std::uint32_t immediate;  ///< in network byte order
  std::uint32_t qp_num;
  std::uint32_t src_qp;
  unsigned wc_flags;
  std::uint16_t pkey_index;
  std::uint8_t unused[4];
};

/// ibv_context_ops: the functions that are called per message are reached through the context, not by name.
struct ContextOps {
  void* unused_0[7];
  Window* (*alloc_mw)(Pd* pd, WindowType type);
  void* unused_8;
  int (*dealloc_mw)(Window* window);
  void* unused_10;
  int (*poll_cq)(Cq* cq, int entries, Completion* completions);
  int (*req_notify_cq)(Cq* cq, int solicited_only);
  void* unused_13[12];
  int (*post_send)(Qp* qp, SendWork* work, SendWork** bad);
  int (*post_recv)(Qp* qp, ReceiveWork* work, ReceiveWork** bad);
  void* unused_27[5];
};
struct Context {
  Device* device;
  ContextOps ops;
  int cmd_fd;
  int async_fd;
  int num_comp_vectors;
  pthread_mutex_t mutex;
  void* abi_compat;
};

struct DeviceAttributes {
  char fw_ver[64];
  std::uint64_t node_guid;
  std::uint64_t sys_image_guid;
  std::uint64_t max_mr_size;
  std::uint64_t page_size_cap;
  std::uint32_t unused_96[3];
  int max_qp;
  int max_qp_wr;
  unsigned device_cap_flags;
  int max_sge;
  int max_sge_rd;
  int max_cq;
  int max_cqe;
  int max_mr;
  int max_pd;
  int unused[20];
  std::uint16_t max_pkeys;
  std::uint8_t local_ca_ack_delay;
  std::uint8_t phys_port_cnt;
};
struct PortAttributes {
  PortState state;
  int max_mtu;
  int active_mtu;
  int gid_tbl_len;
  std::uint32_t port_cap_flags;
  std::uint32_t max_msg_sz;
  std::uint32_t bad_pkey_cntr;
  std::uint32_t qkey_viol_cntr;
  std::uint16_t pkey_tbl_len;
  std::uint16_t lid;
  std::uint16_t sm_lid;
  std::uint8_t unused[5];
  std::uint8_t active_width;
  std::uint8_t active_speed;
  std::uint8_t phys_state;
  LinkLayer link_layer;
  std::uint8_t flags;
  std::uint16_t port_cap_flags2;
};
/// ibv_gid_entry
struct GidEntry {
  alignas(8) Gid gid;
  std::uint32_t gid_index;
  std::uint32_t port_num;
  GidType gid_type;
  std::uint32_t ndev_ifindex;  ///< of the network interface that it belongs to; 0: none
};

struct QpCapacity {
  std::uint32_t max_send_wr;
  std::uint32_t max_recv_wr;
  std::uint32_t max_send_sge;
  std::uint32_t max_recv_sge;
  std::uint32_t max_inline_data;
};
struct QpInit {
  void* qp_context;
  Cq* send_cq;
  Cq* recv_cq;
  Srq* srq;
  QpCapacity cap;
  QpType qp_type;
  int sq_sig_all;
};
struct GlobalRoute {
  Gid dgid;
  std::uint32_t flow_label;
  std::uint8_t sgid_index;
  std::uint8_t hop_limit;
  std::uint8_t traffic_class;
};
struct AddressHandle {
  alignas(8) GlobalRoute grh;
  std::uint16_t dlid;
  std::uint8_t unused[3];
  std::uint8_t is_global;
  std::uint8_t port_num;
};
struct QpAttributes {
  QpState qp_state;
  QpState cur_qp_state;
  int path_mtu;
  int path_mig_state;
  std::uint32_t qkey;
  std::uint32_t rq_psn;
  std::uint32_t sq_psn;
  std::uint32_t dest_qp_num;
  unsigned qp_access_flags;
  QpCapacity cap;
  AddressHandle ah_attr;
  AddressHandle alt_ah_attr;
  std::uint16_t pkey_index;
  std::uint16_t alt_pkey_index;
  std::uint8_t en_sqd_async_notify;
  std::uint8_t sq_draining;
  std::uint8_t max_rd_atomic;
  std::uint8_t max_dest_rd_atomic;
  std::uint8_t min_rnr_timer;
  std::uint8_t port_num;
  std::uint8_t timeout;
  std::uint8_t retry_cnt;
  std::uint8_t rnr_retry;
  std::uint8_t alt_port_num;
  std::uint8_t alt_timeout;
  std::uint32_t rate_limit;
};
/// ibv_async_event
struct AsyncEvent {
  union {
    Cq* cq;
    Qp* qp;
    Srq* srq;
    int port_num;
  };
  EventType type;
};

}  // namespace tutti::verbs
