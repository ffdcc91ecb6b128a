// Are our declarations of librdmacm's binary interface those of its header? The compiler says so; nothing runs.
#include <gtest/gtest.h>

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "transport/verbs/cm_abi.h"

namespace tutti::verbs {
namespace {

#define SAME_FIELD(ours, our_field, theirs, their_field)                     \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(decltype(std::declval<ours>().our_field)) ==          \
                sizeof(decltype(std::declval<theirs>().their_field)))
#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))

static_assert(sizeof(CmChannel) == sizeof(rdma_event_channel));
SAME_FIELD(CmChannel, fd, rdma_event_channel, fd);

#define FIELD(name) SAME_FIELD(CmId, name, rdma_cm_id, name)
FIELD(verbs);
FIELD(channel);
FIELD(context);
FIELD(qp);
#undef FIELD

static_assert(sizeof(CmParameters) == sizeof(rdma_conn_param) && alignof(CmParameters) == alignof(rdma_conn_param));
#define FIELD(name) SAME_FIELD(CmParameters, name, rdma_conn_param, name)
FIELD(private_data);
FIELD(private_data_len);
FIELD(responder_resources);
FIELD(initiator_depth);
FIELD(flow_control);
FIELD(retry_count);
FIELD(rnr_retry_count);
FIELD(srq);
FIELD(qp_num);
#undef FIELD

// Events are the library's; it may make them longer.
#define FIELD(name) SAME_FIELD(CmEvent, name, rdma_cm_event, name)
FIELD(id);
FIELD(listen_id);
FIELD(event);
FIELD(status);
#undef FIELD
static_assert(offsetof(CmEvent, param) == offsetof(rdma_cm_event, param));

#define SAME_NAME(ours, theirs) SAME_NUMBER(CmEventType::ours, RDMA_CM_EVENT_##theirs)
SAME_NAME(address_resolved, ADDR_RESOLVED);
SAME_NAME(address_error, ADDR_ERROR);
SAME_NAME(route_resolved, ROUTE_RESOLVED);
SAME_NAME(route_error, ROUTE_ERROR);
SAME_NAME(connect_request, CONNECT_REQUEST);
SAME_NAME(connect_error, CONNECT_ERROR);
SAME_NAME(unreachable, UNREACHABLE);
SAME_NAME(rejected, REJECTED);
SAME_NAME(established, ESTABLISHED);
SAME_NAME(disconnected, DISCONNECTED);
SAME_NUMBER(CmPortSpace::tcp, RDMA_PS_TCP);

// --- how many parameters functions have, and of which size; rdma_get_src_port is a macro in some versions
template <class Result, class... Parameters>
constexpr auto sizes(Result (*)(Parameters...)) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are meant
  return std::array<std::size_t, sizeof...(Parameters) + 1>{std::is_void_v<Result> ? 0u : 1u, sizeof(Parameters)...};
}
template <class Ours, class Theirs>
constexpr bool same_call() {
  return sizes(static_cast<Ours*>(nullptr)) == sizes(static_cast<Theirs*>(nullptr));
}
#define X(result, name, parameters) static_assert(same_call<result parameters, decltype(::name)>());
#include "transport/verbs/cm_functions.inc"
#undef X

TEST(VerbsCmAbi, IsTheHeaders) {
  SUCCEED() << "compiled";
}

}  // namespace
}  // namespace tutti::verbs
