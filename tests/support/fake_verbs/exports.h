// The functions of libibverbs that the fake exports, as the real library declares them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/verbs/abi.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the real library's names
#pragma GCC visibility push(default)
extern "C" {

tutti::verbs::Device** ibv_get_device_list(int* count);
void ibv_free_device_list(tutti::verbs::Device** list);
const char* ibv_get_device_name(tutti::verbs::Device* device);
tutti::verbs::Context* ibv_open_device(tutti::verbs::Device* device);
int ibv_close_device(tutti::verbs::Context* context);
int ibv_query_device(tutti::verbs::Context* context, tutti::verbs::DeviceAttributes* attributes);
int ibv_query_port(tutti::verbs::Context* context, std::uint8_t port, tutti::verbs::PortAttributes* attributes);
int ibv_query_gid(tutti::verbs::Context* context, std::uint8_t port, int index, tutti::verbs::Gid* gid);
int _ibv_query_gid_ex(tutti::verbs::Context* context, std::uint32_t port, std::uint32_t index,
                      tutti::verbs::GidEntry* entry, std::uint32_t flags, std::size_t entry_size);
tutti::verbs::Pd* ibv_alloc_pd(tutti::verbs::Context* context);
int ibv_dealloc_pd(tutti::verbs::Pd* pd);
tutti::verbs::Mr* ibv_reg_mr(tutti::verbs::Pd* pd, void* addr, std::size_t length, int access);
tutti::verbs::Mr* ibv_reg_mr_iova2(tutti::verbs::Pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                                   unsigned access);
int ibv_dereg_mr(tutti::verbs::Mr* mr);
tutti::verbs::CompletionChannel* ibv_create_comp_channel(tutti::verbs::Context* context);
int ibv_destroy_comp_channel(tutti::verbs::CompletionChannel* channel);
tutti::verbs::Cq* ibv_create_cq(tutti::verbs::Context* context, int entries, void* cq_context,
                                tutti::verbs::CompletionChannel* channel, int vector);
int ibv_destroy_cq(tutti::verbs::Cq* cq);
int ibv_get_cq_event(tutti::verbs::CompletionChannel* channel, tutti::verbs::Cq** cq, void** cq_context);
void ibv_ack_cq_events(tutti::verbs::Cq* cq, unsigned count);
tutti::verbs::Qp* ibv_create_qp(tutti::verbs::Pd* pd, tutti::verbs::QpInit* init);
int ibv_modify_qp(tutti::verbs::Qp* qp, tutti::verbs::QpAttributes* attributes, int mask);
int ibv_query_qp(tutti::verbs::Qp* qp, tutti::verbs::QpAttributes* attributes, int mask, tutti::verbs::QpInit* init);
int ibv_destroy_qp(tutti::verbs::Qp* qp);
int ibv_get_async_event(tutti::verbs::Context* context, tutti::verbs::AsyncEvent* event);
void ibv_ack_async_event(tutti::verbs::AsyncEvent* event);
int ibv_fork_init();
int ibv_is_fork_initialized();
const char* ibv_wc_status_str(tutti::verbs::Status status);
const char* ibv_event_type_str(tutti::verbs::EventType type);
}
#pragma GCC visibility pop
// NOLINTEND(bugprone-reserved-identifier)
