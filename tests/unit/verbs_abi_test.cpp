// Are our declarations of libibverbs' binary interface those of its header? The compiler says so; nothing runs.
#include <gtest/gtest.h>

#include <infiniband/verbs.h>

#include <cstddef>
#include <utility>

#include "transport/verbs/abi.h"

namespace tutti::verbs {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_FIELD(ours, our_field, theirs, their_field)                     \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(decltype(std::declval<ours>().our_field)) ==          \
                sizeof(decltype(std::declval<theirs>().their_field)))
#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))

// --- what objects hold
#define FIELD(name) SAME_FIELD(Pd, name, ibv_pd, name)
SAME_SIZE(Pd, ibv_pd);
FIELD(context);
FIELD(handle);
#undef FIELD

#define FIELD(name) SAME_FIELD(Mr, name, ibv_mr, name)
SAME_SIZE(Mr, ibv_mr);
FIELD(context);
FIELD(pd);
FIELD(addr);
FIELD(length);
FIELD(handle);
FIELD(lkey);
FIELD(rkey);
#undef FIELD

#define FIELD(name) SAME_FIELD(Window, name, ibv_mw, name)
SAME_SIZE(Window, ibv_mw);
FIELD(context);
FIELD(pd);
FIELD(rkey);
FIELD(handle);
FIELD(type);
#undef FIELD

#define FIELD(name) SAME_FIELD(CompletionChannel, name, ibv_comp_channel, name)
SAME_SIZE(CompletionChannel, ibv_comp_channel);
FIELD(context);
FIELD(fd);
FIELD(refcnt);
#undef FIELD

#define FIELD(name) SAME_FIELD(Cq, name, ibv_cq, name)
SAME_SIZE(Cq, ibv_cq);
FIELD(context);
FIELD(channel);
FIELD(cq_context);
FIELD(handle);
FIELD(cqe);
FIELD(mutex);
FIELD(cond);
FIELD(comp_events_completed);
FIELD(async_events_completed);
#undef FIELD

#define FIELD(name) SAME_FIELD(Qp, name, ibv_qp, name)
SAME_SIZE(Qp, ibv_qp);
FIELD(context);
FIELD(qp_context);
FIELD(pd);
FIELD(send_cq);
FIELD(recv_cq);
FIELD(srq);
FIELD(handle);
FIELD(qp_num);
FIELD(state);
FIELD(qp_type);
FIELD(mutex);
FIELD(cond);
FIELD(events_completed);
#undef FIELD

#define FIELD(name) SAME_FIELD(ContextOps, name, ibv_context_ops, name)
SAME_SIZE(ContextOps, ibv_context_ops);
FIELD(alloc_mw);
FIELD(dealloc_mw);
FIELD(poll_cq);
FIELD(req_notify_cq);
FIELD(post_send);
FIELD(post_recv);
#undef FIELD

#define FIELD(name) SAME_FIELD(Context, name, ibv_context, name)
SAME_SIZE(Context, ibv_context);
FIELD(device);
FIELD(ops);
FIELD(cmd_fd);
FIELD(async_fd);
FIELD(num_comp_vectors);
FIELD(mutex);
FIELD(abi_compat);
#undef FIELD

// --- what is posted and polled
#define FIELD(name) SAME_FIELD(Sge, name, ibv_sge, name)
SAME_SIZE(Sge, ibv_sge);
FIELD(addr);
FIELD(length);
FIELD(lkey);
#undef FIELD

#define FIELD(name) SAME_FIELD(SendWork, name, ibv_send_wr, name)
SAME_SIZE(SendWork, ibv_send_wr);
FIELD(wr_id);
FIELD(next);
FIELD(sg_list);
FIELD(num_sge);
FIELD(opcode);
FIELD(send_flags);
SAME_FIELD(SendWork, immediate, ibv_send_wr, imm_data);
SAME_FIELD(SendWork, rdma.remote_addr, ibv_send_wr, wr.rdma.remote_addr);
SAME_FIELD(SendWork, rdma.rkey, ibv_send_wr, wr.rdma.rkey);
SAME_FIELD(SendWork, rdma, ibv_send_wr, wr);
static_assert(offsetof(SendWork, unused) == offsetof(ibv_send_wr, qp_type));
SAME_FIELD(SendWork, immediate, ibv_send_wr, invalidate_rkey);
SAME_FIELD(SendWork, bind.window, ibv_send_wr, bind_mw.mw);
SAME_FIELD(SendWork, bind.rkey, ibv_send_wr, bind_mw.rkey);
SAME_FIELD(SendWork, bind.mr, ibv_send_wr, bind_mw.bind_info.mr);
SAME_FIELD(SendWork, bind.addr, ibv_send_wr, bind_mw.bind_info.addr);
SAME_FIELD(SendWork, bind.length, ibv_send_wr, bind_mw.bind_info.length);
SAME_FIELD(SendWork, bind.access, ibv_send_wr, bind_mw.bind_info.mw_access_flags);
#undef FIELD

#define FIELD(name) SAME_FIELD(ReceiveWork, name, ibv_recv_wr, name)
SAME_SIZE(ReceiveWork, ibv_recv_wr);
FIELD(wr_id);
FIELD(next);
FIELD(sg_list);
FIELD(num_sge);
#undef FIELD

#define FIELD(name) SAME_FIELD(Completion, name, ibv_wc, name)
SAME_SIZE(Completion, ibv_wc);
FIELD(wr_id);
FIELD(status);
FIELD(opcode);
FIELD(vendor_err);
FIELD(byte_len);
SAME_FIELD(Completion, immediate, ibv_wc, imm_data);
FIELD(qp_num);
FIELD(src_qp);
FIELD(wc_flags);
FIELD(pkey_index);
#undef FIELD

// --- what is asked and set
#define FIELD(name) SAME_FIELD(DeviceAttributes, name, ibv_device_attr, name)
SAME_SIZE(DeviceAttributes, ibv_device_attr);
FIELD(fw_ver);
FIELD(node_guid);
FIELD(sys_image_guid);
FIELD(max_mr_size);
FIELD(page_size_cap);
FIELD(max_qp);
FIELD(max_qp_wr);
FIELD(device_cap_flags);
FIELD(max_sge);
FIELD(max_sge_rd);
FIELD(max_cq);
FIELD(max_cqe);
FIELD(max_mr);
FIELD(max_pd);
FIELD(max_pkeys);
FIELD(local_ca_ack_delay);
FIELD(phys_port_cnt);
#undef FIELD

#define FIELD(name) SAME_FIELD(PortAttributes, name, ibv_port_attr, name)
FIELD(state);
FIELD(max_mtu);
FIELD(active_mtu);
FIELD(gid_tbl_len);
FIELD(port_cap_flags);
FIELD(max_msg_sz);
FIELD(bad_pkey_cntr);
FIELD(qkey_viol_cntr);
FIELD(pkey_tbl_len);
FIELD(lid);
FIELD(sm_lid);
FIELD(active_width);
FIELD(active_speed);
FIELD(phys_state);
FIELD(link_layer);
FIELD(flags);
FIELD(port_cap_flags2);
#undef FIELD
// The function that has always been exported writes no more than this; a later header's structure may be longer.
static_assert(sizeof(PortAttributes) <= sizeof(ibv_port_attr));

#define FIELD(name) SAME_FIELD(GidEntry, name, ibv_gid_entry, name)
SAME_SIZE(GidEntry, ibv_gid_entry);
FIELD(gid);
FIELD(gid_index);
FIELD(port_num);
FIELD(gid_type);
FIELD(ndev_ifindex);
#undef FIELD

#define FIELD(name) SAME_FIELD(QpCapacity, name, ibv_qp_cap, name)
SAME_SIZE(QpCapacity, ibv_qp_cap);
FIELD(max_send_wr);
FIELD(max_recv_wr);
FIELD(max_send_sge);
FIELD(max_recv_sge);
FIELD(max_inline_data);
#undef FIELD

#define FIELD(name) SAME_FIELD(QpInit, name, ibv_qp_init_attr, name)
SAME_SIZE(QpInit, ibv_qp_init_attr);
FIELD(qp_context);
FIELD(send_cq);
FIELD(recv_cq);
FIELD(srq);
FIELD(cap);
FIELD(qp_type);
FIELD(sq_sig_all);
#undef FIELD

#define FIELD(name) SAME_FIELD(GlobalRoute, name, ibv_global_route, name)
static_assert(sizeof(GlobalRoute) <= sizeof(ibv_global_route));  // ours is not aligned by itself
FIELD(dgid);
FIELD(flow_label);
FIELD(sgid_index);
FIELD(hop_limit);
FIELD(traffic_class);
#undef FIELD

#define FIELD(name) SAME_FIELD(AddressHandle, name, ibv_ah_attr, name)
SAME_SIZE(AddressHandle, ibv_ah_attr);
FIELD(dlid);
FIELD(is_global);
FIELD(port_num);
static_assert(offsetof(AddressHandle, grh) == offsetof(ibv_ah_attr, grh));
#undef FIELD

#define FIELD(name) SAME_FIELD(QpAttributes, name, ibv_qp_attr, name)
SAME_SIZE(QpAttributes, ibv_qp_attr);
FIELD(qp_state);
FIELD(cur_qp_state);
FIELD(path_mtu);
FIELD(path_mig_state);
FIELD(qkey);
FIELD(rq_psn);
FIELD(sq_psn);
FIELD(dest_qp_num);
FIELD(qp_access_flags);
FIELD(cap);
FIELD(ah_attr);
FIELD(alt_ah_attr);
FIELD(pkey_index);
FIELD(alt_pkey_index);
FIELD(en_sqd_async_notify);
FIELD(sq_draining);
FIELD(max_rd_atomic);
FIELD(max_dest_rd_atomic);
FIELD(min_rnr_timer);
FIELD(port_num);
FIELD(timeout);
FIELD(retry_cnt);
FIELD(rnr_retry);
FIELD(alt_port_num);
FIELD(alt_timeout);
FIELD(rate_limit);
#undef FIELD

SAME_SIZE(AsyncEvent, ibv_async_event);
SAME_FIELD(AsyncEvent, type, ibv_async_event, event_type);
SAME_FIELD(AsyncEvent, cq, ibv_async_event, element.cq);
SAME_FIELD(AsyncEvent, port_num, ibv_async_event, element.port_num);

// --- numbers
SAME_NUMBER(PortState::nop, IBV_PORT_NOP);
SAME_NUMBER(PortState::down, IBV_PORT_DOWN);
SAME_NUMBER(PortState::init, IBV_PORT_INIT);
SAME_NUMBER(PortState::armed, IBV_PORT_ARMED);
SAME_NUMBER(PortState::active, IBV_PORT_ACTIVE);
SAME_NUMBER(PortState::active_defer, IBV_PORT_ACTIVE_DEFER);
SAME_NUMBER(LinkLayer::unspecified, IBV_LINK_LAYER_UNSPECIFIED);
SAME_NUMBER(LinkLayer::infiniband, IBV_LINK_LAYER_INFINIBAND);
SAME_NUMBER(LinkLayer::ethernet, IBV_LINK_LAYER_ETHERNET);
SAME_NUMBER(GidType::infiniband, IBV_GID_TYPE_IB);
SAME_NUMBER(GidType::roce_v1, IBV_GID_TYPE_ROCE_V1);
SAME_NUMBER(GidType::roce_v2, IBV_GID_TYPE_ROCE_V2);
SAME_NUMBER(QpType::reliable, IBV_QPT_RC);
SAME_NUMBER(QpState::reset, IBV_QPS_RESET);
SAME_NUMBER(QpState::init, IBV_QPS_INIT);
SAME_NUMBER(QpState::ready_to_receive, IBV_QPS_RTR);
SAME_NUMBER(QpState::ready_to_send, IBV_QPS_RTS);
SAME_NUMBER(QpState::sq_drain, IBV_QPS_SQD);
SAME_NUMBER(QpState::sq_error, IBV_QPS_SQE);
SAME_NUMBER(QpState::error, IBV_QPS_ERR);
SAME_NUMBER(Transport::unknown, IBV_TRANSPORT_UNKNOWN);
SAME_NUMBER(Transport::infiniband, IBV_TRANSPORT_IB);
SAME_NUMBER(Transport::iwarp, IBV_TRANSPORT_IWARP);

SAME_NUMBER(qp_attribute::state, IBV_QP_STATE);
SAME_NUMBER(qp_attribute::access_flags, IBV_QP_ACCESS_FLAGS);
SAME_NUMBER(qp_attribute::pkey_index, IBV_QP_PKEY_INDEX);
SAME_NUMBER(qp_attribute::port, IBV_QP_PORT);
SAME_NUMBER(qp_attribute::av, IBV_QP_AV);
SAME_NUMBER(qp_attribute::path_mtu, IBV_QP_PATH_MTU);
SAME_NUMBER(qp_attribute::timeout, IBV_QP_TIMEOUT);
SAME_NUMBER(qp_attribute::retry_count, IBV_QP_RETRY_CNT);
SAME_NUMBER(qp_attribute::rnr_retry, IBV_QP_RNR_RETRY);
SAME_NUMBER(qp_attribute::rq_psn, IBV_QP_RQ_PSN);
SAME_NUMBER(qp_attribute::max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC);
SAME_NUMBER(qp_attribute::min_rnr_timer, IBV_QP_MIN_RNR_TIMER);
SAME_NUMBER(qp_attribute::sq_psn, IBV_QP_SQ_PSN);
SAME_NUMBER(qp_attribute::max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME_NUMBER(qp_attribute::dest_qpn, IBV_QP_DEST_QPN);
SAME_NUMBER(access_flag::local_write, IBV_ACCESS_LOCAL_WRITE);
SAME_NUMBER(access_flag::remote_write, IBV_ACCESS_REMOTE_WRITE);
SAME_NUMBER(access_flag::window_bind, IBV_ACCESS_MW_BIND);
SAME_NUMBER(device_capability::windows_2a, IBV_DEVICE_MEM_WINDOW_TYPE_2A);
SAME_NUMBER(device_capability::windows_2b, IBV_DEVICE_MEM_WINDOW_TYPE_2B);
SAME_NUMBER(WindowType::two, IBV_MW_TYPE_2);
SAME_NUMBER(send_flag::signaled, IBV_SEND_SIGNALED);
SAME_NUMBER(send_flag::inlined, IBV_SEND_INLINE);
SAME_NUMBER(with_immediate, IBV_WC_WITH_IMM);

SAME_NUMBER(WorkOpcode::rdma_write, IBV_WR_RDMA_WRITE);
SAME_NUMBER(WorkOpcode::rdma_write_with_immediate, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME_NUMBER(WorkOpcode::send, IBV_WR_SEND);
SAME_NUMBER(WorkOpcode::send_with_immediate, IBV_WR_SEND_WITH_IMM);
SAME_NUMBER(WorkOpcode::invalidate, IBV_WR_LOCAL_INV);
SAME_NUMBER(WorkOpcode::bind_window, IBV_WR_BIND_MW);
SAME_NUMBER(DoneOpcode::bind_window, IBV_WC_BIND_MW);
SAME_NUMBER(DoneOpcode::invalidate, IBV_WC_LOCAL_INV);
SAME_NUMBER(DoneOpcode::send, IBV_WC_SEND);
SAME_NUMBER(DoneOpcode::rdma_write, IBV_WC_RDMA_WRITE);
SAME_NUMBER(DoneOpcode::receive, IBV_WC_RECV);
SAME_NUMBER(DoneOpcode::receive_rdma_with_immediate, IBV_WC_RECV_RDMA_WITH_IMM);
SAME_NUMBER(Status::success, IBV_WC_SUCCESS);
SAME_NUMBER(Status::local_length_error, IBV_WC_LOC_LEN_ERR);
SAME_NUMBER(Status::local_qp_operation_error, IBV_WC_LOC_QP_OP_ERR);
SAME_NUMBER(Status::local_protection_error, IBV_WC_LOC_PROT_ERR);
SAME_NUMBER(Status::flushed, IBV_WC_WR_FLUSH_ERR);
SAME_NUMBER(Status::window_bind_error, IBV_WC_MW_BIND_ERR);
SAME_NUMBER(Status::remote_invalid_request, IBV_WC_REM_INV_REQ_ERR);
SAME_NUMBER(Status::remote_access_error, IBV_WC_REM_ACCESS_ERR);
SAME_NUMBER(Status::remote_operation_error, IBV_WC_REM_OP_ERR);
SAME_NUMBER(Status::retries_exceeded, IBV_WC_RETRY_EXC_ERR);
SAME_NUMBER(Status::rnr_retries_exceeded, IBV_WC_RNR_RETRY_EXC_ERR);
SAME_NUMBER(Status::fatal, IBV_WC_FATAL_ERR);
SAME_NUMBER(Status::general, IBV_WC_GENERAL_ERR);
SAME_NUMBER(EventType::cq_error, IBV_EVENT_CQ_ERR);
SAME_NUMBER(EventType::qp_fatal, IBV_EVENT_QP_FATAL);
SAME_NUMBER(EventType::qp_request_error, IBV_EVENT_QP_REQ_ERR);
SAME_NUMBER(EventType::qp_access_error, IBV_EVENT_QP_ACCESS_ERR);
SAME_NUMBER(EventType::device_fatal, IBV_EVENT_DEVICE_FATAL);
SAME_NUMBER(EventType::port_active, IBV_EVENT_PORT_ACTIVE);
SAME_NUMBER(EventType::port_error, IBV_EVENT_PORT_ERR);

TEST(VerbsAbi, IsTheHeaders) {
  SUCCEED() << "compiled";
}

}  // namespace
}  // namespace tutti::verbs
