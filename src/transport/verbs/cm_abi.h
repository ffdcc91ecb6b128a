// The part of librdmacm's binary interface that tutti uses, declared here as that of libibverbs is (abi.h); it has not
// changed since 2010 (RDMACM_1.0). verbs_abi_test compares it with rdma-core's <rdma/rdma_cma.h> where that is
// installed.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "transport/verbs/abi.h"

namespace tutti::verbs {

/// rdma_port_space
enum class CmPortSpace : int { tcp = 0x0106 };

/// rdma_cm_event_type
enum class CmEventType : int {
  address_resolved = 0,
  address_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_error = 6,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10
};

/// rdma_event_channel
struct CmChannel {
  int fd;
};

/// The beginning of rdma_cm_id. The device is open a second time there, by librdmacm.
struct CmId {
  Context* verbs;
  CmChannel* channel;
  void* context;
  Qp* qp;
};

/// rdma_conn_param
struct CmParameters {
  const void* private_data;
  std::uint8_t private_data_len;
  std::uint8_t responder_resources;
  std::uint8_t initiator_depth;
  std::uint8_t flow_control;
  std::uint8_t retry_count;
  std::uint8_t rnr_retry_count;
  std::uint8_t srq;
  std::uint32_t qp_num;  ///< of a queue pair that librdmacm did not make
};

/// rdma_cm_event
struct CmEvent {
  CmId* id;
  CmId* listen_id;
  CmEventType event;
  int status;
  union {
    CmParameters conn;
    std::uint64_t unused[9];  ///< of datagrams
  } param;
};

}  // namespace tutti::verbs
