// The id, or the reason why there is none, from rank 0 to the other ranks of one host, over a socket whose ends the
// kernel vouches for.
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/own_sockets.h"
#include "base/printable.h"
#include "base/unique_fd.h"
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

/// What rank 0 has to say: a letter, and the id or the reason why there is none.
constexpr char good = 'i';
constexpr char bad = 'e';
constexpr std::size_t reason_bytes_max = 400;
constexpr std::size_t word_bytes_max = 1 + reason_bytes_max;

std::string word_of(const Result<UniqueId>& id) {
  if (!id) return bad + id.error().text().substr(0, reason_bytes_max);
  const auto bytes = id->encode();
  return good + std::string(bytes.data(), bytes.size());
}

/// Nothing: it is cut off.
std::optional<Result<UniqueId>> read_word(const std::string& word) {
  if (word.size() > 1 && word.front() == bad)
    return Error{.code = Code::remote,
                 .what = "rank 0 could not open the meeting point: " + printable(word.substr(1), reason_bytes_max),
                 .peer = 0};
  if (word.size() != 1 + sizeof(std::declval<UniqueId>().encode()) || word.front() != good) return std::nullopt;
  return UniqueId::decode(word.data() + 1);
}

/// Hands the word to every other rank of the job, then ends.
class WordServer final : public Task {
 public:
  WordServer(System& system, UniqueSocket listener, std::string word, int ranks, std::int64_t deadline_ns)
      : system_(system),
        listener_(std::move(listener)),
        word_(std::move(word)),
        left_(ranks - 1),
        deadline_ns_(deadline_ns) {}

  bool advance() override {
    while (left_ > 0) {
      UniqueSocket peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer) break;
      // So few bytes fit any socket buffer, so this neither blocks nor is cut.
      if (same_user(peer.get()) &&
          ::send(peer.get(), word_.data(), word_.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word_.size()))
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
  std::string word_;
  int left_;
  std::int64_t deadline_ns_;
};

/// Rank 0 listens first, and keeps two descriptors back, for the service thread and for a caller: so it can say that it
/// has none left for the rest.
Result<UniqueId> serve_id(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  if (launch.ranks == 1) return open_root(process, /*across_hosts=*/false);
  UniqueSocket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Name name = socket_name(launch, nth);
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      ::listen(listener.get(), 1024) != 0)
    return failed(
        "open the socket on which rank 0 hands out the communicator's id (is another job of the same name running?)");
  std::array<UniqueFd, 2> kept;
  for (UniqueFd& one : kept) one = UniqueFd(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0));
  auto id = open_root(process, /*across_hosts=*/false);
  kept = {};
  auto server =
      std::make_shared<WordServer>(process.system, std::move(listener), word_of(id), launch.ranks, deadline_ns);
  if (auto added = process.service.add(server); !added) return id ? std::move(added).error() : std::move(id).error();
  // A process that cannot start ends soon, and the others may be about to ask.
  if (!id) process.farewells.add(std::shared_ptr<const Task>(server));
  return id;
}

/// One try; nothing when rank 0 is not there yet.
std::optional<Result<UniqueId>> try_fetch(const Name& name, System& system, std::int64_t deadline_ns) {
  UniqueSocket fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0)
    return std::nullopt;
  if (!same_user(fd.get())) return std::nullopt;
  std::array<char, word_bytes_max> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    PollItem item{.handle = fd.get(), .want_read = true};
    system.poll({&item, 1}, std::max<std::int64_t>(0, deadline_ns - system.now_ns()));
    const auto n = ::recv(fd.get(), bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return read_word(std::string(bytes.data(), got));
}

Result<UniqueId> fetch_id(Process& process, const LaunchInfo& launch, int nth, std::int64_t deadline_ns) {
  const Name name = socket_name(launch, nth);
  constexpr std::int64_t retry_ns = 5'000'000;
  while (process.system.now_ns() < deadline_ns) {
    if (auto id = try_fetch(name, process.system, deadline_ns)) return *std::move(id);
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
