#include "topology/read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "topology/hwloc_source.h"
#include "topology/hwloc_xml.h"
#include "topology/nccl_xml.h"
#include "topology/smi_matrix.h"
#include "topology/xml.h"

namespace tutti::topology {
namespace {

constexpr std::string_view synthetic = "synthetic:";

Error failed(std::string_view doing, const std::string& path) {
  return Error{.code = Code::system, .what = fmt::format("{} {}", doing, path), .sys_errno = errno};
}

/// The name of the first element; empty where the text is no XML.
std::string_view root_of(std::string_view text) {
  while (true) {
    const std::size_t open = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (open == std::string_view::npos || text[open] != '<') return {};
    text.remove_prefix(open);
    const bool comment = text.starts_with("<!--");
    if (!comment && !text.starts_with("<?") && !text.starts_with("<!")) break;
    const std::size_t end = text.find(comment ? "-->" : ">");
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + (comment ? 3 : 1));
  }
  text.remove_prefix(1);
  return text.substr(0, text.find_first_of(" \t\r\n/>"));
}

Result<Topology> read_any(std::string_view text) {
  const std::string_view root = root_of(text);
  if (root == "topology") return read_hwloc(text);
  if (root == "system" || root == "cpu" || root == "pci") return read_nccl(text);
  const auto refused = [](std::string_view why) {
    return Error{.code = Code::invalid_argument, .what = fmt::format("line 1: {}", why)};
  };
  if (root == "graphs") return refused("these are channels that NCCL chose, not a machine");
  if (!root.empty())
    return refused(fmt::format("<{}> is no machine that NCCL, RCCL or hwloc wrote", root.substr(0, 40)));
  if (text.starts_with("<") || text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return refused("there is nothing in it");
  auto matrix = read_smi(text);
  if (matrix || matrix.error().what.find("no matrix") == std::string::npos) return matrix;
  return refused("neither XML nor a matrix of nvidia-smi topo -m");
}

}  // namespace

Result<Topology> read(std::string_view text, const std::string& origin) {
  auto topology = read_any(text);
  if (!topology) return std::move(topology).error().during(origin);
  topology->origin = origin;
  return topology;
}

Result<Topology> read_machine(const std::string& path) {
  if (path.starts_with(synthetic)) {
    auto topology = read_synthetic(std::string_view(path).substr(synthetic.size()));
    if (topology) topology->origin = path;
    return topology;
  }
  const auto text = read_text(path);
  if (!text) return text.error();
  return read(*text, path);
}

Result<std::string> read_text(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failed("open", path);
  struct stat about = {};
  if (::fstat(fd.get(), &about) != 0) return failed("look at", path);
  if (S_ISDIR(about.st_mode)) return Error{.code = Code::invalid_argument, .what = path + ": is a directory"};
  std::string text;
  constexpr std::size_t piece = 1 << 16;
  while (true) {  // files of /sys say that they are longer than they are
    const std::size_t have = text.size();
    text.resize(have + piece);
    const ssize_t got = ::read(fd.get(), text.data() + have, piece);
    if (got < 0 && errno != EINTR) return failed("read", path);
    text.resize(have + static_cast<std::size_t>(got > 0 ? got : 0));
    if (text.size() > bytes_max) return Error{.code = Code::invalid_argument, .what = path + ": is larger than 16 MiB"};
    if (got == 0) return text;
  }
}

Result<void> write_text(const std::string& path, std::string_view text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return failed("create", path);
  while (!text.empty()) {
    const ssize_t put = ::write(fd.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace tutti::topology
