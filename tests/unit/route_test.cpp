// All paths by which calls go, as a table that the documentation shows.
#include "submit/route.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr std::size_t least = std::size_t{64} * 1024;

/// As the documentation names it.
const char* name(Path path) {
  switch (path) {
    case Path::nothing: return "nothing";
    case Path::inside_host: return "inside a host";
    case Path::across_hosts: return "across hosts";
    case Path::single_launch: return "single launch";
    case Path::synchronising: return "synchronising kernels";
    case Path::released: return "released kernels";
    case Path::staged: return "host-staged";
  }
  return "";
}

struct Column {
  const char* text;
  DeviceFacts facts;
};

std::vector<Column> columns() {
  return {
      {"none", {.reach = DeviceReach::none}},
      {"single launch", {.reach = DeviceReach::single_launch}},
      {"synchronising, with messages",
       {.reach = DeviceReach::synchronising, .messages_by_kernels = true, .windows = true, .window_bytes_min = least}},
      {"synchronising", {.reach = DeviceReach::synchronising, .windows = true, .window_bytes_min = least}},
      {"released", {.reach = DeviceReach::released, .released_bytes_min = least}},
  };
}

struct Row {
  const char* text;
  RoutedCall call;
  bool on_device = true;
  bool spans_hosts = false;
};

std::vector<Row> rows() {
  using enum Collective;
  return {
      {"host memory, one host", {.collective = all_reduce, .bytes = 8}, false},
      {"host memory, several hosts", {.collective = all_reduce, .bytes = 8}, false, true},
      {"collective below 64 KiB", {.collective = all_reduce, .bytes = least - 1}},
      {"collective from 64 KiB", {.collective = all_reduce, .bytes = least}},
      {"pre-multiplied sum from 64 KiB", {.collective = all_reduce, .op = ReduceOp::pre_mul_sum, .bytes = least}},
      {"a count per rank", {.collective = all_to_all, .form = Form::counts, .bytes = 0}},
      {"scatter-gather", {.collective = all_to_all, .form = Form::scatter_gather, .bytes = 8}},
      {"barrier", {.collective = barrier}},
      {"collective of no elements", {.collective = all_reduce, .bytes = 0}},
      {"send or receive", {.message = true, .bytes = 8}},
      {"send or receive of no bytes", {.message = true, .bytes = 0}},
      {"send or receive, host memory", {.message = true, .bytes = 8}, false},
  };
}

std::string table() {
  std::string text = "| call |", rule = "| --- |";
  for (const Column& column : columns()) {
    text += fmt::format(" {} |", column.text);
    rule += " --- |";
  }
  text += "\n" + rule + "\n";
  for (const Row& row : rows()) {
    text += fmt::format("| {} |", row.text);
    for (const Column& column : columns()) {
      const Route found =
          route(row.call, row.on_device, {.spans_hosts = row.spans_hosts, .some_gpu = true, .device = column.facts});
      text += fmt::format(" {}{} |", name(found.path), found.offers_windows ? ", windows if all offer them" : "");
    }
    text += "\n";
  }
  return text;
}

TEST(Route, TheDocumentedTableIsTheOneThatCallsFollow) {
  for (const char* const page : {"docs/gpus.md", "docs/architecture.md"}) {
    std::ifstream file(std::string(TUTTI_SOURCE_DIR "/") + page);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(table()), std::string::npos) << page << " does not show this table:\n" << table();
  }
}

/// Where no rank has a GPU, calls without elements are calls: their ranks count them, and find out who makes another.
TEST(Route, OfNoElementsWithoutGpus) {
  const RoutedCall call{.collective = Collective::all_reduce, .bytes = 0};
  EXPECT_EQ(route(call, false, {}).path, Path::inside_host);
  EXPECT_EQ(route(call, false, {.spans_hosts = true}).path, Path::across_hosts);
  EXPECT_EQ(route({.message = true, .bytes = 0}, false, {}).path, Path::inside_host);
}

/// TUTTI_GPU_P2P=always.
TEST(Route, OfAnySizeByReleasedKernels) {
  const RouteFacts facts{.some_gpu = true, .device = {.reach = DeviceReach::released}};
  EXPECT_EQ(route({.collective = Collective::all_reduce, .bytes = 4}, true, facts).path, Path::released);
  EXPECT_EQ(route({.collective = Collective::barrier}, true, facts).path, Path::staged);
}

}  // namespace
}  // namespace tutti
