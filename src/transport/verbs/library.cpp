#include "transport/verbs/library.h"

#include <fmt/format.h>

namespace tutti::verbs {
namespace {

Result<Dylib> open_library(const std::string& verbs) {
  if (!verbs.empty())
    if (auto same = Dylib::open({verbs.c_str()}); same && same->symbol<void()>("rdma_create_id") != nullptr)
      return *std::move(same);
  return Dylib::open({"librdmacm.so.1"});
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::load(const std::string& path) {
  const char* const name = path.empty() ? "libibverbs.so.1" : path.c_str();
  auto dylib = Dylib::open({name});
  if (!dylib) return std::move(dylib).error().during("load libibverbs");
  auto library = std::make_shared<Library>();
  library->dylib = *std::move(dylib);
  const char* missing = nullptr;
#define X(result, function, parameters) \
  if (!library->dylib.load(library->function, #function)) missing = #function;
#include "transport/verbs/functions.inc"
#undef X
  if (missing != nullptr)
    return Error{.code = Code::system, .what = fmt::format("{} has no function {}", name, missing)};
  library->ibv_query_gid_ex =
      library->dylib.symbol<int(Context*, std::uint32_t, std::uint32_t, GidEntry*, std::uint32_t, std::size_t)>(
          "_ibv_query_gid_ex");
  return std::shared_ptr<const Library>(std::move(library));
}

Result<std::shared_ptr<const CmLibrary>> CmLibrary::load(const std::string& verbs) {
  auto dylib = open_library(verbs);
  if (!dylib) return std::move(dylib).error().during("load librdmacm");
  auto library = std::make_shared<CmLibrary>();
  library->dylib = *std::move(dylib);
  const char* missing = nullptr;
#define X(result, function, parameters) \
  if (!library->dylib.load(library->function, #function)) missing = #function;
#include "transport/verbs/cm_functions.inc"
#undef X
  if (missing != nullptr)
    return Error{.code = Code::system, .what = fmt::format("librdmacm has no function {}", missing)};
  return std::shared_ptr<const CmLibrary>(std::move(library));
}

}  // namespace tutti::verbs
