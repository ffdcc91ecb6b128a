// PMI-1 in the form of MPICH's hydra: lines of words.
#include <charconv>

#include <fmt/format.h>

#include "launch/key_value_space.h"
#include "launch/pmi_wire.h"

namespace tutti {
namespace {

class Pmi1 final : public KeyValueSpace {
 public:
  explicit Pmi1(PmiWire wire) : wire_(std::move(wire)) {}
  ~Pmi1() override {
    // Without this message, hydra takes the end of the process for a crash.
    if (greeted_) wire_.say_goodbye(PmiForm::line, "cmd=finalize", "finalize_ack");
  }

  Result<void> greet(std::int64_t deadline_ns);

  const char* name() const override { return "PMI-1"; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) override;
  Result<void> fence(std::int64_t deadline_ns) override;
  Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) override;

 private:
  Result<PmiWords> ask(const std::string& line, std::string_view answer, std::int64_t deadline_ns) {
    return wire_.ask(PmiForm::line, line, answer, deadline_ns);
  }

  PmiWire wire_;
  std::string space_;
  std::size_t value_bytes_max_ = 0;
  bool greeted_ = false;
};

Result<void> Pmi1::greet(std::int64_t deadline_ns) {
  TUTTI_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline_ns));
  greeted_ = true;
  auto maxes = TUTTI_TRY(ask("cmd=get_maxes", "maxes", deadline_ns));
  const std::string_view most = maxes.value("vallen_max");
  std::from_chars(most.data(), most.data() + most.size(), value_bytes_max_);
  auto space = TUTTI_TRY(ask("cmd=get_my_kvsname", "my_kvsname", deadline_ns));
  space_ = space.value("kvsname");
  if (space_.empty()) return Error{.code = Code::remote, .what = "the launcher has no name for its key-value space"};
  return {};
}

Result<void> Pmi1::put(const std::string& key, const std::string& value, std::int64_t deadline_ns) {
  if (value.size() >= value_bytes_max_)
    return Error{.code = Code::remote,
                 .what = fmt::format("the launcher keeps values of less than {} bytes, {} are needed", value_bytes_max_,
                                     value.size())};
  TUTTI_TRY(ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key, value), "put_result", deadline_ns));
  return {};
}

Result<void> Pmi1::fence(std::int64_t deadline_ns) {
  TUTTI_TRY(ask("cmd=barrier_in", "barrier_out", deadline_ns));
  return {};
}

Result<std::string> Pmi1::get(int /*rank*/, const std::string& key, std::int64_t deadline_ns) {
  auto got = TUTTI_TRY(ask(fmt::format("cmd=get kvsname={} key={}", space_, key), "get_result", deadline_ns));
  return std::string(got.value("value"));
}

}  // namespace

Result<std::unique_ptr<KeyValueSpace>> open_pmi1(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  auto wire = TUTTI_TRY(PmiWire::open(system, launch.pmi_fd));
  auto space = std::make_unique<Pmi1>(std::move(wire));
  if (auto greeted = space->greet(deadline_ns); !greeted) return std::move(greeted).error().during("PMI-1");
  return std::unique_ptr<KeyValueSpace>(std::move(space));
}

}  // namespace tutti
