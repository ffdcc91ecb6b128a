#include "comm/given_up_rights.h"

namespace tutti {
namespace {

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
      (what & gave_up_mapping) != 0 ? "mapped or copied from each other's memory" : "copied from each other's memory");
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
  give_up(process, members, gave_up_pulling);
  return false;
}

void give_up_mapping(Process& process, const Membership& members) {
  give_up(process, members, gave_up_mapping | gave_up_pulling);
}

}  // namespace tutti
