#include "comm/given_up_rights.h"

#include <cstdint>

namespace tutti {
namespace {

// Bits of AreaHeader::gave_up. Who cannot map cannot pull either.
constexpr std::uint32_t pulling = 1;
constexpr std::uint32_t mapping = 2;

std::uint32_t given_up(const Peer& peer) {
  return peer.area.header().gave_up.load(std::memory_order_relaxed);
}

const Peer& self(const Membership& members) {
  return members.peers[static_cast<std::size_t>(members.rank)];
}

void give_up(Process& process, const Membership& members, std::uint32_t what) {
  const std::uint32_t before = self(members).area.header().gave_up.fetch_or(what, std::memory_order_relaxed);
  if ((before | what) == before) return;
  process.log.info(
      LogTopic::init, fmt::format("{} rank {}", members.name, members.rank),
      "this process has other rights than at the start (setuid, PR_SET_DUMPABLE, a seccomp filter): from "
      "now on data goes through slots where ranks would have {}. A communicator that is made now uses the "
      "rights of now",
      (what & mapping) != 0 ? "mapped or copied from each other's memory" : "copied from each other's memory");
}

}  // namespace

bool still_maps(Process& process, const Membership& members) {
  if (has_given_up_mapping(self(members))) return false;
  if (Rights::user_now() == members.rights.user) return true;
  give_up_mapping(process, members);
  return false;
}

bool still_pulls(Process& process, const Membership& members) {
  if (has_given_up_pulling(self(members))) return false;
  if (Rights::now() == members.rights) return true;
  give_up_pulling(process, members);
  return false;
}

void give_up_mapping(Process& process, const Membership& members) {
  give_up(process, members, mapping | pulling);
}

void give_up_pulling(Process& process, const Membership& members) {
  give_up(process, members, pulling);
}

bool has_given_up_mapping(const Peer& peer) {
  return (given_up(peer) & mapping) != 0;
}

bool has_given_up_pulling(const Peer& peer) {
  return (given_up(peer) & pulling) != 0;
}

}  // namespace tutti
