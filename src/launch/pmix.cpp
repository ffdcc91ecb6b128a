// PMIx, through the library that belongs to the launcher, loaded if it is installed.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/blocked_signal.h"
#include "base/descriptors.h"
#include "base/dylib.h"
#include "base/printable.h"
#include "launch/key_value_space.h"
#include "launch/pmix_abi.h"

namespace tutti {
namespace {

struct Library {
  Dylib file;
  pmix::InitFunction* init = nullptr;
  pmix::FinalizeFunction* finalize = nullptr;
  pmix::PutFunction* put = nullptr;
  pmix::CommitFunction* commit = nullptr;
  pmix::FenceFunction* fence = nullptr;
  pmix::GetFunction* get = nullptr;
  pmix::StatusTextFunction* status_text = nullptr;

  Error failed(const char* what, pmix::Status status) const {
    const char* const words = status_text == nullptr ? nullptr : status_text(status);
    return remote_error(fmt::format("{}: {} ({})", what, words == nullptr ? "?" : printable(words, 200), status));
  }
};

Result<Library> load() {
  Library library;
  library.file = TUTTI_TRY(Dylib::open({"libpmix.so.2", "libpmix.so"}));
  const Dylib& file = library.file;
  auto* const version = file.symbol<pmix::VersionFunction>("PMIx_Get_version");
  (void)file.load(library.status_text, "PMIx_Error_string");
  if (!version || !file.load(library.init, "PMIx_Init") || !file.load(library.finalize, "PMIx_Finalize") ||
      !file.load(library.put, "PMIx_Put") || !file.load(library.commit, "PMIx_Commit") ||
      !file.load(library.fence, "PMIx_Fence_nb") || !file.load(library.get, "PMIx_Get_nb"))
    return system_error("libpmix lacks functions of the standard");
  // "OpenPMIx 4.2.2 (…", "PMIx 3.1.5": the layout of values is known for versions 3 to 5.
  const std::string said = version();
  const auto digit = std::min(said.find_first_of("0123456789"), said.size());
  if (const int major = std::atoi(said.c_str() + digit); major < 3 || major > 5)
    return system_error(fmt::format("libpmix is \"{}\": versions 3 to 5 are known", printable(said, 100)));
  return library;
}

/// The result that a callback on libpmix's own thread stores. The callback may come after the caller has given up, so
/// both hold the object.
class Answer {
 public:
  void arrive(pmix::Status status, const pmix::Value* value) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    if (value != nullptr && value->type == pmix::type_string && value->string != nullptr) text_ = value->string;
    if (value != nullptr && value->type == pmix::type_uint32) number_ = value->uint32;
    if (value != nullptr && value->type == pmix::type_uint16) number_ = value->uint16;
    here_ = true;
    changed_.notify_all();
  }
  bool wait(std::int64_t limit_ns) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(limit_ns, 0)),
                             [&] { return here_; });
  }
  pmix::Status status() const { return status_; }
  const std::string& text() const { return text_; }
  std::int64_t number() const { return number_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool here_ = false;
  pmix::Status status_ = pmix::success;
  std::string text_;
  std::int64_t number_ = -1;
};

using Held = std::shared_ptr<Answer>;

void arrived(pmix::Status status, pmix::Value* value, void* context) {
  const std::unique_ptr<Held> held(static_cast<Held*>(context));
  (*held)->arrive(status, value);
}

void arrived_alone(pmix::Status status, void* context) {
  arrived(status, nullptr, context);
}

pmix::Process process_of(const char* space, std::uint32_t rank) {
  pmix::Process process{};
  std::memcpy(process.space, space, std::min(std::strlen(space), sizeof process.space - 1));
  process.rank = rank;
  return process;
}

class Pmix final : public KeyValueSpace {
 public:
  Pmix(System& system, Library library) : system_(system), library_(std::move(library)) {}
  ~Pmix() override {
    if (greeted_) library_.finalize(nullptr, 0);
  }

  Result<void> greet(const LaunchInfo& launch, std::int64_t deadline_ns) {
    pmix::Status status = pmix::success;
    {
      const AllSignalsBlocked for_its_thread;
      const HeldStdio held;  // for its connection to the launcher
      status = library_.init(&self_, nullptr, 0);
    }
    if (status != pmix::success) return library_.failed("PMIx_Init", status);
    greeted_ = true;
    if (self_.rank != static_cast<std::uint32_t>(launch.rank))
      return invalid_usage(fmt::format("PMIx says rank {}, the environment rank {}", self_.rank, launch.rank));
    auto size = TUTTI_TRY(ask(pmix::any_rank, "pmix.job.size", deadline_ns));
    const std::int64_t ranks = size->number();
    if (ranks <= launch.rank || ranks > INT32_MAX || (launch.ranks > 0 && ranks != launch.ranks))
      return invalid_usage(fmt::format("PMIx says {} ranks, the environment {}", ranks, launch.ranks));
    ranks_ = static_cast<int>(ranks);
    return {};
  }

  const char* name() const override { return "PMIx"; }
  int ranks() const override { return ranks_; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t /*deadline_ns*/) override {
    pmix::Value held{};
    held.type = pmix::type_string;
    held.string = const_cast<char*>(value.c_str());  // libpmix copies it
    if (const auto status = library_.put(pmix::scope_global, key.c_str(), &held); status != pmix::success)
      return library_.failed("PMIx_Put", status);
    if (const auto status = library_.commit(); status != pmix::success) return library_.failed("PMIx_Commit", status);
    return {};
  }
  Result<void> fence(std::int64_t deadline_ns) override {
    pmix::Info collect{};
    std::strcpy(collect.key, "pmix.collect");
    collect.value.type = pmix::type_bool;
    collect.value.flag = true;
    TUTTI_TRY(wait_for("PMIx_Fence", deadline_ns,
                       [&](void* context) { return library_.fence(nullptr, 0, &collect, 1, arrived_alone, context); }));
    return {};
  }
  Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) override {
    return TUTTI_TRY(ask(static_cast<std::uint32_t>(rank), key.c_str(), deadline_ns))->text();
  }

 private:
  Result<Held> ask(std::uint32_t rank, const char* key, std::int64_t deadline_ns) {
    const auto of = process_of(self_.space, rank);
    return wait_for(key, deadline_ns,
                    [&](void* context) { return library_.get(&of, key, nullptr, 0, arrived, context); });
  }
  /// Starts an operation that ends in a callback with `context`, and waits for the callback.
  template <class Start>
  Result<Held> wait_for(const char* what, std::int64_t deadline_ns, Start start) {
    auto answer = std::make_shared<Answer>();
    auto context = std::make_unique<Held>(answer);
    const pmix::Status status = start(context.get());
    if (status == pmix::success) {
      [[maybe_unused]] const Held* const callbacks_own = context.release();
      if (!answer->wait(deadline_ns - system_.now_ns()))
        return Error{.code = Code::timeout,
                     .what = fmt::format("{}: no answer in time (all ranks have to start for it)", what)};
      if (answer->status() != pmix::success) return library_.failed(what, answer->status());
    } else if (status != pmix::done_at_once) {
      return library_.failed(what, status);
    }
    return answer;
  }

  System& system_;
  Library library_;
  pmix::Process self_{};
  int ranks_ = 0;
  bool greeted_ = false;
};

}  // namespace

Result<std::shared_ptr<KeyValueSpace>> open_pmix(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  auto library = load();
  if (!library) return std::move(library).error().during("load libpmix");
  auto space = std::make_shared<Pmix>(system, *std::move(library));
  if (auto greeted = space->greet(launch, deadline_ns); !greeted) return std::move(greeted).error().during("PMIx");
  return std::shared_ptr<KeyValueSpace>(std::move(space));
}

}  // namespace tutti
