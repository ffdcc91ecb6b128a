// The id from rank 0 to the other ranks of one host, over a socket whose ends the kernel vouches for.
#include <openssl/evp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/own_sockets.h"
#include "comm/meeting.h"
#include "comm/open_root.h"

namespace tutti {
namespace {

Error failed(const char* what) {
  return {.code = Code::system, .what = what, .sys_errno = errno};
}

struct Name {
  sockaddr_un address{};
  socklen_t length = 0;
};

/// No file: the name begins with a zero byte and goes with its socket.
Name socket_name(const LaunchInfo& launch, int nth) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const std::string text = fmt::format("{}|{}|{}|{}", ::getuid(), launch.job, launch.ranks, nth);
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  Name name;
  name.address.sun_family = AF_UNIX;
  std::string path = "tutti-";
  for (int i = 0; i < 16; ++i) path += fmt::format("{:02x}", digest[i]);
  std::memcpy(name.address.sun_path + 1, path.data(), path.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return name;
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::getuid();
}

/// Hands the id to every other rank of the job, then ends.
class IdServer final : public Task {
 public:
  IdServer(System& system, UniqueSocket listener, const UniqueId& id, int ranks, std::int64_t deadline_ns)
      : system_(system),
        listener_(std::move(listener)),
        id_(id.encode()),
        left_(ranks - 1),
        deadline_ns_(deadline_ns) {}

  bool advance() override {
    while (left_ > 0) {
      UniqueSocket peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer) break;
      // 128 bytes fit any socket buffer, so this neither blocks nor is cut.
      if (same_user(peer.get()) &&
          ::send(peer.get(), id_.data(), id_.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(id_.size()))
        --left_;
    }
    return left_ > 0 && system_.now_ns() < deadline_ns_;
  }
  std::int64_t interests(std::vector<PollItem>& items) override {
    items.push_back({.handle = listener_.get(), .want_read = true});
    return deadline_ns_;
  }

 private:
  System& system_;
  UniqueSocket listener_;
  std::array<char, 128> id_;
  int left_;
  std::int64_t deadline_ns_;
};

Result<UniqueId> serve_id(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  auto id = open_root(process, /*across_hosts=*/false);
  if (!id || launch.ranks == 1) return id;
  UniqueSocket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Name name = socket_name(launch, nth);
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      ::listen(listener.get(), 1024) != 0)
    return failed(
        "open the socket on which rank 0 hands out the communicator's id (is another job of the same name running?)");
  auto server = std::make_shared<IdServer>(process.system, std::move(listener), *id, launch.ranks, deadline_ns);
  if (auto added = process.service.add(std::move(server)); !added) return std::move(added).error();
  return id;
}

/// One try; nothing when rank 0 is not there yet.
std::optional<UniqueId> try_fetch(const Name& name, System& system, std::int64_t deadline_ns) {
  UniqueSocket fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0)
    return std::nullopt;
  if (!same_user(fd.get())) return std::nullopt;
  std::array<char, 128> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    PollItem item{.handle = fd.get(), .want_read = true};
    system.poll({&item, 1}, std::max<std::int64_t>(0, deadline_ns - system.now_ns()));
    const auto n = ::recv(fd.get(), bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
    if (n <= 0) return std::nullopt;
    got += static_cast<std::size_t>(n);
  }
  auto id = UniqueId::decode(bytes.data());
  if (!id) return std::nullopt;
  return *id;
}

Result<UniqueId> fetch_id(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  const Name name = socket_name(launch, nth);
  constexpr std::int64_t retry_ns = 5'000'000;
  while (process.system.now_ns() < deadline_ns) {
    if (auto id = try_fetch(name, process.system, deadline_ns)) return *id;
    process.system.poll({}, retry_ns);
  }
  return Error{.code = Code::timeout,
               .what = fmt::format("rank 0 of this {} job did not appear on this host; ranks on several hosts need "
                                   "TUTTI_COMM_ID and TUTTI_COMM_SECRET (or TUTTI_COMM_SECRET_FILE)",
                                   launch.launcher),
               .peer = 0};
}

}  // namespace

Result<UniqueId> meet_on_host(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  return launch.rank == 0 ? serve_id(process, launch, nth, deadline_ns) : fetch_id(process, launch, nth, deadline_ns);
}

}  // namespace tutti
