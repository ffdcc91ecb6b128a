#include "transport/verbs/library.h"

#include <fcntl.h>

#include <fmt/format.h>

namespace tutti::verbs {
namespace {

Result<Dylib> open_library(const std::string& verbs) {
  if (!verbs.empty())
    if (auto same = Dylib::open({verbs.c_str()}); same && same->symbol<void()>("rdma_create_id") != nullptr)
      return *std::move(same);
  return Dylib::open({"librdmacm.so.1"});
}

template <class Table>
Result<std::shared_ptr<const Table>> loaded(Result<Dylib> dylib, const char* doing, const char* name) {
  if (!dylib) return std::move(dylib).error().during(doing);
  auto table = std::make_shared<const Table>(*std::move(dylib));
  if (table->missing != nullptr) return system_error(fmt::format("{} has no function {}", name, table->missing));
  return table;
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::load(const std::string& path) {
  const char* const name = path.empty() ? "libibverbs.so.1" : path.c_str();
  return loaded<Library>(Dylib::open({name}), "load libibverbs", name);
}

Result<std::shared_ptr<const CmLibrary>> CmLibrary::load(const std::string& verbs) {
  return loaded<CmLibrary>(open_library(verbs), "load librdmacm", "librdmacm");
}

bool stop_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace tutti::verbs
