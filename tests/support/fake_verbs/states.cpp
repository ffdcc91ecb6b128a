#include "states.h"

#include <cerrno>
#include <initializer_list>

#include "identity.h"

namespace tutti::testing::fake_verbs {
namespace {

namespace q = verbs::qp_attribute;
using verbs::QpState;

struct Change {
  QpState from, to;
  int needed, allowed;  ///< besides the state
};

constexpr int connection = q::av | q::path_mtu | q::dest_qpn | q::rq_psn | q::max_dest_rd_atomic | q::min_rnr_timer;
constexpr int sending = q::timeout | q::retry_count | q::rnr_retry | q::sq_psn | q::max_rd_atomic;
constexpr int current_state = 1 << 1;

constexpr std::initializer_list<Change> changes = {
    {QpState::reset, QpState::init, q::pkey_index | q::port | q::access_flags, 0},
    {QpState::init, QpState::init, 0, q::pkey_index | q::port | q::access_flags},
    {QpState::init, QpState::ready_to_receive, connection, q::pkey_index | q::access_flags},
    {QpState::ready_to_receive, QpState::ready_to_send, sending, current_state | q::access_flags | q::min_rnr_timer},
    {QpState::ready_to_send, QpState::ready_to_send, 0, current_state | q::access_flags | q::min_rnr_timer}};

bool allowed(QpState from, QpState to, int mask) {
  if (to == QpState::reset || to == QpState::error) return mask == q::state;
  for (const Change& change : changes)
    if (change.from == from && change.to == to)
      return (mask & change.needed) == change.needed && (mask & ~(change.needed | change.allowed | q::state)) == 0;
  return false;
}

/// The way to the peer: over Ethernet by a GID, of one's own that exists.
bool is_way(const QueuePair& pair, const verbs::AddressHandle& way) {
  const FakeDevice& device = pair.open().own_device;
  const PortIdentity own = identity_of(device.settings, device.number);
  if (way.port_num != 1) return false;
  if (way.is_global == 0) return own.layer == verbs::LinkLayer::infiniband && way.dlid != 0;
  return way.grh.sgid_index < gid_count && own.gids[way.grh.sgid_index] != verbs::Gid{} && way.grh.dgid != verbs::Gid{};
}

bool in_range(const QueuePair& pair, const verbs::QpAttributes& attributes, int mask) {
  constexpr int most_mtu = 5, most_reads = 16, most_retries = 7, most_timer = 31;
  const auto names = [mask](int bit) { return (mask & bit) != 0; };
  if (names(q::port) && attributes.port_num != 1) return false;
  if (names(q::pkey_index) && attributes.pkey_index != 0) return false;
  if (names(q::path_mtu) && (attributes.path_mtu < 1 || attributes.path_mtu > most_mtu)) return false;
  if (names(q::path_mtu) && attributes.path_mtu > pair.open().own_device.settings.mtu) return false;
  if (names(q::av) && !is_way(pair, attributes.ah_attr)) return false;
  if (names(q::max_rd_atomic) && attributes.max_rd_atomic > most_reads) return false;
  if (names(q::max_dest_rd_atomic) && attributes.max_dest_rd_atomic > most_reads) return false;
  if (names(q::timeout) && attributes.timeout > most_timer) return false;
  if (names(q::min_rnr_timer) && attributes.min_rnr_timer > most_timer) return false;
  if (names(q::retry_count) && attributes.retry_cnt > most_retries) return false;
  return !names(q::rnr_retry) || attributes.rnr_retry <= most_retries;
}

}  // namespace

int check_change(const QueuePair& pair, QpState from, QpState to, const verbs::QpAttributes& attributes, int mask) {
  return allowed(from, to, mask) && in_range(pair, attributes, mask) ? 0 : EINVAL;
}

void take(verbs::QpAttributes& own, const verbs::QpAttributes& attributes, int mask) {
  const auto names = [mask](int bit) { return (mask & bit) != 0; };
  if (names(q::access_flags)) own.qp_access_flags = attributes.qp_access_flags;
  if (names(q::pkey_index)) own.pkey_index = attributes.pkey_index;
  if (names(q::port)) own.port_num = attributes.port_num;
  if (names(q::av)) own.ah_attr = attributes.ah_attr;
  if (names(q::path_mtu)) own.path_mtu = attributes.path_mtu;
  if (names(q::timeout)) own.timeout = attributes.timeout;
  if (names(q::retry_count)) own.retry_cnt = attributes.retry_cnt;
  if (names(q::rnr_retry)) own.rnr_retry = attributes.rnr_retry;
  if (names(q::rq_psn)) own.rq_psn = attributes.rq_psn;
  if (names(q::sq_psn)) own.sq_psn = attributes.sq_psn;
  if (names(q::max_rd_atomic)) own.max_rd_atomic = attributes.max_rd_atomic;
  if (names(q::max_dest_rd_atomic)) own.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  if (names(q::min_rnr_timer)) own.min_rnr_timer = attributes.min_rnr_timer;
  if (names(q::dest_qpn)) own.dest_qp_num = attributes.dest_qp_num;
}

}  // namespace tutti::testing::fake_verbs
